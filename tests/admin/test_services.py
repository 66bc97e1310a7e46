"""Services in Django admin: each edit is a wish that goes through the same doors as everybody's."""

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from replicas.actions import services
from replicas.core.values import Desired
from replicas.models import Event, Service, ServiceVersion
from tests import cast
from tests.admin.conftest import TEXT, Make, SignIn

LIST = "/admin/replicas/service/"
ADD = f"{LIST}add/"


def page(service: Service) -> str:
    return f"{LIST}{service.pk}/change/"


def body(answer: Any) -> str:
    return unescape(answer.content.decode())


def fields(client: Client, address: str) -> dict[str, str]:
    """The form of a page as a browser would post it, with a browser's line ends."""
    form = client.get(address).context["adminform"].form
    values = {}
    for bound in form:
        value = bound.value()
        values[bound.html_name] = "" if value is None else str(value).replace("\n", "\r\n")
        if bound.field.show_hidden_initial:
            values[bound.html_initial_name] = values[bound.html_name]
    return values


def save(client: Client, service: Service, **changed: Any) -> Any:
    return client.post(page(service), fields(client, page(service)) | changed)


def messages(answer: Any) -> list[str]:
    return [str(message) for message in answer.wsgi_request._messages]


def again(service: Service) -> Service:
    return Service.objects.select_related("version").get(pk=service.pk)


def copies(home: Path) -> list[str]:
    return [path.name for path in (home / "versions").iterdir()]


# Looking


def test_the_list_shows_what_is_wanted_and_what_is_true(boss: Client, make: Make) -> None:
    make()
    text = body(boss.get(LIST))
    assert '<span class="rc-badge rc-controller-init">CONTROLLER_INIT</span>' in text
    assert "0 / 2" in text
    assert body(boss.get(LIST, {"q": "we"})).count("rc-badge") == 1
    assert body(boss.get(LIST, {"q": "zzz"})).count("rc-badge") == 0
    assert body(boss.get(LIST, {"status__exact": "READY"})).count("rc-badge") == 0
    assert boss.get(LIST, {"desired__exact": "UP", "o": "2"}).status_code == 200


def test_states_are_read_only(boss: Client, make: Make) -> None:
    service = make()
    text = body(boss.get(page(service)))
    inputs = set(re.findall(r'name="([a-z_-]+)"', text))
    assert {"desired", "target", "owner", "text", "message", "expected"} <= inputs
    assert inputs.isdisjoint({"status", "reason", "ready", "live", "endpoint", "version", "revision", "name"})
    assert "deletelink" not in text


def test_nothing_on_the_pages_needs_inline_code(boss: Client, make: Make) -> None:
    service = make()
    for address in (LIST, ADD, page(service)):
        answer = boss.get(address)
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
        text = answer.content.decode()
        assert not re.search(r"<script(?![^>]*(\bsrc=|application/json))", text), address
        assert not re.search(r"\s(style|onclick|onchange|onsubmit)=", text), address


def test_untrusted_text_is_no_html(boss: Client, make: Make) -> None:
    service = make(TEXT + "envs:\n  X: '<script>alert(1)</script>'\n", message="<b>bold</b>")
    Service.objects.update(reason="<img src=x>")
    for address in (LIST, page(service), f"/admin/replicas/serviceversion/{again(service).version.pk}/change/"):
        text = boss.get(address).content.decode()
        assert "<script>alert" not in text
        assert "<img src=x>" not in text
        assert "<b>bold" not in text


# Wishing


def test_a_changed_number_scales(boss: Client, make: Make) -> None:
    service = make()
    answer = save(boss, service, target=5)
    assert (answer.status_code, answer.url) == (302, LIST)
    assert again(service).target == 5
    event = Event.objects.latest("id")
    assert (event.trigger, event.reason, event.actor) == ("scaled", "scaled from 2 to 5 by boss", "boss")
    assert LogEntry.objects.get().user.username == "boss"
    assert again(service).version.number == 1


def test_a_message_keeps_the_name_as_it_is_written(boss: Client, make: Make) -> None:
    service = make()
    posted = fields(boss, page(service)) | {"target": "4", "_save": "Save"}
    shown = body(boss.post(page(service), posted, follow=True))
    assert f">{service.name} is to have 4 replicas.<" in shown
    assert 'rel="icon"' in shown


