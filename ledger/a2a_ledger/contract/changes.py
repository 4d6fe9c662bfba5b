"""Two JSON documents of a card, laid side by side: the paths that differ. Pure.

Lists that are sets (skills by id, extensions by uri, modes, tags, requirements) are compared as sets, so
that order which means nothing is no change; other lists are compared place by place.
"""

from __future__ import annotations

from typing import NamedTuple

from a2a_ledger.contract.card_json import CardObject, CardValue, comparable
from a2a_ledger.contract.dialect import camel, member
from a2a_ledger.contract.profile import item_name, pointer_step

_KEYED: dict[tuple[str, ...], str] = {("skills",): "id", ("capabilities", "extensions"): "uri"}
_ORDERED = frozenset({"supportedInterfaces", "additionalInterfaces"})


class Change(NamedTuple):
    """One path at which two documents differ.

    Attributes:
        pointer: JSON pointer into the new document, or into the old one where the new has nothing.
        address: The same path with list items addressed by id, as the terms of a profile do.
        names: The steps of the path; a skill by its id and an extension by its uri, where those are unique.
        by_id: Whether a list item on the path was found by its id or uri.
        old: The old value; None when there is none.
        new: The new value; None when there is none.
    """

    pointer: str
    address: str
    names: tuple[str, ...]
    by_id: bool
    old: CardValue
    new: CardValue


class _Path(NamedTuple):
    pointer: str = ""
    address: str = ""
    names: tuple[str, ...] = ()
    by_id: bool = False

    def down(self, step: str, address: str | None = None, name: str | None = None) -> _Path:
        return _Path(
            f"{self.pointer}/{pointer_step(step)}",
            f"{self.address}/{pointer_step(step if address is None else address)}",
            (*self.names, step if name is None else name),
            self.by_id or name is not None,
        )


def changes_between(old: CardObject, new: CardObject) -> list[Change]:
    """Return the paths at which two documents differ, in the order of their pointers."""
    found: list[Change] = []
    _walk(old, new, _Path(), found)
    return sorted(found, key=lambda change: change.pointer)


def _walk(old: CardValue, new: CardValue, path: _Path, found: list[Change]) -> None:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in {**old, **new}:
            _walk(old.get(name), new.get(name), path.down(name), found)
    elif isinstance(old, list) and isinstance(new, list):
        _walk_lists(old, new, path, found)
    elif comparable(old) != comparable(new):
        found.append(Change(*path, old, new))


def _walk_lists(old: list[CardValue], new: list[CardValue], path: _Path, found: list[Change]) -> None:
    names = tuple(camel(name) for name in path.names)
    key = _KEYED.get(names)
    before, after = (_keyed(old, key), _keyed(new, key)) if key else (None, None)
    if before is not None and after is not None:
        for name in {**before, **after}:
            place, item = after.get(name) or before[name]
            step = path.down(str(place), item_name(item, place), name)
            _walk(before.get(name, (0, None))[1], after.get(name, (0, None))[1], step, found)
        return
    mine, theirs = list(map(comparable, old)), list(map(comparable, new))
    if mine == theirs or (sorted(mine) == sorted(theirs) and not _ORDERED & set(names)):
        return
    if key is None and not any(isinstance(item, dict | list) for item in (*old, *new)):
        found.append(Change(*path, list(old), list(new)))
        return
    if names and names[-1] in {"security", "securityRequirements"}:
        found.append(Change(*path, list(old), list(new)))
        return
    for place in range(max(len(old), len(new))):
        before_item = old[place] if place < len(old) else None
        after_item = new[place] if place < len(new) else None
        address = item_name(before_item if after_item is None else after_item, place)
        _walk(before_item, after_item, path.down(str(place), address), found)


def _keyed(items: list[CardValue], key: str) -> dict[str, tuple[int, CardValue]] | None:
    """Return list items by their key, with their place; None when the keys are not unique texts."""
    found: dict[str, tuple[int, CardValue]] = {}
    for place, item in enumerate(items):
        name = member(item, key)
        if not isinstance(name, str) or name in found:
            return None
        found[name] = (place, item)
    return found
