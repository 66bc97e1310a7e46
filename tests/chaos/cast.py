"""The services of the chaos: what each is like, its YAML, and what can be expected of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SERVER = Path(__file__).with_name("server.py")
SURGE = 1


@dataclass(frozen=True, slots=True)
class Part:
    """A service. `restless`: it never comes to rest by its nature; `hopeless`: it is given up in the end; `spared`:
    nobody does anything to it, and it must never notice what is done to the others.

    `most`: replicas that are wanted at most; `own`: keys of its own, as lines of YAML.
    """

    name: str
    env: Mapping[str, str] = field(default_factory=dict)
    most: int = 3
    first: int = 2
    fake: str | None = None
    mode: str = "rolling"
    restless: bool = False
    hopeless: bool = False
    spared: bool = False
    never_ready: int = 1000

    @property
    def local(self) -> bool:
        """Whether its replicas are processes."""
        return self.fake is None

    def allowed(self, target: int) -> int:
        """How many may be live where so many are wanted."""
        return target * 2 if self.mode == "blue_green" else target + SURGE

    def text(self, target: int, change: int, bad: str = "") -> str:
        """Its YAML. `change`: another number makes another version; `bad`: how a version is that cannot work."""
        env = {**self.env, "CHANGE": str(change)} | ({"BAD": bad} if bad else {})
        lines = [f"name: {self.name}", "envs:", *(f'  {name}: "{value}"' for name, value in env.items())]
        lines += [f"run: exec python3 -I {SERVER}"] if self.local else ["provider: fake", f"fake: {_fake(self, bad)}"]
        failures = 2 if bad else 1000
        lines += [
            "service:",
            f"  replicas: {target}",
            "  drain_seconds: 3",
            "  readiness_probe:",
            "    path: /",
            f"    initial_delay_seconds: {6 if bad else 300}",
            "    timeout_seconds: 5",
            "    endpoint_probe_interval_seconds: 1",
            "    consecutive_failure_threshold_timeout: 60",
            f"  restart: {{backoff_seconds: 0.5, max_backoff_seconds: 2, max_never_ready: {self.never_ready}}}",
            f"  rollout: {{mode: {self.mode}, max_surge: {SURGE}, max_unavailable: 1, min_ready_seconds: 0.5, "
            f"max_failures: {failures}}}",
        ]
        return "\n".join(lines) + "\n"


def _fake(part: Part, bad: str) -> str:
    return "{fail_launch: no machine is free}" if bad else (part.fake or "{}")


TALK = {"LINES": "100", "FAST_LINES": "5000", "FAST_UNTIL": "550000"}  # past one whole file of a log
CAST = (
    Part("spared", spared=True),
    Part("steady"),
    Part("slow", {"START_SECONDS": "3"}),
    Part("stubborn", {"STUBBORN": "1"}, most=2, first=1),
    Part("crashing", {"LIFE_SECONDS": "8"}, most=2, restless=True),
    Part("hopeless", {"BAD": "exit"}, most=2, first=1, hopeless=True, never_ready=3),
    Part("flapping", {"WELL_SECONDS": "4", "SICK_SECONDS": "2"}, most=2, first=1, restless=True),
    Part("talker", TALK, most=2),
    Part("holding", most=2),
    Part("swapping", mode="blue_green", most=2),
    Part("crowd", fake="{launch_seconds: 0.3, ready_after_seconds: 0.5}", most=14, first=12),
    Part("reluctant", fake="{fail_launch: no machine is free, fail_times: 1, down_steps: 3}", most=4, first=3),
    Part("passing", fake="{launch_seconds: 0.2, exit_after_seconds: 15}", most=6, first=4, restless=True),
)
PARTS = {part.name: part for part in CAST}
