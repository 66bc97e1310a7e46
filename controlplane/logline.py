"""One line per log record; only a traceback takes more."""

import logging

from django.core.exceptions import BadRequest, PermissionDenied, SuspiciousOperation
from django.http.multipartparser import MultiPartParserError

REFUSED = (PermissionDenied, BadRequest, SuspiciousOperation, MultiPartParserError)


class LineFormatter(logging.Formatter):
    """`LEVEL logger: message`, the message's own line breaks shown as \\n, so that no text can pass for a record."""

    def __init__(self) -> None:
        super().__init__("%(levelname)-7s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The record without its traceback."""
        record.message = record.message.replace("\r", "\\r").replace("\n", "\\n")
        return super().formatMessage(record)


def without_refusal(record: logging.LogRecord) -> bool:
    """True; and of a request that somebody was refused, the reason in place of a traceback: nothing is broken."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, REFUSED):
        record.msg, record.args, record.exc_info = f"{record.getMessage()} ({error})", (), None
    return True


def told_elsewhere(record: logging.LogRecord) -> bool:
    """False for what Django says of a `/readyz` that answers 503: that is an answer, and each part's log says why."""
    request = getattr(record, "request", None)
    return getattr(record, "status_code", None) != 503 or getattr(request, "path", "") != "/readyz"
