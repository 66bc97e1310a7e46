"""Hostile text in names, reasons, messages, specs, probes and logs is text, in every page and snapshot."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import quote

import pytest
from django.test import Client

from replicas import clock
from replicas.actions import replicas, services
from replicas.models import Replica, Service
from tests import cast
from tests.web import hostile
from tests.web.people import browser

pytestmark = pytest.mark.django_db


def place(text: str, name: str) -> Replica:
    """A service with a replica whose every text is `text`."""
    draft = cast.draft(name, run=text)
    service = services.apply(
        services.Draft(
            name=name,
            text=f"# {text}\nname: x\nrun: |\n  {text}\n",
            spec=draft.spec,
            digest=draft.digest,
            process_digest=draft.process_digest,
            target=1,
            message=text,
        ),
        actor=text[:150],
    ).service
    replica = cast.ready(service)
    replicas.observe(
        replica.pk,
        "probe_failed",
        reason=text,
        actor=text[:150],
        probe_at=clock.now(),
        probe_ok=False,
        probe_detail=text,
        probe_excerpt=text,
        last_lines=[text, text],
    )
    Replica.objects.filter(pk=replica.pk).update(url=text[:200])
    Service.objects.filter(pk=service.pk).update(endpoint=text[:200], reason=text)
    return replica


def inert(client: Client, path: str, text: str) -> None:
    """The page has `text` nowhere as markup."""
    answer = client.get(path)
    assert answer.status_code == 200, path
    page = answer.content.decode()
    if re.search(r"[<>\"']", text):
        assert text not in page, path
    Strict().feed(page)


class Strict(HTMLParser):
    """Allows only what the policy allows: scripts of ours, no handlers, no styles, no links that run."""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Check one element."""
        found = dict(attributes)
        assert tag not in {"script", "img", "iframe", "object", "embed"} or (
            (found.get("src") or "").startswith("/static/") or found.get("type") == "application/json"
        ), (tag, attributes)
        for name, value in attributes:
            assert not name.startswith("on"), (tag, name)
            assert name != "style", tag
            assert not (name in {"href", "src", "action"} and ":" in (value or "").split("/")[0]), value


@pytest.mark.parametrize("key", hostile.ALL)
def test_it_is_inert_everywhere(key: str) -> None:
    text, name = hostile.ALL[key], hostile.NAMES[key]
    replica = place(text, name)
    client = browser("root")
    at = f"/services/{quote(name, safe='')}"
    pages = [
        "/",
        "/operations/",
        f"{at}/",
        f"{at}/edit",
        f"{at}/versions/1/spec",
        f"{at}/versions/",
        f"{at}/versions/1/",
        f"{at}/replicas/{replica.number}/",
    ]
    for path in pages:
        inert(client, path, text)
    services.apply(replace(cast.draft(name, run=f"exec {text}"), message=text, plan=(text,)), actor="ann")
    for path in (f"{at}/versions/2/", f"{at}/versions/compare?old=1&new=2", f"{at}/edit?version=1"):
        inert(client, path, text)
    assert text in client.get(f"{at}/snapshot.json").json()["service"]["reason"]


def test_a_message_quotes_nothing_as_markup() -> None:
    place(hostile.SCRIPT, hostile.NAMES["image"])
    client = browser("root")
    at = f"/services/{quote(hostile.NAMES['image'], safe='')}"
    page = client.post(f"{at}/down", follow=True).content.decode()
    assert "is going down" in page
    assert hostile.NAMES["image"] not in page


def test_a_text_with_faults_comes_back_as_text() -> None:
    page = browser("root").post("/new", {"text": f"name: {hostile.END}\n\u202e{hostile.IMAGE}", "name": hostile.IMAGE})
    assert page.status_code == 422
    assert hostile.IMAGE not in page.content.decode()
    assert hostile.END not in page.content.decode()


@pytest.mark.parametrize("key", ["script", "image", "template"])
def test_what_is_not_there_is_quoted_as_text(key: str) -> None:
    page = browser("root").get(f"/services/{quote(hostile.NAMES[key], safe='')}/")
    assert page.status_code == 404
    assert "There is no service" in page.content.decode()
    assert hostile.NAMES[key].replace("&", "&amp;") not in page.content.decode() or key == "template"


def test_pages_come_with_the_strict_policy_and_are_not_stored() -> None:
    answer = browser("root").get("/")
    policy = answer["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "no-store" in answer["Cache-Control"]
    assert answer["X-Frame-Options"] == "DENY"
