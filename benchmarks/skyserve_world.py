"""How SkyServe keeps replicas, by its published rules stated anew, over processes of this machine.

What holds of SkyPilot 0.14: a decision each 20 s on how many replicas there are to be, and the first one at once; ended
launches are looked for each 20 s; whether the user's program still runs is asked each 30 s; all replicas are probed
each 10 s from a thread pool; the load balancer takes over who is ready each 20 s; four launches at a time. All these
loops begin together. What takes long in clouds (machines, SSH) is left out: a launch here is the start of a process.
"""

import http.client
import os
import random
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum

import requests

from benchmarks.plain_launch import free_ports

DECIDE, ENDED_LAUNCHES, STILL_RUNS, PROBE, SYNC = 20.0, 20.0, 30.0, 10.0, 20.0  # seconds
AT_ONCE = 4
TIMEOUT = 15.0
ROUND_SECONDS = 0.02


class State(StrEnum):
    """As SkyServe has them."""

    PROVISIONING = "PROVISIONING"
    STARTING = "STARTING"
    READY = "READY"
    FAILED = "FAILED"


@dataclass(slots=True)
class Replica:
    """One process; `launched` is when it was started (monotonic)."""

    process: "subprocess.Popen[bytes]"
    port: int
    launched: float
    state: State = State.PROVISIONING


class SkyServe:
    """One service of so many replicas. Nothing happens but in `run_until`."""

    def __init__(self, target: int, command: Sequence[str]) -> None:
        self.target = target
        self.command = list(command)
        self.replicas: list[Replica] = []
        self.listed: list[Replica] = []  # whom the balancer knows
        now = time.monotonic()
        rules: list[tuple[Callable[[], None], float]] = [
            (self.decide, DECIDE),
            (self.see_launched, ENDED_LAUNCHES),
            (self.see_dead, STILL_RUNS),
            (self.probe, PROBE),
            (self.sync, SYNC),
        ]
        self.rules = [[rule, seconds, now] for rule, seconds in rules]
        self.pool = ThreadPoolExecutor(os.cpu_count())

    def run_until(self, look: Callable[[], bool], seconds: float) -> None:
        """Follow the rules until `look` is true. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while not look():
            now = time.monotonic()
            if now > deadline:
                raise TimeoutError(f"not within {seconds:g} s: {[replica.state for replica in self.replicas]}")
            for rule in self.rules:
                work, every, due = rule
                if due <= now:
                    rule[2] = due + every
                    work()
            time.sleep(ROUND_SECONDS)

    def decide(self) -> None:
        """Launch what is missing, four at a time."""
        launching = sum(replica.state is State.PROVISIONING for replica in self.replicas)
        missing = self.target - sum(replica.state is not State.FAILED for replica in self.replicas)
        for port in free_ports(max(0, min(missing, AT_ONCE - launching))):
            process = subprocess.Popen(
                self.command, env=os.environ | {"PORT": str(port)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            self.replicas.append(Replica(process, port, time.monotonic()))

    def see_launched(self) -> None:
        """Launches that have come to their end."""
        for replica in self.replicas:
            if replica.state is State.PROVISIONING:
                replica.state = State.STARTING

    def see_dead(self) -> None:
        """Replicas whose program has ended."""
        for replica in self.replicas:
            if replica.state is not State.PROVISIONING and replica.process.poll() is not None:
                replica.state = State.FAILED

    def probe(self) -> None:
        """One sweep over all that were launched. Failures in a row count for three minutes, longer than is looked."""
        asked = [replica for replica in self.replicas if replica.state in (State.STARTING, State.READY)]
        for replica, well in zip(asked, self.pool.map(answers, asked), strict=True):
            if well:
                replica.state = State.READY

    def sync(self) -> None:
        """The balancer learns who is ready."""
        self.listed = [replica for replica in self.replicas if replica.state is State.READY]

    def serving(self) -> list[Replica]:
        """Those of the balancer's that answer a request."""
        return [replica for replica in self.listed if passes(replica)]

    def kill_one(self, chance: random.Random) -> Replica:
        """SIGKILL a replica that serves."""
        victim = chance.choice(self.serving())
        victim.process.kill()
        victim.process.wait()
        return victim

    def close(self) -> None:
        """End all processes."""
        self.pool.shutdown()
        for replica in self.replicas:
            replica.process.kill()
            replica.process.wait()


def answers(replica: Replica) -> bool:
    """A probe."""
    try:
        return requests.get(f"http://127.0.0.1:{replica.port}/healthz", timeout=TIMEOUT).status_code == 200
    except requests.RequestException:
        return False


def passes(replica: Replica) -> bool:
    """A request of a user."""
    connection = http.client.HTTPConnection("127.0.0.1", replica.port, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
