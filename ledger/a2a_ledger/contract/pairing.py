"""Which item of one list is which item of another: by what the items are, not by their places alone. Pure.

So one inserted skill, extension or interface is one change, and a rename is one change at one place.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from a2a_ledger.address import normal_url, wire_url
from a2a_ledger.contract.card_json import CardValue, comparable
from a2a_ledger.contract.dialect import member
from a2a_ledger.contract.normal_form import major_minor

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    Key: TypeAlias = Callable[[CardValue], Hashable | None]


class Pair(NamedTuple):
    """Places of one item in the old and in the new list; None where it is not in that list."""

    old: int | None
    new: int | None


def pair_items(old: Sequence[CardValue], new: Sequence[CardValue], keys: Iterable[Key]) -> list[Pair]:
    """Pair two lists' items: equal ones first, then by each key in turn, then by place; the rest stands alone.

    Args:
        old: One list.
        new: The other.
        keys: From the most telling to the least; an item whose key is None is left to the next one.
    """
    mine, theirs = dict(enumerate(old)), dict(enumerate(new))
    found: list[Pair] = []
    for key in (comparable, *keys):
        waiting: dict[Hashable, deque[int]] = {}
        for place, item in mine.items():
            waiting.setdefault(key(item), deque()).append(place)
        for place, item in list(theirs.items()):
            name = key(item)
            if name is not None and waiting.get(name):
                before = waiting[name].popleft()
                found.append(Pair(before, place))
                del mine[before], theirs[place]
    found += [
        Pair(place if place in mine else None, place if place in theirs else None)
        for place in sorted(mine.keys() | theirs.keys())
    ]
    return sorted(found, key=lambda pair: (pair.new is None, pair.new if pair.new is not None else pair.old))


def in_order(pairs: Iterable[Pair]) -> bool:
    """Say whether the items that both lists have follow each other in both alike."""
    places = [pair.old for pair in pairs if pair.old is not None and pair.new is not None]
    return places == sorted(places)


def named_by(key: str) -> list[Key]:
    """Return the keys of a list whose items are known by one member.

    A skill that has another id and is otherwise the same was renamed. An extension is its URI: another URI is another
    extension, whatever else stands beside it.
    """
    by_name: Key = lambda item: _text_of(member(item, key))  # noqa: E731 - one of a list of keys
    return [by_name, lambda item: _rest(item, key)] if key == "id" else [by_name]


def replaced(old: CardValue, new: CardValue, key: str) -> bool:
    """Say whether two paired items are two different things at one place, rather than one that changed."""
    by_name, *by_rest = named_by(key)
    both = old is not None and new is not None
    return both and by_name(old) != by_name(new) and not any(rest(old) == rest(new) is not None for rest in by_rest)


def same_but_for(old: CardValue, new: CardValue, key: str) -> bool:
    """Say whether two items differ in nothing but one member."""
    return _rest(old, key) == _rest(new, key) is not None


def _rest(item: CardValue, key: str) -> bytes | None:
    if not isinstance(item, dict) or len(item) < 2:  # noqa: PLR2004 - a name alone is nothing to know it by
        return None
    return comparable({name: value for name, value in item.items() if name != key})


def name_of(item: CardValue, key: str) -> str:
    """Return the name under which the contract knows a skill or an extension; "" for one that has none."""
    return _text_of(member(item, key)) or ""


def _text_of(value: CardValue) -> str | None:
    return value if isinstance(value, str) or value is None else comparable(value).decode()


class Endpoint(NamedTuple):
    """What an interface is, without its version."""

    binding: str
    url: str
    tenant: str


def endpoint_of(item: CardValue) -> Endpoint:
    """Return what an interface of a card is, whatever it is written like; a text is its url."""
    raw: CardValue = item if isinstance(item, dict) else {"url": item}
    return Endpoint(
        _text_of(member(raw, "protocolBinding", "transport")) or "",
        normal_url(_text_of(member(raw, "url")) or ""),
        _text_of(member(raw, "tenant")) or "",
    )


INTERFACE_KEYS: list[Key] = [
    lambda item: (endpoint_of(item), major_minor(_text_of(member(item, "protocolVersion")))),
    endpoint_of,
    lambda item: endpoint_of(item)[:2],
    lambda item: (endpoint_of(item).binding, loose_url(endpoint_of(item).url)),
    lambda item: endpoint_of(item).url,
    lambda item: endpoint_of(item).binding,
]
"""Interfaces are known by what they are: binding, url and tenant, the near miss last."""


def loose_url(url: str) -> str:
    """Return a url without what people mistype: letter case, and slashes at the end."""
    return wire_url(url).rstrip("/").casefold()
