"""Reads JSON objects that people write: every member is asked for by name, and what nobody asked for is refused."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_ledger.events import Json, JsonObject

T = TypeVar("T")

_RFC3339 = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d+))?([Zz]|[+-]\d{2}:\d{2})",
    re.ASCII,
)
_MAX_SECONDS = 10**10
"""Longest time span that is read, about three centuries: beyond it a clock cannot be reckoned with."""


class MemberReader:
    """Reads one JSON object member by member, notes what it had to assume, and refuses what it does not know.

    Args:
        value: what should be an object.
        path: where it stands, dotted; "" at the root.
        assumed: collects the dotted paths of members that were missing and had a default.
        subject: what is read, for messages.

    Every method raises UsageError naming the member, what was expected and what was found.
    """

    def __init__(self, value: Json, path: str, assumed: list[str], *, subject: str) -> None:
        self._path = path
        self._subject = subject
        self.assumed = assumed
        if not isinstance(value, dict):
            raise self._wrong("", "an object", value)
        self._left: JsonObject = dict(value)

    def has(self, name: str) -> bool:
        """Say whether the member is there and not read yet."""
        return name in self._left

    def done(self) -> None:
        """Refuse what was not asked for."""
        if self._left:
            name = min(self._left)
            where = self._at(name)
            message = f"{self._subject}: unknown member {where}; docs/format.md lists the members"
            raise UsageError(message)

    def done_with(self, made: T) -> T:
        """Call `done` and return what was made."""
        self.done()
        return made

    def optional(self, name: str, build: Callable[[MemberReader], T]) -> T | None:
        """Read an object or null; missing reads as null."""
        if not self.has(name):
            self.assumed.append(self._at(name))
            return None
        value = self._left.pop(name)
        return None if value is None else build(self._reader(value, name, self.assumed))

    def inner(self, name: str) -> MemberReader:
        """Read an object; a missing one is one assumption, not one for each of its members."""
        if self.has(name):
            return self._reader(self._left.pop(name), name, self.assumed)
        self.assumed.append(self._at(name))
        return self._reader({}, name, [])

    def items(self, name: str) -> list[MemberReader]:
        """Read a list of objects; missing reads as empty."""
        value = self._take(name, [])
        if not isinstance(value, list):
            raise self._wrong(name, "a list", value)
        return [self._reader(item, f"{name}[{at}]", self.assumed) for at, item in enumerate(value)]

    def texts(self, name: str) -> tuple[str, ...]:
        """Read a list of texts; missing reads as empty."""
        value = self._take(name, [])
        if not isinstance(value, list):
            raise self._wrong(name, "a list of texts", value)
        return tuple(self._text(f"{name}[{at}]", item) for at, item in enumerate(value))

    def text(self, name: str, default: str | None = None) -> str:
        """Read a text."""
        return self._text(name, self._take(name, default))

    def text_or_null(self, name: str) -> str | None:
        """Read a text or null; missing reads as null."""
        value = self._take(name, None, nullable=True)
        return None if value is None else self._text(name, value)

    def choice(self, name: str, allowed: Sequence[str], default: str | None = None) -> str:
        """Read one of a closed list of texts."""
        value = self._take(name, default)
        if not isinstance(value, str) or value not in allowed:
            raise self._wrong(name, f"one of {', '.join(allowed)}", value)
        return value

    def boolean(self, name: str, *, default: bool | None = None) -> bool:
        """Read true or false."""
        value = self._take(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def seconds(self, name: str, default: int) -> int:
        """Read a whole number of seconds."""
        return self._seconds(name, self._take(name, default))

    def seconds_or_null(self, name: str) -> int | None:
        """Read a whole number of seconds or null; missing reads as null."""
        value = self._take(name, None, nullable=True)
        return None if value is None else self._seconds(name, value)

    def time(self, name: str, default: datetime | None = None) -> datetime:
        """Read an RFC 3339 time."""
        if not self.has(name) and default is not None:
            self.assumed.append(self._at(name))
            return default
        return self._time(name, self._take(name, None))

    def _at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path and name else self._path or name

    def _take(self, name: str, default: Json, *, nullable: bool = False) -> Json:
        if self.has(name):
            return self._left.pop(name)
        if default is None and not nullable:
            message = f"{self._subject}: {self._at(name)} is missing and cannot be assumed; state it"
            raise UsageError(message)
        self.assumed.append(self._at(name))
        return default

    def _reader(self, value: Json, name: str, assumed: list[str]) -> MemberReader:
        return MemberReader(value, self._at(name), assumed, subject=self._subject)

    def _text(self, name: str, value: Json) -> str:
        if not isinstance(value, str):
            raise self._wrong(name, "a text", value)
        return value

    def _seconds(self, name: str, value: Json) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_SECONDS:
            raise self._wrong(name, "whole seconds, 0 or more", value)
        return value

    def _time(self, name: str, value: Json) -> datetime:
        made = rfc3339(value) if isinstance(value, str) else None
        if made is None:
            raise self._wrong(name, "an RFC 3339 time with its zone, such as 2026-08-18T12:00:00Z", value)
        return made

    def _wrong(self, name: str, expected: str, found: Json) -> UsageError:
        shown = "null" if found is None else f"{type(found).__name__} {found!r:.80}"
        where = f"{self._at(name)}: " if name or self._path else ""
        return UsageError(f"{self._subject}: {where}expected {expected}, found {shown}")


def rfc3339(text: str) -> datetime | None:
    """Read an RFC 3339 time as UTC; digits behind the microsecond are cut; None if it is none."""
    found = _RFC3339.fullmatch(text)
    if found is None:
        return None
    day, clock, fraction, zone = found.groups()
    zone = "+00:00" if zone in "Zz" else zone
    try:
        return datetime.fromisoformat(f"{day}T{clock}.{(fraction or '0')[:6]:0<6}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
