"""Spot and on demand: the mix is launched, kept through preemptions, and given up for nothing."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicas.core.planner import Create, plan
from replicas.core.values import ReplicaState
from replicas.core.views import ReplicaView, SpotPolicy
from tests.core.cast import NOW, ago, doing, replica, web
from tests.core.invariants import carry_out, check_plan, check_rest
from tests.core.moves import MOVES
from tests.core.test_planner_properties import LIMITS, Walk, policies, surges, walks
from tests.core.world import World

S = ReplicaState
DYNAMIC = SpotPolicy(base=1, dynamic=True)
FIXED = SpotPolicy(base=1)


def spot(number: int, state: ReplicaState = S.READY, **fields) -> ReplicaView:
    return replica(number, state, spot=True, **fields)


def on_demand(number: int, state: ReplicaState = S.READY, **fields) -> ReplicaView:
    return replica(number, state, spot=False, **fields)


def made(service, rows) -> list[tuple[bool | None, str]]:
    return [(act.spot, act.reason) for act in plan(service, rows, NOW).actions if isinstance(act, Create)]


def test_the_base_is_on_demand_and_the_rest_spot() -> None:
    assert made(web(target=3, spot=FIXED), []) == [
        (False, "1 on demand wanted, 0 there"),
        (True, "2 spot wanted, 0 there"),
        (True, "2 spot wanted, 0 there"),
    ]


def test_while_spot_is_not_ready_others_stand_in() -> None:
    rows = [on_demand(1), spot(2, S.STARTING), spot(3)]
    decided = plan(web(target=3, spot=DYNAMIC), rows, NOW)
    assert decided.actions == (Create(1, None, 0, "stands in for a spot replica that is missing", spot=False),)
    assert decided.notes == ("1 on-demand replica stands in for spot replicas that are missing",)


def test_a_preempted_one_is_replaced_by_its_like_and_stood_in_for() -> None:
    rows = [on_demand(1), spot(2), spot(3, S.PREEMPTED)]
    assert made(web(target=3, spot=DYNAMIC), rows) == [
        (False, "stands in for a spot replica that is missing"),
        (True, "replaces replica 3, which was preempted"),
    ]
    assert made(web(target=3, spot=FIXED), rows) == [(True, "replaces replica 3, which was preempted")]


def test_stand_ins_go_when_spot_is_back() -> None:
    rows = [on_demand(1), spot(2), on_demand(3), spot(4)]
    decided = plan(web(target=3, spot=DYNAMIC), rows, NOW)
    assert doing(decided) == [("Drain", 3)]
    assert decided.actions[0].reason == "1 on demand wanted, 2 there"


@pytest.mark.parametrize(
    ("policy", "rows", "expected"),
    [
        (SpotPolicy(base=2), [on_demand(1), spot(2), spot(3)], [("Create", 1)]),
        (SpotPolicy(base=2), [on_demand(1), spot(2), spot(3), on_demand(4)], [("Drain", 3)]),
        (SpotPolicy(), [on_demand(1), spot(2), spot(3)], [("Create", 1)]),
        (SpotPolicy(), [on_demand(1), spot(2), spot(3), spot(4)], [("Drain", 1)]),
    ],
)
def test_another_mix_takes_nothing_away_before_its_like_is_ready(policy, rows, expected) -> None:
    assert doing(plan(web(target=3, spot=policy), rows, NOW)) == expected


def test_nobody_stands_in_for_the_spare_ones() -> None:
    policy = SpotPolicy(dynamic=True, spare=1, least=1)
    assert doing(plan(web(target=3, spot=policy), [spot(1), spot(2), spot(3, S.STARTING)], NOW)) == []


def test_a_failed_spot_launch_waits_while_others_stand_in() -> None:
    rows = [on_demand(1), spot(2), spot(3, S.FAILED_PROVISION, state_since=ago(4), restarts=3, reason="no capacity")]
    assert made(web(target=3, spot=DYNAMIC), rows) == [(False, "stands in for a spot replica that is missing")]


mixes = st.builds(SpotPolicy, base=st.integers(0, 3), dynamic=st.booleans(), spare=st.integers(0, 1))
services = st.builds(web, target=st.integers(0, 5), surge=surges, restart=policies, spot=mixes)


@settings(LIMITS, max_examples=150)
@given(services, walks(MOVES, 50))
def test_whatever_happens_the_mix_is_reached_and_kept(service, walk: Walk) -> None:
    world = World(service)
    for move, number in walk:
        move(world, number)
    world.heal(lambda decided: check_plan(world, decided), lambda decided: carry_out(world, decided))
    check_rest(world)
    world.log.append(f"mix {service.spot}")
    kinds = Counter(bool(row.spot) for row in world.live() if row.version == world.service.version)
    places = kinds.total()
    spare = min(service.spot.spare, places)
    if places and not world.unsettled():
        assert kinds[False] == min(service.spot.base, places - spare)
    assert plan(replace(world.seen(), spot=None), list(world.replicas.values()), world.now).actions == ()
