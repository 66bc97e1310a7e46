"""Reads an operator's own number: from what a command prints, or what a URL answers with."""

import os
import re
import select
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from typing import IO, Any
from urllib.parse import urlsplit

from replicas.providers.environment import operator_home, path
from replicas.providers.probing import ProbeRequest, sweep

SECONDS = 10.0  # for the whole reading
MOST_BYTES = 65536
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")


class Unread(Exception):
    """There is no number. The message names the thing and the cause."""


def read_number(custom: Mapping[str, Any], env: Mapping[str, str]) -> float:
    """The first number from 0 up in what `custom`'s command prints, or its url answers. Raises Unread.

    The command is run without a shell, with PATH, HOME, LANG and `env`. At most SECONDS.
    """
    if custom.get("command"):
        return _first(_printed(str(custom["command"]), env), f"command {custom['command']!r}")
    return _first(_answered(str(custom["url"])), f"url {_shown(str(custom['url']))}")


def _first(text: str, source: str) -> float:
    found = NUMBER.search(text)
    if found is None:
        raise Unread(f"{source} gave no number: {text[:80].strip()!r}")
    value = float(found[0])
    if not 0 <= value < 1e15:
        raise Unread(f"{source} gave {found[0][:30]}, which is no load: it has to be 0 or more")
    return value


def _printed(command: str, env: Mapping[str, str]) -> str:
    """What a command prints, within SECONDS; whatever it has started ends with it."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Unread(f"command {command!r} cannot be split into words: {error}") from None
    given = {"PATH": path(), "HOME": str(operator_home()), "LANG": os.environ.get("LANG") or "C.UTF-8", **env}
    with tempfile.TemporaryFile() as out:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.DEVNULL,
                env=given,
                start_new_session=True,
            )
        except (OSError, ValueError, IndexError) as error:
            raise Unread(f"command {command!r} cannot be run: {error}") from None
        code = _wait(process)
        if code is None:
            raise Unread(f"command {command!r} was not done within {SECONDS:g} s")
        if code:
            raise Unread(f"command {command!r} exited with code {code}")
        return _head(out)


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    """The exit code; None when it took too long. Its process group is gone then.

    The group is killed before the process is reaped: until then nobody else can have its number.
    """
    watched = os.pidfd_open(process.pid)
    try:
        done, _, _ = select.select([watched], [], [], SECONDS)
        os.killpg(process.pid, signal.SIGKILL)
    finally:
        os.close(watched)
    code = process.wait()
    return code if done else None


def _head(out: IO[bytes]) -> str:
    out.seek(0)
    return out.read(MOST_BYTES).decode(errors="replace")


def _answered(url: str) -> str:
    """The beginning of the body of a 2xx answer."""
    parts = urlsplit(url)
    place = parts.path or "/"
    request = ProbeRequest(
        key=0,
        url=f"{parts.scheme}://{parts.netloc}",
        path=f"{place}?{parts.query}" if parts.query else place,
        timeout=SECONDS,
    )
    (result,) = sweep([request])
    if not result.ok:
        raise Unread(f"url {_shown(url)} cannot be read: {result.detail}")
    return result.excerpt


def _shown(url: str) -> str:
    """A URL without its query and user, which may hold secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
