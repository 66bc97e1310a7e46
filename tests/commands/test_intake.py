"""The one way from a text to a version: what is kept, what is copied, what is refused, and what is left behind."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from replicas.actions import endpoints, services
from replicas.actions.sealing import unseal
from replicas.actions.services import Applied, Conflict
from replicas.config import Config
from replicas.core.spec import SpecErrors
from replicas.models import Event, Service, ServiceVersion
from replicas.web import intake
from tests.commands import acts
from tests.commands.conftest import TRIVIAL


def carry_out(text: str | bytes, **given: Any) -> Applied:
    return intake.carry_out(intake.propose(text, **given), actor="ann")


def faults(text: str, **given: Any) -> list[str]:
    with pytest.raises(SpecErrors) as caught:
        intake.propose(text, **given)
    return [str(error) for error in caught.value.errors]


def copies(config: Config) -> set[str]:
    return {path.name for path in (config.home / "versions").iterdir()}


@pytest.fixture
def work(config: Config, tmp_path: Path) -> str:
    """A text with a workdir of one file, app/main.py below tmp_path."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "main.py").write_text("1")
    return f"workdir: app\n{TRIVIAL}"


def test_a_proposal_writes_nothing(config: Config, work: str, tmp_path: Path) -> None:
    proposal = intake.propose(work.encode(), base=str(tmp_path), name="other", message="why")
    assert (proposal.kind, proposal.active_number, proposal.draft.name) == ("create", 0, "other")
    assert (proposal.draft.message, proposal.draft.target, proposal.draft.text) == ("why", 2, work)
    assert proposal.changes[0] == "2 replicas on the provider local"
    assert proposal.warnings == []  # there are no older files that these could differ from
    assert (copies(config), Event.objects.count(), Service.objects.count()) == (set(), 0, 0)


def test_a_proposal_for_a_service_with_files_says_when_they_are_compared(
    config: Config, work: str, tmp_path: Path
) -> None:
    carry_out(work, base=str(tmp_path))
    assert "found out when this is applied" in intake.propose(work, base=str(tmp_path)).warnings[0]


def test_a_port_of_another_service_is_refused_at_its_line(config: Config) -> None:
    endpoints.give(carry_out(TRIVIAL, name="web").service.pk, 18000, actor="gateway")
    asking = TRIVIAL.replace("service:\n", "service:\n  endpoint_port: 18000\n")
    line = asking[: asking.index("endpoint_port")].count("\n") + 1
    (fault,) = faults(asking, name="other")
    assert fault.startswith(f"line {line}") or f":{line}" in fault, fault
    assert "18000 is the port of service web: choose another, or take web down" in fault
    assert intake.propose(asking, name="web").kind == "update"


@pytest.mark.parametrize(
    ("port", "whose"),
    [(8765, "the dashboard's own"), (8801, "ROLLCALL_GATEWAY_PORT"), (20000, "that replicas get"), (18000, "")],
)
def test_a_port_of_the_control_plane_itself_is_refused(port: int, whose: str, config: Config, settings: Any) -> None:
    settings.ROLLCALL = dataclasses.replace(settings.ROLLCALL, gateway=True, gateway_port=8801)
    (settings.ROLLCALL.run / "up.pid").write_text("1 2 http://127.0.0.1:8765/")
    asking = TRIVIAL.replace("service:\n", f"service:\n  endpoint_port: {port}\n")
    if not whose:
        assert intake.propose(asking).kind == "create"
        return
    (fault,) = faults(asking)
    assert whose in fault
    assert fault.endswith(": choose another")


def test_a_proposal_without_files_warns_of_nothing(config: Config) -> None:
    assert intake.propose(TRIVIAL).warnings == []


def test_files_that_were_compared_are_copied_once(config: Config, work: str, tmp_path: Path) -> None:
    proposal = intake.propose(work, base=str(tmp_path), files=True)
    assert copies(config) == {proposal.draft.uid}
    assert proposal.draft.files_digest
    (tmp_path / "app" / "main.py").write_text("changed after it was looked at")
    applied = intake.carry_out(proposal, actor="ann")
    assert applied.version.uid == proposal.draft.uid
    assert applied.version.files_digest == proposal.draft.files_digest
    copied = config.home / "versions" / applied.version.uid / "snapshot" / "sky_workdir" / "main.py"
    assert copied.read_text() == "1"


def test_a_proposal_that_is_given_up_leaves_nothing(config: Config, work: str, tmp_path: Path) -> None:
    proposal = intake.propose(work, base=str(tmp_path), files=True)
    intake.discard(proposal)
    intake.discard(proposal)
    assert copies(config) == set()


def test_what_changes_nothing_leaves_nothing(config: Config, work: str, tmp_path: Path) -> None:
    first = carry_out(work, base=str(tmp_path))
    again = carry_out(work, base=str(tmp_path))
    assert (again.change, again.version) == ("unchanged", first.version)
    assert copies(config) == {first.version.uid}


def test_changed_files_are_found_when_it_is_carried_out(config: Config, work: str, tmp_path: Path) -> None:
    carry_out(work, base=str(tmp_path))
    (tmp_path / "app" / "main.py").write_text("2")
    proposal = intake.propose(work)
    assert proposal.kind == "unchanged"
    assert intake.carry_out(proposal, actor="ann").version.number == 2


