"""Which files and sockets the gateway has in a home."""

from dataclasses import dataclass
from pathlib import Path

from replicas.config import Config
from replicas.gateway import serve


@dataclass(frozen=True, slots=True)
class Places:
    """Files of HAProxy (in `directory`) and its sockets (in the run directory, whose path is short)."""

    directory: Path
    run: Path
    logs: Path

    @classmethod
    def of(cls, config: Config) -> "Places":
        """The places of a home."""
        return cls(config.home / "gateway", config.run, config.logs / "access")

    @property
    def configuration(self) -> Path:
        """What HAProxy was last told to be."""
        return self.directory / "haproxy.cfg"

    @property
    def stats(self) -> Path:
        """Socket of the worker: members, statistics, maps."""
        return self.run / "haproxy.sock"

    @property
    def master(self) -> Path:
        """Socket of the master: reload, and the workers by pid."""
        return self.run / "haproxy-master.sock"

    @property
    def access(self) -> Path:
        """Socket to which HAProxy streams a line for each request."""
        return self.run / "access.sock"

    @property
    def starting(self) -> Path:
        """Is there while a start of HAProxy has not been seen to work."""
        return self.directory / "starting"

    def start(self, python: str, binary: str) -> tuple[str, ...]:
        """The command that becomes HAProxy here."""
        files = (self.configuration, self.starting, self.master, self.logs)
        return (python, "-I", "-S", serve.__file__, binary, *map(str, files))

    def prepare(self) -> None:
        """Make the directories, readable by their owner only."""
        for path in (self.directory, self.logs):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
