"""One controller with its jobs in one process: ticks and deliveries happen when the test says so."""

import copy
import random
import time
from collections.abc import Callable
from typing import Any

from replicas import clock
from replicas.actions import leases
from replicas.controller.apply import Applier
from replicas.controller.loop import LEASE, Loop
from replicas.controller.picture import Picture
from replicas.core.values import LIVE, OperationKind, ReplicaState
from replicas.jobs import down, launch, probing, queue
from replicas.models import Operation, Replica, Service
from replicas.providers.probe import ProbeResult

RUN = {OperationKind.LAUNCH: launch.run, OperationKind.DOWN: down.run}


class Stage:
    """`offered` holds what the controller handed to the queue and nobody has delivered."""

    def __init__(self, monkeypatch: Any) -> None:
        self.offered: list[tuple[OperationKind, int]] = []
        self.beats: list[Any] = []
        self.probes: list[int] = []
        self.prunings: list[float] = []
        monkeypatch.setattr(queue, "offer", lambda kind, number: self.offered.append((kind, number)))
        monkeypatch.setattr(queue, "offer_beat", self.beats.append)
        monkeypatch.setattr(queue, "offer_probe", self.probes.append)
        monkeypatch.setattr(queue, "offer_pruning", lambda: self.prunings.append(time.monotonic()))
        self.loop = Loop()
        fence = self.loop.acquire()
        assert fence is not None
        self.loop.next["renew"] = float("inf")  # tick() does it, for longer than a machine is busy
        self.loop.next["whole"] = float("inf")  # what is kept from look to look has to be true without that
        self.applier = Applier(LEASE, self.loop.holder, fence)

    def tick(self) -> None:
        """One tick, under a lease that is kept. What it keeps for the next one is what the rows are."""
        leases.acquire(LEASE, self.loop.holder, 60)
        self.loop.tick(self.applier)
        kept, read = copy.deepcopy(self.loop.picture), Picture()
        for picture in (kept, read):
            picture.look()
        assert kept == read

    def deliver(self, times: int = 1) -> int:
        """Run every offered job, each so many times; how many there were."""
        offered, self.offered = self.offered, []
        for kind, number in offered:
            for _ in range(times):
                RUN[kind](number)
        return len(offered)

    def probe(self) -> None:
        """One probe of every replica that is to be probed."""
        for target in probing.load_targets(0, {}).values():
            result: ProbeResult | None = target.answered()
            assert result is not None
            probing.record(target, result, clock.now())

    def settle(self, service: Service, rounds: int = 60, deliveries: Callable[[], int] = lambda: 1) -> None:
        """Tick, deliver and probe until the controller has nothing to do and every wanted replica is ready."""
        for _ in range(rounds):
            self.tick()
            if not self.deliver(deliveries()) and not Operation.objects.filter(ended_at=None).exists():
                service.refresh_from_db()
                ready = Replica.objects.filter(service=service, state=ReplicaState.READY).count()
                live = Replica.objects.filter(service=service, state__in=LIVE).count()
                wanted = service.target if service.desired == "UP" else 0
                if ready == live == wanted:
                    return
            self.probe()
        raise AssertionError(f"not settled: {list(Replica.objects.values_list('number', 'state', 'reason'))}")

    def close(self) -> None:
        """Let the lease and the file descriptors go."""
        leases.release(LEASE, self.loop.holder)
        self.loop.watch.close()
        self.loop.traffic.close()
        self.loop.bell.close()


def shuffled(seed: int) -> random.Random:
    """Chance that can be played again."""
    return random.Random(seed)
