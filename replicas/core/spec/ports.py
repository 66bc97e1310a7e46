"""A `run` that hard-codes its port, found before several replicas on one host fight for it."""

import re

from replicas.core.spec.expand import expand
from replicas.core.spec.task import Spec

_SHARED_HOST = "local"  # the provider whose replicas share the ports of this host
_READS_PORT = re.compile(r"\bPORT\b")
_ABOUT_PORTS = ("port", "listen", "bind", "addr", "host")
_ANY_ADDRESS = ("0.0.0.0", "[::]")  # noqa: S104 (what a program that listens says, not where we listen)


def hardcoded_port(spec: Spec) -> str | None:
    """Why several replicas of the spec cannot share one host: its `run` names its port and never reads $PORT.

    None if nothing speaks for that. Addresses of others (http://db:8080) and the values of options that are about no
    port or address do not count.
    """
    if spec.most < 2 or not listens_on_one_port(spec):
        return None
    return (
        f"run listens on port {spec.port} whatever the replica, but {spec.most} replicas share this host and only one "
        f"of them can have that port: use $PORT in place of {spec.port}, or set the number of replicas to 1"
    )


def listens_on_one_port(spec: Spec) -> bool:
    """True when two replicas of the spec, of whatever version, would fight for a port of this host."""
    port, run = spec.port, spec.run
    if port is None or not run or spec.provider != _SHARED_HOST:
        return False
    lines = [line for line in run.splitlines() if not line.lstrip().startswith("#")]
    if any(_READS_PORT.search(line) for line in lines):
        return False
    words = str(expand("\n".join(lines), spec.envs)).split()
    literal = re.compile(rf"(?<![\w.]){port}(?![\w.])")
    return any(
        literal.search(word) and _is_own(word, before) for word, before in zip(words, ["", *words], strict=False)
    )


def _is_own(word: str, before: str) -> bool:
    """True if a word of a command line that holds the port says where to listen, as far as one can tell."""
    address = word.partition("://")[2]
    if address and not address.startswith(_ANY_ADDRESS):
        return False
    option = word.partition("=")[0] if word.startswith("-") else before if before.startswith("--") else ""
    return not option.startswith("--") or any(name in option.lower() for name in _ABOUT_PORTS)
