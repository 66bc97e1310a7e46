"""Notices on their way: from events to a real receiver, also one that is slow, broken or away, and across restarts."""

import base64
import hashlib
import hmac
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from replicas import clock
from replicas.actions import notices, services
from replicas.actions.operations import Refused
from replicas.core.values import NoticeKind, ServiceStatus
from replicas.jobs import notices as job
from replicas.models import Event, Notice, NoticeChannel, Service
from replicas.providers import sending
from tests import cast
from tests.cast import fails
from tests.support.receiver import Receiver

pytestmark = pytest.mark.django_db


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A server that takes whatever is posted."""
    made = Receiver()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def at_once(settings: Any, home: Path) -> Callable[..., None]:
    """Nothing is grouped, and attempts follow each other as the test says."""
    import dataclasses

    def configure(**values: Any) -> None:
        settings.ROLLCALL = dataclasses.replace(settings.ROLLCALL, **values)

    configure(notice_group_seconds=0.0)
    return configure


def channel(url: str, service: Service | None = None, name: str = "ops") -> tuple[NoticeChannel, str]:
    return notices.add(
        name,
        NoticeKind.WEBHOOK,
        url,
        sending.check("webhook", url),
        service=service,
        occasions=notices.ALL,
        actor="ann",
    )


def recovers(service: Service) -> None:
    assert services.report(
        service.pk, status=ServiceStatus.READY, reason="1 ready", ready=1, live=1, actor="controller"
    )


def time_has_come() -> None:
    """For whatever waits for its next attempt."""
    Notice.objects.filter(state="QUEUED").update(retry_at=clock.now() - timedelta(seconds=1))


def test_a_failure_is_posted_signed_and_once(receiver: Receiver) -> None:
    service = cast.service()
    fails(service, "before there was a channel")
    recovers(service)
    row, key = channel(receiver.url)
    assert not notices.waiting(clock.now(), notices.newest())
    fails(service)
    assert notices.waiting(clock.now(), notices.newest())
    job.run(0)
    job.run(0)
    (told,) = receiver.payloads
    assert told["title"] == "web: failed"
    assert [(item["service"], item["occasion"]) for item in told["items"]] == [("web", "failed")]
    assert "exited with code 7" in told["text"]
    headers, body = receiver.got[0]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.new(base64.b64decode(key.removeprefix("whsec_")), signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
    assert headers["webhook-id"] == told["id"]
    row.refresh_from_db()
    assert row.sent_at is not None
    assert row.last_error == ""
    assert not notices.waiting(clock.now(), notices.newest())


def test_recovered_follows_and_other_services_are_not_told(receiver: Receiver) -> None:
    web, other = cast.service("web"), cast.service("other")
    channel(receiver.url, web)
    fails(web)
    fails(other)
    job.run(0)
    recovers(web)
    recovers(other)
    job.run(0)
    assert [told["title"] for told in receiver.payloads] == ["web: failed", "web: recovered"]


def test_one_that_fails_is_tried_again_with_the_same_id_and_says_so(receiver: Receiver) -> None:
    row, _ = channel(receiver.url)
    receiver.status = 500
    receiver.body = b"s3cret-answer"
    fails(cast.service())
    job.run(0)
    row.refresh_from_db()
    assert row.last_error == "it answered with 500"
    job.run(0)
    assert len(receiver.got) == 1  # it is not due yet
    receiver.status = 200
    time_has_come()
    job.run(0)
    row.refresh_from_db()
    assert row.last_error == ""
    assert receiver.payloads[0] == receiver.payloads[1]
    assert Notice.objects.get().state == "SENT"


def test_it_is_given_up_at_last(receiver: Receiver, at_once: Callable[..., None]) -> None:
    at_once(notice_group_seconds=0.0, notice_attempts=2)
    channel(receiver.url)
    receiver.status = 500
    fails(cast.service())
    for _ in range(4):
        job.run(0)
        time_has_come()
    assert len(receiver.got) == 2
    assert Notice.objects.get().state == "FAILED"


def test_a_slow_one_is_left_and_holds_nobody_up(receiver: Receiver, at_once: Callable[..., None]) -> None:
    """The other channel gets its own with the next job, whatever the first one does."""
    at_once(notice_group_seconds=0.0, notice_send_seconds=1.0)
    slow, quick = receiver, Receiver()
    try:
        slow.delay = 60
        row, _ = channel(slow.url, name="a slow one")
        channel(quick.url, name="b quick one")
        fails(cast.service())
        job.run(0)
        job.run(0)
        assert [told["title"] for told in quick.payloads] == ["web: failed"]
        assert len(slow.got) == 1
        row.refresh_from_db()
        assert "within 1 s" in row.last_error
    finally:
        quick.close()


def test_one_that_never_ends_its_answer_is_ended(at_once: Callable[..., None], eventually: Callable[..., Any]) -> None:
    """A byte now and then keeps each single wait short: the whole is what counts."""
    import socket
    import threading

    server, over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def drip() -> None:
        connection, _ = server.accept()
        with connection:
            while not over.wait(0.1):
                try:
                    connection.sendall(b"H")
                except OSError:
                    return

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    at_once(notice_group_seconds=0.0, notice_send_seconds=1.0)
    row, _ = channel(f"http://127.0.0.1:{server.getsockname()[1]}/")
    fails(cast.service())
    job.run(0)
    row.refresh_from_db()
    assert row.last_error == "it was not done within 1 s"
    over.set()
    thread.join(10)
    server.close()


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    row, _ = channel(receiver.url)
    receiver.status = 307
    fails(cast.service())
    job.run(0)
    row.refresh_from_db()
    assert len(receiver.got) == 1
    assert "redirect (307)" in row.last_error


def test_a_restart_in_between_loses_nothing_and_sends_nothing_twice(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before the sending: it is due again. Killed after it, unsettled: the same id comes again, later."""
    channel(receiver.url)
    service = cast.service()
    fails(service)
    assert notices.digest(clock.now()) == 1
    assert notices.digest(clock.now()) == 0
    (number,) = notices.due(clock.now())
    claimed = notices.claim(number)
    assert claimed is not None
    assert notices.claim(number) is None
    job.run(0)
    assert not receiver.got  # it is somebody's
    time_has_come()
    job.run(0)
    assert len(receiver.got) == 1
    assert not notices.settle(claimed, "too late")
    assert Notice.objects.get().state == "SENT"


