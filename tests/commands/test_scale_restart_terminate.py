"""`scale`, `restart`, `terminate`: wishes on rows, and what cannot be wished for."""

from pathlib import Path

from replicas.core.values import Desired
from replicas.models import Event, Lease, Replica, Service
from tests.commands import acts
from tests.commands.conftest import TRIVIAL, Run


def test_scale_writes_the_target(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    result = run("scale", "web", 5)
    assert (result.code, result.out, result.err) == (0, "web: target 2 → 5\n", "")
    assert acts.service().target == 5
    assert acts.service().version.number == 1
    assert "5 replicas as its target already" in run("scale", "web", 5).out
    assert run("scale", "web", 0).code == 0
    assert acts.service().target == 0


def test_scale_warns_when_nobody_carries_it_out(run: Run, yaml: Path) -> None:
    run("apply", yaml)
    assert "control plane is not running" in run("scale", "web", 5).err
    assert run("scale", "web", 5).err == ""


def test_scale_takes_only_numbers_of_replicas(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    for wrong in ("-1", "two", "1.5", "", "1000000", "²"):
        assert run("scale", "web", wrong).code == 2, wrong
    assert run("scale", "web").code == 2
    assert run("scale", "bew", 1).code == 4
    assert acts.service().target == 2


def test_scale_refuses_what_apply_would_refuse(run: Run, yaml: Path, controller: Lease) -> None:
    text = f"resources:\n  ports: 8080\n{TRIVIAL}".replace('"$PORT"', "8080").replace("replicas: 2", "replicas: 1")
    yaml.write_text(text)
    assert run("apply", yaml).code == 0
    result = run("scale", "web", 2)
    assert result.code == 1
    assert "Service web cannot have 2 replicas: run listens on port 8080" in result.err
    assert acts.service().target == 1
    assert run("scale", "web", 0).code == 0


def test_a_service_that_is_down_is_neither_scaled_nor_restarted(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    run("down", "web")
    for command in (("scale", "web", 5), ("restart", "web")):
        result = run(*command)
        assert (result.code, result.err) == (1, "Error: Service web is taken down. Apply it again to bring it up.\n")
    assert (acts.service().target, acts.service().desired) == (2, Desired.DOWN)


def test_restart_makes_a_version_that_replaces_all(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    before = acts.service()
    result = run("restart", "web")
    assert (result.code, result.out) == (0, "web: version 2 replaces every replica\n")
    after = acts.service()
    assert after.version.number == 2
    assert after.version.text == before.version.text
    assert after.version.process_digest != before.version.process_digest
    assert after.forgiven_at > before.forgiven_at
    assert run("restart", "nope").code == 4


def test_terminate_writes_the_wish_on_the_replica(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    acts.ready(acts.service())
    result = run("terminate", "web", 1)
    assert (result.code, result.err) == (0, "")
    assert result.out == "web/1 is going to be terminated; another takes its place\n"
    replica = Replica.objects.get()
    assert replica.retire_reason.startswith("terminated by ")
    assert (replica.state, replica.purge) == ("READY", False)
    assert run("terminate", "web", 1, "--purge").out.startswith("web/1 is going to be terminated and forgotten")
    assert Replica.objects.get().purge


def test_terminate_of_what_has_ended(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    acts.fail(acts.ready(acts.service()))
    result = run("terminate", "web", 1)
    assert (result.code, result.out) == (0, "web/1 has ended already (FAILED); --purge forgets it\n")
    assert Replica.objects.exists()
    assert run("terminate", "web", 1, "--purge").out == "web/1 is forgotten\n"
    assert not Replica.objects.exists()
    assert Event.objects.filter(kind="replica", trigger="forgotten").count() == 1


def test_terminate_of_what_is_not_there(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    result = run("terminate", "web", 3)
    assert (result.code, result.err) == (4, "Error: Service web has no replica 3. It has no replicas yet.\n")
    assert run("terminate", "bew", 1).code == 4
    assert run("terminate", "web", "0").code == 2
    assert run("terminate", "web").code == 2


def test_the_actor_is_the_login_name(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    run("scale", "web", 3)
    event = Event.objects.latest("id")
    assert event.actor.endswith(" (command)")
    assert event.reason == f"scaled from 2 to 3 by {event.actor}"
    assert Service.objects.get().target == 3
