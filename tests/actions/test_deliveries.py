"""One launch in every order of deliveries (none, one, two), steps, deaths, silences, a cancel: over real rows.

Each branch is taken back by a savepoint. States that are alike are visited once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from django.db import transaction

from replicas.actions import operations
from replicas.actions.operations import Refused, Usage
from replicas.core.values import OperationStatus, ReplicaState
from replicas.models import Event, Operation, Replica
from tests import cast

pytestmark = pytest.mark.django_db
S = OperationStatus
WORKERS = (cast.WORKER, cast.OTHER_WORKER)


@dataclass(frozen=True)
class Left:
    """How often what goes wrong may still happen."""

    deliveries: int = 4
    deaths: int = 1
    silences: int = 1
    cancels: int = 1


@dataclass
class State:
    """What each worker holds: the operation as it was when it claimed it. The rows are in the database."""

    held: dict[int, Operation] = field(default_factory=dict)
    left: Left = field(default_factory=Left)

    def without(self, worker: int, **less: int) -> "State":
        """The worker has let go of what it held."""
        return State({each: held for each, held in self.held.items() if each != worker}, replace(self.left, **less))


class Search:
    """Walks through all states. `ends`: how operation and replica ended, and how often that was reached anew."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.operation = cast.operation_of(replica).pk
        self.known: set[object] = set()
        self.ends: set[tuple[str, str]] = set()

    def rows(self) -> tuple[Operation, Replica]:
        return Operation.objects.get(pk=self.operation), Replica.objects.get(pk=self.replica.pk)

    def visit(self, state: State) -> None:
        """This state and all that can come of it."""
        operation, replica = self.rows()
        holds = tuple((worker, held.claim == operation.claim) for worker, held in sorted(state.held.items()))
        key = (operation.status, replica.state, operation.cancel_requested_at is not None, holds, state.left)
        if key in self.known:
            return
        self.known.add(key)
        self.check(operation, replica)
        for happens in self.steps(state, operation):
            savepoint = transaction.savepoint()
            self.visit(happens())
            transaction.savepoint_rollback(savepoint)

    def check(self, operation: Operation, replica: Replica) -> None:
        """What is true in every state."""
        status, state = OperationStatus(operation.status), ReplicaState(replica.state)
        assert status.live or operation.owner_pid is None
        assert status.live == (operation.ended_at is None)
        assert not (state.ended and status.live), "ended beside work on it"
        assert Operation.objects.filter(replica=replica, ended_at=None).count() <= 1
        for kind, row in (("operation", operation), ("replica", replica)):
            events = Event.objects.filter(kind=kind, object_id=row.pk).order_by("id")
            links = list(events.values_list("old", "new", "revision"))
            assert all(before[1] == after[0] for before, after in pairwise(links)), links
            assert [revision for _, _, revision in links] == list(range(1, row.revision + 1))
        if not status.live:
            self.ends.add((status, state))

    def steps(self, state: State, operation: Operation) -> Iterator[Callable[[], State]]:
        """Whatever can happen next."""
        live = OperationStatus(operation.status).live
        for number in range(len(WORKERS)):
            if number in state.held:
                yield lambda number=number: self.launched(state, number)
                yield lambda number=number: self.fails(state, number)
                yield lambda number=number: self.waits(state, number)
                if state.left.deaths and state.held[number].claim == operation.claim and live:
                    yield lambda number=number: self.dies(state, number)
                if state.left.silences and state.held[number].claim == operation.claim and live:
                    yield lambda number=number: self.is_silent(state)
            elif state.left.deliveries:
                yield lambda number=number: self.delivered(state, number)
        if state.left.cancels and live:
            yield lambda: self.cancelled(state)

    def delivered(self, state: State, worker: int) -> State:
        """The queue hands the job to a worker, be it for the second time."""
        left = replace(state.left, deliveries=state.left.deliveries - 1)
        before, _ = self.rows()
        claimed = operations.claim(self.operation, WORKERS[worker])
        assert (claimed is not None) == (before.status in (S.QUEUED, S.WAITING))
        return State(state.held | ({worker: claimed} if claimed else {}), left)

    def launched(self, state: State, worker: int) -> State:
        """Its process runs; the claim decides whether that counts."""
        return self.settles(state, worker, S.SUCCEEDED, "launched")

    def fails(self, state: State, worker: int) -> State:
        """It cannot be brought up."""
        return self.settles(state, worker, S.FAILED, "launch_failed")

    def settles(self, state: State, worker: int, status: OperationStatus, trigger: str) -> State:
        mine = state.held[worker]
        before, _ = self.rows()
        holds = before.status == S.RUNNING and before.claim == mine.claim
        done = operations.settle(mine, status, trigger, reason="told", usage=Usage())
        assert (done == "stale") == (not holds)
        if done == "refused":  # it was cancelled meanwhile: the job cleans up and ends both
            assert before.cancel_requested_at is not None
            assert operations.settle(mine, S.CANCELLED, "gone", reason="told", usage=Usage()) == "settled"
        return state.without(worker)

    def waits(self, state: State, worker: int) -> State:
        """It lets go for a while; the next delivery goes on."""
        mine = state.held[worker]
        before, _ = self.rows()
        holds = before.status == S.RUNNING and before.claim == mine.claim
        kept = operations.wait(mine, checkpoint={"n": 1}, reason="setup", seconds=0, watch=None, usage=Usage())
        assert kept == holds
        return state.without(worker)

    def dies(self, state: State, worker: int) -> State:
        """Its worker is killed, and the controller sees that."""
        assert operations.orphan(self.rows()[0], reason="its worker died")
        return state.without(worker, deaths=state.left.deaths - 1)

    def is_silent(self, state: State) -> State:
        """Its worker is taken for dead, and goes on later all the same."""
        assert operations.orphan(self.rows()[0], reason="it was silent")
        return State(state.held, replace(state.left, silences=state.left.silences - 1))

    def cancelled(self, state: State) -> State:
        """A person cancels the launch."""
        try:
            operations.request_cancel(self.operation, actor="ann")
        except Refused as refusal:
            raise AssertionError("a live launch can be cancelled") from refusal
        return State(state.held, replace(state.left, cancels=0))


def test_no_order_of_deliveries_does_harm(capsys: pytest.CaptureFixture[str]) -> None:
    search = Search(cast.pending(cast.service()))
    search.visit(State())
    assert len(search.known) > 150
    assert search.ends == {
        (S.SUCCEEDED, "STARTING"),
        (S.FAILED, "SHUTTING_DOWN"),
        (S.CANCELLED, "TERMINATED"),
    }
    with capsys.disabled():
        print(f" [{len(search.known)} states of one launch]", end="")
