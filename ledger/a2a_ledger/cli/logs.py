"""Log lines of one run of the command line: on standard error, without credentials, for people or as JSON.

What the package logs goes through the standard `logging` module; this says where it goes. In JSON the notes that verbs
give beside their results, and the error that ends a run, are log lines too: a collector finds nothing else there.
"""

from __future__ import annotations

import logging
import sys

NOTES = logging.getLogger("a2a_ledger.cli.notes")
"""Takes notes and last errors where they are log lines; else they are printed."""


class _ToStderr(logging.Handler):
    """Writes to standard error as it is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        try:
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        except Exception:  # noqa: BLE001 - as the library's handlers do
            self.handleError(record)


class PlainText(logging.Formatter):
    """The message, and below it the traceback if there is one, without credentials."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record."""
        from a2a_ledger.capture.log_text import without_credentials  # noqa: PLC0415 - few runs log anything

        return without_credentials(super().format(record))


class JsonLines(logging.Formatter):
    """One JSON object a line: `at`, `level`, `logger`, `message`, and `exception` if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        import json  # noqa: PLC0415 - help imports this module and needs none of it
        from datetime import UTC, datetime  # noqa: PLC0415 - same

        from a2a_ledger.capture.log_text import without_credentials  # noqa: PLC0415 - few runs log anything

        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_credentials(record.getMessage()),
        }
        if record.exc_info:
            line["exception"] = without_credentials(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=True)


def start_logging(*, as_json: bool) -> None:
    """Log to standard error until `stop_logging`."""
    stop_logging()
    handler = _ToStderr(logging.WARNING if not as_json else logging.INFO)
    handler.setFormatter(JsonLines() if as_json else PlainText())
    logging.getLogger().addHandler(handler)
    NOTES.setLevel(logging.INFO if as_json else logging.NOTSET)


def stop_logging() -> None:
    """Leave the process's logging as it was before."""
    root = logging.getLogger()
    for handler in root.handlers:
        if isinstance(handler, _ToStderr):
            root.removeHandler(handler)
    NOTES.setLevel(logging.NOTSET)
