"""A `run` that hard-codes its port, found before several replicas on one host fight for it."""

import re

from replicas.core.spec.expand import expand
from replicas.core.spec.task import HOST_PROVIDERS, Spec

_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
_READS_PORT = re.compile(r"\bPORT\b")
_OTHER_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?!0\.0\.0\.0\b|\[::\])\S+")
_OTHER_OPTION = re.compile(r"--?(?![\w-]*(?:port|listen|bind|addr|host))[A-Za-z][\w-]+[ =]+[\w.]+", re.IGNORECASE)


def hardcoded_port(spec: Spec) -> str | None:
    """Why several replicas of the spec cannot share one host: its `run` names its port and never reads $PORT.

    None if nothing speaks for that. Addresses of others (http://db:8080) and the values of options that are about no
    port or address do not count.
    """
    port, run = spec.port, spec.run
    if port is None or not run or spec.provider not in HOST_PROVIDERS or spec.most < 2:
        return None
    text = _COMMENT.sub("", run)
    if _READS_PORT.search(text):
        return None
    text = str(expand(text, spec.envs))
    text = _OTHER_OPTION.sub("", _OTHER_ADDRESS.sub("", text))
    if not re.search(rf"(?<![\w.]){port}(?![\w.]*\w)", text):
        return None
    return (
        f"run listens on port {port} whatever the replica, but {spec.most} replicas share this host and only one "
        f"of them can have that port: use $PORT in place of {port}, or set the number of replicas to 1"
    )
