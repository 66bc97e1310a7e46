"""What the shim does with its command's output: secrets masked, lines bounded, files rotated, a full disk survived.

Part of the shim: nothing but the standard library, and of that only what is cheap to load.
"""

import os
import time

MASK = b"******"
SHORTEST_SECRET = 4  # masking every "1" or "ab" would make a log unreadable and hide nothing
SHORTEST_SECRET_LINE = 8
TIMES = b".times"
ENTRY = 12
FREE_BYTES = 1 << 20


class Masker:
    """Replaces secrets in a stream, also those cut by the ends of its chunks. Memory: below the longest secret."""

    def __init__(self, secrets: list[bytes]) -> None:
        wanted = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
        for secret in list(wanted):  # a key of several lines may come indented or with other line ends
            wanted |= {line for line in map(bytes.strip, secret.splitlines()) if len(line) >= SHORTEST_SECRET_LINE}
        self._secrets = sorted(wanted)
        self._held = b""
        self._covered = 0  # so many bytes at the front of _held belong to a secret whose mask is written already

    def feed(self, chunk: bytes) -> bytes:
        """What of the stream can be shown now."""
        data = self._held + chunk
        return self._show(data, self._start_of_tail(data))

    def close(self) -> bytes:
        """What was held back; nothing can follow it."""
        return self._show(self._held, len(self._held))

    def _start_of_tail(self, data: bytes) -> int:
        """Where the longest end of `data` begins that could be the start of a secret."""
        start = len(data)
        for secret in self._secrets:
            place = data.find(secret[:1], max(0, len(data) - len(secret) + 1))
            while 0 <= place < start:
                if secret.startswith(data[place:]):
                    start = place
                    break
                place = data.find(secret[:1], place + 1)
        return start

    def _show(self, data: bytes, end: int) -> bytes:
        pieces: list[bytes] = []
        position = self._covered
        for begin, stop in self._found(data):
            if begin >= end:
                break
            if begin > position:
                pieces.append(data[position:begin])
            if begin >= position:
                pieces.append(MASK)
            position = max(position, stop)
        if position < end:
            pieces.append(data[position:end])
        self._held, self._covered = data[end:], max(0, position - end)
        return b"".join(pieces)

    def _found(self, data: bytes) -> list[list[int]]:
        """(begin, end) of each run of secrets, those that overlap or touch made one, in order."""
        places = [(0, self._covered)] if self._covered else []
        for secret in self._secrets:
            place = data.find(secret)
            while place >= 0:
                places.append((place, place + len(secret)))
                place = data.find(secret, place + 1)
        runs: list[list[int]] = []
        for begin, stop in sorted(places):
            if runs and begin < runs[-1][1]:
                runs[-1][1] = max(runs[-1][1], stop)
            else:
                runs.append([begin, stop])
        return runs