def test_saving_without_a_change_writes_nothing(boss: Client, make: Make, home: Path) -> None:
    service = make()
    before = (Event.objects.count(), again(service).revision)
    assert save(boss, service).status_code == 302
    assert (Event.objects.count(), again(service).revision) == before
    assert copies(home) == []


def test_a_changed_text_becomes_a_version(boss: Client, make: Make) -> None:
    service = make()
    text = TEXT.replace("http.server", "http.server -d .").replace("replicas: 2", "replicas: 3")
    answer = save(boss, service, text=text.replace("\n", "\r\n"), message="other directory")
    assert answer.status_code == 302
    version = again(service).version
    assert (version.number, version.text, version.message, version.created_by) == (2, text, "other directory", "boss")
    assert again(service).target == 3
    assert "service.replicas: 2 → 3" in messages(answer)


def test_faults_of_a_text_stand_at_the_field_with_their_line(boss: Client, make: Make) -> None:
    service = make()
    answer = save(boss, service, text=TEXT.replace("replicas: 2", "replicaz: 2\n  port: 1"))
    assert answer.status_code == 200
    errors = answer.context["adminform"].form.errors["text"]
    assert errors == [
        "line 5, column 3: service.replicaz: is no key of service: did you mean replicas?",
        "line 6, column 3: service.port: is no key of service: did you mean ports?",
    ]
    assert "replicaz: 2" in body(answer), "what was typed is still there"
    assert ServiceVersion.objects.count() == 1


def test_what_the_provider_cannot_carry_is_refused(boss: Client, make: Make) -> None:
    service = make()
    answer = save(boss, service, text=f"num_nodes: 4\n{TEXT}")
    assert answer.context["adminform"].form.errors["text"][0].startswith("line 1, column 12: num_nodes: ")


def test_a_number_that_the_version_cannot_have_is_refused_at_the_field(boss: Client, make: Make) -> None:
    text = f"resources:\n  ports: 8080\n{TEXT}".replace('"$PORT"', "8080").replace("replicas: 2", "replicas: 1")
    service = make(text)
    answer = save(boss, service, target=2)
    assert "run listens on port 8080" in answer.context["adminform"].form.errors["target"][0]
    assert again(service).target == 1


@pytest.mark.parametrize("target", ["-1", "x", ""])
def test_only_numbers_are_numbers(boss: Client, make: Make, target: str) -> None:
    service = make()
    assert "target" in save(boss, service, target=target).context["adminform"].form.errors
    assert again(service).target == 2


def test_somebody_elses_scaling_is_not_undone_by_an_edit_of_the_message(boss: Client, make: Make) -> None:
    service = make()
    seen = fields(boss, page(service))
    services.scale(service.pk, 7, actor="ann")
    boss.post(page(service), seen | {"message": "nothing"})
    assert again(service).target == 7


def test_a_version_that_came_meanwhile_is_a_conflict(boss: Client, make: Make, home: Path) -> None:
    service = make()
    seen = fields(boss, page(service))
    make(TEXT.replace("replicas: 2", "replicas: 4"))
    answer = boss.post(page(service), seen | {"text": TEXT.replace("replicas: 2", "replicas: 3")})
    (error,) = answer.context["adminform"].form.errors["text"]
    assert error.startswith("Version 2 was applied by ann while you were editing version 1. ")
    assert "replicas: 3" in body(answer)
    assert (again(service).version.number, again(service).target) == (2, 4)