def test_two_that_look_at_the_same_time_make_one_notice(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    channel(receiver.url)
    fails(cast.service())
    decide = notices.core.decide

    def meanwhile(*arguments: Any) -> Any:
        monkeypatch.setattr(notices.core, "decide", decide)
        assert notices.digest(clock.now()) == 1
        return decide(*arguments)

    monkeypatch.setattr(notices.core, "decide", meanwhile)
    assert notices.digest(clock.now()) == 0
    assert Notice.objects.count() == 1


def test_a_storm_of_500_failures_is_few_notices(receiver: Receiver) -> None:
    channel(receiver.url)
    service = cast.service("web", target=500)
    now = clock.now()
    Event.objects.bulk_create(
        Event(
            at=now, service=service, service_name="web", kind="replica", object_id=10**6 + n, number=n, revision=1,
            trigger="gone", old="SHUTTING_DOWN", new="FAILED", reason=f"exited with code {n}", actor="x", data={},
        )
        for n in range(500)
    )  # fmt: skip
    fails(service)
    for _ in range(5):
        job.run(0)
    assert len(receiver.got) == 1
    assert {item["occasion"] for item in receiver.payloads[0]["items"]} == {"failed", "crash_loop"}


def test_the_address_is_shown_nowhere(receiver: Receiver) -> None:
    row, key = channel(receiver.url)
    fails(cast.service())
    receiver.status = 500
    job.run(0)
    row.refresh_from_db()
    for text in (row.shown, row.sealed, row.last_error, *Event.objects.values_list("reason", flat=True)):
        assert "s3cret" not in text
        assert key not in text
    assert row.shown.endswith("/…")


def test_a_test_is_sent_and_not_tried_again(receiver: Receiver) -> None:
    row, _ = channel(receiver.url)
    notices.test(row.pk, actor="ann\r\nBcc: x")
    notices.test(row.pk, actor="ann")
    job.run(0)
    (told,) = receiver.payloads
    assert told["test"]
    receiver.status = 500
    notices.test(row.pk, actor="ann")
    for _ in range(2):
        job.run(0)
        time_has_come()
    assert len(receiver.got) == 2


def test_one_that_is_switched_off_gets_nothing_and_nothing_later(receiver: Receiver) -> None:
    row, _ = channel(receiver.url)
    service = cast.service()
    notices.switch(row.pk, False, actor="ann")
    fails(service)
    job.run(0)
    notices.switch(row.pk, True, actor="ann")
    job.run(0)
    assert not receiver.got
    recovers(service)
    fails(service)
    job.run(0)
    assert len(receiver.got) == 1


def test_names_are_taken_once_and_something_is_told() -> None:
    channel("https://example.org/x")
    with pytest.raises(Refused, match="already"):
        channel("https://example.org/y")
    with pytest.raises(Refused, match="at least one"):
        notices.add("b", NoticeKind.WEBHOOK, "https://x/", "x", service=None, occasions=("x",), actor="ann")


def test_a_channel_goes_with_its_service_and_with_its_key(settings: Any) -> None:
    service = cast.service()
    row, _ = channel("https://example.org/x", service)
    fails(service)
    settings.SECRET_KEY = "another"
    job.run(0)
    row.refresh_from_db()
    assert "another SECRET_KEY" in row.last_error
    service.version = None
    Service.objects.filter(pk=service.pk).update(version=None)
    Service.objects.get(pk=service.pk).delete()
    assert not NoticeChannel.objects.exists()


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "ftp://example.org/", "https://", "x", "https://a b/", "http://[::1", "http://x:99999/",
        "javascript:alert(1)", "https://example.org/\n", "https://" + "x" * 3000,
    ],
)  # fmt: skip
def test_no_other_address_is_a_webhook(url: str) -> None:
    with pytest.raises(sending.Unusable):
        sending.check("webhook", url)


