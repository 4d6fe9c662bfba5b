"""What a peer asks for in a structured way: schemes and scopes in challenges, error data and data parts.

Words in free text are no demand: they are `Leg.text`, and whatever is concluded from them is a suspicion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from a2a_ledger.wire.jsontext import lift, member

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.events import Json, JsonObject

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([!#$%&'*+.^_`|~0-9A-Za-z:/-]+))")
_TOKEN68 = re.compile(r"[ \t]+[A-Za-z0-9._~+/-]+=*[ \t]*(?=,|$)")
_BETWEEN = re.compile(r"[\s,]+")

_KINDS = frozenset({"apiKey", "http", "oauth2", "openIdConnect", "mutualTLS"})
_KIND_MEMBERS = {
    "apiKeySecurityScheme": "apiKey",
    "httpAuthSecurityScheme": "http",
    "oauth2SecurityScheme": "oauth2",
    "openIdConnectSecurityScheme": "openIdConnect",
    "mtlsSecurityScheme": "mutualTLS",
}
_SCHEMES = ("schemes", "requiredSchemes", "supportedSchemes", "authSchemes", "securitySchemes")
_OF_SECURITY = frozenset(
    {
        *("requiredSchemes", "authSchemes", "securitySchemes", "requiredScheme", "securityScheme", "authScheme"),
        *("security", "securityRequirements", "auth", "authentication", "authorization"),
    }
)
"""Members that speak of nothing but authentication, they and what stands in them; any form may ask for a `scheme`.

