"""Two JSON documents of a card, laid side by side: the paths that differ. Pure.

Lists that are sets (skills, extensions, modes, tags, requirements) are compared as sets, so that order which
means nothing is no change. Items of every list are paired by what they are, before they are by their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from a2a_ledger.contract.card_json import CardObject, CardValue, comparable
from a2a_ledger.contract.dialect import camel
from a2a_ledger.contract.pairing import INTERFACE_KEYS, in_order, named_by, pair_items, replaced
from a2a_ledger.contract.terms import item_names, pointer_step

if TYPE_CHECKING:
    from collections.abc import Sequence

_T = TypeVar("_T")

_KEYED: dict[tuple[str, ...], str] = {("skills",): "id", ("capabilities", "extensions"): "uri"}
_INTERFACES = frozenset({("supportedInterfaces",), ("additionalInterfaces",)})
_SECURITY = frozenset({"security", "securityRequirements"})
# Lists of A2A whose order says nothing, by their last step.
_SETS = _SECURITY | {
    *("skills", "tags", "examples", "inputModes", "outputModes", "defaultInputModes", "defaultOutputModes"),
    *("schemes", "scopes", "authentication", "signatures"),
}


class Change(NamedTuple):
    """One path at which two documents differ.

    Attributes:
        pointer: JSON pointer into the new document, or into the old one where the new has nothing.
        addresses: The same path in the old and in the new card, with list items addressed as in the terms of a profile.
        names: The steps of the path, as they are spelled.
        items: The list item on the path, old and new; the innermost one. None when there is no list on the path.
        entry: The same, the outermost one: the skill, extension or interface that the path lies in.
        old: The old value; None when there is none.
        new: The new value; None when there is none.
        reordered: The values are lists in another order; what changed inside an item has an entry of its own.
    """

    pointer: str
    addresses: tuple[str, str]
    names: tuple[str, ...]
    items: tuple[CardValue, CardValue] | None
    entry: tuple[CardValue, CardValue] | None
    old: CardValue
    new: CardValue
    reordered: bool = False


class _Path(NamedTuple):
    pointer: str = ""
    addresses: tuple[str, str] = ("", "")
    names: tuple[str, ...] = ()
    items: tuple[CardValue, CardValue] | None = None
    entry: tuple[CardValue, CardValue] | None = None

    def member(self, name: str) -> _Path:
        step = pointer_step(name)
        before, after = self.addresses
        return self._replace(
            pointer=f"{self.pointer}/{step}",
            addresses=(f"{before}/{step}", f"{after}/{step}"),
            names=(*self.names, name),
        )

    def item(self, place: str, addresses: tuple[str, str], items: tuple[CardValue, CardValue]) -> _Path:
        before, after = map(pointer_step, addresses)
        return _Path(
            f"{self.pointer}/{place}",
            (f"{self.addresses[0]}/{before}", f"{self.addresses[1]}/{after}"),
            (*self.names, place),
            items,
            self.entry or items,
        )


def changes_between(old: CardObject, new: CardObject) -> list[Change]:
    """Return the paths at which two documents differ, in the order of their pointers."""
    found: list[Change] = []
    _walk(old, new, _Path(), found)
    return sorted(found, key=lambda change: change.pointer)


def _walk(old: CardValue, new: CardValue, path: _Path, found: list[Change]) -> None:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in {**old, **new}:
            _walk(old.get(name), new.get(name), path.member(name), found)
    elif isinstance(old, list) and isinstance(new, list):
        _walk_lists(old, new, path, found)
    elif comparable(old) != comparable(new):
        found.append(Change(*path, old, new))


def _walk_lists(old: list[CardValue], new: list[CardValue], path: _Path, found: list[Change]) -> None:
    names = tuple(map(camel, path.names))
    key = _KEYED.get(names)
    a_set = key is not None or (bool(names) and names[-1] in _SETS)
    mine, theirs = list(map(comparable, old)), list(map(comparable, new))
    if mine == theirs or (a_set and sorted(mine) == sorted(theirs)):
        return
    structured = any(isinstance(item, dict | list) for item in (*old, *new))
    if (names and names[-1] in _SECURITY) or (names not in _INTERFACES and not structured):
        found.append(Change(*path, list(old), list(new), reordered=sorted(mine) == sorted(theirs)))
        return
    keys = named_by(key) if key else INTERFACE_KEYS if names in _INTERFACES else named_by("id")[:1]
    pairs = pair_items(old, new, keys)
    if not a_set and not in_order(pairs):
        found.append(Change(*path, list(old), list(new), reordered=True))
    before, after = item_names(old), item_names(new)
    for pair in pairs:
        addresses = _both(_at(before, pair.old), _at(after, pair.new))
        items = _at(old, pair.old), _at(new, pair.new)
        place = pair.old if pair.new is None else pair.new
        step = path.item(str(place), addresses, items)
        if key and replaced(*items, key):
            found.append(Change(*step, *items))
        else:
            _walk(*items, step, found)


def _at(items: Sequence[_T], place: int | None) -> _T | None:
    """Return the item at a place; None for no place."""
    return None if place is None else items[place]


def _both(old: str | None, new: str | None) -> tuple[str, str]:
    """Return two addresses; of what one card alone has, its own in both."""
    return (old if old is not None else new or "", new if new is not None else old or "")
