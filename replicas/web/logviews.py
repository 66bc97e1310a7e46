"""Plain HTTP beside the websockets: whether the session still stands, and logs by page, by search and whole."""

import os
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.urls import URLPattern, path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from replicas.providers.logtimes import since, stamp_of, stamps
from replicas.web import logfile
from replicas.web.guard import VIEW
from replicas.web.logrows import LAUNCH, OPERATION, RUN, Key, Place, place
from replicas.web.numbers import whole
from replicas.web.offload import file_work, long_read, query

PAGE_LINES, PAGE_MOST = 1000, 10_000
MATCHES, MATCHES_MOST = 500, 5000
SEARCH_SECONDS = 2.0
QUERY_CHARS = 500
BLOCK = 256 << 10
MOST = 2**62

View = Callable[..., Awaitable[HttpResponseBase]]


@never_cache
@require_safe
def session(request: HttpRequest) -> HttpResponse:
    """204 while the user may see services; 401 when signed out, 403 without the permission.

    A websocket's handshake that is refused tells a page nothing of the why, so it asks here.
    """
    if not request.user.is_authenticated:
        return HttpResponse(status=401)
    return HttpResponse(status=204 if request.user.has_perm(VIEW) else 403)


def of_log(view: Callable[[HttpRequest, Place], Awaitable[HttpResponseBase]]) -> View:
    """Give `view` the place of a log that the user may see. What it raises as NoLog is 404, as ValueError 400."""

    @never_cache
    @require_safe
    @wraps(view)
    async def found(request: HttpRequest, which: str, id: int) -> HttpResponseBase:
        user = await request.auser()
        if not user.is_authenticated:
            if view is download:
                return redirect_to_login(request.get_full_path())
            return problem(401, "You are signed out. Sign in again.")
        if not await user.ahas_perm(VIEW):
            return problem(403, "Your account may not look at services. Ask an administrator for it.")
        where = await query(place, Key(which, id))
        try:
            if where is None or not where.path:
                raise logfile.NoLog("There is no log yet." if where else "There is no such replica or operation.")
            return await view(request, where)
        except logfile.NoLog as error:
            return problem(404, str(error))
        except ValueError as error:
            return problem(400, str(error))

    return found


def problem(status: int, message: str) -> JsonResponse:
    """The answer to what cannot be given."""
    return JsonResponse({"level": "error", "message": message}, status=status)


async def download(request: HttpRequest, where: Place) -> HttpResponseBase:
    """All that is left of the log, byte for byte, as it is at this moment."""
    body = await long_read(Body, Path(where.path))
    response = StreamingHttpResponse(body, content_type="text/plain; charset=utf-8")
    response["Content-Length"] = str(body.size)
    response["Content-Disposition"] = f'attachment; filename="{plain(where.name)}.log"'
    return response


async def page(request: HttpRequest, where: Place) -> HttpResponseBase:
    """`?before=<offset>` or `?after=<offset>`, with `&lines=N[&floor=<offset>][&ceiling=<offset>]`: whole lines on one
    side of an offset, between floor and ceiling.

    `{start, end, text[, times][, breaks], oldest, newest}`; with `after`, `start` is where the line at the offset
    begins.
    """
    lines = asked(request, "lines", PAGE_LINES, 1, PAGE_MOST)
    back, on = asked(request, "before", -1, 0, MOST), asked(request, "after", -1, 0, MOST)
    if (back < 0) == (on < 0):
        raise ValueError("Give one of before=<offset> and after=<offset>.")
    return JsonResponse(await file_work(read_page, Path(where.path), back, on, lines, *bounds(request)))


async def search(request: HttpRequest, where: Place) -> HttpResponseBase:
    """`?q=<text>[&limit=N][&floor=<offset>][&ceiling=<offset>]`: where the text occurs between floor and ceiling, in
    either case of ASCII letters.

    `{count, matches: [[line, match, ms], ...], complete, until, oldest, newest}`: offsets of the newest `limit` matches
    and of their lines, oldest first, and when each line was read (null where nobody noted it). `complete` is false when
    it took too long: then nothing behind `until` was looked at.
    """
    text = request.GET.get("q", "")
    limit = asked(request, "limit", MATCHES, 1, MATCHES_MOST)
    if not text or len(text) > QUERY_CHARS:
        raise ValueError(f"Give q=<text> of at most {QUERY_CHARS} characters.")
    return JsonResponse(await long_read(run_search, Path(where.path), text, limit, *bounds(request)))


