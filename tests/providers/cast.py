"""What the tests of providers share: orders, a launch or a down taken to its end, and a patient look."""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from replicas.providers import cgroups, procs
from replicas.providers.base import Gone, Launched, LaunchOrder, Provider, Waiting
from tests.support import polling
from tests.support.patience import Patience

T = TypeVar("T")
SERVER = "exec /usr/bin/python3 -m http.server $PORT --bind 127.0.0.1"


def eventually(look: Callable[[], T], seconds: float = 20.0) -> T:
    """The first true value that `look` gives; fails when there is none in time."""
    return polling.eventually(look, seconds)


@dataclass
class Cast:
    """A provider in a home of its own, and short forms of what tests do with it."""

    provider: Any
    home: Path
    logs: Path
    steps: list[Waiting] = field(default_factory=list)

    def order(self, uid: str = "r1", *, run: str = "sleep 1000", **fields: Any) -> LaunchOrder:
        """An order for a replica; what is no field of an order goes into the spec."""
        own = {name: fields.pop(name) for name in list(fields) if name in LaunchOrder.__dataclass_fields__}
        spec = {"name": "web", "run": run, "provider": self.provider.name, **fields}
        given: dict[str, Any] = {
            "replica_uid": uid,
            "service": "web",
            "number": 1,
            "version": 1,
            "version_uid": "v1",
            "spec": spec,
            "env": {},
            "secrets": {},
            "log": self.logs / f"{uid}.log",
        }
        return LaunchOrder(**{**given, **own})

    def launch(self, order: LaunchOrder, seconds: float = 60.0) -> Launched:
        """Take a launch to its end as jobs do: the checkpoint goes through JSON, and waits end early when they may."""
        checkpoint, patience = None, Patience(seconds)
        while isinstance(step := self.provider.launch(order, checkpoint), Waiting):
            assert not patience.over(), f"the launch still waits: {step.reason}"
            checkpoint = self.pause(step)
        json.dumps(step.handle)
        return step

    def down(self, order: LaunchOrder, handle: Any = None, grace: float = 5.0, seconds: float = 60.0) -> Gone:
        """Take a down to its end."""
        checkpoint, patience = None, Patience(seconds)
        while isinstance(step := self.provider.down(order, handle, timedelta(seconds=grace), checkpoint), Waiting):
            assert not patience.over(), f"the down still waits: {step.reason}"
            checkpoint = self.pause(step)
        return step

    def pause(self, step: Waiting) -> Any:
        """Wait as long as the step says, or until the process ends that it names. The checkpoint for the next step."""
        self.steps.append(step)
        if step.watch:
            procs.wait(*step.watch, step.seconds)
        else:
            time.sleep(step.seconds)  # what the contract says: call again after so many seconds
        return json.loads(json.dumps(dict(step.checkpoint)))

    def exited(self, handle: Any) -> Any:
        """What the provider says once the replica runs no more."""
        return eventually(lambda: (seen := self.provider.inspect(handle)).kind != "running" and seen)

    def log(self, order: LaunchOrder) -> str:
        """The operation's log."""
        return order.log.read_text()

    def run_log(self, handle: Any) -> bytes:
        """All that the replica has printed."""
        return bytes(self.provider.read_log(handle, 0, 1 << 24)[0])

    def printed(self, handle: Any, text: bytes) -> bytes:
        """The run log, once `text` is in it."""
        return eventually(lambda: text in (seen := self.run_log(handle)) and seen)

    def everyone(self) -> list[procs.Proc]:
        """The processes of this home."""
        return procs.carrying({"ROLLCALL_HOME": str(self.home)})

    def clear(self) -> None:
        """End what a test has left. Only processes of this home."""
        for _ in range(20):
            left = self.everyone()
            if not left:
                break
            for process in left:
                procs.send(*process, signal.SIGKILL)
                procs.wait(*process, 1.0)
        shutil.rmtree(self.home, ignore_errors=True)
        for own in cgroups.plan(self.home, "", cgroups.Limits(1, 1)).directories:
            for left in own.parent.glob(f"{own.name}*"):
                cgroups.remove(left)


def again(order: LaunchOrder, **fields: Any) -> LaunchOrder:
    """The order with some fields changed."""
    return replace(order, **fields)


def alive(pid: int) -> bool:
    """True while any process has the pid and is no zombie."""
    return procs.identify(pid) is not None


def contract(provider: Provider) -> Provider:
    """The provider as the protocol has it, for the type checker."""
    return provider


def owner_is_root() -> bool:
    """True for tests that need to mount or to make cgroups."""
    return os.geteuid() == 0
