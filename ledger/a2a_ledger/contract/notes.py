"""What a change of a card is besides a change: another spelling of the same, or a near miss. Pure.

docs/format.md section 7.5 lists the notes. A note never changes a class: a slash that came to the end of a url is
contract, and the note says that it is a slash.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, cast

from a2a_ledger.address import url_difference
from a2a_ledger.contract.card_json import CardObject, CardValue, comparable
from a2a_ledger.contract.dialect import member
from a2a_ledger.contract.normal_form import major_minor
from a2a_ledger.contract.pairing import Endpoint, endpoint_of, same_but_for
from a2a_ledger.contract.respelled import spelled

if TYPE_CHECKING:
    from a2a_ledger.contract.changes import Change
    from a2a_ledger.contract.normal_form import Contract
    from a2a_ledger.contract.respelled import Respelled
    from a2a_ledger.events import Interface

_INTERFACES = frozenset({"url", "preferredTransport", "additionalInterfaces", "protocolVersion", "supportedInterfaces"})


class Notes:
    """The notes on the changes between two contracts."""

    def __init__(self, old: Contract, new: Contract, respelled: Respelled) -> None:
        self._respelled = respelled
        before, after = old.interfaces, new.interfaces
        self._before, self._after = _versions(before), _versions(after)
        changed = before != after
        self._reordered = changed and sorted(map(_bytes, before)) == sorted(map(_bytes, after))
        self._versions_alone = changed and list(self._before) == list(self._after)
        schemes = [cast("CardObject", side.value["schemes"]) for side in (old, new)]
        self._alone = [_only_in(*schemes), _only_in(*schemes[::-1])]
        self._renamed = set(self._alone[0].values()) & set(self._alone[1].values())

    def of(self, change: Change, *, same_terms: bool) -> str:
        """Return the note on one change; "" for a plain one.

        Args:
            change: The change.
            same_terms: It stands where terms are read from, and changes none of them.
        """
        if same_terms and self._respelled.has(change):
            return "spelling"
        root, *rest = map(spelled, change.names)
        note = "order" if change.reordered else ""
        if root in _INTERFACES:
            note = note or self._interface(change, rest[-1] if rest else root)
        elif root == "securitySchemes" and len(rest) == 1:
            note = note or self._scheme(change)
        note = note or _of_texts(change, rest)
        if same_terms and not note:
            return "default" if change.old is None or change.new is None else "spelling"
        return note

    def _interface(self, change: Change, leaf: str) -> str:
        """Return the note on a change among the members that say where and how to call."""
        both = change.old is not None and change.new is not None
        if leaf == "protocolVersion" and isinstance(change.old, str) and isinstance(change.new, str):
            if major_minor(change.old) == major_minor(change.new):
                return "patch-version"
        elif both and not isinstance(change.old, dict | list):
            return "order" if self._reordered else ""
        if change.items is not None:
            return self._listed(*change.items, whole=change.items == (change.old, change.new), leaf=leaf)
        return "version-only" if self._versions_alone else ""

    def _listed(self, old: CardValue, new: CardValue, *, whole: bool, leaf: str) -> str:
        """Return the note on an interface that came, went, or states another version."""
        if old is not None and new is not None:
            return "version-only" if leaf == "protocolVersion" and endpoint_of(old) == endpoint_of(new) else ""
        endpoint = endpoint_of(new if old is None else old)
        here, there = (self._after, self._before) if old is None else (self._before, self._after)
        if not whole or endpoint not in here or endpoint not in there:
            return ""
        return "repeat" if here[endpoint] <= there[endpoint] else "version-only"

    def _scheme(self, change: Change) -> str:
        """Return the note on a scheme that came or went: the same one may stand there under another name."""
        if change.old is not None and change.new is not None:
            return ""
        definition = self._alone[0 if change.new is None else 1].get(change.names[1])
        return "renamed" if definition in self._renamed else ""


def _only_in(schemes: CardObject, other: CardObject) -> dict[str, bytes]:
    """Return the definitions of the schemes whose names one table alone has."""
    return {name: comparable(scheme) for name, scheme in schemes.items() if name not in other}


def _versions(interfaces: list[Interface]) -> dict[Endpoint, set[str | None]]:
    """Return the versions that each endpoint is offered in, in the card's order."""
    found: dict[Endpoint, set[str | None]] = {}
    for one in interfaces:
        found.setdefault(Endpoint(one["binding"], one["url"], one["tenant"]), set()).add(one["version"])
    return found


def _bytes(interface: Interface) -> bytes:
    return comparable(cast("CardObject", interface))


def _of_texts(change: Change, rest: list[str]) -> str:
    """Return the note on a text in the place of another one, and on an extension with another uri."""
    old, new = change.old, change.new
    if isinstance(old, str) and isinstance(new, str):
        note = _text_note(old, new)
        skill = rest[-1:] == ["id"] and change.items is not None and same_but_for(*change.items, "id")
        return note or ("renamed" if skill else "")
    if change.items == (old, new) and same_but_for(old, new, "uri"):
        was, now = member(old, "uri"), member(new, "uri")
        return (_text_note(was, now) if isinstance(was, str) and isinstance(now, str) else "") or "renamed"
    return ""


def _text_note(old: str, new: str) -> str:
    if unicodedata.normalize("NFC", old) == unicodedata.normalize("NFC", new):
        return "unicode-form"
    by_url = url_difference(old, new)
    if by_url:
        return by_url
    if old.casefold() == new.casefold():
        return "letter-case"
    return "white-space" if old.split() == new.split() else ""
