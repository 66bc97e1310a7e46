"""The environment of a replica and of its setup: clean, and the same whatever environment the control plane has."""

import os
import pwd
import shutil
from collections.abc import Mapping
from pathlib import Path

from replicas.providers.base import LaunchOrder
from replicas.providers.control import PYTHON

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def base(home: Path, own_home: Path, venv: Path | None) -> dict[str, str]:
    """What every command gets. `own_home` becomes HOME; caches and tool settings (pip's index, say) stay the
    operator's, so that ten replicas download a model once."""
    operator = operator_home()
    values = {
        "PATH": path(),
        "HOME": str(own_home),
        "LANG": os.environ.get("LANG") or "C.UTF-8",
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(operator / ".cache"),
        "XDG_CONFIG_HOME": os.environ.get("XDG_CONFIG_HOME") or str(operator / ".config"),
        "PYTHONUNBUFFERED": "1",  # what a replica prints is to be seen at once, as SkyPilot has it
        "ROLLCALL_HOME": str(home),
    }
    return values | activated(values, venv)


def of_run(order: LaunchOrder, home: Path, own_home: Path, venv: Path | None, port: int) -> dict[str, str]:
    """The environment of `run`. What the spec gives wins over what we give, except for our own names."""
    given = {**base(home, own_home, None), **skypilot(order), "PORT": str(port), **order.env, **order.secrets}
    return given | activated(given, venv) | {"PORT": str(port)} | own(order, home)


def of_setup(order: LaunchOrder, home: Path, own_home: Path, venv: Path, per_version: bool) -> dict[str, str]:
    """The environment of `setup`; what runs once for all replicas of a version has no replica's number and uid."""
    given = {**base(home, own_home, None), **skypilot(order), **order.env, **order.secrets}
    if per_version:
        del given["SKYPILOT_SERVE_REPLICA_ID"], given["SKYPILOT_TASK_ID"]
        mine = {
            "ROLLCALL_HOME": str(home),
            "ROLLCALL_SERVICE": order.service,
            "ROLLCALL_SETUP_VERSION": order.version_uid,
        }
    else:
        mine = own(order, home)
    return given | activated(given, venv) | mine


def own(order: LaunchOrder, home: Path) -> dict[str, str]:
    """By what a replica's processes are found from outside."""
    return {
        "ROLLCALL_HOME": str(home),
        "ROLLCALL_REPLICA_UID": order.replica_uid,
        "ROLLCALL_SERVICE": order.service,
    }


def skypilot(order: LaunchOrder) -> dict[str, str]:
    """The variables that SkyPilot and SkyServe promise to a task, where one replica is one machine."""
    return {
        "SKYPILOT_SERVE_REPLICA_ID": str(order.number),
        "SKYPILOT_NUM_NODES": "1",
        "SKYPILOT_NODE_IPS": "127.0.0.1",
        "SKYPILOT_NODE_RANK": "0",
        "SKYPILOT_NUM_GPUS_PER_NODE": "0",
        "SKYPILOT_TASK_ID": f"{order.service}-{order.version}-{order.number}-{order.replica_uid[:8]}",
    }


def activated(values: Mapping[str, str], venv: Path | None) -> dict[str, str]:
    """What activating a virtual environment changes."""
    if venv is None:
        return {}
    return {"PATH": f"{venv / 'bin'}:{values['PATH']}", "VIRTUAL_ENV": str(venv)}


def path() -> str:
    """The system's PATH. On a machine whose only Python 3 is elsewhere, the one that runs us is appended."""
    if shutil.which("python3", path=SYSTEM_PATH):
        return SYSTEM_PATH
    return f"{SYSTEM_PATH}:{Path(PYTHON).resolve().parent}"


def operator_home() -> Path:
    """The home directory of whoever runs the control plane."""
    given = os.environ.get("HOME")
    return Path(given) if given else Path(pwd.getpwuid(os.getuid()).pw_dir)
