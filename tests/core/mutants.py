"""Faults that a careless hand might make in the core, one check removed in each, and the proof that each is noticed.

A mutant is a copy of the product with one text replaced. `python -m tests.core.mutants` tries them all.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLANNER = "replicas/core/planner"
EXPLORED = "tests/core/test_planner_exhaustive.py::test_no_order_of_events_does_harm"
DECIDED = "tests/core/test_planner.py"
DELIVERED = "tests/actions/test_deliveries.py::test_no_order_of_deliveries_does_harm"
SECONDS = 600


@dataclass(frozen=True)
class Mutant:
    """In `file`, `text` becomes `made`. `test` is the one that fails then."""

    name: str
    file: str
    text: str
    made: str
    test: str


MUTANTS = (
    Mutant(
        "age alone proves a replica",
        f"{PLANNER}/proof.py",
        "elif answered(replica, since, wait, now):",
        "elif True:",
        f"{EXPLORED}[a version that is ready and dies unseen]",
    ),
    Mutant(
        "replicas that are not ready count for capacity",
        f"{PLANNER}/rolling.py",
        "needed = max(0, least - proof.proven)",
        "needed = max(0, least - len(fleet.new))",
        f"{EXPLORED}[a good version]",
    ),
    Mutant(
        "one replica above max_surge",
        f"{PLANNER}/rolling.py",
        "live = target + bounds.max_surge\n    least",
        "live = target + bounds.max_surge + 1\n    least",
        f"{EXPLORED}[a good version]",
    ),
    Mutant(
        "one replica below max_unavailable",
        f"{PLANNER}/rolling.py",
        "target - bounds.max_unavailable\n    needed",
        "target - bounds.max_unavailable - 1\n    needed",
        f"{EXPLORED}[a good version]",
    ),
    Mutant(
        "who is on the way out holds no place",
        f"{PLANNER}/fleet.py",
        "return len(self.staying) + len(self.leaving)",
        "return len(self.staying)",
        f"{EXPLORED}[a good version]",
    ),
    Mutant(
        "a switch to a set that is not complete",
        f"{PLANNER}/judging.py",
        "Switch(rollout.id, rollout.revision, service.target, reason)",
        "Switch(rollout.id, rollout.revision, 0, reason)",
        f"{EXPLORED}[blue-green for one, and a crash]",
    ),
    Mutant(
        "a version that fails is never given up",
        f"{PLANNER}/judging.py",
        "    if not can_fail(service, rollout):\n        return None\n    failed =",
        "    if True:\n        return None\n    failed =",
        f"{EXPLORED}[a version that is ready and dies]",
    ),
    Mutant(
        "a version that was given up is launched again",
        f"{PLANNER}/rolling.py",
        "new=serving, old=target - proven, back=True, growing=False)",
        "new=target, old=target - proven, back=True)",
        f"{EXPLORED}[a version that is never ready and stays]",
    ),
    Mutant(
        "the most useful replica goes first",
        f"{PLANNER}/fleet.py",
        "key=lambda replica: (RANK[replica.state], replica.version, -replica.number)",
        "key=lambda replica: (-RANK[replica.state], replica.version, -replica.number)",
        DECIDED,
    ),
    Mutant(
        "a replica whose launch is cancelled stays wanted",
        f"{PLANNER}/fleet.py",
        "    if replica.state in LAUNCHING and replica.operation is not None and replica.operation.cancelling:\n",
        "    if False:\n",
        DECIDED,
    ),
    Mutant(
        "old replicas are not kept until the new ones have proved themselves",
        f"{PLANNER}/rolling.py",
        "old = needed if back else",
        "old = 0 if back else",
        f"{EXPLORED}[a version that is never ready]",
    ),
    Mutant(
        "who lost the claim settles the operation",
        "replicas/actions/operations.py",
        "current is None or current.claim != operation.claim or current.status != S.RUNNING",
        "current is None or current.status != S.RUNNING",
        DELIVERED,
    ),
    Mutant(
        "an operation ends although what it did does not count any more",
        "replicas/actions/operations.py",
        'and not transition(replica, trigger, reason=reason, actor="job", **facts):',
        'and transition(replica, trigger, reason=reason, actor="job", **facts) is None:',
        DELIVERED,
    ),
)


def caught(mutant: Mutant) -> bool:
    """Whether the test that is there for it fails on the mutant. Raises ValueError for a text that is not there once,
    and RuntimeError for a test that did not run.
    """
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        root = Path(folder)
        for name in ("replicas", "controlplane", "tests", "static", "templates"):
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", root)
        place = root / mutant.file
        source = place.read_text()
        if source.count(mutant.text) != 1:
            raise ValueError(f"{mutant.file} has {mutant.text!r} {source.count(mutant.text)} times, not once")
        place.write_text(source.replace(mutant.text, mutant.made))
        return not passes(root, mutant.test)


def passes(root: Path, test: str) -> bool:
    """Whether the test passes in that copy."""
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        words, cwd=root, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    return done.returncode == 0


def main() -> int:
    """Try all; 1 when one of them goes unnoticed."""
    missed = 0
    for mutant in MUTANTS:
        noticed = caught(mutant)
        missed += not noticed
        print(f"{'caught  ' if noticed else 'MISSED  '} {mutant.name}", flush=True)
    print(f"{len(MUTANTS) - missed} of {len(MUTANTS)} mutants caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
