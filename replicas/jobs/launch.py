"""The launch job: one step of bringing a replica up, or of cleaning up after a launch that is not wanted or failed."""

from dataclasses import replace
from datetime import timedelta

from django.conf import settings

from replicas.actions import operations
from replicas.core.values import OperationStatus, ReplicaState
from replicas.jobs import runner
from replicas.jobs.runner import Step
from replicas.models import Replica
from replicas.providers.base import Gone, Launched, ProviderError, Waiting

S = OperationStatus
CLEANUP_GRACE = timedelta(seconds=5)
UNCLEAN = "the cancelled launch could not be cleaned up: something may be left over"


def run(operation_id: int) -> None:
    """Take the launch one step on."""
    runner.perform(operation_id, step)


def step(step: Step) -> None:
    """Launch, or clean up: after a cancel, or between two attempts."""
    if step.operation.cancel_requested_at is not None or step.replica.state != ReplicaState.PROVISIONING:
        clean_up_cancelled(step)
    elif step.sealed:
        give_up(step, ProviderError(step.sealed, retryable=False))
    elif step.operation.orphaned >= runner.ORPHAN_LIMIT:
        give_up(step, ProviderError(runner.cut_off(step), retryable=False))
    elif "failed" in step.checkpoint:
        clean_up_attempt(step, step.checkpoint["failed"])
    else:
        bring_up(step)


def bring_up(step: Step) -> None:
    """One step of the provider's launch."""
    try:
        with runner.reporting(step):
            result = step.provider.launch(step.order, step.checkpoint.get("provider"))
    except ProviderError as error:
        failed(step, error)
        return
    if isinstance(result, Waiting):
        step.wait(result.reason, result.seconds, {"provider": dict(result.checkpoint)}, result.watch)
    else:
        launched(step, result)


def launched(step: Step, result: Launched) -> None:
    """The process runs: the replica is starting, unless somebody retired it meanwhile."""
    done = operations.settle(
        step.operation,
        S.SUCCEEDED,
        "launched",
        reason=f"running at {result.url}",
        usage=step.meter.usage(),
        handle=dict(result.handle),
        url=result.url,
        pid=result.pid,
        log=str(result.run_log or ""),
        spot=step.replica.spot if result.spot is None else result.spot,
        accelerators=result.accelerators,
        place=result.place or step.replica.place,
    )
    if done == "refused":
        step.replica = Replica.objects.select_related("service", "version").get(pk=step.replica.pk)
        clean_up_cancelled(step)


def failed(step: Step, error: ProviderError) -> None:
    """An attempt failed: clean up and try again later, or give up."""
    step.note(f"attempt {step.attempt} failed: {error.reason}")
    if not error.retryable or step.attempt >= settings.ROLLCALL.launch_attempts:
        give_up(step, error)
    else:
        clean_up_attempt(step, error.reason)


def give_up(step: Step, error: ProviderError) -> None:
    """The launch has failed for good; the down that follows cleans up."""
    done = operations.settle(
        step.operation,
        S.FAILED,
        "setup_failed" if error.user_fault else "launch_failed",
        reason=error.reason,
        error=error.reason,
        usage=step.meter.usage(),
        last_lines=list(error.tail),
    )
    if done == "refused":
        clean_up_cancelled(step)


def clean_up_attempt(step: Step, reason: str) -> None:
    """Remove what the failed attempt left, then wait for the next one."""
    left = remove(step)
    if isinstance(left, Waiting):
        checkpoint = {**left.checkpoint, "failed": reason}
        step.wait(f"cleaning up before the next attempt: {left.reason}", left.seconds, checkpoint, left.watch)
        return
    seconds = runner.retry_in(step.attempt, settings.ROLLCALL.launch_retry_seconds)
    limit = settings.ROLLCALL.launch_attempts
    step.wait(
        f"attempt {step.attempt} of {limit} failed ({reason}); the next one comes in {seconds:.0f} s",
        seconds,
        {},
        attempts=step.attempt + 1,
        error=reason,
    )


def clean_up_cancelled(step: Step) -> None:
    """Remove whatever the launch has made so far, then end operation and replica together."""
    left = remove(step)
    if isinstance(left, Waiting):
        step.wait(f"cancelling: {left.reason}", left.seconds, dict(left.checkpoint), left.watch)
        return
    trigger, detail = ("gone", left.detail or "nothing is left of it") if left else ("cleanup_failed", UNCLEAN)
    step.note(f"cancelled ({why}): {detail}" if (why := step.operation.cancel_reason) else f"cancelled: {detail}")
    done = operations.settle(step.operation, S.CANCELLED, trigger, reason=detail, usage=step.meter.usage())
    if done == "refused":  # the replica had ended already
        operations.settle(step.operation, S.CANCELLED, None, reason=detail, usage=step.meter.usage())


def remove(step: Step) -> Gone | Waiting | None:
    """One step of taking away what a launch has made; its checkpoint is ours. None when that failed for good."""
    before = step.checkpoint
    try:
        with runner.reporting(step):
            left = step.provider.down(step.order, step.replica.handle, CLEANUP_GRACE, before.get("removing"))
    except ProviderError as error:
        step.note(f"cleaning up failed: {error.reason}")
        tries = int(before.get("tries", 0)) + 1
        if not error.retryable or tries >= settings.ROLLCALL.down_attempts:
            return None
        return Waiting({"tries": tries}, error.reason, settings.ROLLCALL.down_retry_seconds)
    if isinstance(left, Waiting):
        return replace(left, checkpoint={**before, "removing": dict(left.checkpoint)})
    return left
