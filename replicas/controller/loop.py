"""The controller: holds the lease, ticks when the bell rings, when a process ends, and at least each second."""

import contextlib
import logging
import os
import selectors
import signal
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import OperationalError, close_old_connections, transaction

from replicas import bell, clock
from replicas.actions import leases, notices, operations, replicas, services
from replicas.actions.transition import writing
from replicas.controller import reaper, watch
from replicas.controller.apply import BATCH, Applier, Deposed
from replicas.controller.observe import World, observe
from replicas.controller.picture import Picture, Seen
from replicas.controller.rest import rest_after
from replicas.controller.scaling import Scaling
from replicas.controller.traffic import DRAIN_SECONDS, Traffic
from replicas.core.dispatch import Dispatch, Limits, dispatch
from replicas.core.health import PROBED
from replicas.core.planner import Plan, Succeed, plan
from replicas.core.rollout import serves
from replicas.core.status import status
from replicas.core.values import Lane, OperationKind
from replicas.jobs import beats, queue
from replicas.jobs.probe import lease_of
from replicas.jobs.probing import newest_event
from replicas.providers import procs, registry
from replicas.providers.base import Provider

log = logging.getLogger(__name__)

LEASE = "controller"
BEAT_SECONDS = 2.0
LANE_SECONDS = 3.0  # between two signs of life that a pool is asked for
RENEW_SECONDS = 1.0
NOTICES_SECONDS = 2.0
PRUNE_SECONDS = 3600.0
PROBE_LOOK_SECONDS = 0.25
PROBE_OFFER_SECONDS = 1.0
LONGEST_LOOK_SECONDS = 5.0
COMPLAINT_SECONDS = 60.0
SETTLE_SECONDS = 0.01  # changes come in bursts: one tick for all of them
ROUNDS = 3  # a plan may make another one possible at once
# Of a service in one round: a thousand launches of one keep neither the others nor the lease waiting.
MOST_ACTIONS = 100


