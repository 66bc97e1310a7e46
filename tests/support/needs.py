"""Parts of the machine that some tests need. Where one is missing they are skipped; in CI that is a failure."""

import os
import shutil

import pytest

PROGRAMS = {
    "chromium": "/usr/bin/chromium",
    "git": "git",
    "dockerd": "dockerd",
    "redis-server": "redis-server",
    "faketime": "faketime",
}


def needs(part: str) -> pytest.MarkDecorator:
    """Mark a test (or, as `pytestmark`, a module) that needs the program."""
    return pytest.mark.needs(part)


def check(part: str) -> None:
    """Skip the running test if the part is missing; fail it when ROLLCALL_CI=1, where everything must be there."""
    if shutil.which(PROGRAMS.get(part, part)) is None:
        reason = f"{part} is not installed on this machine"
        if os.environ.get("ROLLCALL_CI") == "1":
            pytest.fail(f"{reason}, and a continuous-integration run must not skip", pytrace=False)
        pytest.skip(reason)
