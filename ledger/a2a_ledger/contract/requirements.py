"""Security requirements: an OR of ANDs of schemes with scopes. Pure.

docs/format.md section 7; A2A 0.3 and 1.0 `security`, `securityRequirements`, with the meaning that
OpenAPI gives them. An empty list means that nothing is required; an empty alternative `{}` means that
calling without a credential is one of the ways.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from a2a_ledger.contract.card_json import CardObject, CardValue, canonical

if TYPE_CHECKING:
    from a2a_ledger.events import Interface

Direction: TypeAlias = Literal["same", "stricter", "weaker", "incomparable"]
"""Where authorization moved, seen from the old requirement."""

# What real 0.1 cards write in `authentication.schemes` when they ask for nothing.
_LEGACY_OPEN = frozenset({"none", "public"})


def read_requirements(raw: CardValue, flags: set[str]) -> list[CardValue]:
    """Return a requirement list in normal form: a set of `{scheme: [scope]}`, sorted by RFC 8785 bytes.

    Reads the 0.3 form, the 1.0 and 0.3 proto form (`{"schemes": {name: {"list": […]}}}`), and scopes
    without their `list`. What is none of these is kept verbatim and flagged `odd-shape`.

    Raises:
        UnrepresentableError: a value inside has no RFC 8785 form.
    """
    if raw is None:
        return []
    if not isinstance(raw, list):
        flags.add("odd-shape")
        raw = [raw]
    return as_set(_alternative(item, flags) for item in raw)


def as_set(items: Iterable[CardValue]) -> list[CardValue]:
    """Return the items once each, in the order of their RFC 8785 bytes."""
    found = {canonical(item): item for item in items}
    return [found[key] for key in sorted(found)]


def _alternative(raw: CardValue, flags: set[str]) -> CardValue:
    if not isinstance(raw, dict):
        flags.add("odd-shape")
        return raw
    wrapped = raw.get("schemes")
    names = wrapped if isinstance(wrapped, dict) and len(raw) == 1 else raw
    alternative: CardObject = {}
    for name, value in names.items():
        scopes = _scopes(value)
        if scopes is None:
            flags.add("odd-shape")
            return raw
        alternative[name] = as_set(scopes)
    return alternative


def _scopes(raw: CardValue) -> list[CardValue] | None:
    """Return the scopes of one scheme, or None if this is no list of them."""
    if isinstance(raw, dict) and raw.keys() <= {"list"}:
        raw = raw.get("list")
    if raw is None:
        return []
    if isinstance(raw, list) and all(isinstance(scope, str) for scope in raw):
        return raw
    return None


def _alternatives(requirement: Sequence[object]) -> list[dict[str, frozenset[str]] | None]:
    """Return a normal-form list as scheme → scopes; an alternative that nobody understands is None."""
    found: list[dict[str, frozenset[str]] | None] = []
    for item in requirement:
        if isinstance(item, Mapping):
            schemes = cast("Mapping[str, object]", item)
            known = {
                name: frozenset(str(scope) for scope in cast("list[object]", scopes))
                for name, scopes in schemes.items()
                if isinstance(scopes, list)
            }
            found.append(known if len(known) == len(schemes) else None)
        else:
            found.append(None)
    return found or [{}]


def satisfies(requirement: Sequence[object], schemes_offered: Collection[str]) -> bool:
    """Say whether a credential of these schemes meets a requirement list (scopes cannot be seen in a credential).

    Nothing required, and an anonymous alternative `{}`, are met by anything; an alternative of a shape
    that nobody understands is met by nothing.
    """
    return any(one is not None and set(one) <= set(schemes_offered) for one in _alternatives(requirement))


def compare_requirements(old: Sequence[object], new: Sequence[object]) -> Direction:
    """Say where a requirement list moved, scheme definitions being equal.

    One list is at most as strict as another when whoever meets the other meets it too. An added
    alternative is weaker, an added scheme or scope inside an alternative is stricter.
    """
    weaker = _at_most(new, old)
    stricter = _at_most(old, new)
    if weaker and stricter:
        return "same"
    if weaker:
        return "weaker"
    return "stricter" if stricter else "incomparable"


def _at_most(low: Sequence[object], high: Sequence[object]) -> bool:
    """Say whether whoever meets `high` meets `low`."""
    lows, highs = _alternatives(low), _alternatives(high)
    if None in lows or None in highs:
        # Nobody knows what a shape like this asks for: comparable to itself only.
        return list(low) == list(high)
    return all(any(one is not None and other is not None and _covers(one, other) for one in lows) for other in highs)


def _covers(low: Mapping[str, frozenset[str]], high: Mapping[str, frozenset[str]]) -> bool:
    """Say whether a credential good for the alternative `high` is good for `low`."""
    return all(name in high and scopes <= high[name] for name, scopes in low.items())


def combine(directions: Iterable[Direction]) -> Direction:
    """Return one direction for several requirement lists that moved together."""
    moved = set(directions) - {"same"}
    if not moved:
        return "same"
    return moved.pop() if len(moved) == 1 else "incomparable"


def in_force(contract: Mapping[str, object], interface: Interface | None, skill: str | None) -> dict[str, object]:
    """Return what governs a task: `{"schemes", "security"}` of a contract's normal form.

    A task spoken in A2A 0.x is held to the 0.3 half (`legacy`) of a card whose halves disagree. A skill's
    own requirement list stands in for the card's. 0.1 schemes named `none` or `public` ask for nothing.
    """
    half: Mapping[str, object] = contract
    version = None if interface is None else interface["version"]
    legacy = contract.get("legacy")
    if isinstance(legacy, Mapping) and version is not None and version.startswith("0."):
        half = cast("Mapping[str, object]", legacy)
    schemes = cast("Mapping[str, Mapping[str, object]]", half["schemes"])
    skills = cast("Mapping[str, list[object]]", half["skills"])
    security = cast("list[object]", half["security"])
    if skill is not None:
        security = skills.get(skill, security)
    open_names = {
        name
        for name, scheme in schemes.items()
        if scheme.get("kind") == "legacy" and name.strip().lower() in _LEGACY_OPEN
    }
    return {"schemes": schemes, "security": [_without(item, open_names) for item in security]}


def _without(alternative: object, open_names: Collection[str]) -> object:
    if not isinstance(alternative, Mapping):
        return alternative
    items = cast("Mapping[str, object]", alternative).items()
    return {name: scopes for name, scopes in items if name not in open_names}
