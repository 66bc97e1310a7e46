"""The wall clock of a control plane, which a test can set: a library that is preloaded into all of its processes."""

import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("wallclock.c")


class WallClock:
    """What every process of a control plane takes for the wall clock. The kernel's other clocks go on as they do.

    Needs `cc`; raises OSError or CalledProcessError where the library cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        library, self._file = folder / "wallclock.so", folder / "wallclock"
        compile_it = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE)]
        subprocess.run(compile_it, check=True, timeout=60, capture_output=True)
        self._file.write_bytes(bytes(8))
        self.environment = {"LD_PRELOAD": str(library), "WALL_CLOCK": str(self._file)}

    def jump(self, seconds: int) -> None:
        """To so many seconds from the true time. The file is mapped, so it is written in place."""
        with self._file.open("r+b") as file:
            file.write(seconds.to_bytes(8, sys.byteorder, signed=True))
