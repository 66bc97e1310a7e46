"""The down job: one step of taking a replica away, until nothing of it is left."""

from django.conf import settings

from replicas.actions import operations
from replicas.core.values import OperationStatus, ReplicaState
from replicas.jobs import runner
from replicas.jobs.runner import Step
from replicas.providers.base import Gone, ProviderError, Waiting

S = OperationStatus


def run(operation_id: int) -> None:
    """Take the down one step on."""
    runner.perform(operation_id, step)


def step(step: Step) -> None:
    """One step of the provider's down; "already gone" is success."""
    if step.operation.orphaned >= runner.ORPHAN_LIMIT:
        give_up(step, ProviderError(runner.cut_off(step)))
        return
    try:
        with runner.reporting(step):
            result = step.provider.down(
                step.order,
                step.replica.handle,
                runner.drain_grace(step.replica),
                step.checkpoint.get("provider"),
            )
    except ProviderError as error:
        failed(step, error)
        return
    if isinstance(result, Waiting):
        step.wait(result.reason, result.seconds, {"provider": dict(result.checkpoint)}, result.watch)
    else:
        gone(step, result)


def gone(step: Step, result: Gone) -> None:
    """Nothing is left: the replica ends with its outcome; one that had ended unclean stays as it is."""
    step.note(result.detail or "nothing is left of it")
    cleaned = step.replica.state == ReplicaState.FAILED_CLEANUP
    operations.settle(
        step.operation,
        S.SUCCEEDED,
        None if cleaned else "gone",
        reason=result.detail or "nothing is left of it",
        usage=step.meter.usage(),
    )


def failed(step: Step, error: ProviderError) -> None:
    """Try again later, or give up and say that something may be left over."""
    step.note(f"attempt {step.attempt} failed: {error.reason}")
    limit = settings.ROLLCALL.down_attempts
    if step.attempt >= limit:
        give_up(step, error)
        return
    seconds = settings.ROLLCALL.down_retry_seconds
    step.wait(
        f"attempt {step.attempt} of {limit} failed ({error.reason}); the next one comes in {seconds:.0f} s",
        seconds,
        {},
        attempts=step.attempt + 1,
        error=error.reason,
    )


def give_up(step: Step, error: ProviderError) -> None:
    """The replica ends as FAILED_CLEANUP."""
    already = step.replica.state == ReplicaState.FAILED_CLEANUP
    operations.settle(
        step.operation,
        S.FAILED,
        None if already else "cleanup_failed",
        reason=f"{error.reason}; something may be left over: `operations --retry {step.operation.pk}` tries again",
        error=error.reason,
        usage=step.meter.usage(),
    )
