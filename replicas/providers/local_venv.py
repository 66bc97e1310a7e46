"""Run as a program: makes a virtual environment, then becomes the command behind it. Plain standard library.

python -I local_venv.py DIRECTORY COMMAND [ARGUMENT...]
"""

import os
import shutil
import subprocess
import sys


def make(directory: str) -> None:
    """Make the environment, with pip where that can be had. Exits with the code of venv when that fails."""
    quiet = subprocess.DEVNULL
    if _has_ensurepip() and subprocess.run([sys.executable, "-m", "venv", directory], stdout=quiet).returncode == 0:
        return
    shutil.rmtree(directory, ignore_errors=True)
    code = subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory]).returncode
    if code:
        sys.exit(code)
    pip = [sys.executable, "-m", "pip", "--python", f"{directory}/bin/python", "install", "--quiet", "pip"]
    if subprocess.run(pip).returncode:
        print(
            "rollcall: this machine's Python has neither ensurepip nor pip, so setup has no pip of its own", flush=True
        )


def _has_ensurepip() -> bool:
    try:
        import ensurepip
    except ImportError:
        return False
    return bool(ensurepip.version())


if __name__ == "__main__":
    make(sys.argv[1])
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606
