"""Signing in and out, and changing the password."""

import pytest

from tests.web.people import PASSWORD, browser, person

pytestmark = pytest.mark.django_db


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
