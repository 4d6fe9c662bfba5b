"""Terms: what a profile sees in a card beside the contract. Pure.

docs/format.md section 7.3. The terms object has a form and a hash of its own, so that the contract hash stays the
same for everybody; it names its profile, so that terms of two profiles are never taken for each other.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_ledger.contract.card_json import (
    CardObject,
    CardValue,
    UnrepresentableError,
    canonical,
    json_text,
    printable,
    sha256_name,
)
from a2a_ledger.contract.dialect import member
from a2a_ledger.contract.normal_form import extension_term
from a2a_ledger.contract.requirements import as_set

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.card import Card
    from a2a_ledger.contract.profile import Profile

TERMS_FORM = "a2a-terms/1"
"""Name of the terms object's form; a hash never travels or is compared without it."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a profile adds to a card's contract: its value, RFC 8785 bytes and `sha256:<hex>`."""

    form: str
    value: CardObject
    canonical: bytes
    hash: str


def terms_of(card: Card, profile: Profile, activated: Sequence[str] = ()) -> Terms:
    """Return the terms that a profile sees in a card.

    Args:
        card: Any card; what is none has no terms.
        profile: Names the vendor members and extensions.
        activated: URIs of the extensions that the task activates; their params are terms too.
    """
    document = card.document or {}
    value: CardObject = {
        "extensions": _extensions(document, profile, activated),
        "form": TERMS_FORM,
        "paths": vendor_paths(document, profile),
        "profile": profile.hash,
    }
    data = canonical(value)
    return Terms(TERMS_FORM, value, data, sha256_name(data))


def _extensions(document: CardObject, profile: Profile, activated: Sequence[str]) -> list[CardValue]:
    listed = member(member(document, "capabilities"), "extensions")
    found: list[CardValue] = []
    for entry in listed if isinstance(listed, list) else []:
        uri = member(entry, "uri")
        if isinstance(uri, str) and (uri in activated or profile.names_extension(uri)):
            term = extension_term(entry, set())
            found.append({name: _representable(value) for name, value in term.items()})
    return as_set(found)


def vendor_paths(document: CardObject, profile: Profile) -> CardObject:
    """Return the values at a profile's patterns, by pointer.

    A list item with an `id` of its own is addressed by it rather than by its place, so that order does not matter.
    """
    found: CardObject = {}
    for pattern in profile.paths:
        _collect(document, [_member_name(step) for step in pattern.split("/")[1:]], "", found)
    return found


def _collect(value: CardValue, steps: list[str], pointer: str, found: CardObject) -> None:
    if not steps:
        if value is not None:
            found[printable(pointer)] = _representable(value)
        return
    children: list[tuple[str, CardValue]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(zip(item_names(value), value, strict=True))
    for name, child in children:
        if steps[0] in {"*", name}:
            _collect(child, steps[1:], f"{pointer}/{pointer_step(name)}", found)


def item_names(items: Sequence[CardValue]) -> list[str]:
    """Return how the items of a list are addressed in terms: by id where that is a text of one item, else by place.

    Where an id reads like somebody's place all items are addressed by place: no term hides another.
    """
    ids = [member(item, "id") for item in items]
    places = [str(place) for place in range(len(items))]
    times = Counter(one for one in ids if isinstance(one, str))
    names = [one if isinstance(one, str) and times[one] == 1 else place for one, place in zip(ids, places, strict=True)]
    return names if len(set(names)) == len(names) else places


def _member_name(step: str) -> str:
    """Return what one reference token of a JSON pointer names (RFC 6901 section 4)."""
    return step.replace("~1", "/").replace("~0", "~")


def pointer_step(name: str) -> str:
    """Return one reference token of a JSON pointer (RFC 6901 section 3)."""
    return name.replace("~", "~0").replace("/", "~1")


def _representable(value: CardValue) -> CardValue:
    """Return a value, or its JSON text in an object of its own where RFC 8785 cannot express it.

    Prices in the smallest unit of a currency are often beyond 2^53; they are terms all the same.
    """
    try:
        canonical(value)
    except UnrepresentableError:
        return {"unrepresentable": json_text(value)}
    return value
