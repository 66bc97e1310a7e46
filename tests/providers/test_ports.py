"""Ports: free, reserved, and given back by whatever way the holder ends."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack, closing

import pytest

from replicas.providers import ports
from replicas.providers.base import ProviderError

# A stretch that nothing else of the suite uses, so that tests at the same time do not take each other's ports.
FIRST = 18000 + (os.getpid() % 200) * 8
LAST = FIRST + 7


def listen(port: int, address: str = "127.0.0.1") -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.socket(family, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((address, port))
    server.listen()
    return server


def test_a_port_is_within_the_range_and_can_be_listened_on() -> None:
    with ports.reserved("a", FIRST, LAST) as reservation:
        assert FIRST <= reservation.port <= LAST
        listen(reservation.port).close()


def test_reservations_never_meet_until_the_range_is_used_up() -> None:
    with ExitStack() as stack:
        taken = {stack.enter_context(ports.reserved("same", FIRST, LAST)).port for _ in range(8)}
        assert taken == set(range(FIRST, LAST + 1))
        with pytest.raises(ProviderError, match=f"No free port found between {FIRST} and {LAST}") as caught:
            stack.enter_context(ports.reserved("other", FIRST, LAST))
        assert caught.value.retryable
        assert "ROLLCALL_REPLICA_PORT_FIRST" in caught.value.reason
    with ports.reserved("other", FIRST, LAST):
        pass


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::", "::1"])
def test_a_port_in_use_is_passed_over(address: str) -> None:
    with closing(listen(FIRST, address)), ExitStack() as stack:
        taken = [stack.enter_context(ports.reserved("x", FIRST, FIRST + 3)).port for _ in range(3)]
        assert FIRST not in taken


def test_the_reservation_lives_as_long_as_a_copy_of_its_descriptor() -> None:
    with ports.reserved("a", FIRST, FIRST) as reservation:
        holder = subprocess.Popen(["/bin/sleep", "1000"], pass_fds=(reservation.descriptor,))
    try:
        with pytest.raises(ProviderError), ports.reserved("b", FIRST, FIRST):
            pass
    finally:
        holder.kill()
        holder.wait()
    with ports.reserved("b", FIRST, FIRST) as reservation:
        assert reservation.port == FIRST


def test_another_process_sees_the_reservation() -> None:
    code = f"from replicas.providers import ports\nwith ports.reserved('b', {FIRST}, {FIRST}): print('got it')"
    command = [sys.executable, "-c", code]
    with ports.reserved("a", FIRST, FIRST):
        seen = subprocess.run(command, capture_output=True, text=True)
        assert "No free port" in seen.stderr
    seen = subprocess.run(command, capture_output=True, text=True)
    assert seen.stdout == "got it\n"


def test_a_fixed_port_is_given_or_refused_by_name() -> None:
    with ports.reserved("a", 20000, 20100, fixed=FIRST) as reservation:
        assert reservation.port == FIRST
    with (
        closing(listen(FIRST)),
        pytest.raises(ProviderError, match=f"Port {FIRST}.*PORT"),
        ports.reserved("a", 20000, 20100, fixed=FIRST),
    ):
        pass


def test_owners_begin_at_different_places() -> None:
    with ExitStack() as stack:
        found = {stack.enter_context(ports.reserved(f"replica-{n}", 21000, 29999)).port for n in range(20)}
    assert len(found) == 20
    assert max(found) - min(found) > 1000
