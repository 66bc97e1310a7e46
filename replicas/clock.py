"""The time that decisions are made with: steady between boots, so that a stepped wall clock kills nothing.

The first reader after a boot notes the wall clock beside the kernel's boot clock in `<home>/run/clock.json`; from then
on every process of the home adds the boot clock to that note. The shown time follows the wall clock as it was then.
"""

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

_anchors: dict[Path, float] = {}


def boot_id() -> str:
    """The kernel's name for this boot; empty where it gives none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def anchor(path: Path) -> float:
    """Seconds to add to the boot clock, as noted in `path`; noted now when this boot has no note yet."""
    boot = boot_id()
    try:
        note = json.loads(path.read_text())
        if note["boot"] == boot:
            return float(note["offset"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no note, or a note of another boot or of an older shape: it is written anew below
    offset = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(json.dumps({"boot": boot, "offset": offset}))
    try:
        os.link(draft, path)
    except FileExistsError:
        try:
            current = json.loads(path.read_text())
        except (OSError, ValueError):
            current = {}
        if current.get("boot") == boot:
            offset = float(current["offset"])
        else:
            os.replace(draft, path)
            return offset
    draft.unlink(missing_ok=True)
    return offset


def now(run_dir: Path | None = None) -> datetime:
    """The current time, aware, UTC. `run_dir` defaults to the run directory of the settings."""
    if run_dir is None:
        from django.conf import settings

        run_dir = settings.ROLLCALL.run
    offset = _anchors.get(run_dir)
    if offset is None:
        offset = _anchors[run_dir] = anchor(run_dir / "clock.json")
    return datetime.fromtimestamp(offset + time.clock_gettime(time.CLOCK_BOOTTIME), tz=UTC)
