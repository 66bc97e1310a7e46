"""One line per log record; only a traceback takes more."""

import logging


class LineFormatter(logging.Formatter):
    """`LEVEL logger: message`, the message's own line breaks shown as \\n, so that no text can pass for a record."""

    def __init__(self) -> None:
        super().__init__("%(levelname)-7s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The record without its traceback."""
        record.message = record.message.replace("\r", "\\r").replace("\n", "\\n")
        return super().formatMessage(record)