def test_relative_paths_go_on_from_where_they_started(config: Config, work: str, tmp_path: Path) -> None:
    carry_out(work, base=str(tmp_path))
    edited = carry_out(work.replace("replicas: 2", "replicas: 3"))
    assert edited.version.spec["workdir"] == f"{tmp_path}/app"
    assert edited.version.base == str(tmp_path)


def test_without_a_place_to_start_from_a_relative_path_is_refused(config: Config, work: str) -> None:
    (fault,) = faults(work)
    assert fault.startswith("line 1, column 10: workdir: app is relative")


def test_a_workdir_that_went_away_is_a_fault_at_its_line(config: Config, work: str, tmp_path: Path) -> None:
    proposal = intake.propose(f"\n{work}", base=str(tmp_path))
    shutil.rmtree(tmp_path / "app")
    with pytest.raises(SpecErrors, match=r"line 2, column 10: workdir: .* does not exist"):
        intake.carry_out(proposal, actor="ann")
    assert copies(config) == set()
    assert not Service.objects.exists()


def test_an_expected_version_that_is_not_active_any_more(config: Config) -> None:
    mine = intake.propose(TRIVIAL.replace("replicas: 2", "replicas: 3"))
    carry_out(TRIVIAL)
    with pytest.raises(Conflict, match="at version 1 by now, not 0"):
        intake.carry_out(mine, actor="bob", expected=mine.active_number)
    assert ServiceVersion.objects.count() == 1


def test_the_name_that_is_given_comes_before_the_one_in_the_text(config: Config) -> None:
    carry_out(TRIVIAL)
    assert intake.propose(TRIVIAL, name="other").kind == "create"
    assert intake.propose(TRIVIAL.replace("name: web", "name: other"), name="web").kind == "unchanged"
    assert faults(TRIVIAL.replace("name: web\n", "")) != []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "line 1, column 1: "),
        ("- a\n- b\n", "line 1, column 1: "),
        ("name: {a: b}\n" + TRIVIAL[10:], "line 1, column 7: name: "),
        (TRIVIAL + "provider: locl\n", "line 6, column 11: provider: locl is no provider here: did you mean local?"),
        (TRIVIAL + "resources:\n  cpus: 100000\n", "line 7, column 9: resources.cpus: "),
        (TRIVIAL + "file_mounts:\n  ~/a: b\n  /x.y/z: /etc\n", 'line 8, column 11: file_mounts["/x.y/z"]: '),
        (TRIVIAL.replace("run: ", "setup: "), "line 1, column 1: run: is missing"),
        (TRIVIAL + "resources:\n  any_of:\n  - use_spot: true\n", "line 7, column 3: resources.use_spot: "),
    ],
)
def test_each_fault_is_at_its_place(config: Config, text: str, fault: str) -> None:
    found = faults(text, base="/")
    assert any(each.startswith(fault) for each in found), found


def test_secrets_that_cannot_be_opened_any_more(config: Config, settings: Any) -> None:
    text = f"secrets:\n  TOKEN: a-long-secret-value\n{TRIVIAL}"
    first = carry_out(text)
    settings.SECRET_KEY = "another key"
    found = faults(first.version.text)
    assert found[0].startswith("line 2, column 10: secrets.TOKEN: *** stands for a value that is not known here")
    assert "sealed with another SECRET_KEY" in found[-1]
    proposal = intake.propose(first.version.text, secrets={"TOKEN": "a-long-secret-value"})
    assert "secrets: sealed anew; the old ones cannot be opened any more" in proposal.changes
    applied = intake.carry_out(proposal, actor="ann")
    assert (applied.version.number, unseal(applied.version.sealed)) == (2, {"TOKEN": "a-long-secret-value"})


def test_no_row_tells_a_secret_or_a_digest_that_could_be_guessed_from_it(config: Config) -> None:
    carry_out(f"secrets:\n  PIN: '1234'\n{TRIVIAL}")
    without = intake.propose(TRIVIAL, name="plain").draft
    with_pin = ServiceVersion.objects.get()
    assert without.digest != with_pin.digest
    assert "1234" not in with_pin.text + with_pin.sealed + str(with_pin.spec)


def test_a_service_that_was_restarted_is_still_unchanged(config: Config) -> None:
    carry_out(TRIVIAL)
    services.restart(acts.service().pk, actor="ann")
    assert intake.propose(TRIVIAL).kind == "unchanged"


def test_a_revived_service_tells_what_is_different(config: Config) -> None:
    carry_out(TRIVIAL)
    services.take_down(acts.service().pk, purge=False, actor="ann")
    proposal = intake.propose(TRIVIAL.replace("replicas: 2", "replicas: 3"))
    assert proposal.kind == "revive"
    assert proposal.changes == ["service.replicas: 2 → 3", "desired: DOWN → UP with 3 replicas"]
    assert intake.carry_out(proposal, actor="ann").change == "revived"


def test_scaling_a_service_that_is_gone(config: Config) -> None:
    found = carry_out(TRIVIAL).service
    services.take_down(found.pk, purge=True, actor="ann")
    with pytest.raises(intake.IntakeError, match="is taken down"):
        intake.scale(acts.service(), 1, actor="ann")
    services.forget(found.pk, actor="controller")
    with pytest.raises(intake.IntakeError, match="is gone"):
        intake.scale(found, 1, actor="ann")
