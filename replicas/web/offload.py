"""Blocking work off the event loop: queries and file reads, each in a few threads of their own.

Django's own way shares one thread for the whole process: one slow query would freeze every socket and every handshake.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import Error as DatabaseTrouble
from django.db import close_old_connections, connection

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

KEEP_SECONDS = 30.0
AGAIN_SECONDS = 1.0
_kept = threading.local()

# The tailer has a thread to itself: it must not stand in line behind sockets that replay.
TAILER = ThreadPoolExecutor(1, thread_name_prefix="tailer")
QUERIES = ThreadPoolExecutor(3, thread_name_prefix="queries")
FILES = ThreadPoolExecutor(3, thread_name_prefix="files")
# Searches and downloads take seconds: the logs that are followed must not wait for them.
LONG_READS = ThreadPoolExecutor(2, thread_name_prefix="long-reads")


async def query(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of `function`, which may use the ORM."""
    return await asyncio.get_running_loop().run_in_executor(QUERIES, lambda: tidily(function, *args, **kwargs))


async def tailer_query(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Like `query`, in the tailer's own thread."""
    return await asyncio.get_running_loop().run_in_executor(TAILER, lambda: tidily(function, *args, **kwargs))


async def file_work(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of `function`, which reads files and asks no database."""
    return await asyncio.get_running_loop().run_in_executor(FILES, lambda: function(*args, **kwargs))


async def long_read(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Like `file_work`, for what may take long."""
    return await asyncio.get_running_loop().run_in_executor(LONG_READS, lambda: function(*args, **kwargs))


def tidily(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `function` and tidy this thread's connection up, as Django does around a request.

    A connection to SQLite takes several times as long to open as a query takes, so a thread keeps it for a while. One
    to PostgreSQL comes from the pool and goes back.
    """
    try:
        return function(*args, **kwargs)
    except DatabaseTrouble:
        connection.close()
        raise
    finally:
        now = time.monotonic()
        if connection.vendor != "sqlite" or now > getattr(_kept, "until", 0.0):
            close_old_connections()
            _kept.until = now + KEEP_SECONDS


async def kept_going(work: Callable[[], Awaitable[None]]) -> None:
    """Do `work` until it returns; after a fault of whatever kind it is begun again. The sockets live by these loops."""
    while True:
        try:
            return await work()
        except Exception:
            log.exception("A part of the feed failed, and begins again: %s", work)
            await asyncio.sleep(AGAIN_SECONDS)
