"""HAProxy's sockets: one command line, one strictly read reply."""

import socket
from pathlib import Path

SECONDS = 1.0
RELOAD_SECONDS = 15.0
LONGEST_REPLY = 64 * 1024 * 1024


class Unreachable(Exception):
    """HAProxy does not answer on its socket: it is not there (yet), or it hangs."""


class Unexpected(Exception):
    """HAProxy answered something else than what the command answers when it works."""


def ask(path: Path, command: str, seconds: float = SECONDS) -> str:
    """The whole reply. Several commands can be joined by ";". Raises Unreachable."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(seconds)
        try:
            link.connect(str(path))
            link.sendall(command.encode() + b"\n")
            link.shutdown(socket.SHUT_WR)  # the master's socket otherwise waits for another command
            return _read(link).decode("utf-8", "replace")
        except OSError as error:
            raise Unreachable(f"HAProxy does not answer on {path} ({error})") from error


def _read(link: socket.socket) -> bytes:
    parts, length = [], 0
    while part := link.recv(256 * 1024):
        parts.append(part)
        length += len(part)
        if length > LONGEST_REPLY:
            raise OSError("the reply has no end")
    return b"".join(parts)


def tell(path: Path, command: str, *accepted: str) -> None:
    """Carry out a command that changes something; every line of its reply must be empty or begin with one of these.

    Raises Unreachable, and Unexpected with the line that HAProxy said instead.
    """
    for line in ask(path, command).splitlines():
        text = line.strip()
        if text and not text.startswith(accepted or ("\0",)):
            raise Unexpected(f"HAProxy answers {text[:300]!r} to {command[:200]!r}")


def reload(master: Path) -> None:
    """Have the master take its file again, with a new worker. Raises Unreachable and Unexpected."""
    said = ask(master, "reload", RELOAD_SECONDS)
    first, _, rest = said.partition("\n")
    if first.strip() != "Success=1":
        raise Unexpected(f"HAProxy did not take its new configuration: {rest.strip()[-1000:] or first.strip()}")


def old_workers(master: Path) -> list[int]:
    """The pids of workers of earlier configurations that still serve what they had begun.

    Raises Unreachable, and Unexpected for what is no list of processes.
    """
    found, old = [], False
    for line in ask(master, "show proc").splitlines():
        if line.startswith("#"):
            old = "old workers" in line
        elif old and line.strip():
            pid = line.split()[0]
            if not (pid.isascii() and pid.isdigit() and 0 < int(pid[:10]) == int(pid[:20])):
                raise Unexpected(f"HAProxy names {line[:100]!r} as an old worker")
            found.append(int(pid))
    return found


def quoted(text: str) -> str:
    """One word of a command, whatever is in it. Line breaks and control characters become spaces."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return "".join(f"\\{c}" if c in " \\;#\"'" else c for c in plain)
