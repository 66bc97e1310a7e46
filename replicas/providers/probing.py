"""Asks many replicas at once whether they are ready: each on a fresh connection, none waiting for another.

A probe that does not answer quickly gives up its place among the `concurrency` fresh ones and goes on by itself until
its deadline, so that any number of hanging replicas delay the others by a fraction of a second at most.
"""

import asyncio
import logging
import os
import resource
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

from replicas.providers.exchange import CHUNK
from replicas.providers.naming import Names
from replicas.providers.probe import Fault, ProbeRequest, ProbeResult, probe

__all__ = ["Fault", "ProbeRequest", "ProbeResult", "stream", "sweep"]

log = logging.getLogger(__name__)

FAKE_SCHEME = "fake:"
PATIENCE = 0.25  # seconds after which a probe counts as slow and its place goes to the next
SPARE_FILES = 64  # file descriptors that a sweep leaves to the rest of the process

FakeProbe = Callable[[ProbeRequest], ProbeResult]
OnResult = Callable[[ProbeResult], None]


def sweep(
    requests: Sequence[ProbeRequest],
    *,
    concurrency: int = 256,
    fake: FakeProbe | None = None,
    on_result: OnResult | None = None,
) -> list[ProbeResult]:
    """Probe them all and return the results in the order of the requests.

    Takes no longer than the longest timeout and a small margin. `on_result` is called in the calling thread as soon
    as each result is in, while the other probes go on; what it raises ends the sweep. `fake` answers requests whose
    url has the fake scheme.
    """
    results: dict[int, ProbeResult] = {}
    for place, result in _arrivals(requests, concurrency, fake):
        results[place] = result
        if on_result is not None:
            on_result(result)
    return [results[place] for place in range(len(requests))]


def stream(
    requests: Sequence[ProbeRequest], *, concurrency: int = 256, fake: FakeProbe | None = None
) -> Iterator[ProbeResult]:
    """Probe them all and yield each result as soon as it is in. Closing the iterator drops the probes under way."""
    for _, result in _arrivals(requests, concurrency, fake):
        yield result


def _arrivals(
    requests: Sequence[ProbeRequest], concurrency: int, fake: FakeProbe | None
) -> Iterator[tuple[int, ProbeResult]]:
    """Results with the places of their requests. The probes run in a thread of their own, so that what is done with a
    result (a row written, say) does not eat into the deadlines of the probes under way."""
    real = [(place, request) for place, request in enumerate(requests) if not request.url.startswith(FAKE_SCHEME)]
    running = _Sweep(real, concurrency)
    with ThreadPoolExecutor(1, thread_name_prefix="probe-sweep") as thread:
        try:
            ended = thread.submit(running.run) if real else None
            yield from _faked(requests, fake)
            if ended is not None:
                for batch in iter(running.arrived.get, None):
                    yield from batch
                ended.result()
        finally:
            running.stop()


def _faked(requests: Sequence[ProbeRequest], fake: FakeProbe | None) -> Iterator[tuple[int, ProbeResult]]:
    for place, request in enumerate(requests):
        if not request.url.startswith(FAKE_SCHEME):
            continue
        if fake is None:
            detail = f"{request.shown}: {request.url} is a fake replica, and nothing here answers for those"
            yield place, ProbeResult(request.key, False, None, Fault.LOCAL, detail, "", 0.0)
        else:
            yield place, fake(request)


class _Place:
    """One of the places for fresh probes; left once, by whoever comes first: the end of the probe, or its slowness."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places: asyncio.Semaphore | None = places

    def leave(self) -> None:
        if self._places is not None:
            self._places.release()
            self._places = None


class _Sweep:
    """The probes of one sweep in one event loop. `arrived` gets the results of each round of the loop together (to wake
    the other thread for each of them would cost more than the probe), and None when there are no more."""

    def __init__(self, requests: Sequence[tuple[int, ProbeRequest]], concurrency: int) -> None:
        self.arrived: SimpleQueue[list[tuple[int, ProbeResult]] | None] = SimpleQueue()
        self._batch: list[tuple[int, ProbeResult]] = []
        self._requests = requests
        self._fresh = asyncio.Semaphore(concurrency)
        self._open = asyncio.Semaphore(_file_room())
        self._names = Names()
        self._buffer = memoryview(bytearray(CHUNK))
        self._stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None

    def run(self) -> None:
        """Make the probes; in a thread of its own."""
        try:
            asyncio.run(self._probe_all())
        except asyncio.CancelledError:
            pass  # stopped
        finally:
            self._names.close()
            self.arrived.put(None)

    def stop(self) -> None:
        """Drop what is still under way; from any thread, also before the start and after the end."""
        self._stopped = True
        if self._loop is not None and self._main is not None:
            try:
                self._loop.call_soon_threadsafe(self._main.cancel)
            except RuntimeError:
                pass  # the loop is closed: everything has ended

    async def _probe_all(self) -> None:
        self._main = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        if self._stopped:
            return
        async with asyncio.TaskGroup() as group:
            for place, request in self._requests:
                await self._open.acquire()
                await self._fresh.acquire()
                group.create_task(self._probe_one(place, request))
        await asyncio.sleep(0)  # the last batch is handed over in the round after its results

    async def _probe_one(self, place: int, request: ProbeRequest) -> None:
        fresh = _Place(self._fresh)
        slow = asyncio.get_running_loop().call_later(PATIENCE, fresh.leave)
        try:
            result = await probe(request, self._names, self._buffer)
        except Exception:  # a fault of ours in one probe must not cost the others theirs
            log.exception("probe of %s failed in a way that it should not", request.url)
            detail = f"{request.shown} says nothing: the probe itself failed, see the log of the prober"
            result = ProbeResult(request.key, False, None, Fault.LOCAL, detail, "", 0.0)
        finally:
            slow.cancel()
            fresh.leave()
            self._open.release()
        if not self._batch:
            asyncio.get_running_loop().call_soon(self._hand_over)
        self._batch.append((place, result))

    def _hand_over(self) -> None:
        batch, self._batch = self._batch, []
        self.arrived.put(batch)


def _file_room() -> int:
    """How many connections a sweep may have open at a time without taking the last file descriptors."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return 1 << 16
    used = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else SPARE_FILES
    return max(16, limit - used - SPARE_FILES)
