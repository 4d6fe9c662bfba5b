"""What a credential can be told to be from outside, and whether it meets a requirement.

Nobody sees into a token. What is seen is its class: a bearer token (OAuth 2.0, OpenID Connect and
HTTP bearer look alike), an API key at a place, another HTTP scheme, a TLS client certificate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from a2a_ledger.contract.requirements import in_force, satisfies
from a2a_ledger.divergence.reading import members, text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.events import Interface, Json, JsonObject

BEARER = "bearer"
MUTUAL_TLS = "mutualTLS"
UNKNOWN = "unknown"

NOT_FOR_THE_AGENT = frozenset({"push-token", "set-cookie"})
"""Marks of credentials that authorize nothing at the agent."""

_BEARER_KINDS = frozenset({"oauth2", "openIdConnect"})
_BEARER_NAMES = frozenset({"bearer", "oauth2", "oauth", "openidconnect", "oidc"})


def class_of(scheme: Json) -> str:
    """Return the class of a scheme of the contract's normal form."""
    value = members(scheme)
    kind = text(value, "kind")
    if kind in _BEARER_KINDS:
        return BEARER
    if kind == "http":
        named = (text(value, "scheme") or "").lower()
        return BEARER if named == "bearer" else f"http:{named}"
    if kind == "apiKey":
        return f"apiKey:{text(value, 'in') or ''}:{(text(value, 'name') or '').lower()}"
    if kind == "mutualTLS":
        return MUTUAL_TLS
    if kind == "legacy":
        named = (text(value, "name") or "").lower()
        return BEARER if named in _BEARER_NAMES else f"http:{named}"
    return UNKNOWN


def classes_of(names: Iterable[str], schemes: JsonObject) -> frozenset[str]:
    """Return the classes of the credentials that a request carried, by the names that capture gave them."""
    found: set[str] = set()
    for name in names:
        if name in NOT_FOR_THE_AGENT:
            continue
        if name in schemes:
            found.add(class_of(schemes[name]))
        elif name.startswith("authorization:"):
            kind = name.removeprefix("authorization:")
            found.add(BEARER if kind == "bearer" else f"http:{kind}")
        else:
            found.add(f"named:{name}")
    return frozenset(found)


def governing(contract: JsonObject, used: Interface, skill: str | None) -> tuple[JsonObject, list[Json]]:
    """Return the scheme table and the requirement set that govern a task; a malformed contract asks for nothing."""
    try:
        found = in_force(contract, used, skill)
    except (KeyError, TypeError, AttributeError):
        return {}, []
    schemes, security = cast("Json", found["schemes"]), cast("Json", found["security"])
    return members(schemes), security if isinstance(security, list) else []


def is_met(security: list[Json], schemes: JsonObject, carried: frozenset[str]) -> bool:
    """Say whether credentials of these classes meet a requirement set.

    A scheme that the contract does not explain cannot be told to be missing, so it counts as carried.
    """
    return satisfies(security, {name for name, scheme in schemes.items() if class_of(scheme) in carried | {UNKNOWN}})