In the error of a protocol, that is: what an agent puts into a data part is a form of its own, which may ask how to log
in at a third place. There only a security scheme as a card has it is one.
"""
_SCHEME = ("scheme", "requiredScheme", "securityScheme", "authScheme", "schemeName")
_REQUIREMENTS = ("security", "securityRequirements")
_SCOPES = ("scopes", "requiredScopes", "scope", "requiredScope")
_SHAPES: dict[str, tuple[str, ...]] = {
    "apiKey": ("in", "name"),
    "http": ("scheme",),
    "oauth2": ("flows",),
    "openIdConnect": ("openIdConnectUrl",),
    "mutualTLS": (),
}
"""What a security scheme of A2A 0.3 has beside its `type` (OpenAPI 3.1 section 4.8.27)."""

_FREE = "status-data"
_MAX_DEPTH = 8
_MAX_DEMANDS = 64


@dataclass(frozen=True, slots=True)
class Demand:
    """One scheme, or scope, that the peer asks for.

    Compare `scheme` without regard to case: it is a scheme's name in a card, a kind, or an HTTP scheme.
    """

    scheme: str
    """"" if only scopes are asked for."""
    scopes: tuple[str, ...]
    kind: str | None
    """apiKey, http, oauth2, openIdConnect, mutualTLS; None if it is not said."""
    source: str
    """www-authenticate, error-data or status-data."""
    stated: bool = field(default=True, compare=False)
    """It can be nothing but a demand for authentication: by its place, by a member of `_OF_SECURITY`, by its kind.

    Of a data part: by its shape alone."""


def challenges(values: Iterable[str], *, any_token: bool = False) -> tuple[Demand, ...]:
    """Read the `WWW-Authenticate` header lines of an answer (RFC 9110 section 11.6.1; `scope` of RFC 6750).

    A parameter in front of any scheme belongs to none and is passed over; with `any_token` its name, and what is in its
    quotes, are taken for schemes, as rule set 1 took them.
    """
    text = ",".join(values)
    found: list[tuple[str, list[str]]] = []
    at = 0
    while at < len(text) and len(found) < _MAX_DEMANDS:
        if between := _BETWEEN.match(text, at):
            at = between.end()
        token = _TOKEN.match(text, at)
        if token is None:
            at += 1
            continue
        at = token.end()
        if (found or not any_token) and (value := _VALUE.match(text, at)):
            at = value.end()
            if found and token[0].lower() == "scope":
                found[-1][1].extend((value[1] or value[2] or "").replace("\\", "").split())
            continue
        found.append((token[0], []))
        if token68 := _TOKEN68.match(text, at):
            rest = token68[0].strip()
            # `Basic realm=x` looks like a token68 up to the sign, but a parameter has a value.
            if not _VALUE.match(text, at + token68[0].find(rest) + len(rest.rstrip("="))) or rest.endswith("="):
                at = token68.end()
    return tuple(_demand(scheme, scopes, "http", "www-authenticate") for scheme, scopes in found)


def structured(value: Json, source: str) -> tuple[Demand, ...]:
    """Find schemes and scopes in error data or in a data part.

    The member names are a closed list (`schemes`, `requiredScheme`, `securityRequirements`, `scopes` and
    their like), an OpenAPI or A2A security scheme object counts by its kind. At most 64 demands, 8 levels.
    """
    found: list[Demand] = []
    _walk(value, source, found, _MAX_DEPTH, within=False)
    stated = {demand for demand in found if demand.stated}
    once = [replace(demand, stated=demand in stated) for demand in dict.fromkeys(found)]
    return tuple(once[:_MAX_DEMANDS])


def _walk(value: Json, source: str, found: list[Demand], depth: int, *, within: bool) -> None:
    """Look through a value; `within`: a member of `_OF_SECURITY` holds it."""
    if depth == 0 or len(found) >= _MAX_DEMANDS:
        return
    if isinstance(value, list):
        for item in value:
            _walk(item, source, found, depth - 1, within=within)
    if not isinstance(value, dict):
        return
    found.extend(_of_object(value, source, within=within))
    for name, inner in value.items():
        if name not in _SCHEMES and name not in _REQUIREMENTS:
            _walk(inner, source, found, depth - 1, within=within or name in _OF_SECURITY)


def _of_object(value: JsonObject, source: str, *, within: bool) -> list[Demand]:
    found: list[Demand] = []
    scopes = [scope for name in _SCOPES for scope in _words(value.get(name))]
    kind = _kind(value)
    names = {name: text for name in _SCHEME if (text := lift(value.get(name), set()))}
    if kind and not names:
        names = {"": kind}
    by_shape = _is_scheme(value) if source == _FREE else kind is not None
    found.extend(
        _demand(text, scopes, kind, source, stated=by_shape or _speaks_of_security(source, name, within=within))
        for name, text in names.items()
    )
    for name in _SCHEMES:
        listed = value.get(name)
        stated = _speaks_of_security(source, name, within=within)
        if isinstance(listed, dict):
            for key, inner in listed.items():
                by_shape = _is_scheme(inner) if source == _FREE else _kind(inner) is not None
                found.append(_demand(key, _listed(inner) or scopes, _kind(inner), source, stated=stated or by_shape))
        else:
            found.extend(_demand(word, scopes, None, source, stated=stated) for word in _words(listed))
    for name in _REQUIREMENTS:
        alternatives = value.get(name)
        for alternative in alternatives if isinstance(alternatives, list) else []:
            if isinstance(alternative, dict):
                found.extend(_of_requirement(alternative, source))
    if scopes and not found:
        found.append(_demand("", scopes, None, source))
    return found


def _of_requirement(alternative: JsonObject, source: str) -> list[Demand]:
    """Read one alternative: `{name: [scope]}` (0.2, 0.3) or `{"schemes": {name: {"list": [scope]}}}` (1.0)."""
    schemes = alternative.get("schemes")
    named = schemes if isinstance(schemes, dict) else alternative
    return [_demand(name, _listed(scopes), None, source, stated=source != _FREE) for name, scopes in named.items()]


def _speaks_of_security(source: str, name: str, *, within: bool) -> bool:
    """Say whether a member, or the one around it, has to do with authentication alone."""
    return source != _FREE and (within or name in _OF_SECURITY)


def _is_scheme(value: Json) -> bool:
    """Say whether a value is a security scheme object as a card of A2A 0.2 to 1.0 has it."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    if isinstance(kind, str) and kind in _SHAPES:
        return all(member(value, name, f"{name}_") is not None for name in _SHAPES[kind])  # a Python SDK wrote `in_`
    return any(isinstance(value.get(name), dict) for name in _KIND_MEMBERS)


def _kind(value: Json) -> str | None:
    if not isinstance(value, dict):
        return None
    stated = value.get("type")
    if isinstance(stated, str) and stated in _KINDS:
        return stated
    return next((kind for name, kind in _KIND_MEMBERS.items() if name in value), None)


def _listed(value: Json) -> list[str]:
    return _words(value.get("list")) if isinstance(value, dict) else _words(value)


def _words(value: Json) -> list[str]:
    """Read a list of texts, or one text that lists them (error metadata holds texts only)."""
    if isinstance(value, str):
        return [word for word in re.split(r"[\s,]+", value) if word]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _demand(scheme: str, scopes: Iterable[str], kind: str | None, source: str, *, stated: bool = True) -> Demand:
    unseen: set[str] = set()
    kept = tuple(dict.fromkeys(scope for scope in scopes if lift(scope, unseen)))
    return Demand(lift(scheme, unseen) or "", kept, kind, source, stated)
