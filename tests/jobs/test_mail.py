"""Notices by mail, to a real mail server."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replicas.actions import notices
from replicas.core.values import NoticeKind
from replicas.jobs import notices as job
from replicas.models import NoticeChannel
from replicas.providers import sending
from tests import cast
from tests.cast import fails
from tests.support.mailbox import PASSWORD, USER, Mailbox

pytestmark = pytest.mark.django_db


@pytest.fixture
def mailbox(home: Path, settings: Any) -> Iterator[Mailbox]:
    """A mail server, and nothing is grouped."""
    settings.ROLLCALL = dataclasses.replace(
        settings.ROLLCALL, notice_group_seconds=0.0, public_url="https://rollcall.example.org/"
    )
    made = Mailbox()
    yield made
    made.close()


def channel(mailbox: Mailbox, password: str = PASSWORD) -> NoticeChannel:
    """Where mails about every service go."""
    url = f"mailto://{USER}:{password}@{mailbox.place}?mode=insecure&from=rollcall@example.org&to=ann@example.org"
    shown = sending.check("apprise", url)
    row, _ = notices.add("mail", NoticeKind.APPRISE, url, shown, service=None, occasions=notices.ALL, actor="ann")
    return row


def test_a_failure_is_mailed(mailbox: Mailbox) -> None:
    row = channel(mailbox)
    fails(cast.service(), "exited with code 7, <b>\r\nBcc: eve@example.org\r\n\r\nübel")
    job.run(0)
    row.refresh_from_db()
    assert row.last_error == ""
    (mail,) = mailbox.mails
    assert (mail["Subject"], mail["To"]) == ("web: failed", "ann@example.org")
    assert "rollcall@example.org" in mail["From"]
    assert mail["Bcc"] is None
    body = mail.get_body(("plain",))
    assert body is not None
    text = body.get_content()
    assert "exited with code 7" in text
    assert "übel" in text
    assert "https://rollcall.example.org" in text


def test_what_a_mail_server_refuses_is_said_without_the_password(mailbox: Mailbox) -> None:
    row = channel(mailbox, "wr0ng-password")
    fails(cast.service(), "exited with code 7")
    job.run(0)
    row.refresh_from_db()
    assert row.last_error == "it did not take it: check address and password"
    assert mailbox.mails == []
