"""Short forms that the tests of probing share."""

from collections.abc import Iterator
from typing import Any

import pytest

from replicas.providers.probing import ProbeRequest, ProbeResult, sweep
from tests.providers.probe_servers import Servers


def ask(
    port: int, *, host: str = "127.0.0.1", scheme: str = "http", path: str = "/healthz", **options: Any
) -> ProbeResult:
    """The result of one probe of a server on this host."""
    options.setdefault("timeout", 5.0)
    return sweep([ProbeRequest(1, f"{scheme}://{host}:{port}", path, **options)])[0]


@pytest.fixture(name="servers")
def servers_fixture() -> Iterator[Servers]:
    servers = Servers()
    yield servers
    servers.close()
