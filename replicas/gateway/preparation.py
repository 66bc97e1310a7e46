"""What HAProxy needs before it can start: its directories, and a configuration that it takes.

`python -m replicas.gateway.preparation BINARY`: exits with 0 when all of it is there.
"""

import os
import subprocess
import sys

from replicas.config import Config
from replicas.gateway import config
from replicas.gateway.dataplane import files_of, put
from replicas.gateway.places import Places
from replicas.gateway.values import Wanted


def main(binary: str) -> int:
    """Keep the configuration of the last run where it will do; else write one that serves nothing yet."""
    places = Places.of(Config.from_env(os.environ))
    places.prepare()
    if not usable(binary, places):
        write_empty(places)
    return 0


def usable(binary: str, places: Places) -> bool:
    """Whether the file of the last run will do. It is checked where HAProxy was started and never answered since."""
    if not places.configuration.exists():
        return False
    if not places.starting.exists():
        return True
    asked = [binary, "-c", "-q", "-f", str(places.configuration)]
    return subprocess.run(asked, capture_output=True, timeout=20, check=False, cwd=places.directory).returncode == 0


def write_empty(places: Places) -> None:
    """A configuration that serves nothing yet."""
    put(places.configuration, config.render(Wanted(), config.Options(places)))
    for name, text in files_of(Wanted()).items():
        put(places.directory / name, text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