def test_a_version_that_comes_between_check_and_deed_is_a_conflict(
    boss: Client, make: Make, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    service = make()
    (home / "app").mkdir()
    real, others = services.apply, iter([TEXT.replace("replicas: 2", "replicas: 4")])

    def apply(draft: Any, **options: Any) -> Any:
        for text in others:
            make(text)
        return real(draft, **options)

    monkeypatch.setattr(services, "apply", apply)
    answer = save(boss, service, text=f"workdir: {home}/app\n{TEXT}")
    assert answer.status_code == 200
    assert "was applied by ann" in answer.context["adminform"].form.errors["text"][0]
    assert again(service).target == 4
    assert copies(home) == []


def test_down_and_up_again(boss: Client, make: Make) -> None:
    service = make()
    assert save(boss, service, desired="DOWN").status_code == 302
    assert again(service).desired == Desired.DOWN
    assert Event.objects.latest("id").reason == "taken down by boss"
    down = save(boss, service, target=5)
    assert "Service web is taken down" in down.context["adminform"].form.errors["target"][0]
    assert save(boss, service, desired="UP").status_code == 302
    found = again(service)
    assert (found.desired, found.version.number, found.target) == (Desired.UP, 1, 2)


def test_down_and_another_wish_at_once_is_refused(boss: Client, make: Make) -> None:
    service = make()
    answer = save(boss, service, desired="DOWN", text=TEXT.replace("2", "3"))
    assert "desired" in answer.context["adminform"].form.errors
    assert again(service).desired == Desired.UP


def test_secrets_are_never_shown_and_are_kept(boss: Client, make: Make) -> None:
    service = make(f"secrets:\n  TOKEN: very-secret-value\n{TEXT}")
    text = body(boss.get(page(service)))
    assert "very-secret-value" not in text
    assert 'TOKEN: "***"' in text
    assert save(boss, service, text=fields(boss, page(service))["text"].replace("replicas: 2", "replicas: 3"))
    first, second = ServiceVersion.objects.order_by("number")
    assert first.process_digest == second.process_digest, "the same secret, so the same processes"
    assert "very-secret-value" not in body(boss.get(f"/admin/replicas/serviceversion/{second.pk}/change/"))


# Adding


def test_adding_by_a_text(boss: Client, home: Path, db: None) -> None:
    answer = boss.post(ADD, {"text": TEXT.replace("\n", "\r\n"), "name": "", "message": "first"})
    assert (answer.status_code, answer.url) == (302, LIST)
    service = Service.objects.select_related("version", "owner").get()
    assert (service.name, service.target, service.owner.username) == ("web", 2, "boss")
    assert service.version.text == TEXT
    assert LogEntry.objects.get().object_id == str(service.pk)
    named = boss.post(ADD, {"text": TEXT, "name": "other", "message": ""})
    assert named.status_code == 302
    assert Service.objects.filter(name="other").exists()


def test_adding_what_is_there_is_refused(boss: Client, make: Make) -> None:
    make()
    answer = boss.post(ADD, {"text": TEXT.replace("2", "3"), "name": "", "message": ""})
    assert answer.context["adminform"].form.errors == {"name": ["There is a service web already: change that one."]}
    assert ServiceVersion.objects.count() == 1


def test_adding_a_wrong_text_shows_where(boss: Client, home: Path, db: None) -> None:
    answer = boss.post(ADD, {"text": "name: web\nrun: [", "name": "", "message": ""})
    assert answer.status_code == 200
    assert answer.context["adminform"].form.errors["text"][0].startswith("line ")
    relative = boss.post(ADD, {"text": f"workdir: app\n{TEXT}", "name": "", "message": ""})
    assert "is relative" in relative.context["adminform"].form.errors["text"][0]
    assert not Service.objects.exists()


# Actions


def act(client: Client, name: str, *rows: Service, **more: str) -> Any:
    chosen = {"action": name, "_selected_action": [str(row.pk) for row in rows], "index": "0"}
    return client.post(LIST, chosen | more)


def test_taking_down_is_confirmed_first(boss: Client, make: Make) -> None:
    one, two, three = make(), make(name="two"), make(name="three")
    asked = act(boss, "take_down", one, two)
    assert asked.status_code == 200
    assert "Take these services down?" in body(asked)
    assert "<li>two</li>" in body(asked)
    assert "<li>three</li>" not in body(asked)
    assert not Service.objects.filter(desired=Desired.DOWN).exists()
    done = act(boss, "take_down", one, two, confirmed="yes")
    assert messages(done) == ["two, web: going down."]
    assert set(Service.objects.filter(desired=Desired.DOWN)) == {one, two}
    assert again(three).desired == Desired.UP
    assert Event.objects.latest("id").actor == "boss"


def test_taking_down_and_forgetting(boss: Client, make: Make) -> None:
    service = make()
    act(boss, "take_down_and_forget", service, confirmed="yes")
    assert (again(service).desired, again(service).purge) == (Desired.DOWN, True)


def test_restarting(boss: Client, make: Make) -> None:
    one, two = make(), make(name="two")
    services.take_down(two.pk, purge=False, actor="ann")
    answer = act(boss, "restart", one, two, confirmed="yes")
    assert messages(answer) == ["web: every replica is replaced.", "two is taken down: bring it up first."]
    assert again(one).version.number == 2


def test_all_pages_can_be_chosen_at_once(boss: Client, make: Make) -> None:
    first = make()
    for number in range(110):
        make(name=f"s{number}")
    asked = act(boss, "take_down", first, select_across="1")
    assert "… 111 in all" in body(asked)
    assert 'name="select_across" value="1"' in body(asked)
    answer = act(boss, "take_down", first, select_across="1", confirmed="yes")
    assert messages(answer) == ["s0, s1, s10, s100, s101 and 106 more: going down."]
    assert Service.objects.filter(desired=Desired.DOWN).count() == 111


# Rights


def test_who_may_not_see_sees_nothing(sign_in: SignIn, make: Make) -> None:
    service = make()
    stranger = sign_in()
    for address in (LIST, ADD, page(service)):
        assert stranger.get(address).status_code == 403
    assert "replicas/service" not in body(stranger.get("/admin/"))
    visitor = sign_in("view", "operate", name="eve", staff=False)
    assert visitor.get(LIST).status_code == 302


def test_who_may_only_see_changes_nothing(sign_in: SignIn, make: Make) -> None:
    service = make()
    viewer = sign_in("view")
    text = body(viewer.get(page(service)))
    assert "<textarea" not in text
    assert 'exec python3 -m http.server "$PORT"' in text
    assert viewer.post(page(service), {"target": 9, "desired": "DOWN", "text": "x"}).status_code == 403
    assert viewer.get(ADD).status_code == 403
    assert 'name="action"' not in body(viewer.get(LIST))
    act(viewer, "take_down", service, confirmed="yes")
    assert (again(service).target, again(service).desired) == (2, Desired.UP)


def test_who_may_operate_scales_but_does_not_deploy(sign_in: SignIn, make: Make) -> None:
    service = make()
    operator = sign_in("view", "operate")
    assert "<textarea" not in body(operator.get(page(service)))
    assert save(operator, service, target=4, text=TEXT.replace("2", "9")).status_code == 302
    assert (again(service).target, again(service).version.number) == (4, 1)
    assert operator.get(ADD).status_code == 403
    save(operator, service, desired="DOWN")
    answer = save(operator, service, desired="UP")
    assert "may not" in answer.context["adminform"].form.errors["desired"][0]
    assert again(service).desired == Desired.DOWN


def test_who_may_deploy_edits_but_does_not_operate(sign_in: SignIn, make: Make) -> None:
    service = make()
    deployer = sign_in("view", "deploy")
    assert 'name="target"' not in body(deployer.get(page(service)))
    assert save(deployer, service, target=9, desired="DOWN").status_code == 302
    assert (again(service).target, again(service).desired) == (2, Desired.UP)
    assert save(deployer, service, text=TEXT.replace("replicas: 2", "replicas: 3")).status_code == 302
    assert again(service).target == 3
    act(deployer, "take_down", service, confirmed="yes")
    assert again(service).desired == Desired.UP


def test_nobody_deletes_rows(boss: Client, make: Make) -> None:
    service = make()
    address = f"{LIST}{service.pk}/delete/"
    assert [boss.get(address).status_code, boss.post(address, {"post": "yes"}).status_code] == [403, 403]
    act(boss, "delete_selected", service, post="yes")
    assert Service.objects.count() == 1


def test_the_row_is_never_saved_from_here(boss: Client, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    service = make()
    saved: list[str] = []
    monkeypatch.setattr(Service, "save", lambda self, *_, **__: saved.append(self.name))
    save(boss, service, target=5)
    save(boss, service, text=TEXT.replace("replicas: 2", "replicas: 3"))
    save(boss, service, desired="DOWN")
    assert (saved, again(service).target, again(service).desired) == ([], 3, Desired.DOWN)


def test_running_replicas_are_reached_by_a_link(boss: Client, make: Make) -> None:
    service = make()
    replica, stranger = cast.ready(service), cast.ready(make(name="other"))
    link = f"/admin/replicas/replica/?service__id__exact={service.pk}"
    assert link in body(boss.get(page(service)))
    shown = body(boss.get(link))
    assert (str(replica) in shown, str(stranger) in shown) == (True, False)