class Loop:
    """One controller process. `run` returns when it was told to stop."""

    def __init__(self) -> None:
        self.config = settings.ROLLCALL
        self.holder = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self.selector = selectors.DefaultSelector()
        self.bell = bell.Bell(self.config.run, bell.EVENTS)
        self.selector.register(self.bell.socket, selectors.EVENT_READ, None)
        self.watch = watch.Watch(self.selector)
        self.traffic = Traffic.of(self.config)
        self.scaling = Scaling()
        self.stopping = False
        self.wake_at: datetime | None = None
        self.cursor = -1  # the newest event when the rows were last read
        self.picture = Picture()
        self.seen: Sequence[Seen] = ()  # the live replicas, when the rows were last read
        self.plans: dict[int, Plan] = {}  # of the services that nothing is to be done for now
        self.busy = True  # something is under way that may change without an event
        self.probed = False  # there is something to probe
        self.next: dict[str, float] = {}

    def run(self) -> None:
        """Wait for the lease, then tick until told to stop or deposed; then wait again."""
        procs.more_files()
        try:
            while not self.stopping:
                fence = self.acquire()
                if fence is None:
                    self.sleep(RENEW_SECONDS)
                    continue
                log.info("this controller holds the lease (fence %d)", fence)
                try:
                    self.hold(Applier(LEASE, self.holder, fence))
                except Deposed as error:
                    log.warning("%s; waiting for it", error)
        finally:
            leases.release(LEASE, self.holder)
            self.watch.close()
            self.traffic.close()
            self.bell.close()

    def stop(self) -> None:
        """End after the tick under way."""
        self.stopping = True

    def acquire(self) -> int | None:
        """The fencing number, or None while another controller is alive and holds the lease."""
        self.beat()
        leases.break_dead(LEASE, lambda pid: procs.identify(pid) is not None)
        return leases.acquire(LEASE, self.holder, self.config.lease_seconds)

    def beat(self) -> None:
        """A sign of life, also while waiting for the lease."""
        if self.every("beat", BEAT_SECONDS):
            beats.touch("controller")

    def every(self, what: str, seconds: float) -> bool:
        """True once in so many seconds."""
        now = time.monotonic()
        if now < self.next.get(what, 0.0):
            return False
        self.next[what] = now + seconds
        return True

    def hold(self, applier: Applier) -> None:
        """Tick while the lease is ours. Raises Deposed."""
        self.picture.forget()
        while not self.stopping:
            began = time.process_time()
            try:
                close_old_connections()
                self.keep(applier)
                with self.queue_may_be_away():
                    self.scaling.tick(self.cursor)
                if self.worth_a_look():
                    self.tick(applier)
            except OperationalError:  # the database is away for a moment: nothing is lost by trying again
                log.exception("the database did not answer; the next tick tries again")
                self.sleep(RENEW_SECONDS)
            self.sleep(self.pause(), time.monotonic() + rest_after(time.process_time() - began))

    def keep(self, applier: Applier) -> None:
        """A sign of life, and the lease kept, where that is due. Raises Deposed."""
        self.beat()
        if self.every("renew", RENEW_SECONDS):
            self.renew(applier)

    def renew(self, applier: Applier) -> None:
        """Keep the lease. Raises Deposed when it went to another, or ran out and came back with a new number."""
        if leases.acquire(LEASE, self.holder, self.config.lease_seconds) != applier.fence:
            raise Deposed(f"the lease {LEASE} is no longer ours")

    def worth_a_look(self) -> bool:
        """False when no row can ask for anything: nothing is under way, no event is new and no moment has come.

        Then the tick is spared, for LONGEST_LOOK_SECONDS at the most: a row may have been written past the actions.
        """
        newest = newest_event()
        if self.traffic.follow(newest):
            newest = newest_event()
        news = newest != self.cursor or self.busy or bool(self.watch.ended) or self.traffic.take_ended()
        due = self.wake_at is not None and self.wake_at <= clock.now()
        looked = self.every("look", LONGEST_LOOK_SECONDS)
        if news or due or looked:
            self.cursor = newest
            return True
        self.ask(self.probed)
        return False

    def pause(self) -> float:
        """Seconds until time alone makes another tick necessary."""
        longest = DRAIN_SECONDS if self.traffic.leaving else self.config.tick_seconds
        if self.wake_at is None:
            return longest
        return min(longest, max(0.0, (self.wake_at - clock.now()).total_seconds()))

    def sleep(self, seconds: float, rested: float | None = None) -> None:
        """Until the bell rings, a watched process ends, or `seconds` are over; then let a burst settle.

        Not less than until the moment `rested` (on the monotonic clock).
        """
        for key, _ in self.selector.select(seconds):
            self.take(key)
        if rested is not None:
            time.sleep(SETTLE_SECONDS)
            while (left := rested - time.monotonic()) > 0:  # the gateway does not wait for the controller's rest
                self.traffic.follow(newest_event())
                for key, _ in self.selector.select(left):
                    self.take(key)
                time.sleep(SETTLE_SECONDS)
            for key, _ in self.selector.select(0):
                self.take(key)

    def take(self, key: selectors.SelectorKey) -> None:
        """One thing that became readable."""
        if key.data is None:
            self.bell.drain()
        else:
            self.watch.fired(key.data)

    def observe(self) -> World:
        """What there is, with what the gateway counts of the replicas that leave."""
        world = observe(clock.now(), self.picture)
        for service in world.services:
            world.replicas[service.id] = self.traffic.measured(service.id, world.replicas[service.id])
        return world

    def tick(self, applier: Applier) -> World:
        """Observe, plan, apply, hand over; again while that made something new possible."""
        self.settle_ended(self.seen)
        if self.every("whole", LONGEST_LOOK_SECONDS):
            self.picture.forget()
        world = self.observe()
        if self.follow(world):
            world = self.observe()
        reaped = reaper.reap(world.owned, clock.now(), timedelta(seconds=self.config.stale_seconds))
        for _ in range(ROUNDS):
            self.keep(applier)
            changed = self.apply_plans(world, applier)
            if not changed and not reaped:
                break
            reaped = []
            world = self.observe()
        with self.queue_may_be_away():
            self.hand_over(world, applier)
        self.keep(applier)
        self.report(world)
        self.forget(world, applier)
        self.seen = world.seen
        self.probed = any(seen.state in PROBED for seen in world.seen)
        self.busy = bool(world.operations) or self.watch.has_unwatched
        self.ask(self.probed)
        return world

    @contextlib.contextmanager
    def queue_may_be_away(self) -> Iterator[None]:
        """Whatever could not be handed over is due still, and is handed over by a later tick."""
        try:
            yield
        except queue.Away as error:
            if self.every("away", COMPLAINT_SECONDS):
                log.warning("%s; what is due is handed over when it does", error)
            for lane in Lane:
                beats.touch_file(lane.value)  # that a pool does nothing now is no sign that it is wedged

    def settle_ended(self, seen: Sequence[Seen]) -> bool:
        """Let ended processes have their effect, of replicas that are among `seen`. True when a row changed."""
        changed = False
        by_id = {replica.id: replica for replica in seen}
        for key in self.watch.take_ended():
            if key.kind == "operation":
                watch.settle_operation(key.id)
                changed = True
            elif key.id in by_id:
                changed |= self.inspect(by_id[key.id])
        return changed

    def follow(self, world: World) -> bool:
        """Watch what there is now, and ask about what cannot be watched. True when a row changed."""
        providers = self.providers(world)
        self.watch.follow(watch.wanted(world.seen, world.owned, providers))
        changed = self.settle_ended(world.seen)
        for seen in self.watch.due(world.seen, providers):
            changed |= self.inspect(seen)
        return changed

    def inspect(self, seen: Seen) -> bool:
        """Ask the provider about one replica and settle what it says."""
        assert seen.handle is not None
        try:
            inspection = registry.get(seen.provider, self.config.home).inspect(seen.handle)
        except Exception:  # one replica that cannot be asked about must not keep all others waiting
            if self.every(f"inspect {seen.id}", COMPLAINT_SECONDS):
                log.exception("provider %s cannot say how replica %s is; asked again", seen.provider, seen.id)
            return False
        return watch.settle_replica(seen, inspection)

    def providers(self, world: World) -> dict[str, Provider]:
        """The providers of all live replicas."""
        return {name: registry.get(name, self.config.home) for name in {seen.provider for seen in world.seen}}

    def apply_plans(self, world: World, applier: Applier) -> bool:
        """Plan each service and carry the plans out. True when anything was done."""
        now = clock.now()
        self.wake_at = None
        self.plans = {}
        changed = False
        for service in world.services:
            planned = plan(service, world.replicas[service.id], now)
            if planned.actions:
                applier.apply(service.id, planned.actions[:MOST_ACTIONS])  # each is decided anew until it is done
                self.keep(applier)
                changed = True
                if any(isinstance(action, Succeed) for action in planned.actions):
                    self.next.pop("prune", None)  # what the version before it has left behind is not needed any more
                if len(planned.actions) <= MOST_ACTIONS:
                    continue  # what is true now is seen in the next round
            self.wake(planned.wake_at)
            self.plans[service.id] = planned
        return changed

    def report(self, world: World) -> None:
        """Say what is true of each service whose plan is carried out, where its row does not say so.

        After the operations were handed over: these need not wait for it.
        """
        for service in world.services:
            views = world.replicas[service.id]
            if service.id not in self.plans:
                continue
            found, reason = status(service, views, self.plans[service.id])
            ready = sum(serves(service, view) for view in views)
            live = sum(not view.state.ended for view in views)
            if world.told[service.id] != {"status": found, "reason": reason, "ready": ready, "live": live}:
                services.report(service.id, status=found, reason=reason, ready=ready, live=live, actor="controller")

    def wake(self, moment: datetime | None) -> None:
        """Tick again at that moment, if not before."""
        if moment is not None and (self.wake_at is None or moment < self.wake_at):
            self.wake_at = moment

    def hand_over(self, world: World, applier: Applier) -> Dispatch:
        """Give the queue what there is room for, and say of the rest what it waits for."""
        limits = Limits(
            max_launches=self.config.max_launches,
            max_launches_per_service=self.config.max_launches_per_service,
            max_downs=self.config.max_downs,
            redeliver_after=self.config.redeliver_seconds,
            overrides=world.launch_limits,
        )
        decided = dispatch(world.operations, limits, clock.now())
        self.wake(decided.wake_at)
        kinds: dict[int, OperationKind] = {operation.id: operation.kind for operation in world.operations}
        if decided.enqueue:
            with transaction.atomic():
                applier.check()
                operations.mark_enqueued(decided.enqueue)
                for number in decided.enqueue:
                    queue.offer(kinds[number], number)
        self.say_holds([(n, text) for n, text in decided.holds.items() if world.waits_for[n] != text], applier)
        return decided

    def say_holds(self, news: Sequence[tuple[int, str]], applier: Applier) -> None:
        """Say of operations what they wait for, in transactions short enough that those in flight can go on."""
        for start in range(0, len(news), BATCH):
            self.keep(applier)  # there may be thousands
            with writing():
                for number, waits_for in news[start : start + BATCH]:
                    operations.hold(number, waits_for)

    def forget(self, world: World, applier: Applier) -> None:
        """Delete what has ended and was asked to be forgotten."""
        if world.purged_replicas or world.purged_services:
            applier.check()
        for number in world.purged_replicas:
            replicas.forget_ended(number, actor="controller")
        for number in world.purged_services:
            services.forget(number, actor="controller")

    def ask(self, probed: bool) -> None:
        """Keep the lanes beating, the probes going (where there is something to probe) and the history short."""
        with self.queue_may_be_away():
            if self.every("lanes", LANE_SECONDS):
                for lane in Lane:
                    queue.offer_beat(lane)
            if probed:
                self.offer_probes()
            if self.every("notices", NOTICES_SECONDS) and notices.waiting(clock.now(), self.cursor):
                queue.offer_notices()
            if self.every("prune", PRUNE_SECONDS):
                queue.offer_pruning()

    def offer_probes(self) -> None:
        """Offer a probe job for each shard that has none; again after a while if nobody took it up."""
        if not self.every("probes", PROBE_LOOK_SECONDS):
            return
        names = {lease_of(shard): shard for shard in range(self.config.probe_shards)}
        for name in leases.free(list(names), lambda pid: procs.identify(pid) is not None):
            if self.every(name, PROBE_OFFER_SECONDS):
                queue.offer_probe(names[name])


@contextlib.contextmanager
def stopping_on_signals(loop: Loop) -> Iterator[None]:
    """SIGTERM and SIGINT end the loop after its tick; a ring of its own bell makes it look at once."""

    def told(_number: int, _frame: object) -> None:
        loop.stop()

    reader, writer = socket.socketpair()
    writer.setblocking(False)
    loop.selector.register(reader, selectors.EVENT_READ, None)
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    handlers = {number: signal.signal(number, told) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before)
        reader.close()
        writer.close()