@pytest.mark.parametrize(
    "url",
    [
        "json://127.0.0.1/", "exec://rm", "dbus://", "syslog://", "https://example.org/", "slack://",
        "msteams://a/b/c?template=/etc/passwd", "mailto://u:p@example.org?pgpkey=/etc/passwd",
        "mailtos://u:p@example.org?verify=no",
    ],
)  # fmt: skip
def test_what_could_do_more_than_send_is_refused(url: str) -> None:
    with pytest.raises(sending.Unusable) as refused:
        sending.check("apprise", url)
    assert "/etc/passwd" not in str(refused.value)


def test_of_an_address_only_what_is_no_secret_is_shown() -> None:
    assert sending.check("webhook", "https://user:pw@example.org:8443/a?b=c") == "https://example.org:8443/…"
    assert sending.check("webhook", "http://[::1]:8443/a") == "http://[::1]:8443/…"
    assert sending.check("apprise", "mailtos://user:pw@example.org?to=a@example.org") == "mailtos://example.org/…"
    assert sending.check("apprise", "tgram://123456:token/chat") == "tgram://…"


def test_chat_goes_by_apprise_and_calls_nobody(receiver: Receiver) -> None:
    """Gotify is a POST to a server of one's own."""
    place = receiver.url.removeprefix("http://").split("/")[0]
    url = f"gotify://{place}/s3cret-token"
    row, _ = notices.add(
        "chat", NoticeKind.APPRISE, url, sending.check("apprise", url), service=None, occasions=notices.ALL, actor="ann"
    )
    receiver.status = 200
    fails(cast.service(), "@everyone <!channel> [x](javascript:alert(1))")
    job.run(0)
    row.refresh_from_db()
    assert row.last_error == ""
    (told,) = receiver.payloads
    assert told["title"] == "web: failed"
    assert "@everyone" not in told["message"]
    assert "<" not in told["message"]
    receiver.status = 401
    notices.test(row.pk, actor="ann")
    job.run(0)
    row.refresh_from_db()
    assert row.last_error == "it answered with 401"