async def span(request: HttpRequest, where: Place) -> HttpResponseBase:
    """`?from=<ms>` and/or `?to=<ms>`: which part of the log was read in that time, both ends included.

    `{start, end, known}`: offsets of whole lines, `end` null without `to`. `known` is false where nobody noted times.
    """
    least, most = asked(request, "from", 0, 0, MOST), asked(request, "to", -1, 0, MOST)
    return JsonResponse(await long_read(run_span, Path(where.path), least, most))


def read_page(log: Path, back: int, on: int, lines: int, floor: int, ceiling: int | None) -> dict[str, Any]:
    """The answer of `page`."""
    with logfile.opened(log, settings.ROLLCALL.home) as segments:
        if back >= 0:
            start, data = logfile.before(segments, back, lines, floor)
        else:
            start, data = logfile.after(segments, max(floor, logfile.line_start(segments, on)), lines, ceiling)
        times = stamps(log, segments, start, start + len(data))
        return logfile.text_row(start, data, times) | {"oldest": segments[0].begin, "newest": segments[-1].end}


def run_search(log: Path, text: str, limit: int, floor: int, ceiling: int | None) -> dict[str, Any]:
    """The answer of `search`."""
    with logfile.opened(log, settings.ROLLCALL.home) as segments:
        found = logfile.search(segments, text, limit, SEARCH_SECONDS, floor, ceiling)
        lines = [line for line, _ in found.matches]
        times = stamps(log, segments, lines[0], lines[-1] + 1) if lines else []
        timed = [(line, place, stamp_of(times, line)) for line, place in found.matches]
        return asdict(found) | {"matches": timed, "oldest": segments[0].begin, "newest": segments[-1].end}


def run_span(log: Path, least: int, most: int) -> dict[str, Any]:
    """The answer of `span`."""
    with logfile.opened(log, settings.ROLLCALL.home) as segments:
        start = since(log, segments, least)
        if start is None:
            return {"start": segments[0].begin, "end": None, "known": False}
        end = since(log, segments, most + 1) if most >= 0 else None
        start = logfile.line_start(segments, start) if least else segments[0].begin
        return {"start": start, "end": None if end is None else logfile.line_end(segments, end), "known": True}


def bounds(request: HttpRequest) -> tuple[int, int | None]:
    """The part of the log that is asked for: `floor` and `ceiling`. Raises ValueError."""
    ceiling = asked(request, "ceiling", -1, 0, MOST)
    return asked(request, "floor", 0, 0, MOST), None if ceiling < 0 else ceiling


class Body:
    """The bytes of a log as they are now, for a response; its files stay open, so that rotation takes none away."""

    def __init__(self, log: Path) -> None:
        with logfile.opened(log, settings.ROLLCALL.home) as segments:
            self._pieces = [(os.dup(each.descriptor), each.size) for each in segments]
        self.size = sum(size for _, size in self._pieces)
        self.close = weakref.finalize(self, _close, [descriptor for descriptor, _ in self._pieces])

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for descriptor, size in self._pieces:
            position = 0
            while position < size:
                block = await long_read(os.pread, descriptor, min(BLOCK, size - position), position)
                if not block:
                    return
                position += len(block)
                yield block


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def asked(request: HttpRequest, name: str, default: int, least: int, most: int) -> int:
    """The number that the query gives. Raises ValueError."""
    text = request.GET.get(name)
    if text is None:
        return default
    found = whole(text, least, most)
    if found is None:
        raise ValueError(f"{name} must be a number between {least} and {most}.")
    return found


def plain(name: str) -> str:
    """The name, fit for a header: what is not a plain character becomes an underscore."""
    return "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "_" for char in name)


def _urls(prefix: str, which: str, name: str) -> list[URLPattern]:
    views = {"download": download, "page": page, "search": search, "span": span}
    return [
        path(f"logs/{prefix}/{each}", of_log(view), {"which": which}, name=f"{name}-{each}")  # type: ignore[arg-type]
        for each, view in views.items()
    ]


log_urls: list[URLPattern] = [
    path("session", session, name="session"),
    *_urls("replica/<int:id>/run", RUN, "run-log"),
    *_urls("replica/<int:id>/launch", LAUNCH, "launch-log"),
    *_urls("operation/<int:id>", OPERATION, "operation-log"),
]
