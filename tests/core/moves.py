"""What can happen to a service: the controller, jobs, probes, faults and users, each as a move in the model world.

A move takes a number, from which it picks whom it strikes; a move that nobody fits does nothing.
"""

import random
from collections.abc import Callable, Sequence

from replicas.core.values import Desired, OperationKind, ReplicaState, RolloutMode
from replicas.core.views import ReplicaView, RolloutPolicy, Surge
from tests.core.invariants import carry_out, check_late, check_listing, check_plan, serving_now
from tests.core.rows import LAUNCHING, Version
from tests.core.world import World

S = ReplicaState
Move = Callable[[World, int], None]
FAULTS = (
    "exited", "lost", "preempted", "initial_delay_passed", "probe_exhausted", "liveness_exhausted", "probe_failed",
)  # fmt: skip


def pick(rows: Sequence[ReplicaView], number: int) -> ReplicaView | None:
    """One of them, or nobody."""
    return rows[number % len(rows)] if rows else None


# The controller


def tick(world: World, _number: int) -> None:
    decided = world.decide()
    check_plan(world, decided)
    carry_out(world, decided)


def ticks(world: World, _number: int) -> None:
    world.settle(lambda decided: check_plan(world, decided), lambda decided: carry_out(world, decided))


def late_tick(world: World, number: int) -> None:
    """Things happen between the decision and the deed: the deed is void then, not wrong."""
    decided = world.decide()
    check_plan(world, decided)
    limit = max(world.bound(), len(world.live()))
    for _ in range(1 + number % 3):
        number = number * 31 + 7
        OUTSIDE[number % len(OUTSIDE)](world, number // len(OUTSIDE))
    world.apply(decided)
    check_late(world, limit)


# Jobs


def launch_step(world: World, number: int) -> None:
    row = pick(world.with_live(OperationKind.LAUNCH), number)
    if row:
        world.job_step(row.id)


def launch_fails(world: World, number: int) -> None:
    row = pick(world.with_live(OperationKind.LAUNCH), number)
    if row:
        world.job_step(row.id, fails=True)


def launches_end(world: World, _number: int) -> None:
    for row in world.with_live(OperationKind.LAUNCH):
        while world.replicas[row.id].operation is not None:
            world.job_step(row.id)


def down_ends(world: World, number: int) -> None:
    row = pick(world.with_live(OperationKind.DOWN), number)
    if row:
        world.job_step(row.id, fails=number % 8 == 7)


def downs_end(world: World, _number: int) -> None:
    for row in world.with_live(OperationKind.DOWN):
        world.job_step(row.id)


def operation_vanishes(world: World, number: int) -> None:
    row = pick([row for row in world.in_state(*LAUNCHING) if row.operation], number)
    if row:
        world.lose_operation(row.id)


# Health


def probe_passes(world: World, number: int) -> None:
    row = pick(world.in_state(S.STARTING, S.NOT_READY), number)
    if row:
        world.probe(row.id)


def probes_pass(world: World, _number: int) -> None:
    for row in world.in_state(S.STARTING, S.NOT_READY):
        world.probe(row.id)


def something_breaks(world: World, number: int) -> None:
    row = pick(world.live(), number // len(FAULTS))
    if row:
        fault = FAULTS[number % len(FAULTS)]
        world.trigger(row.id, fault, f"{fault} in a test")


def everything_crashes(world: World, number: int) -> None:
    """All that is launched runs, exits at once and is cleaned up."""
    launches_end(world, number)
    for row in world.in_state(S.STARTING, S.READY, S.NOT_READY, S.DRAINING):
        world.trigger(row.id, "exited", "exit code 7")
    ticks(world, number)
    downs_end(world, number)
    world.wait((0, 15, 45)[number % 3])


def traffic(world: World, number: int) -> None:
    row = pick(world.in_state(S.READY, S.NOT_READY, S.DRAINING), number // 4)
    if row:
        world.serve(row.id, number % 4)


def time_passes(world: World, number: int) -> None:
    world.wait((0.5, 5, 30, 300, 1000)[number % 5])


def clock_jumps(world: World, number: int) -> None:
    world.wait((-3600, 3600)[number % 2])


# Users


def scale(world: World, number: int) -> None:
    world.scale(number % 6)


def terminate(world: World, number: int) -> None:
    row = pick(world.staying(), number)
    if row:
        world.terminate(row.id)


def cancel(world: World, number: int) -> None:
    row = pick([row for row in world.in_state(*LAUNCHING) if row.operation], number)
    if row:
        world.cancel_launch(row.id)


BAD = ("", "", "", "never", "late")


def a_version(world: World, number: int) -> Version:
    """A new version: one time in four the process of one that there is, two times in five one that does not work."""
    choose = random.Random(number)
    bad = choose.choice(BAD)
    process = world.fresh()
    if choose.random() < 0.25:
        process = world.versions[choose.choice(sorted(world.versions))].process
    mode = choose.choice((RolloutMode.ROLLING, RolloutMode.ROLLING, RolloutMode.BLUE_GREEN))
    rolling = mode is RolloutMode.ROLLING
    policy = RolloutPolicy(
        canary=choose.choice((None, None, 1, 2, "50%")) if rolling else None,
        bake_seconds=choose.choice((None, 0, 20)),
        auto_rollback=choose.random() < 0.7,
        progress_deadline=choose.choice((60.0, 1800.0)),
        min_ready_seconds=10.0 if bad else choose.choice((0.0, 10.0)),
        keep_old_seconds=choose.choice((0.0, 30.0)),
        max_failures=choose.choice((1, 3, 3, 100)),
        one_port=choose.random() < 0.1,
    )
    return Version(world.fresh(), process, Surge(choose.randrange(4), choose.randrange(3)), policy, mode, bad)


def update(world: World, number: int) -> None:
    before = serving_now(world)
    world.update(a_version(world, number))
    check_listing(world, before)


def pause(world: World, _number: int) -> None:
    world.pause()


def resume(world: World, _number: int) -> None:
    world.resume()


def promote(world: World, _number: int) -> None:
    world.promote()


def abort(world: World, _number: int) -> None:
    before = serving_now(world)
    world.abort()
    check_listing(world, before)


def rollback(world: World, number: int) -> None:
    before = serving_now(world)
    others = [version for version in sorted(world.versions) if version != world.service.version]
    if others:
        world.go_back(others[number % len(others)])
    check_listing(world, before)


def restart(world: World, _number: int) -> None:
    world.restart()


def down(world: World, _number: int) -> None:
    world.want(Desired.DOWN)


def up(world: World, _number: int) -> None:
    world.want(Desired.UP)


OUTSIDE: tuple[Move, ...] = (
    launch_step, launch_fails, launches_end, down_ends, downs_end, probe_passes, probes_pass, something_breaks,
    operation_vanishes, traffic,
)  # fmt: skip
MOVES: tuple[Move, ...] = (
    *OUTSIDE, launches_end, probes_pass, probes_pass, downs_end, something_breaks, something_breaks,
    tick, tick, ticks, ticks, ticks, late_tick, late_tick,
    everything_crashes, time_passes, time_passes, time_passes, scale, terminate, cancel, update, update, update,
    restart, down, up, up, pause, resume, resume, promote, abort, rollback,
)  # fmt: skip
