"""Security requirements: an OR of ANDs of schemes with scopes. Pure.

docs/format.md section 7; A2A 0.3 and 1.0 `security`, `securityRequirements`, with the meaning that
OpenAPI gives them. An empty list means that nothing is required; an empty alternative `{}` means that
calling without a credential is one of the ways.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from a2a_ledger.contract.card_json import CardObject, CardValue, canonical

if TYPE_CHECKING:
    from a2a_ledger.events import Interface

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
    listed = list(items)
    if len(listed) <= 1:
        return listed
    found = {canonical(item): item for item in listed}
    return [found[key] for key in sorted(found)]


def _alternative(raw: CardValue, flags: set[str]) -> CardValue:
    if not isinstance(raw, dict):
        flags.add("odd-shape")
        return raw
    wrapped = raw.get("schemes")
    names = wrapped or {} if raw.keys() == {"schemes"} and isinstance(wrapped, dict | None) else raw
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


def satisfies(requirement: Sequence[object], schemes_offered: Collection[str]) -> bool:
    """Say whether a credential of these schemes meets a requirement list (scopes cannot be seen in a credential).

    Nothing required, and an anonymous alternative `{}`, are met by anything; an alternative of a shape
    that nobody understands is met by nothing.
    """
    return any(_met(alternative, schemes_offered) for alternative in requirement or [{}])


def _met(alternative: object, schemes_offered: Collection[str]) -> bool:
    if not isinstance(alternative, dict):
        return False
    needs = cast("dict[str, object]", alternative)
    return all(name in schemes_offered and isinstance(scopes, list) for name, scopes in needs.items())


def open_schemes(schemes: Mapping[str, Mapping[str, object]]) -> set[str]:
    """Return the names of the 0.1 schemes that ask for nothing: `none` and `public`."""
    return {
        name
        for name, scheme in schemes.items()
        if scheme.get("kind") == "legacy" and name.strip().lower() in _LEGACY_OPEN
    }


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
    return {"schemes": schemes, "security": without_open(security, open_schemes(schemes))}


def without_open(requirement: Sequence[object], open_names: Collection[str]) -> list[object]:
    """Return a requirement list without the schemes that ask for nothing."""
    return [_without(item, open_names) for item in requirement]


def _without(alternative: object, open_names: Collection[str]) -> object:
    if not isinstance(alternative, Mapping):
        return alternative
    items = cast("Mapping[str, object]", alternative).items()
    return {name: scopes for name, scopes in items if name not in open_names}
