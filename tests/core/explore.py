"""`python -m tests.core.explore`: every case of the exploration and every mutant, with the states visited."""

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.core import mutants
from tests.core.exploring import Case, explore
from tests.core.test_planner_exhaustive import CASES, LONG


def visit(case: Case) -> tuple[int, int, float]:
    """States visited, those without a way to rest, CPU seconds. Raises AssertionError where a bound is broken."""
    began = time.process_time()
    found = explore(case)
    return found.states, found.stuck, time.process_time() - began


def main() -> int:
    """Print a line for each; 1 when one is bad."""
    bad, states = 0, 0
    print(f"{'states':>9} {'CPU s':>7}  case", flush=True)
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        for case, future in [(case, workers.submit(visit, case)) for case in (*CASES, *LONG)]:
            try:
                visited, stuck, seconds = future.result()
            except AssertionError as harm:
                bad += 1
                print(f"{'HARM':>9} {'':>7}  {case.name}: {harm}", flush=True)
                continue
            bad += bool(stuck)
            states += visited
            print(f"{visited:>9} {seconds:>7.1f}  {case.name}{f': {stuck} STUCK' if stuck else ''}", flush=True)
    print(f"{states:>9}          visited in all; {bad} cases bad", flush=True)
    return 1 if mutants.main() or bad else 0


if __name__ == "__main__":
    sys.exit(main())
