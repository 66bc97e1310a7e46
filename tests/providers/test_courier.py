"""Where the program that sends a notice may connect to, and where not."""

import socket
from typing import Any

import pytest

from replicas.providers import courier, sending
from tests.support.patience import within


def posted(url: str, **more: Any) -> None:
    """One webhook, as the courier is told of it."""
    order = {"kind": "webhook", "url": url, "key": "whsec_AAAA", "uid": "x", "at": 1, "agent": "x"}
    sending.send({**order, "title": "a", "body": "b", "payload": {}, **more}, 5.0)


def test_nothing_listens_there() -> None:
    with within(20), pytest.raises(sending.Unsent, match="cannot be connected to"):
        posted("http://127.0.0.1:9/s3cret")


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "[::ffff:169.254.169.254]", "2852039166", "[fe80::1]", "100.100.100.200"]
)
def test_addresses_of_the_link_are_not_asked(host: str) -> None:
    with pytest.raises(sending.Unsent, match="of the link or of a cloud's metadata: ROLLCALL_NOTICE_LINK_LOCAL=1"):
        posted(f"http://{host}:9/s3cret")


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "[::ffff:169.254.169.254]", "2852039166", "0xa9fea9fe", "[fe80::1]", "100.100.100.200"]
)
def test_addresses_of_the_link_are_refused_when_they_are_given(host: str) -> None:
    with pytest.raises(sending.Unusable, match="of the link or of a cloud's metadata: ROLLCALL_NOTICE_LINK_LOCAL=1"):
        sending.check("webhook", f"http://{host}/latest")
    assert sending.check("webhook", f"http://{host}/latest", link_local=True) == f"http://{host}/…"


@pytest.mark.parametrize("host", ["127.0.0.1", "example.org", "[::1]", "1.2.3", "a" * 70])
def test_other_hosts_are_taken_without_a_look_up(host: str) -> None:
    assert sending.check("webhook", f"https://{host}/x") == f"https://{host}/…"


def test_mail_is_not_taken_to_addresses_of_the_link() -> None:
    with pytest.raises(sending.Unsent, match=r"leads to 169\.254\.169\.254"):
        posted("mailto://a:b@example.org?smtp=169.254.169.254&to=c@example.org", kind="apprise")


def test_a_name_is_looked_up_once_and_what_it_gave_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that leads elsewhere a moment later leads nowhere."""
    given = iter(["127.0.0.1", "169.254.169.254"])
    entry = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *asked, **how: [(*entry, (next(given), 9))])
    refused = courier.guarded()
    order = {"payload": {}, "key": "whsec_AAAA", "uid": "x", "at": 1, "agent": "x"}
    monkeypatch.setattr(courier, "limited", lambda order: 5.0)  # its timer would end this process
    with pytest.raises(courier.Unsent):
        courier.webhook(order | {"url": "http://rebinding.example:9/"})
    assert (refused, list(given)) == ([], ["169.254.169.254"])
