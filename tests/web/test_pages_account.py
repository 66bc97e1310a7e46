"""Signing in and out, and changing the password."""

from collections.abc import Iterator

import pytest
from django.core.cache import cache

from replicas.web.accounts import FAILURES
from tests.web.people import PASSWORD, browser, person

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nobody_has_failed() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


def test_signing_in_leads_to_the_page_that_was_asked_for() -> None:
    person("viewer")
    client = browser()
    sent = client.get("/operations/")
    assert sent["Location"] == "/login?next=/operations/"
    assert 'value="/operations/"' in client.get(sent["Location"]).content.decode()
    done = client.post("/login", {"username": "viewer", "password": PASSWORD, "next": "/operations/"})
    assert done["Location"] == "/operations/"
    assert client.get("/operations/").status_code == 200


def test_a_wrong_password_is_said_plainly_and_keeps_the_name() -> None:
    person("viewer")
    page = browser().post("/login", {"username": "viewer", "password": "guess"}).content.decode()
    assert "Please enter a correct username and password" in page
    assert 'value="viewer"' in page


def test_signing_in_never_leads_to_another_site() -> None:
    person("viewer")
    answer = browser().post("/login", {"username": "viewer", "password": PASSWORD, "next": "https://evil.example/"})
    assert answer["Location"] == "/"


def test_signing_out_takes_a_post_and_ends_the_session() -> None:
    client = browser("viewer")
    assert client.get("/logout").status_code == 405
    assert client.post("/logout")["Location"] == "/login"
    assert client.get("/").status_code == 302


def test_a_new_password_is_checked_and_ends_other_sessions() -> None:
    here, elsewhere = browser("viewer"), browser("viewer")
    weak = here.post("/password", {"old_password": PASSWORD, "new_password1": "12345", "new_password2": "12345"})
    assert "too short" in weak.content.decode()
    new = "another horse battery"
    done = here.post("/password", {"old_password": PASSWORD, "new_password1": new, "new_password2": new}, follow=True)
    assert "Your password is changed." in done.content.decode()
    assert here.get("/").status_code == 200
    assert elsewhere.get("/").status_code == 302


def test_somebody_without_powers_is_told_so_and_can_still_sign_out() -> None:
    page = browser("stranger").get("/")
    assert page.status_code == 403
    assert "Your account may not look at services." in page.content.decode()
    assert "Sign out" in page.content.decode()


def test_whoever_guesses_has_to_wait_and_others_do_not(caplog: pytest.LogCaptureFixture) -> None:
    person("viewer")
    person("operator")
    client = browser()
    for turn in range(FAILURES.most):
        page = client.post("/login", {"username": ["viewer", "Viewer"][turn % 2], "password": "guess"}).content.decode()
        assert "Please enter a correct username and password" in page
    assert "a sign-in as 'viewer' from 127.0.0.1 failed" in caplog.text
    late = client.post("/login", {"username": "viewer", "password": PASSWORD})
    assert "10 wrong passwords for this name. Wait for 60 seconds" in late.content.decode()
    elsewhere = browser(REMOTE_ADDR="192.0.2.7").post("/login", {"username": "viewer", "password": PASSWORD})
    assert elsewhere.status_code == 302
    assert client.post("/login", {"username": "operator", "password": PASSWORD}).status_code == 302


def test_a_right_password_forgets_the_wrong_ones() -> None:
    person("viewer")
    for _ in range(2):
        for _ in range(FAILURES.most - 1):
            browser().post("/login", {"username": "viewer", "password": "guess"})
        assert browser().post("/login", {"username": "viewer", "password": PASSWORD}).status_code == 302


def test_the_administration_has_no_other_way_in() -> None:
    assert (
        browser().get("/admin/login/?next=/admin/replicas/event/")["Location"] == "/login?next=/admin/replicas/event/"
    )
    assert browser().get("/admin/")["Location"].startswith("/admin/login/")
    told = browser("viewer").get("/admin/", follow=True)
    assert told.status_code == 403
    assert "not let into the administration" in told.content.decode()
    assert "All services" in told.content.decode()
    assert browser("root").get("/admin/login/")["Location"] == "/admin/"
