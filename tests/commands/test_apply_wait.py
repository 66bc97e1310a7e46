"""`apply --wait`: until all is ready, or it is clear that it will not be."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from replicas import clock
from replicas.actions import operations, rollouts, services
from replicas.core.values import ServiceStatus
from replicas.management import following
from replicas.models import Lease, Replica, Rollout
from tests.commands import acts
from tests.commands.conftest import TRIVIAL, Run

Meanwhile = Callable[..., None]


def test_waits_until_all_are_ready_and_prints_what_happens(
    run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile
) -> None:
    meanwhile(
        lambda: acts.ready(acts.service()),
        lambda: acts.report(ServiceStatus.READY, "1 of 2 ready"),
        lambda: acts.ready(acts.service()),
    )
    result = run("apply", yaml, "--wait")
    assert (result.code, result.err) == (0, "")
    assert "web/1               probe_passed     STARTING → READY  HTTP 200 (probe)" in result.out
    assert "CONTROLLER_INIT → READY" in result.out
    assert result.out.endswith("web version 1 is ready: 2 of 2 replicas.\n")


def test_events_of_before_are_not_printed(run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile) -> None:
    run("apply", yaml)
    acts.ready(acts.service())
    meanwhile(lambda: acts.ready(acts.service()))
    result = run("apply", yaml, "--wait")
    assert result.code == 0
    assert "web/2" in result.out
    assert "web/1" not in result.out


def test_is_done_at_once_when_all_is_ready(run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile) -> None:
    run("apply", yaml)
    acts.ready(acts.service())
    acts.ready(acts.service())
    meanwhile()
    assert run("apply", yaml, "--wait").code == 0


def test_an_update_is_ready_when_no_older_version_serves(
    run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile
) -> None:
    run("apply", yaml)
    old = acts.ready(acts.service())
    yaml.write_text(TRIVIAL.replace("exec", "exec -a web").replace("replicas: 2", "replicas: 1"))
    waited: list[str] = []
    meanwhile(
        lambda: acts.ready(acts.service()),
        lambda: waited.append("the old one still serves"),
        lambda: acts.end(old),
    )
    assert run("apply", yaml, "--wait").code == 0
    assert waited


def test_a_failure_ends_the_wait_with_its_reason_and_last_lines(
    run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile
) -> None:
    meanwhile(
        lambda: acts.fail(acts.starting(acts.service()), lines=("Traceback", "KeyError: 'MODEL'")),
        lambda: acts.report(ServiceStatus.FAILED, "0 of 2 ready; replica 1 failed: exited with code 7"),
    )
    result = run("apply", yaml, "--wait")
    assert result.code == 1
    assert "web version 1 has failed: 0 of 2 ready; replica 1 failed: exited with code 7." in result.err
    assert "  | KeyError: 'MODEL'" in result.err
    assert "`manage.py logs web 1`" in result.err


def test_a_failure_from_before_the_apply_does_not_count(
    run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile
) -> None:
    run("apply", yaml)
    acts.report(ServiceStatus.FAILED, "0 of 2 ready")
    yaml.write_text(TRIVIAL.replace("replicas: 2", "replicas: 1"))
    meanwhile(
        lambda: acts.report(ServiceStatus.REPLICA_INIT, "0 of 1 ready"),
        lambda: acts.ready(acts.service()),
    )
    assert run("apply", yaml, "--wait").code == 0


def test_an_update_that_is_given_up_ends_the_wait_although_the_old_version_serves(
    run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile
) -> None:
    run("apply", yaml)
    acts.ready(acts.service())
    acts.report(ServiceStatus.READY, "1 of 2 ready")
    restart = "  restart:\n    max_never_ready: 2\n"
    yaml.write_text(TRIVIAL.replace("exec", "exec -a web") + restart)
    meanwhile(lambda: acts.fail(acts.starting(acts.service())), lambda: acts.fail(acts.starting(acts.service())))
    result = run("apply", yaml, "--wait")
    assert result.code == 1
    assert "web version 2 has failed" in result.err
    assert "Replica 3 ended as FAILED" in result.err


def going() -> Rollout:
    found = rollouts.live_of(acts.service().pk)
    assert found is not None
    return found


def proved(version: int) -> None:
    """The rollout that goes on comes to a good end."""
    rollout = going()
    assert rollout.to_version == version
    assert rollouts.progress(rollout.pk, rollout.revision, 1, reason="ready", actor="controller")
    assert rollouts.succeed(rollout.pk, rollout.revision + 1, reason="done", actor="controller")


def failed(reason: str) -> None:
    """The rollout that goes on fails, and the service goes back by itself."""
    rollout = going()
    assert rollouts.fail(rollout.pk, rollout.revision, reason=reason, actor="controller")
    assert rollouts.turn_back(rollout.pk, reason=f"back to version 1: {reason}", actor="controller")


def test_a_rollout_that_turns_back_ends_the_wait_with_its_reason(
    run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile
) -> None:
    run("apply", yaml)
    acts.ready(acts.service())
    proved(1)
    yaml.write_text(TRIVIAL.replace("exec", "exec -a web"))
    meanwhile(
        lambda: acts.fail(acts.starting(acts.service()), lines=("KeyError: 'MODEL'",)),
        lambda: failed("version 2 failed 3 times"),
    )
    result = run("apply", yaml, "--wait")
    assert result.code == 1
    assert "web version 2 has failed: version 2 failed 3 times. Version 3 is active." in result.err
    assert "  | KeyError: 'MODEL'" in result.err
    assert "PROGRESSING → FAILED  version 2 failed 3 times" in result.out


def test_a_rollout_that_somebody_aborts_ends_the_wait(
    run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile
) -> None:
    run("apply", yaml)
    acts.ready(acts.service())
    proved(1)
    yaml.write_text(TRIVIAL.replace("exec", "exec -a web"))
    meanwhile(lambda: rollouts.abort(acts.service().pk, actor="ann"))
    result = run("apply", yaml, "--wait")
    assert result.code == 1
    assert "The rollout of web version 2 was given up: aborted by ann. Version 3 is active." in result.err


def test_what_is_kept_after_a_switch_serves_no_more(
    run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile
) -> None:
    one = TRIVIAL.replace("replicas: 2", "replicas: 1")
    yaml.write_text(one)
    run("apply", yaml)
    acts.ready(acts.service())
    proved(1)
    yaml.write_text(one.replace("exec", "exec -a web"))
    waited: list[str] = []
    meanwhile(
        lambda: acts.ready(acts.service()),
        lambda: waited.append("the old one still serves"),
        lambda: rollouts.switch(going().pk, going().revision, reason="complete", actor="controller"),
    )
    assert run("apply", yaml, "--mode", "blue_green", "--wait").code == 0
    assert waited


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (lambda: services.take_down(acts.service().pk, purge=False, actor="ann"), "was taken down meanwhile"),
        (lambda: services.restart(acts.service().pk, actor="ann"), "was replaced by version 2 meanwhile"),
    ],
)
def test_what_others_do_ends_the_wait(
    run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile, step: Callable[[], object], told: str
) -> None:
    meanwhile(step)
    result = run("apply", yaml, "--wait")
    assert result.code == 1
    assert told in result.err


def test_a_purged_service_ends_the_wait(run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile) -> None:
    def purge() -> None:
        found = acts.service()
        services.take_down(found.pk, purge=True, actor="ann")
        assert services.forget(found.pk, actor="controller")

    meanwhile(purge)
    result = run("apply", yaml, "--wait")
    assert (result.code, "was purged meanwhile" in result.err) == (1, True)


def test_the_timeout_has_its_own_exit_code(run: Run, yaml: Path, controller: Lease) -> None:
    result = run("apply", yaml, "--wait", "--timeout", "0.01")
    assert result.code == 3
    assert "web version 1 is not ready after 0.01 s: waiting for the controller." in result.err
    assert acts.service().target == 2, "the wish stays"


def test_without_a_control_plane_it_does_not_wait(run: Run, yaml: Path, meanwhile: Meanwhile) -> None:
    meanwhile()
    result = run("apply", yaml, "--wait")
    assert result.code == 5
    assert "will be carried out when `manage.py up` runs" in result.err
    assert acts.service().target == 2


def test_a_control_plane_that_goes_away_for_long_ends_the_wait(
    run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> None:
        Lease.objects.update(expires_at=clock.now() - timedelta(seconds=1))

    def long_gone() -> None:
        monkeypatch.setattr(following, "PATIENCE_SECONDS", -1.0)

    meanwhile(gone, lambda: None, long_gone)
    assert run("apply", yaml, "--wait").code == 5


def test_ctrl_c_leaves_quietly(run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile) -> None:
    meanwhile()
    result = run("apply", yaml, "--wait")
    assert (result.code, result.err) == (130, "")


def test_waits_and_retries_of_launches_are_shown(run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile) -> None:
    def wait_for_setup() -> None:
        replica = acts.pending(acts.service())
        claimed = operations.claim(acts.operation_of(replica).pk, acts.WORKER)
        assert claimed is not None
        operations.wait(claimed, checkpoint={}, reason="setup", seconds=9, watch=None, usage=operations.Usage())

    meanwhile(wait_for_setup)
    result = run("apply", yaml, "--wait")
    assert "web/1 launch" in result.out
    assert "RUNNING → WAITING  setup" in result.out
    assert Replica.objects.get().state == "PROVISIONING"
