"""Everything at once, by chance: people who change their minds, and enemies who kill and stop whatever runs.

ROLLCALL_CHAOS_SECONDS makes it longer, ROLLCALL_CHAOS_SEED plays one run again (as far as time lets it).
"""

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from controlplane import processes
from tests.acceptance import texts
from tests.acceptance.scene import Scene
from tests.support.rows import LIVE, Row

SECONDS = float(os.environ.get("ROLLCALL_CHAOS_SECONDS", "60"))
SEED = int(os.environ.get("ROLLCALL_CHAOS_SEED") or random.randrange(10**6))
PATIENT = "restart: {backoff_seconds: 0.5, max_backoff_seconds: 2, max_never_ready: 1000}"
PLAYED = {
    "steady": {},
    "slow": {"START_SECONDS": "2"},
    "crashing": {"LIFE_SECONDS": "4"},
}
MOST = 3


class Chaos:
    """Acts by chance on the services in PLAYED, and on every process but those of the service `still`."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.chance = random.Random(SEED)
        self.targets = dict.fromkeys(PLAYED, 2)
        self.versions = 0
        self.diary: list[str] = []
        self.people: list[Callable[[str], str | None]] = [
            self.scale, self.scale, self.scale, self.terminate, self.terminate, self.update, self.restart, self.cancel,
            self.take_down,
        ]  # fmt: skip
        self.enemies: list[Callable[[], str | None]] = [
            self.kill_part, self.kill_part, self.kill_crew, self.kill_crew, self.stop_one, self.stop_for_a_while,
            self.stop_for_a_while, self.kill_shim, self.kill_replica, self.kill_replica, self.kill_supervisor,
        ]  # fmt: skip

    def play(self, seconds: float) -> None:
        """Act for so long."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            if self.chance.random() < 0.6:
                name = self.chance.choice(list(PLAYED))
                done = self.chance.choice(self.people)(name)
            else:
                done = self.chance.choice(self.enemies)()
            if done:
                self.diary.append(f"{time.monotonic() - began:6.1f} {done}")
            time.sleep(self.chance.uniform(0.1, 1.0))  # the pace of the play, not a wait for anything

    # --- people ---------------------------------------------------------------------------------------------------

    def text(self, name: str, **more: str) -> str:
        """The service as it is wanted now."""
        return texts.service(name, self.targets[name], env=PLAYED[name] | more, tail=PATIENT)

    def scale(self, name: str) -> str:
        self.targets[name] = self.chance.randint(0, MOST)
        self.scene.scale(name, self.targets[name])
        return f"scale {name} {self.targets[name]}"

    def terminate(self, name: str) -> str | None:
        row = self._one(self.scene.rows.replicas(name, *LIVE))
        return f"terminate {name} {row['number']}" if row and self.scene.person.terminate(name, row["number"]) else None

    def update(self, name: str) -> str:
        self.versions += 1
        self.scene.sampler.allow(name, self.targets[name])
        self.scene.person.apply(self.text(name, VERSION=str(self.versions)), name, known=True)
        return f"update {name}"

    def restart(self, name: str) -> str | None:
        version = self.scene.rows.service(name)["active"]
        return f"restart {name}" if self.scene.person.restart(name, version) else None

    def cancel(self, name: str) -> str | None:
        launches = [row for row in self.scene.rows.operations(name, "LAUNCH") if row["ended_at"] is None]
        row = self._one(launches)
        return f"cancel {row['id']}" if row and self.scene.person.cancel(row["id"]) else None

    def take_down(self, name: str) -> str:
        self.scene.person.down(name)
        time.sleep(self.chance.uniform(0, 1.5))  # the down gets so far as chance has it
        self.scene.person.apply(self.text(name), name, known=True)
        return f"down {name}, and up again"

    # --- enemies --------------------------------------------------------------------------------------------------

    def kill_part(self) -> str | None:
        found = self.scene.plane.children()
        name = self.chance.choice(sorted(found)) if found else ""
        return self._signal(found.get(name), signal.SIGKILL, name)

    def kill_crew(self) -> str | None:
        return self._signal(self._crew(), signal.SIGKILL, "one of a pool")

    def stop_one(self) -> str | None:
        parts = [*self.scene.plane.children().values(), self._crew()]
        return self._signal(self.chance.choice(parts), signal.SIGSTOP, "a process of the control plane")

    def stop_for_a_while(self) -> str | None:
        pid = self.chance.choice([*self.scene.plane.children().values(), self._crew(), self._crew()])
        began = processes.start_ticks(pid) if pid else None
        done = self._signal(pid, signal.SIGSTOP, "for a while: a process of the control plane")
        time.sleep(self.chance.uniform(0.1, 3))  # the next move comes when chance has it
        if pid and began is not None and processes.is_running(pid, began):
            self._signal(pid, signal.SIGCONT, "")
        return done

    def kill_shim(self) -> str | None:
        row = self._running()
        return self._signal(row["handle"]["shim_pid"], signal.SIGKILL, f"shim of {row['number']}") if row else None

    def kill_replica(self) -> str | None:
        row = self._running()
        return self._signal(row["pid"], signal.SIGKILL, f"replica {row['number']}") if row else None

    def kill_supervisor(self) -> str | None:
        if self.chance.random() < 0.5:
            return None
        self.scene.plane.kill()
        self.scene.plane.start()
        return "kill the supervisor, and up again"

    def _crew(self) -> int | None:
        with suppress(KeyError, ValueError, IndexError):  # the pool is just coming or going
            return self.chance.choice(self.scene.crew(self.chance.choice(["long", "short"])))
        return None

    def _running(self) -> Row | None:
        rows = [row for name in PLAYED for row in self.scene.rows.replicas(name, "STARTING", "READY")]
        return self._one([row for row in rows if row["pid"] and processes.stat(row["pid"])])

    def _one(self, rows: list[Row]) -> Row | None:
        return self.chance.choice(rows) if rows else None

    def _signal(self, pid: int | None, number: signal.Signals, whom: str) -> str | None:
        if pid is None:
            return None
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            return f"{number.name} {whom} ({pid})"
        return None


