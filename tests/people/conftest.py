"""Commands as the shell would run them, for the tests of people."""

from tests.commands.conftest import config, run

__all__ = ["config", "run"]
