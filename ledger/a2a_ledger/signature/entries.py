"""Where a card carries signatures, and in which shape. Pure; docs/format.md section 7.6.

A2A has one shape: `signatures`, a list of `{"protected", "signature", "header"}` (RFC 7515 section 7.2.2
with a detached payload). Cards are met that carry something else, or carry it elsewhere. Nothing here says
what such a thing covers, so it is named and left undecided.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from a2a_ledger.contract.dialect import member

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.contract.card_json import CardObject, CardValue

_COMPACT: Final = re.compile(r"[A-Za-z0-9_-]*\.([A-Za-z0-9_-]*)\.[A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Entry:
    """One signature as it stands in a card: the detached JWS, or else the name of its shape.

    Attributes:
        protected: The encoded protected header.
        signature: The encoded signature.
        header: The unprotected header, as it came.
        kid: A key id that an entry of another shape names.
        shape: "" for the one shape of A2A, else what it is instead.
    """

    protected: str = ""
    signature: str = ""
    header: CardValue = None
    kid: str | None = None
    shape: str = ""


def entries_of(document: CardObject) -> list[Entry]:
    """Return the signatures of a card in its order; empty when it carries none of any shape."""
    listed = document.get("signatures")
    if listed not in (None, [], {}, ""):
        return [_entry(one) for one in listed] if isinstance(listed, list) else [_entry(listed)]
    for found, shape in _elsewhere(document):
        return [Entry(kid=_named(found), shape=shape)]
    return []


def _entry(value: CardValue) -> Entry:
    if isinstance(value, str):
        return Entry(shape=f"a text ({compact})" if (compact := _compact(value)) else "a text that is no JWS")
    if not isinstance(value, dict):
        return Entry(shape=f"a {type(value).__name__} where A2A has an object")
    protected, signature = value.get("protected"), value.get("signature")
    if isinstance(protected, str) and isinstance(signature, str) and value.get("payload") is None:
        return Entry(protected, signature, value.get("header"))
    return Entry(kid=_named(value), shape=_shape(value))


def _shape(value: CardObject) -> str:
    for name, inner in value.items():
        if isinstance(inner, str) and (compact := _compact(inner)):
            return f"an object with {compact} in `{name}`"
    if value.get("payload") is not None:
        return "a JWS that brings a payload of its own"
    return f"an object with {', '.join(sorted(value)[:6]) or 'no members'}, not `protected` and `signature`"


def _compact(text: str) -> str:
    """Name a compact JWS (RFC 7515 section 7.1), or return "" when the text is none."""
    found = _COMPACT.fullmatch(text)
    if found is None:
        return ""
    return "a compact JWS with its payload" if found[1] else "a compact JWS with a detached payload"


def _named(value: CardValue) -> str | None:
    name = member(value, "kid", "keyId")
    return name if isinstance(name, str) else None


def _elsewhere(document: CardObject) -> Iterator[tuple[CardValue, str]]:
    """Find what looks like a signature of the card outside of `signatures`."""
    for name in ("signature", "proof", "jws"):
        value = document.get(name)
        if (isinstance(value, str) and value) or (isinstance(value, (dict, list)) and value):
            yield value, f"a member `{name}` of the card"
    pending: list[tuple[str, CardValue]] = [("", document)]
    while pending:
        where, value = pending.pop()
        if isinstance(value, dict):
            if isinstance(value.get("protected"), str) and isinstance(value.get("signature"), str):
                yield value, f"a JWS inside {where}"
            pending += [(f"{where}/{name}", inner) for name, inner in reversed(value.items())]
        elif isinstance(value, list):
            pending += [(f"{where}/{number}", inner) for number, inner in reversed(list(enumerate(value)))]
