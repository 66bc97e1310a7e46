"""Has a pool load, use and freeze what its workers need before they are forked, so that they share the memory of it."""

import gc
import os

from django.db import OperationalError, ProgrammingError, connection

from replicas.models import Operation, Replica

_warm = False


def share_memory() -> None:
    """In a pool's leader: prepare before each fork from here on, and have what is forked tell of acknowledged jobs."""
    import replicas.jobs.beats
    import replicas.jobs.down
    import replicas.jobs.launch
    import replicas.jobs.probe
    import replicas.jobs.pruning
    import replicas.jobs.signals  # noqa: F401
    from replicas.jobs import beats, queue

    queue.when_acknowledged(beats.got_through)
    os.register_at_fork(before=before_fork)


def before_fork() -> None:
    """Use the database layer once, then keep the collector from writing into every object that it looks at.

    What a first query builds and caches would otherwise be built in each fork: some 7 MB in each.
    """
    global _warm
    if not _warm:
        _warm = True
        use_rows()
    gc.freeze()


def use_rows() -> None:
    """Queries like those of the jobs, on a connection that is closed before the fork."""
    try:
        Operation.objects.select_related("replica", "service").filter(pk=0).first()
        Replica.objects.select_related("service", "version").filter(pk=0).first()
        Operation.objects.filter(pk=0).update(orphaned=0)
    except (OperationalError, ProgrammingError):
        pass  # not there yet, or not migrated: the workers will say so when it matters
    finally:
        connection.close()
