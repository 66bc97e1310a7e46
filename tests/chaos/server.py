"""What a replica of the chaos runs, by its path and with the standard library alone: a server that numbers its output.

All that it prints are lines of LINE bytes, whose place in the output tells what must stand there. Variables: LINES (a
second), FAST_LINES (a second, until FAST_UNTIL lines), START_SECONDS, LIFE_SECONDS, WELL_SECONDS and SICK_SECONDS (by
turns), BAD (`exit`: at once, `sick`: never well), STUBBORN.
"""

import os
import signal
import socket
import sys
import threading
import time

LINE = 64
HOLD_SECONDS = 15.0
STEP_SECONDS = 0.05


def line(number: int) -> bytes:
    """The line of that number, the first is 1."""
    return b"%010d " % number + b"." * (LINE - 12) + b"\n"


def given(name: str, default: float) -> float:
    """A number of the environment."""
    return float(os.environ.get(name) or default)


class Talker(threading.Thread):
    """Writes lines; `written` says how many are out."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.written = 0

    def run(self) -> None:
        slow, fast, until = given("LINES", 5), given("FAST_LINES", 0), given("FAST_UNTIL", 0)
        owed = 0.0
        while True:
            owed += STEP_SECONDS * (fast if self.written < until else slow)
            count, owed = int(owed), owed % 1
            data = b"".join(line(self.written + each + 1) for each in range(count))
            while data:
                data = data[os.write(1, data) :]
            self.written += count
            time.sleep(STEP_SECONDS)


def answer(connection: socket.socket, talker: Talker, began: float) -> None:
    """One request: `/hold` takes its time, `/lines` says how many lines are out, the rest whether it is well."""
    with connection:
        try:
            connection.settimeout(5)
            asked = connection.recv(4096)
            if not asked:
                return
            body = b"ok\n"
            well, sick = given("WELL_SECONDS", float("inf")), given("SICK_SECONDS", 0)
            fine = os.environ.get("BAD") != "sick" and (time.monotonic() - began) % (well + sick) < well
            if b"/hold" in asked.split(b"\r\n")[0]:
                time.sleep(HOLD_SECONDS)  # an answer that takes long
            elif b"/lines" in asked.split(b"\r\n")[0]:
                fine, body = True, b"%d\n" % talker.written
            status = b"200 OK" if fine else b"503 Sick"
            head = b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
            connection.sendall(head + body)
        except OSError:
            pass


def main() -> None:
    """Serve until the life is over."""
    if os.environ.get("BAD") == "exit":
        sys.exit(3)
    if os.environ.get("STUBBORN"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    began = time.monotonic()
    talker = Talker()
    talker.start()
    time.sleep(given("START_SECONDS", 0))  # a slow start is what it acts out
    with socket.create_server(("127.0.0.1", int(os.environ["PORT"])), backlog=64) as server:
        server.settimeout(0.25)
        while time.monotonic() - began < given("LIFE_SECONDS", float("inf")):
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            threading.Thread(target=answer, args=(connection, talker, began), daemon=True).start()
    os._exit(7)


if __name__ == "__main__":
    main()
