"""Ties between processes: who dies with whom (Linux prctl)."""

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that made it ends; `parent` is the pid that made it.

    The tie survives exec and ends at fork. If the parent is dead already, this process ends at once.
    """
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def adopt_orphans() -> None:
    """Make this process the parent of all descendants whose own parent dies."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


class _Hook:
    """What the registry of multiprocessing holds on to, weakly: so it must live at module level."""


_HOOK = _Hook()


def tie_forks() -> None:
    """Tie every process that `multiprocessing` forks from here on to the process that forks it.

    `os.register_at_fork` would also reach children that subprocess starts with a preexec_fn, and so replicas, which
    must outlive the pool. This hook is called in processes of multiprocessing alone.
    """
    from multiprocessing import util

    util.register_after_fork(_HOOK, _tie_fork)


def _tie_fork(_hook: _Hook) -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None and parent.pid is not None:
        die_with_parent(parent.pid)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}): {os.strerror(code)}")
