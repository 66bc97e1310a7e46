"""`down`: exactly the services that are named, and nothing if a name is wrong."""

from collections.abc import Callable
from pathlib import Path

import pytest

from replicas.actions import services
from replicas.core.values import Desired, ServiceStatus
from replicas.models import Event, Lease, Replica, Service
from tests.commands import acts
from tests.commands.conftest import Run

Meanwhile = Callable[..., None]


def going_down() -> list[str]:
    return list(Service.objects.filter(desired=Desired.DOWN).order_by("name").values_list("name", flat=True))


@pytest.fixture
def several(run: Run, yaml: Path, controller: Lease) -> None:
    """Services whose names could be taken for each other."""
    for name in ("a_b", "a-b", "aXb", "a.b", "A_B", "web-1", "web-2"):
        assert run("apply", yaml, "--name", name).code == 0


@pytest.mark.parametrize(
    ("patterns", "taken"),
    [
        (["a_b"], ["a_b"]),
        (["a.b"], ["a.b"]),
        (["a_b", "web-1"], ["a_b", "web-1"]),
        (["web-*"], ["web-1", "web-2"]),
        (["a?b"], ["a-b", "a.b", "aXb", "a_b"]),
        (["a[-_]b", "a_b"], ["a-b", "a_b"]),
        (["*"], ["A_B", "a-b", "a.b", "aXb", "a_b", "web-1", "web-2"]),
    ],
)
def test_names_are_exact_and_globs_are_globs(run: Run, several: None, patterns: list[str], taken: list[str]) -> None:
    result = run("down", *patterns)
    assert (result.code, result.err) == (0, "")
    assert going_down() == sorted(taken)


@pytest.mark.parametrize("patterns", [["a_b", "nope"], ["nope-*", "a_b"], ["web_1"], ["WEB-1"], ["web"]])
def test_a_wrong_name_takes_nothing_down(run: Run, several: None, patterns: list[str]) -> None:
    result = run("down", *patterns)
    assert result.code == 4
    assert going_down() == []


def test_a_wrong_name_gets_the_near_ones(run: Run, several: None) -> None:
    assert run("down", "web_1").err == "Error: There is no service web_1. Did you mean web-1 or web-2?\n"


def test_all(run: Run, several: None) -> None:
    assert run("down", "--all").code == 0
    assert len(going_down()) == 7
    assert run("down").code == 2
    assert run("down", "a_b", "--all").code == 2


def test_all_of_nothing(run: Run, controller: Lease) -> None:
    result = run("down", "--all", "--wait")
    assert (result.code, result.out) == (0, "There is nothing to take down.\n")


def test_a_second_time_changes_nothing(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    run("down", "web")
    events = Event.objects.count()
    assert run("down", "web").out == "web is down already or going down\n"
    assert Event.objects.count() == events


def test_purge_is_written_also_afterwards(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    run("down", "web")
    assert not acts.service().purge
    assert run("down", "web", "--purge").out.endswith("and will be forgotten\n")
    assert acts.service().purge


def test_waits_until_nothing_is_left(run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile) -> None:
    run("apply", yaml)
    replica = acts.ready(acts.service())
    meanwhile(
        lambda: acts.report(ServiceStatus.SHUTTING_DOWN, "going down"),
        lambda: acts.end(replica),
        lambda: acts.report(ServiceStatus.DOWN, "down: nothing of it runs"),
    )
    result = run("down", "web", "--wait")
    assert (result.code, result.err) == (0, "")
    assert "SHUTTING_DOWN → TERMINATED" in result.out
    assert result.out.endswith("Nothing of it is left.\n")
    assert run("down", "web", "--wait").code == 0


def test_waits_until_purged_services_are_forgotten(
    run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile
) -> None:
    run("apply", yaml)
    run("apply", yaml, "--name", "other")
    waited: list[str] = []

    def forget(name: str) -> None:
        acts.report(ServiceStatus.DOWN, "down", name)
        waited.append(name)
        assert services.forget(acts.service(name).pk, actor="controller")

    meanwhile(lambda: forget("web"), lambda: forget("other"))
    result = run("down", "--all", "--purge", "--wait")
    assert (result.code, waited) == (0, ["web", "other"])
    assert result.out.endswith("Nothing of the 2 services is left.\n")
    assert not Service.objects.exists()


def test_something_left_over_is_a_failure(run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile) -> None:
    run("apply", yaml)
    replica = acts.ready(acts.service())
    reason = "down, but replica 1 could not be cleaned up"
    meanwhile(
        lambda: acts.cleanup_failed(replica),
        lambda: acts.report(ServiceStatus.FAILED_CLEANUP, reason),
    )
    result = run("down", "web", "--wait")
    assert (result.code, result.err) == (1, f"Error: web: {reason}\n")


def test_the_timeout_says_what_is_left(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    acts.ready(acts.service())
    result = run("down", "web", "--wait", "--timeout", "0.01")
    assert result.code == 3
    assert "Not down within 0.01 s: web (replica 1 left)." in result.err
    assert going_down() == ["web"]


def test_without_a_control_plane(run: Run, yaml: Path, meanwhile: Meanwhile) -> None:
    meanwhile()
    run("apply", yaml)
    acts.ready(acts.service())
    assert "control plane is not running" in run("down", "web").err
    result = run("down", "web", "--wait")
    assert result.code == 5
    assert going_down() == ["web"]
    assert Replica.objects.get().state == "READY"
