"""Run as a program: makes a virtual environment, then becomes the command behind it. Plain standard library.

python -I local_venv.py DIRECTORY COMMAND [ARGUMENT...]

pip is unpacked from the wheel that Python brings for ensurepip, which takes a tenth of the time of running ensurepip.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

PIP = """#!/bin/sh
exec {python} -m pip "$@"
"""


def make(directory: Path) -> None:
    """Make the environment, with pip where that can be had. Raises OSError."""
    venv.create(directory, symlinks=True)
    packages = directory / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    wheels = list(bundled())
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages)
    if any(wheel.name.startswith("pip-") for wheel in wheels):
        add_command(directory)
    else:
        fetch_pip(directory)


def bundled() -> Iterator[Path]:
    """The wheels that come with Python: its own directory, or the one that a distribution has set."""
    library = Path(sysconfig.get_path("stdlib"))
    for folder in (sysconfig.get_config_var("WHEEL_PKG_DIR"), library / "ensurepip" / "_bundled"):
        found = sorted(Path(folder).glob("*.whl")) if folder else []
        wanted = [each for each in found if each.name.startswith(("pip-", "setuptools-"))]
        if wanted:
            yield from wanted
            return


def add_command(directory: Path) -> None:
    """Make `pip` and `pip3`. By a shell, as a path in a first line may have 127 characters only."""
    for name in ("pip", "pip3"):
        script = directory / "bin" / name
        script.write_text(PIP.format(python=shlex.quote(str(directory / "bin" / "python"))))
        script.chmod(0o755)


def fetch_pip(directory: Path) -> None:
    """Let the machine's pip install pip; without it, say so and leave it to setup whether it needs any."""
    pip = [sys.executable, "-m", "pip", "--python", str(directory / "bin" / "python"), "install", "--quiet", "pip"]
    if subprocess.run(pip).returncode:
        print(
            "rollcall: this machine's Python has neither ensurepip nor pip, so setup has no pip of its own", flush=True
        )


if __name__ == "__main__":
    make(Path(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606
