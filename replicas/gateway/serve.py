"""What the supervisor runs as the child `gateway`: becomes HAProxy, with the configuration that it had last.

`python -m replicas.gateway.serve`: plain Python and quickly gone. Everything later is said over HAProxy's sockets.
"""

import os
import subprocess
import sys

from replicas.config import Config
from replicas.gateway import config
from replicas.gateway.binary import find
from replicas.gateway.config import Options
from replicas.gateway.dataplane import files_of, put
from replicas.gateway.places import Places
from replicas.gateway.values import Wanted


def main() -> int:
    """Become HAProxy; 1 when there is none."""
    settings = Config.from_env(os.environ)
    found = find(os.environ)
    if not found.path:
        print(found.why, flush=True)
        return 1
    places = Places.of(settings)
    places.prepare()
    os.chdir(places.directory)
    if not usable(found.path, places):
        nothing = Wanted()
        put(places.configuration, config.render(nothing, Options(places)))
        for name, text in files_of(nothing).items():
            put(places.directory / name, text)
    arguments = [found.path, "-W", "-q", "-S", str(places.master), "-f", str(places.configuration)]
    os.execv(arguments[0], arguments)  # noqa: S606  (an argument list of our own)
    return 0


def usable(binary: str, places: Places) -> bool:
    """Whether the file of the last run is one that this HAProxy takes."""
    if not places.configuration.exists():
        return False
    asked = [binary, "-c", "-q", "-f", str(places.configuration)]
    return subprocess.run(asked, capture_output=True, timeout=20, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