@pytest.mark.timeout(SECONDS + 300)
def test_whatever_happens(new_scene: Callable[..., Scene], capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n ROLLCALL_CHAOS_SEED={SEED} ROLLCALL_CHAOS_SECONDS={SECONDS:g}", end="")
    scene = new_scene(ROLLCALL_REDELIVER_SECONDS="2", ROLLCALL_LAUNCH_RETRY_SECONDS="1", ROLLCALL_DOWN_ATTEMPTS="20")
    chaos = Chaos(scene)
    scene.deploy("still", texts.service("still", 2), 2)
    for name in PLAYED:
        scene.deploy(name, chaos.text(name), 2, ready=False)
    still = scene.pids("still")
    try:
        chaos.play(SECONDS)
        settle(chaos)
        assert scene.pids("still") == still
        assert all(processes.stat(pid) for pid in still.values())
        scene.check()
        check_ends(scene.rows.events())
        everything = {row["uid"] for name in [*PLAYED, "still"] for row in scene.rows.replicas(name, *LIVE)}
        assert set(scene.plane.replicas()) == everything
    except BaseException:
        with capsys.disabled():
            print("\n" + "\n".join(chaos.diary))
        raise
    with capsys.disabled():
        print(f" {len(chaos.diary)} acts, {scene.reader.connections} sockets, {scene.rows.events()[-1]['id']} events")


def settle(chaos: Chaos) -> None:
    """Nobody acts any more: each service becomes what is wanted of it."""
    scene = chaos.scene
    scene.before, scene.struck = scene.beats(), time.monotonic()
    scene.wait_whole()
    PLAYED["crashing"] = {"LIFE_SECONDS": "1000"}
    for name in PLAYED:
        chaos.update(name)
    for name, target in chaos.targets.items():
        scene.wait_ready(name, target, timeout=scene.limit)


def check_ends(events: list[Row]) -> None:
    """An end never changes, and an outcome is never overwritten; numbers are given out once."""
    ended: dict[int, str] = {}
    outcomes: dict[int, str] = {}
    numbers: set[tuple[str, int]] = set()
    for event in events:
        if event["kind"] != "replica":
            continue
        row = event["data"]
        key = event["object_id"]
        if event["trigger"] == "created":
            assert (event["service_name"], row["number"]) not in numbers
            numbers.add((event["service_name"], row["number"]))
        assert outcomes.setdefault(key, row["outcome"] or "") in ("", row["outcome"]), event
        outcomes[key] = row["outcome"] or ""
        assert key not in ended or row["state"] == ended[key], event
        if row["state"] not in LIVE:
            ended[key] = row["state"]
