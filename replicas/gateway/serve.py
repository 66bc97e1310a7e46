"""What the supervisor runs as the child `gateway`: becomes HAProxy, with the configuration that it had last.

`python -m replicas.gateway.serve`: plain Python and quickly gone, as all traffic waits for it. Everything later is said
over HAProxy's sockets.
"""

import os
import subprocess
import sys

from replicas.config import Config
from replicas.gateway.binary import find
from replicas.gateway.places import Places


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
        write_empty(places)
    places.starting.touch()
    arguments = [found.path, "-W", "-q", "-S", str(places.master), "-f", str(places.configuration)]
    os.execv(arguments[0], arguments)  # noqa: S606  (an argument list of our own)
    return 0


def usable(binary: str, places: Places) -> bool:
    """Whether the file of the last run will do. It is checked where HAProxy was started and never answered since."""
    if not places.configuration.exists():
        return False
    if not places.starting.exists():
        return True
    asked = [binary, "-c", "-q", "-f", str(places.configuration)]
    return subprocess.run(asked, capture_output=True, timeout=20, check=False).returncode == 0


def write_empty(places: Places) -> None:
    """A configuration that serves nothing yet."""
    from replicas.gateway import config  # rarely needed, and not quick to load
    from replicas.gateway.dataplane import files_of, put
    from replicas.gateway.values import Wanted

    put(places.configuration, config.render(Wanted(), config.Options(places)))
    for name, text in files_of(Wanted()).items():
        put(places.directory / name, text)


if __name__ == "__main__":
    sys.exit(main())
