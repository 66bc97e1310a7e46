"""Between the supervisor's fork and a child's program: `python -m controlplane.child PARENT PROGRAM ARGUMENT...`.

Ties the child to the supervisor and becomes the program. As a step of its own it needs no code between fork and exec.
"""

import os
import sys

from controlplane.ties import die_with_parent


def main() -> None:
    """Tie this process to its parent, then become the program."""
    parent, program = int(sys.argv[1]), sys.argv[2:]
    die_with_parent(parent)
    os.execv(program[0], program)  # noqa: S606  (an argument list from the table of children)


if __name__ == "__main__":
    main()
