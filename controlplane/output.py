"""The children's output as one stream of prefixed lines, which never holds up the supervisor."""

import contextlib
import os
import select
import time
from pathlib import Path

WIDTH = 10
LINE_BYTES = 16 * 1024
BUFFER_BYTES = 1024 * 1024
PIECE_BYTES = 4096  # a pipe that polls as writable takes this much without blocking
LOG_BYTES = 8 * 1024 * 1024
COLOURS = ("36", "33", "35", "32", "34", "31")

# Control characters in a child's output could move the cursor or hide lines; only the tab is harmless.
HARMLESS = {code: "\N{REPLACEMENT CHARACTER}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code != 0x09}


class Lines:
    """Cuts the bytes of one child into lines of text."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The lines that `data` completes. A line beyond the limit is cut into several."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        while len(self._rest) >= LINE_BYTES:
            lines.append(self._rest[:LINE_BYTES])
            self._rest = self._rest[LINE_BYTES:]
        return [_text(line) for line in lines]

    def close(self) -> list[str]:
        """What came after the last line break."""
        rest, self._rest = self._rest, b""
        return [_text(rest)] if rest else []


class Terminal:
    """Standard output. Nobody reading, a stopped terminal or a closed pipe costs lines, never time."""

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor
        self._waiting = bytearray()
        self._dropped = 0
        self._broken = False
        try:
            self.coloured = os.isatty(descriptor) and "NO_COLOR" not in os.environ
        except OSError:
            self.coloured = False

    @property
    def pending(self) -> bool:
        """Whether lines wait for the reader."""
        return bool(self._waiting) and not self._broken

    def write(self, line: str) -> None:
        """Show the line, now or when there is room."""
        if self._broken:
            return
        data = line.encode("utf-8", "replace") + b"\n"
        if len(self._waiting) + len(data) > BUFFER_BYTES:
            self._dropped += 1
        else:
            if self._dropped:
                self._waiting += f"({self._dropped} lines left out: nobody read them in time)\n".encode()
                self._dropped = 0
            self._waiting += data
        self.flush()

    def flush(self) -> None:
        """Write what the reader has room for."""
        while self.pending and self._writable():
            try:
                done = os.write(self._descriptor, self._waiting[:PIECE_BYTES])
            except BlockingIOError:
                return
            except OSError:  # the pipe is broken or the terminal is gone; the log file goes on
                self._broken = True
                return
            del self._waiting[:done]

    def _writable(self) -> bool:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        return bool(poll.poll(0))


class LogFile:
    """The same lines with their time, in a file that is put aside when it is full; two old ones are kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open()

    def write(self, line: str) -> None:
        """Append the line. On a full disk it is lost, and the control plane goes on."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        with contextlib.suppress(OSError):
            self._size += os.write(self._file, f"{stamp} {line}\n".encode("utf-8", "replace"))
            if self._size > LOG_BYTES:
                self._rotate()

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._file).st_size

    def _rotate(self) -> None:
        older, old = self._path.with_suffix(".log.2"), self._path.with_suffix(".log.1")
        if old.exists():
            os.replace(old, older)
        os.replace(self._path, old)
        os.close(self._file)
        self._open()


class Output:
    """Where the supervisor and its children speak."""

    def __init__(self, terminal: Terminal, log: LogFile, names: list[str]) -> None:
        self.terminal = terminal
        self._log = log
        self._colours = dict(zip(names, COLOURS * len(names), strict=False))

    def say(self, name: str, line: str) -> None:
        """Show one line of the child `name`."""
        prefix = f"{name:<{WIDTH}}| "
        self._log.write(prefix + line)
        colour = self._colours.get(name)
        if self.terminal.coloured and colour:
            prefix = f"\x1b[{colour}m{prefix}\x1b[0m"
        self.terminal.write(prefix + line)


def _text(line: bytes) -> str:
    return line.rstrip(b"\r").decode("utf-8", "replace").translate(HARMLESS)
