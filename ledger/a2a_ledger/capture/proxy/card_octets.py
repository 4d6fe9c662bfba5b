"""A card in the octets of a JSON text: its urls replaced, its signatures left out, and no other octet touched. Pure.

Numbers, escapes and spaces stay as the agent wrote them: a client reads in the rewritten card what it read in the
other one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.capture.json_slice import spans, text_of, value_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.capture.json_slice import Span

    ToOurs = Callable[[str], str | None]

_LISTS = ("supportedInterfaces", "additionalInterfaces", "supported_interfaces", "additional_interfaces")
_MARK = b"\xef\xbb\xbf"


class Rewritten(NamedTuple):
    """What was made of a text."""

    octets: bytes
    elsewhere: list[str]
    """The urls that stayed as they are."""
    was_signed: bool


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


def rewritten_card(body: bytes, to_ours: ToOurs, *, within: str | None = None) -> Rewritten | None:
    """Return a text with another card in it; None where it holds none.

    Args:
        body: a JSON object.
        to_ours: gives the url in the place of one of the agent's; None: it stays.
        within: the member of it that is the card; None: it is the card itself.
    """
    text = text_of(body)
    start = value_start(text)
    if within is not None:
        found = [span for span in spans(text, start) if span.name == within]
        if len(found) != 1:
            return None
        start = found[0].start
    members = list(spans(text, start))
    if text[start : start + 1] != "{" or not members:
        return None
    elsewhere, edits = list[str](), list[_Edit]()
    for url in _urls(text, members):
        ours = to_ours(str(url.value))
        if ours is None:
            elsewhere.append(str(url.value))
        else:
            edits.append(_Edit(url.start, url.end, json.dumps(ours)))
    dropped = [n for n, member in enumerate(members) if member.name == "signatures"]
    edits += [_without(members, n) for n in dropped]
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    mark = _MARK if body.startswith(_MARK) else b""
    return Rewritten(mark + text.encode(), elsewhere, bool(dropped))


def _urls(text: str, members: list[Span]) -> Iterator[Span]:
    for member in members:
        if member.name == "url" and text[member.start] == '"':
            yield member
        elif member.name in _LISTS and isinstance(member.value, list):
            for item in spans(text, member.start):
                if isinstance(item.value, dict):
                    inside = spans(text, item.start)
                    yield from (one for one in inside if one.name == "url" and text[one.start] == '"')


def _without(members: list[Span], n: int) -> _Edit:
    """Return the cut that takes one member out, with one of the commas beside it."""
    if n + 1 < len(members):
        return _Edit(members[n].begin, members[n + 1].begin, "")
    return _Edit(members[n - 1].end if n else members[n].begin, members[n].end, "")
