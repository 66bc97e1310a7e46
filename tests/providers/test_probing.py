"""Sweeps: many probes at once, none waiting for another, and what happens when it is we who are in trouble."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from replicas.providers.probing import Fault, ProbeRequest, ProbeResult, stream, sweep
from tests.providers.cast import eventually
from tests.providers.probe_cast import servers_fixture  # noqa: F401
from tests.providers.probe_servers import Servers, http, refusing
from tests.support.patience import within

ROOT = Path(__file__).parents[2]


def requests_to(ports: list[int], timeout: float) -> list[ProbeRequest]:
    return [
        ProbeRequest(100 + n, f"http://127.0.0.1:{port}", "/healthz", timeout=timeout) for n, port in enumerate(ports)
    ]


def test_nothing_to_probe():
    assert sweep([]) == []


def test_results_are_in_the_order_of_the_requests(servers: Servers):
    good, bad = servers.answering(http("200 OK")), servers.answering(http("503 Busy"))
    results = sweep(requests_to([good, bad] * 50, 5))
    assert [result.key for result in results] == list(range(100, 200))
    assert [result.ok for result in results] == [True, False] * 50


def test_the_same_key_twice_gives_two_results(servers: Servers):
    request = requests_to([servers.answering(http("200 OK"))], 5)[0]
    assert len(sweep([request, request])) == 2


@pytest.mark.parametrize(
    ("hanging", "concurrency", "limit"),
    [
        (10, 256, 8.0),
        (150, 20, 16.0),  # 30 s if each of the 20 places were held until its probe ends
    ],
)
def test_hanging_replicas_do_not_delay_the_others(servers: Servers, hanging: int, concurrency: int, limit: float):
    stuck, drip = servers.hanging(), servers.dripping(b"HTTP/1.1 200 OK\r\n\r\n", b".")
    good = servers.answering(http("200 OK"))
    ports = [stuck, drip] * (hanging // 2) + [good] * 190
    heard: list[int] = []
    with within(limit):
        results = sweep(
            requests_to(ports, 4.0), concurrency=concurrency, on_result=lambda result: heard.append(result.key)
        )
    assert [result.ok for result in results] == [False] * hanging + [True] * 190
    assert {result.error for result in results[:hanging]} == {"timeout"}
    if hanging < concurrency:
        assert min(heard[:190]) == 100 + hanging, "the others come before the first that hangs"


def test_what_is_done_with_a_result_does_not_eat_into_the_deadlines(servers: Servers):
    async def handler(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.3)
        writer.write(http("200 OK"))

    results = sweep(
        requests_to([servers.start(handler)] * 20, 3.0),
        on_result=lambda result: time.sleep(0.25),  # a slow writer of rows
    )
    assert all(result.ok for result in results)
    assert max(result.seconds for result in results) < 3.0


def test_on_result_is_called_in_the_calling_thread(servers: Servers):
    threads = []
    sweep(
        requests_to([servers.answering(http("200 OK"))] * 3, 5),
        on_result=lambda result: threads.append(threading.current_thread()),
    )
    assert threads == [threading.current_thread()] * 3


def test_a_failing_on_result_ends_the_sweep_at_once(servers: Servers):
    def refuse(result: ProbeResult) -> None:
        raise LookupError("row is gone")

    with within(10), pytest.raises(LookupError):
        sweep(requests_to([servers.answering(http("200 OK")), servers.hanging()], 30), on_result=refuse)


def test_a_stream_that_is_closed_drops_the_rest(servers: Servers):
    results = stream(requests_to([servers.hanging(), servers.answering(http("200 OK"))], 30))
    assert next(results).ok
    with within(10):
        results.close()  # type: ignore[attr-defined]


def test_inside_a_running_loop(servers: Servers):
    async def within() -> list[ProbeResult]:
        return sweep(requests_to([servers.answering(http("200 OK"))], 5))

    assert asyncio.run(within())[0].ok


def test_a_refused_connection_is_one_call(servers: Servers, monkeypatch: pytest.MonkeyPatch):
    """On this host the kernel decides within it: no turn of the event loop, and no second try."""
    calls = []
    real = socket.socket.connect_ex
    monkeypatch.setattr(socket.socket, "connect_ex", lambda self, to: calls.append(to) or real(self, to))
    with refusing() as port:
        results = sweep(requests_to([port] * 50, 5))
    assert {result.error for result in results} == {"refused"}
    assert len(calls) == 50


# --- the fake scheme


def test_fake_replicas_are_answered_without_network(servers: Servers):
    def fake(request: ProbeRequest) -> ProbeResult:
        return ProbeResult(request.key, True, 200, None, "scripted", "", 0.0)

    asked = [ProbeRequest(1, "fake://a", "/"), requests_to([servers.answering(http("200 OK"))], 5)[0]]
    assert [(result.key, result.ok) for result in sweep(asked, fake=fake)] == [(1, True), (100, True)]
    assert [result.detail for result in sweep(asked[:1], fake=fake)] == ["scripted"]


def test_fake_replicas_without_anybody_to_answer():
    (result,) = sweep([ProbeRequest(1, "fake://a", "/")])
    assert (result.ok, result.error, result.conclusive) == (False, Fault.LOCAL, False)


# --- names


def test_a_name_that_takes_for_ever_delays_nothing(servers: Servers, monkeypatch: pytest.MonkeyPatch):
    release = threading.Event()
    real = socket.getaddrinfo

    def slow(host, *args, **kwargs):
        if host == "slow.example":
            release.wait(20)
        return real(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    good = servers.answering(http("200 OK"))
    asked = [ProbeRequest(1, "http://slow.example", "/", timeout=0.5), *requests_to([good] * 20, 5)]
    try:
        with within(15):
            results = sweep(asked)
    finally:
        release.set()
    assert (results[0].error, all(result.ok for result in results[1:])) == ("timeout", True)


def test_a_name_is_looked_up_once_for_all(servers: Servers, monkeypatch: pytest.MonkeyPatch):
    asked = []
    real = socket.getaddrinfo

    def counted(host, *args, **kwargs):
        asked.append(host)
        return real("127.0.0.1" if host == "replica.example" else host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", counted)
    port = servers.answering(http("200 OK"))
    results = sweep([ProbeRequest(n, f"http://replica.example:{port}", "/") for n in range(30)])
    assert all(result.ok for result in results)
    assert asked == ["replica.example"]
    assert f"host: replica.example:{port}" in servers.seen[0].lower()


# --- trouble of our own


def test_a_fault_of_ours_in_one_probe_costs_only_its_result(servers: Servers, caplog: pytest.LogCaptureFixture):
    url = f"http://127.0.0.1:{servers.answering(http('200 OK'))}"
    asked = [ProbeRequest(1, url, "/", headers={"X": 1}), ProbeRequest(2, url, "/")]  # type: ignore[dict-item]
    faulty, fine = sweep(asked)
    assert (faulty.ok, faulty.error, faulty.conclusive) == (False, "local", False)
    assert fine.ok
    assert "Traceback" in caplog.text


def run_prober(
    code: str, port: int, *, stop_for: float = 0.0, under_way: Callable[[], bool] = lambda: True
) -> list[dict]:
    """Results of a sweep in a process of its own, which prints them; it may be stopped for some seconds meanwhile."""
    script = textwrap.dedent(code) + textwrap.dedent(
        """
        print("ready", flush=True)
        results = sweep([ProbeRequest(n, URL, "/", timeout=TIMEOUT) for n in range(COUNT)])
        print(json.dumps([dict(ok=r.ok, error=r.error, detail=r.detail, conclusive=r.conclusive) for r in results]))
        """
    )
    head = "import json, os, resource, socket\nfrom replicas.providers.probing import *\n"
    command = [sys.executable, "-c", head + f"URL = 'http://127.0.0.1:{port}'\n" + script]
    prober = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert prober.stdout is not None
        assert prober.stdout.readline() == "ready\n"
        if stop_for:
            eventually(under_way, 20)
            os.kill(prober.pid, signal.SIGSTOP)
            time.sleep(stop_for)  # that long it stands still
            os.kill(prober.pid, signal.SIGCONT)
        output, _ = prober.communicate(timeout=60)
    finally:
        prober.kill()
        prober.wait()
    return json.loads(output)


def test_a_prober_that_was_stopped_blames_nobody(servers: Servers):
    connected = []

    async def handler(reader, writer):
        connected.append(True)
        await reader.read(-1)

    port = servers.start(handler)
    results = run_prober("TIMEOUT, COUNT = 3, 5", port, stop_for=5, under_way=lambda: len(connected) == 5)
    assert {(result["ok"], result["error"], result["conclusive"]) for result in results} == {(False, "local", False)}
    assert "held up on our side" in results[0]["detail"]


def test_few_file_descriptors_are_enough(servers: Servers):
    code = "resource.setrlimit(resource.RLIMIT_NOFILE, (120, 120)); TIMEOUT, COUNT = 20, 300"
    assert all(result["ok"] for result in run_prober(code, servers.answering(http("200 OK"))))


def test_no_file_descriptor_left_says_nothing_about_the_replica(servers: Servers):
    code = """
    TIMEOUT, COUNT = 1.5, 30
    import asyncio; asyncio.run(asyncio.sleep(0))
    from replicas.providers import probing
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    taken = []
    while True:
        try:
            taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            break
    for spare in taken[:6]:
        os.close(spare)
    """
    results = run_prober(code, servers.hanging(http("200 OK")[:-2]))
    failed = [result for result in results if not result["ok"]]
    assert {result["error"] for result in failed} == {"local", "timeout"}
    assert all(result["conclusive"] == (result["error"] == "timeout") for result in failed)
