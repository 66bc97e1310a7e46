"""A thread that looks at something again and again until it is told to stop."""

import threading


class Looking(threading.Thread):
    """A subclass gives `look`, which is called each `seconds`."""

    def __init__(self, name: str, seconds: float) -> None:
        super().__init__(name=name, daemon=True)
        self.seconds = seconds
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(self.seconds):
            self.take()

    def take(self) -> None:
        """What is done each time."""
        self.look()

    def look(self) -> object:
        """One look."""
        raise NotImplementedError

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        self.join(10)
