"""Requests that no view can read: each is refused with its cause, and costs one line of the log."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from controlplane.logline import without_refusal

pytestmark = pytest.mark.django_db
JSON = {"Accept": "application/json"}
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def client(db: None) -> Client:
    get_user_model().objects.create_superuser("ann", password="x")
    made = Client(raise_request_exception=False, enforce_csrf_checks=True)
    made.force_login(get_user_model().objects.get())
    return made


@pytest.mark.parametrize("charset", ["latin-1", "utf-16", "none-such", "x" * 300])
@pytest.mark.parametrize("path", ["/login", "/new", "/nowhere", "/admin/login/", "/api/v1/services"])
def test_a_form_in_another_encoding_is_refused_everywhere(client: Client, path: str, charset: str) -> None:
    answer = client.generic("POST", path, b"a=b", content_type=f"{FORM}; charset={charset}")
    assert answer.status_code == 415
    assert f"this one says {charset[:40]}." in answer.content.decode()
    told = client.generic("POST", path, b"a=b", content_type=f"{FORM}; charset={charset}", headers=JSON)
    assert "sent as UTF-8" in told.json()["message"]


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8", "utf8"])
def test_utf_8_by_any_name_is_read(client: Client, charset: str) -> None:
    answer = client.post("/check", b"a=b", content_type=f"{FORM}; charset={charset}")
    assert (answer.status_code, "out of date" in answer.content.decode()) == (403, True)


@pytest.mark.parametrize(
    ("sent", "status", "said"),
    [
        ({"data": b"a=b", "content_type": "multipart/form-data"}, 400, "The form is damaged"),
        ({"data": "a=" + "b" * 3_000_000, "content_type": FORM}, 413, "More than 2560 KiB were sent at once"),
        ({"data": "a=b&" * 2000, "content_type": FORM}, 400, "More than 1000 fields were sent at once"),
    ],
)
def test_what_is_too_much_or_damaged_is_told(
    client: Client, caplog: pytest.LogCaptureFixture, sent: dict[str, Any], status: int, said: str
) -> None:
    assert client.get("/password").status_code == 200  # the cookie of CSRF: the form is read to compare with it
    answer = client.post("/password", **sent)
    assert (answer.status_code, said in answer.content.decode()) == (status, True)
    told = client.post("/new", headers=JSON, **sent)
    assert (told.status_code, said in told.json()["message"]) == (status, True)
    records = [record for record in caplog.records if without_refusal(record)]
    assert records
    assert not [record for record in records if record.exc_info]


def test_a_name_that_is_not_ours_is_told_with_the_setting(client: Client) -> None:
    answer = client.get("/", headers={"Host": "evil.example<script>"})
    assert answer.status_code == 400
    assert "under the name &#x27;evil.example&lt;script&gt;&#x27;" in answer.content.decode()
    assert "ROLLCALL_ALLOWED_HOSTS" in answer.content.decode()


def test_a_form_from_elsewhere_is_told_from_one_out_of_date(client: Client) -> None:
    answer = client.post("/check", {"a": "b"}, headers={"Origin": "https://evil.example"})
    text = answer.content.decode()
    assert answer.status_code == 403
    assert "sent from https://evil.example, and Rollcall was asked as http://testserver" in text
    assert "out of date" not in text
    told = client.post("/check", {"a": "b"}, headers={"Origin": "https://evil.example"} | JSON)
    assert "sent from https://evil.example" in told.json()["message"]
