"""Which member of a card that came says in another vocabulary what one that went had said. Pure.

docs/format.md sections 7.2 and 7.5. A card that is written again in snake_case, or in the dialect of another
version, has every such member twice among its changes: once as gone, once as come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.contract.card_json import CardValue, UnrepresentableError, comparable
from a2a_ledger.contract.dialect import camel, snake
from a2a_ledger.contract.requirements import read_requirements
from a2a_ledger.contract.schemes import WRAPPERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.contract.changes import Change

_LISTS = frozenset({"supportedInterfaces", "additionalInterfaces", "skills"})
_MOVED: dict[tuple[str, ...], str] = {
    ("supportsAuthenticatedExtendedCard",): "extendedAgentCard",
    ("capabilities", "extendedAgentCard"): "extendedAgentCard",
}
_ONE_WORD = {"securityRequirements": "security", "protocolBinding": "transport", "location": "in", "in_": "in"}
_FORMER_INTERFACES = frozenset({"url", "preferredTransport", "additionalInterfaces", "protocolVersion"})


class _Word(NamedTuple):
    """What a member is called in A2A, whatever the vocabulary, and where it stands."""

    holder: str
    name: str
    former: bool
    """It is the spelling of 0.3 for what 1.0 says by members of another shape."""
    later: bool
    """It is such a member of 1.0."""

    def replaces(self, other: _Word) -> bool:
        """Say whether the two are names for one thing."""
        if self.holder != other.holder:
            return False
        return self.name == other.name or (self.former and other.later) or (self.later and other.former)


class Respelled:
    """The changes of a comparison that stand in another vocabulary for one another."""

    def __init__(self, changes: Iterable[Change]) -> None:
        self._waiting: dict[str, list[tuple[_Word, Change]]] = {}
        for change in changes:
            word = _word_of(change)
            if word is not None:
                self._waiting.setdefault(word.holder, []).append((word, change))

    def has(self, change: Change) -> bool:
        """Say whether, where this member came or went, another spelling of it went or came."""
        return any(True for _ in self._others(change))

    def same(self, change: Change) -> bool:
        """Say whether that other spelling says the same, by its value alone.

        What stands in members of another shape, as a scheme of 1.0 does, is not compared here: the contract is.
        """
        return any(
            _same_meaning(mine, _value(change), _value(other))
            for mine, theirs, other in self._others(change)
            if mine.name == theirs.name
        )

    def _others(self, change: Change) -> list[tuple[_Word, _Word, Change]]:
        word = _word_of(change)
        if word is None:
            return []
        return [
            (word, other_word, other)
            for other_word, other in self._waiting.get(word.holder, ())
            if (other.old is None) != (change.old is None) and word.replaces(other_word)
        ]


def _value(change: Change) -> CardValue:
    return change.new if change.old is None else change.old


def _same_meaning(word: _Word, one: CardValue, other: CardValue) -> bool:
    if word.name == "security":
        try:
            one, other = list(read_requirements(one, set())), list(read_requirements(other, set()))
        except UnrepresentableError:
            return False
    return comparable(one) == comparable(other)


def _word_of(change: Change) -> _Word | None:
    """Return what a member that came or went is called; None for what is no member of A2A's own vocabulary."""
    if (change.old is None) == (change.new is None):
        return None
    names = tuple(spelled(name) for name in change.names)
    if names in _MOVED:
        return _Word("", _MOVED[names], former=False, later=False)
    if not _may_be_spelled_twice(names):
        return None
    root, last = names[0], names[-1]
    holder = change.pointer.rpartition("/")[0]
    name = _ONE_WORD.get(last, last)
    if len(names) == 1:
        return _Word(holder, name, former=root in _FORMER_INTERFACES, later=root == "supportedInterfaces")
    in_a_scheme = root == "securitySchemes" and len(names) == 3  # noqa: PLR2004 - root, name of the scheme, member
    return _Word(holder, name, former=in_a_scheme and last not in WRAPPERS, later=in_a_scheme and last in WRAPPERS)


def _may_be_spelled_twice(names: tuple[str, ...]) -> bool:
    """Say whether readers find the member of this path under two names; where names are free, they do not."""
    root, depth = names[0], len(names)
    if root in _LISTS:
        return depth in {1, 3}
    if root == "securitySchemes":
        return depth != 2 and names[-2:-1] != ("scopes",)  # noqa: PLR2004 - the name of a scheme
    return depth == 1 or (root == "capabilities" and depth == 2)  # noqa: PLR2004 - a member of the capabilities


def spelled(name: str) -> str:
    """Return a name in camelCase where it is that or exactly its snake_case, which readers take for it."""
    whole = camel(name)
    return whole if name in {whole, snake(whole)} else name
