"""What a file that is imported holds, whatever its format: entries, each read when its turn comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.capture.jsonl_line import ExchangeLine
    from a2a_ledger.wire import Headers


@dataclass(frozen=True, slots=True)
class Lone:
    """One leg without the other: a message that somebody kept by itself."""

    headers: Headers
    body: bytes
    status: int | None = None
    is_request: bool = False
    is_stream: bool = False
    """The body is a stream of events."""
    whole: bool = True
    """False: not all of the body is there, or it cannot be read."""
    coded: bool = False
    """The body has a content coding that was not taken off."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a task store held: a Task as its exporter spells it, never seen on a wire."""

    body: bytes
    """As it stands in the file."""
    task: bytes
    """The same as the JSON of a Task, where the file spells it as a row."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a file."""

    number: int
    """From 1, in the order of the file."""
    raw: bytes
    """As it stands in the file: what is recorded, withheld, if it cannot be read."""
    done: int
    """Octets of the file up to its end, for a display of progress."""
    read: Callable[[bytes], ExchangeLine | Lone | Snapshot]
    """Reads `raw`; raises FormatError if it cannot."""
    part: str = "whole"
    """`asked` or `answered` of an exchange during which others were begun; else `whole`."""