class Times:
    """When the bytes of a log file were written, in `FILE.times` (see providers.logtimes for who reads it).

    An entry is the offset in that file and the wall clock in ms, six bytes each. There is at most one a second, and
    together they take at most FREE_BYTES and a quarter of what the log takes. What the disk refuses is left out.
    """

    def __init__(self, log: bytes) -> None:
        self._log = log
        self._file = -1
        self._last = 0.0

    def note(self, log: int) -> None:
        """What is written to the open file `log` from here on, is written now."""
        now = time.time()
        if 0 <= now - self._last < 1:  # a clock that was set back is told as well
            return
        self._last = now
        try:
            if self._file < 0:
                self._file = os.open(self._log + TIMES, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            enter(self._file, os.fstat(log).st_size, int(now * 1000))
        except OSError:
            pass

    def move(self, full: bytes) -> None:
        """The log file is about to be renamed. Raises OSError."""
        if self._file >= 0:
            os.close(self._file)
        self._file, self._last = -1, 0.0
        if os.path.exists(self._log + TIMES):
            os.rename(self._log + TIMES, full + TIMES)


def enter(times: int, place: int, now: int) -> None:
    """Add an entry to the open file of times, if it may grow so far; one that was cut off goes. Raises OSError."""
    size = os.fstat(times).st_size
    if size % ENTRY:
        os.ftruncate(times, size - size % ENTRY)
    if size <= FREE_BYTES + place // 4:
        os.write(times, place.to_bytes(6, "big") + now.to_bytes(6, "big"))


class Log:
    """The log file. A full one is renamed to `NAME.<offset of its first byte>`, and the oldest of these are removed.

    When the disk is full, output is dropped and counted, and a line says so when there is room again.
    """

    def __init__(self, path: bytes, segment_bytes: int, segments: int, line_bytes: int) -> None:
        self._path, self._segment_bytes, self._segments, self._line_bytes = path, segment_bytes, segments, line_bytes
        self._column = 0
        self._unsaid = 0
        self.lost = 0
        self._file = -1
        self._times = Times(path)
        self._open()

    def write(self, data: bytes) -> None:
        data = self._bounded(data)
        if self._unsaid and data:
            note = b"\n[rollcall: %d bytes of output are lost: no room on the disk]\n" % self._unsaid
            self._unsaid = 0 if self._append(note) == len(note) else self._unsaid
        if self._size >= self._segment_bytes:
            # Behind the end of a line: a line in two files would be two lines to every reader.
            cut = 0 if self._at_line_start else data.find(b"\n") + 1 or data.find(b"\r") + 1
            if (cut or self._at_line_start) and len(data) > cut:
                self._append(data[:cut])
                self._rotate()
                data = data[cut:]
        written = self._append(data)
        if written < len(data):
            self.lost += len(data) - written
            self._unsaid += len(data) - written

    def _append(self, data: bytes) -> int:
        """Bytes of `data` that the disk took."""
        done = 0
        while done < len(data):
            try:
                if self._file < 0:
                    self._open()
                self._times.note(self._file)
                done += os.write(self._file, data[done:] if done else data)
            except OSError:  # whatever the disk has: the replica must not stop for its log
                break
        if done:
            self._size += done
            self._at_line_start = data[done - 1] == 10
        return done

    def _bounded(self, data: bytes) -> bytes:
        """`data` with a line end put in where a line gets too long (never within a UTF-8 character)."""
        pieces: list[bytes] = []
        for line in data.splitlines(True) if self._column + len(data) > self._line_bytes else [data]:
            while self._column + len(line) > self._line_bytes + 4:
                cut = max(0, self._line_bytes - self._column)
                while cut < len(line) and line[cut] & 0xC0 == 0x80 and self._column + cut < self._line_bytes + 4:
                    cut += 1
                pieces += [line[:cut], b"\n"]
                line, self._column = line[cut:], 0
            pieces.append(line)
            last = max(line.rfind(b"\n"), line.rfind(b"\r"))
            self._column = len(line) - last - 1 if last >= 0 else self._column + len(line)
        return b"".join(pieces)

    def _open(self) -> None:
        self._size, self._at_line_start = 0, True
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._file).st_size

    def _rotate(self) -> None:
        try:
            full = self._full()
            begin = int(full[-1][-20:]) + os.stat(full[-1]).st_size if full else 0
            new = b"%s.%020d" % (self._path, begin)
            self._times.move(new)  # before the log: so nobody takes a newer file's times for those of this one
            os.rename(self._path, new)
            os.close(self._file)
            self._file = -1
            for each in full[: max(0, len(full) + 2 - self._segments)]:
                os.unlink(each)
                if os.path.exists(each + TIMES):
                    os.unlink(each + TIMES)
        except OSError:
            pass  # the directory was removed, say: it goes on in the same file, and tries again after as much again
        self._size, self._at_line_start = 0, True

    def _full(self) -> list[bytes]:
        """Paths of the full segments, oldest first."""
        folder, name = os.path.split(self._path)
        ours = [each for each in os.listdir(folder) if each[:-20] == name + b"." and each[-20:].isdigit()]
        return [os.path.join(folder, each) for each in sorted(ours)]
