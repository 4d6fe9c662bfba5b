"""Which way a security requirement moved: same, stricter, weaker, or no order is known. Pure.

docs/format.md section 7.5. One requirement is at most as strict as another when whoever meets the other
meets it too. Each alternative is read together with the definitions of its schemes, since a name alone
says nothing: `oauth` at another token endpoint is another credential.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

from a2a_ledger.contract.card_json import comparable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from a2a_ledger.contract.card_json import CardValue

Direction: TypeAlias = Literal["same", "stricter", "weaker", "incomparable"]
"""Where authorization moved, seen from the old requirement."""

Schemes: TypeAlias = "Mapping[str, Mapping[str, object]]"
"""A scheme table in normal form."""


MAX_ALTERNATIVES = 64
"""Of longer requirement lists only sameness and openness are told, since each alternative is held against each."""


class _Need(NamedTuple):
    """What one scheme of an alternative asks for: a credential of this definition, with these scopes."""

    definition: Mapping[str, object]
    scopes: frozenset[str]


class _Alternative(NamedTuple):
    """One way to call: every one of its needs.

    Attributes:
        needs: By scheme name; empty asks for nothing. None when nobody can say what it asks for (an odd shape, a
            scheme that is not defined or of an unknown kind): it is covered by itself and by what asks for nothing.
        identity: Equal exactly for alternatives that ask for the same in the same words.
    """

    needs: Mapping[str, _Need] | None
    identity: bytes


def compare_requirements(
    old: Sequence[object], new: Sequence[object], old_schemes: Schemes, new_schemes: Schemes
) -> Direction:
    """Say where a requirement list moved, given the scheme table that each of the two is read with.

    An added alternative is weaker; an added scheme or scope inside an alternative is stricter; `{}` and the
    empty list ask for nothing, and are weakest, whatever stands on the other side.
    """
    before, after = _alternatives(old, old_schemes), _alternatives(new, new_schemes)
    was_open, is_open = _open(before), _open(after)
    if was_open or is_open:
        return _direction(old_at_most_new=was_open, new_at_most_old=is_open)
    if {one.identity for one in before} == {one.identity for one in after}:
        return "same"
    if max(len(before), len(after)) > MAX_ALTERNATIVES:
        return "incomparable"
    return _direction(old_at_most_new=_at_most(before, after), new_at_most_old=_at_most(after, before))


def compare_definitions(old: Mapping[str, object], new: Mapping[str, object]) -> Direction:
    """Say where one scheme moved that kept its name.

    Order is plain in OAuth 2.0 alone: PKCE that is now required is stricter, a flow that went is stricter,
    a flow that came is weaker. Every other change (an endpoint, a scope on offer, a header) is another
    credential, or may lead a client to ask for another one: incomparable.
    """
    return _direction(old_at_most_new=_accepts(old, new), new_at_most_old=_accepts(new, old))


def combine(directions: Iterable[Direction]) -> Direction:
    """Return one direction for several requirement lists that moved together."""
    moved = set(directions) - {"same"}
    if not moved:
        return "same"
    return moved.pop() if len(moved) == 1 else "incomparable"


def _direction(*, old_at_most_new: bool, new_at_most_old: bool) -> Direction:
    if old_at_most_new and new_at_most_old:
        return "same"
    if new_at_most_old:
        return "weaker"
    return "stricter" if old_at_most_new else "incomparable"


def _alternatives(requirement: Sequence[object], schemes: Schemes) -> list[_Alternative]:
    return [_alternative(item, schemes) for item in requirement or [{}]]


def _alternative(item: object, schemes: Schemes) -> _Alternative:
    names = list(cast("Mapping[str, object]", item)) if isinstance(item, dict) else []
    table = {name: schemes[name] for name in names if name in schemes}
    identity = comparable(cast("CardValue", [item, table]))
    if not isinstance(item, dict) or len(table) != len(names):
        return _Alternative(None, identity)
    needs: dict[str, _Need] = {}
    for name, scopes in cast("Mapping[str, object]", item).items():
        if not isinstance(scopes, list) or table[name].get("kind") == "unknown":
            return _Alternative(None, identity)
        needs[name] = _Need(table[name], frozenset(map(str, cast("list[object]", scopes))))
    return _Alternative(needs, identity)


def _open(alternatives: Iterable[_Alternative]) -> bool:
    """Say whether one of the ways is to call without a credential."""
    return any(one.needs is not None and not one.needs for one in alternatives)


def _at_most(low: Iterable[_Alternative], high: Iterable[_Alternative]) -> bool:
    """Say whether whoever meets `high` meets `low`."""
    return all(any(_covers(one, other) for one in low) for other in high)


def _covers(low: _Alternative, high: _Alternative) -> bool:
    """Say whether what is good for the alternative `high` is good for `low`."""
    if low.identity == high.identity:
        return True
    if low.needs is None or high.needs is None:
        return False
    have = high.needs
    return low.needs.keys() <= have.keys() and all(
        need.scopes <= have[name].scopes and _accepts(need.definition, have[name].definition)
        for name, need in low.needs.items()
    )


def _accepts(low: Mapping[str, object], high: Mapping[str, object]) -> bool:
    """Say whether a credential of the definition `high` is one of the definition `low`."""
    if comparable(cast("CardValue", low)) == comparable(cast("CardValue", high)):
        return True
    lows, highs = low.get("flows"), high.get("flows")
    if not isinstance(lows, dict) or not isinstance(highs, dict) or not lows or not highs:
        return False  # without a flow nothing is said of where a token comes from
    rest = [{**one, "flows": None} for one in (low, high)]
    if comparable(cast("CardValue", rest[0])) != comparable(cast("CardValue", rest[1])):
        return False
    ways = cast("Mapping[str, Mapping[str, object]]", lows)
    held = cast("Mapping[str, Mapping[str, object]]", highs)
    return all(name in ways and _flow_accepts(ways[name], flow) for name, flow in held.items())


def _flow_accepts(low: Mapping[str, object], high: Mapping[str, object]) -> bool:
    """Say whether a token of the flow `high` is one of the flow `low`: PKCE may be more than was asked for."""
    as_much = {**high, "pkceRequired": bool(high.get("pkceRequired")) and bool(low.get("pkceRequired"))}
    return comparable(cast("CardValue", as_much)) == comparable(cast("CardValue", low))
