"""`simulate SPEC --trace FILE`: what the autoscaler would have made of a load."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from replicas.core.autoscaler import Policy, policy_from
from replicas.core.simulation import Outcome, Settings, autoscaled, replay
from replicas.core.spec import SpecErrors, parse
from replicas.gateway.values import hold_of
from replicas.management.tracefile import read, read_trace
from replicas.management.verb import Verb, fail, seconds
from replicas.providers import registry

SHOWN = 20


class Command(Verb):
    """Replays a trace through the real autoscaler and planner; nothing is started or written."""

    help = (
        "Replay a load through the autoscaler of a service YAML, and print how many replicas there would have been. The"
        " trace has one number a line: the requests of one second; or two, SECONDS,RATE: the rate from then on."
    )
    foreseen = (*Verb.foreseen, SpecErrors)
    examples = (
        "  manage.py simulate service.yaml --trace monday.txt\n"
        "  manage.py simulate service.yaml --trace steps.csv --launch-seconds 90 --json\n"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """SPEC, the trace, and what replicas are like."""
        parser.add_argument("spec", metavar="SPEC", help="the YAML, with a replica_policy")
        parser.add_argument(
            "--trace", metavar="FILE", required=True, help="requests of one second a line, or SECONDS,RATE"
        )
        parser.add_argument(
            "--launch-seconds", type=seconds, default=30.0, help="from a decision to a ready replica (default 30)"
        )
        parser.add_argument(
            "--hold-seconds", type=seconds, help="wait of a request for a first replica (default: what the YAML says)"
        )
        parser.add_argument("--json", action="store_true", help="the figures as JSON")

    def handle(self, *, spec: str, trace: str, json: bool, **options: Any) -> None:
        """Read, replay, print."""
        policy, hold = self.read_policy(Path(spec))
        loads = read_trace(Path(trace))
        assert policy.qps is not None
        rate = policy.qps if isinstance(policy.qps, int | float) else min(policy.qps.values())
        if options["hold_seconds"] is not None:
            hold = float(options["hold_seconds"])
        settings = Settings(float(options["launch_seconds"]), float(rate), hold)
        scaler, notes = autoscaled(policy)
        outcome = replay(loads, scaler, settings, target=policy.minimum, notes=notes)
        self.print_json(outcome) if json else self.print_text(outcome)

    def read_policy(self, path: Path) -> tuple[Policy, float]:
        """The policy of a YAML, and how many seconds it holds a request. Ends where no trace can move the policy."""
        spec = parse(read(path), base=str(path.absolute().parent), providers=registry.names()).spec
        service = spec.to_json()["service"]
        policy = policy_from(service)
        if policy is None:
            fail(f"{path} has no replica_policy, so its number of replicas is fixed. Add service.replica_policy to it.")
        if policy.qps is None:
            fail(
                f"{path} has no target_qps_per_replica, and a trace tells requests per second only."
                " Add it to service.replica_policy."
            )
        return policy, hold_of(service)

    def print_json(self, outcome: Outcome) -> None:
        """Stable names, see docs/autoscaler.md."""
        self.stdout.write(
            json.dumps(
                {
                    "seconds": outcome.seconds,
                    "requests": round(outcome.requests),
                    "overloaded_seconds": outcome.overloaded,
                    "held": round(outcome.held),
                    "refused": round(outcome.refused),
                    "replica_hours": round(outcome.replica_hours, 3),
                    "most_replicas": outcome.most,
                    "changes": outcome.changes,
                    "decisions": [
                        {"second": second, "target": target, "reason": reason}
                        for second, target, reason in outcome.decisions
                    ],
                },
                indent=2,
            )
        )

    def print_text(self, outcome: Outcome) -> None:
        """The decisions, then the figures."""
        for second, _, reason in outcome.decisions[:SHOWN]:
            hours, rest = divmod(second, 3600)
            self.say(f"{hours:>3}:{rest // 60:02}:{rest % 60:02}  {reason}")
        if len(outcome.decisions) > SHOWN:
            self.say(f"  … and {len(outcome.decisions) - SHOWN} more (--json has all)")
        share = 100 * outcome.overloaded / outcome.seconds
        self.say(f"{outcome.seconds} s, {outcome.requests:.0f} requests")
        self.say(f"replica-hours       {outcome.replica_hours:.2f}, {outcome.most} at most")
        self.say(f"changes             {outcome.changes}")
        self.say(f"above target load   {outcome.overloaded} s ({share:.1f} %)")
        self.say(f"held, refused       {outcome.held:.0f}, {outcome.refused:.0f}")
