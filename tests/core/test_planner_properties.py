"""Whatever happens in whatever order: the planner keeps its bounds, and once everything works it arrives and rests."""

from hypothesis import given, settings
from hypothesis import strategies as st

from replicas.core.views import RestartPolicy, Surge
from tests.core.cast import web
from tests.core.invariants import carry_out, check_plan, check_rest
from tests.core.moves import MOVES, Move, clock_jumps, launches_end, probes_pass, ticks
from tests.core.world import World

Walk = list[tuple[Move, int]]
LIMITS = settings(deadline=None, derandomize=True, database=None, report_multiple_bugs=False)

surges = st.builds(Surge, max_surge=st.integers(0, 3), max_unavailable=st.integers(0, 3))
policies = st.builds(RestartPolicy, max_never_ready=st.integers(1, 6))
services = st.builds(web, target=st.integers(0, 5), surge=surges, restart=policies)


def walks(moves: tuple[Move, ...], most: int) -> st.SearchStrategy[Walk]:
    """Rows of moves; drawn by length first, so that a failing one shrinks move by move."""
    move = st.tuples(st.sampled_from(moves), st.integers(0, 9999))
    return st.integers(0, most).flatmap(lambda length: st.lists(move, min_size=length, max_size=length))


def follow(world: World, walk: Walk) -> None:
    """Make the moves, then let everything work."""
    for move, number in walk:
        move(world, number)
    world.heal(lambda decided: check_plan(world, decided), lambda decided: carry_out(world, decided))
    check_rest(world)


def serving(service) -> World:
    """A world in which the target has been reached."""
    world = World(service)
    for move in (ticks, launches_end, probes_pass, ticks):
        move(world, 0)
    return world


@settings(LIMITS, max_examples=400)
@given(services, walks(MOVES, 60))
def test_from_nothing(service, walk: Walk) -> None:
    follow(World(service), walk)


@settings(LIMITS, max_examples=400)
@given(services, walks(MOVES, 40))
def test_from_a_service_that_serves(service, walk: Walk) -> None:
    follow(serving(service), walk)


@settings(LIMITS, max_examples=150)
@given(services, walks((*MOVES, clock_jumps, clock_jumps), 40))
def test_with_a_clock_that_jumps(service, walk: Walk) -> None:
    follow(World(service), walk)
