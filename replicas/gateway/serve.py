"""What the supervisor runs as the child `gateway`: becomes HAProxy, with the configuration that it had last.

`python -I -S serve.py BINARY CONFIGURATION STARTING MASTER LOGS`. All traffic waits for it, so it loads nothing and
looks at no more than whether the last start worked; everything later is said over HAProxy's sockets.
"""

import os
import sys

PREPARE = "replicas.gateway.preparation"


def main(binary: str, configuration: str, starting: str, master: str, logs: str) -> int:
    """Become HAProxy; 1 when what it needs cannot be made.

    `starting` is a file that is there while a start has not been seen to work: then the configuration is checked first.
    """
    works = os.path.exists(configuration) and os.path.isdir(logs) and not os.path.exists(starting)
    if not works and os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-m", PREPARE, binary]) != 0:  # noqa: S606
        return 1
    os.chdir(os.path.dirname(configuration))
    os.close(os.open(starting, os.O_CREAT | os.O_WRONLY, 0o600))
    os.execv(binary, [binary, "-W", "-q", "-S", master, "-f", configuration])  # noqa: S606  (a list of our own)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
