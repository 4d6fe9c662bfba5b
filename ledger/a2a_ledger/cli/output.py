"""What the verbs print: JSON lines, colour, and wire text made safe for a terminal.

Text that came from the wire is never printed as it is: control characters would let a peer repaint
the screen of the person who looks into its case.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import unicodedata
from contextlib import contextmanager
from datetime import UTC
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from a2a_ledger.cli.logs import NOTES
from a2a_ledger.commands import placed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from datetime import datetime

_HASH_SHOWN = len("sha256:") + 8
_ID_SHOWN = 8
_ESCAPED = frozenset(
    {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
)  # controls, formats (bidi!), surrogates, line separators


def clean(text: str) -> str:
    """Return the text with every character that could move a cursor or hide another one escaped."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(c) if unicodedata.category(c) in _ESCAPED else c for c in text)


def quoted(text: str, limit: int = 160) -> str:
    """Return wire text in quotes, cut to `limit` characters."""
    shown = clean(" ".join(text.split()))
    return f'"{shown}"' if len(shown) <= limit else f'"{shown[:limit]}…"'


def short_hash(value: str | None) -> str:
    """Return the beginning of a `sha256:` hash, for people."""
    if not value:
        return "-"
    return value if len(value) <= _HASH_SHOWN else value[:_HASH_SHOWN] + "…"


def short_id(value: str | None) -> str:
    """Return the beginning of a local task id; it works as an argument while it is unique."""
    return (value or "-")[:_ID_SHOWN]


def host(url: str | None) -> str:
    """Return the host (and port) of a peer's URL, which is what people call it."""
    if not url:
        return "-"
    try:
        return clean(urlsplit(url).netloc or url)
    except ValueError:
        return clean(url)


def counted(number: int, name: str) -> str:
    """Return a number and what it counts: `1 event`, `2 events`."""
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def clock(at: str | None, now: datetime, *, millis: bool = False) -> str:
    """Return the time of day of a record's time, UTC, behind its date where that is not today.

    Args:
        at: as it is recorded, RFC 3339 in UTC.
        now: tells which day is today, in UTC.
        millis: to the millisecond.
    """
    if not at or len(at) < len("2026-01-01T00:00:00") or at[10] != "T":
        return clean(at) if at else "-"
    time = at[11:23] + "Z" if millis and at[19] == "." else at[11:19]
    return clean(time if at[:10] == now.astimezone(UTC).date().isoformat() else f"{at[:10]} {time}")


def span(seconds: float) -> str:
    """Return a length of time as people say it: `4 h 12 min`."""
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{int(seconds)} s"
    if hours == 0:
        return f"{minutes} min"
    if hours < 48:  # noqa: PLR2004 - up to two days hours say more
        return f"{hours} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"


def print_json(value: object) -> None:
    """Print one JSON object on one line."""
    click.echo(json.dumps(value, ensure_ascii=True, sort_keys=False, separators=(", ", ": ")))


def note(text: str) -> None:
    """Print a line for the person, not for the pipe; where log lines are JSON it is one of them.

    A command in it names the ledger of this run.
    """
    text = placed(text, place())
    if NOTES.isEnabledFor(logging.INFO):
        NOTES.info("%s", text)
    else:
        click.echo(text, err=True)


def note_unchecked(what: str) -> None:
    """Say what an answer was told from that nobody held against the log, so that it does not read as if all was well.

    Args:
        what: was not checked.
    """
    note(f"{what} not checked for changes from outside: `a2a-ledger audit` checks all.")


def place() -> str | None:
    """Return the directory of the ledger that this run was given; None: none was."""
    context = click.get_current_context(silent=True)
    session: object = context.find_root().obj if context is not None else None
    named: object = getattr(session, "place", None)
    return named if isinstance(named, str) and named else None


def styled(text: str, **style: bool | str) -> str:
    """Return text with colour for a terminal; click takes it away when piped, and NO_COLOR (no-color.org) always."""
    if os.environ.get("NO_COLOR"):
        return text
    return click.style(text, **style)  # type: ignore[arg-type]  # the keyword set is click's


@contextmanager
def progress(label: str) -> Generator[Callable[[int, int], None]]:
    """Give a function (done, of) that shows how far long work is, on a terminal's stderr only."""
    if not sys.stderr.isatty():
        yield lambda _done, _of: None
        return
    from rich.console import Console  # noqa: PLC0415 - only a terminal pays for it
    from rich.progress import Progress  # noqa: PLC0415 - same

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the end of the basic plane
