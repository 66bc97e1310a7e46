"""A disk of its own for a directory, whose room a test can take away."""

import os
import subprocess
from pathlib import Path

LARGE = 512 << 20
TRIES = 50


class Disk:
    """A tmpfs on the directory, where this machine lets us mount one; `problem` says why not."""

    def __init__(self, place: Path, size: int = LARGE) -> None:
        self.place = place
        self.size = size
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.problem = self._mount("-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(place))

    def leave(self, free: int) -> None:
        """Let there be so many free bytes. What is written meanwhile makes it too small, and then it is tried again."""
        problem = "never tried"
        for _ in range(TRIES):
            found = os.statvfs(self.place)
            used = (found.f_blocks - found.f_bfree) * found.f_frsize
            problem = self._resize(used + free)
            if not problem:
                return
        raise AssertionError(problem)

    def empty(self) -> None:
        """Let there be as much room as in the beginning."""
        problem = self._resize(self.size)
        assert not problem, problem

    def _resize(self, size: int) -> str:
        return self._mount("-o", f"remount,size={size}", str(self.place))

    def close(self, copy: Path | None = None) -> None:
        """Remove it, with what is on it, of which a copy may be kept."""
        if self.problem:
            return
        if copy is not None:
            subprocess.run(["cp", "-a", str(self.place), str(copy)], check=False)
        subprocess.run(["umount", "--lazy", str(self.place)], check=True)
        self.place.rmdir()

    def _mount(self, *arguments: str) -> str:
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
        return done.stderr.strip() if done.returncode else ""
