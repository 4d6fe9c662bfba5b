"""Security schemes: one normal form for every spelling. Pure.

docs/format.md section 7. 0.2 and 0.3 JSON discriminate by `type`, 1.0 and 0.3 proto JSON by the name of
the one member; hybrid cards hold both in one object. A scheme of a kind or a shape that nobody knows is
kept verbatim, `{"kind": "unknown", "raw": …}`, and flagged. Kinds, places, names of headers and of
schemes are compared exactly as they are written; only an HTTP scheme has no case (RFC 9110 section 11.1).
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, cast

from a2a_ledger.address import normal_url
from a2a_ledger.contract.dialect import member, states
from a2a_ledger.contract.requirements import as_set

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.contract.card_json import CardObject, CardValue

WRAPPERS = {
    "apiKeySecurityScheme": "apiKey",
    "httpAuthSecurityScheme": "http",
    "oauth2SecurityScheme": "oauth2",
    "openIdConnectSecurityScheme": "openIdConnect",
    "mtlsSecurityScheme": "mutualTLS",
}
"""1.0 and 0.3 proto JSON: the member that holds the scheme, and its kind."""

_FLOWS = {
    "authorization_code": "authorizationCode",
    "client_credentials": "clientCredentials",
    "device_code": "deviceCode",
}

# Only ASCII letters: str.lower() would also fold characters that no HTTP scheme may hold into those it may.
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class _OddError(ValueError):
    """A known kind of scheme with a member of the wrong type."""


def read_schemes(raw: CardValue, *, new_first: bool, flags: set[str]) -> CardObject:
    """Return the scheme table of one half of a card, `{name: scheme}`.

    Args:
        raw: The card's `securitySchemes`.
        new_first: True reads the 1.0 member of a scheme that is written twice, False its 0.3 members.
        flags: Gets `unknown-scheme` where a scheme is kept verbatim.

    Raises:
        UnrepresentableError: a value inside has no RFC 8785 form.
    """
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        flags.add("unknown-scheme")
        return {"securitySchemes": {"kind": "unknown", "raw": raw}}
    return {name: _scheme(value, new_first=new_first, flags=flags) for name, value in raw.items()}


def read_authentication(raw: CardValue, flags: set[str]) -> tuple[CardObject, list[CardValue]]:
    """Return scheme table and requirement list of a 0.1 `authentication`: each scheme is one alternative.

    What it states beside their names (`credentials`, where real cards write OAuth2 endpoints, or members of
    a vendor) stands in each scheme as `raw`. Another shape is kept verbatim under the name `authentication`.
    """
    names = raw
    rest: CardObject = {}
    if isinstance(raw, dict):
        names = member(raw, "schemes")
        rest = {name: value for name, value in raw.items() if name != "schemes" and value not in (None, "")}
    if isinstance(names, str):
        names = [names] if names else []
    if not names and isinstance(names, list | None) and not rest:
        return {}, []
    if names and isinstance(names, list) and all(isinstance(name, str) for name in names):
        texts = cast("list[str]", names)
        beside: CardObject = {"raw": rest} if rest else {}
        schemes: CardObject = {name: {"kind": "legacy", "name": name, **beside} for name in texts}
        return schemes, as_set({name: []} for name in texts)
    flags.add("unknown-scheme")
    return {"authentication": {"kind": "unknown", "raw": raw}}, [] if names == [] else [{"authentication": []}]


def _scheme(raw: CardValue, *, new_first: bool, flags: set[str]) -> CardObject:
    """Return one scheme in normal form, read from the half that is asked for if it states it."""
    readers: list[Callable[[CardValue], CardObject | None]] = [_by_wrapper, _by_type]
    if not new_first:
        readers.reverse()
    try:
        for read in readers:
            found = read(raw)
            if found is not None:
                return found
    except _OddError:
        pass
    flags.add("unknown-scheme")
    return {"kind": "unknown", "raw": raw}


def _by_wrapper(raw: CardValue) -> CardObject | None:
    present = [name for name in WRAPPERS if states(raw, name)]
    if not present:
        return None
    body = member(raw, present[0])
    if len(present) > 1 or not isinstance(body, dict):
        raise _OddError
    return _KINDS[WRAPPERS[present[0]]](body)


def _by_type(raw: CardValue) -> CardObject | None:
    kind = member(raw, "type")
    if kind is None or not isinstance(raw, dict):
        return None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise _OddError
    return _KINDS[kind](raw)


def _text(body: CardValue, *names: str) -> str:
    """Return a text member; absent is ""."""
    value = member(body, *names)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _OddError
    return value


def _flag(body: CardValue, name: str) -> bool:
    value = member(body, name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise _OddError
    return value


def _api_key(body: CardObject) -> CardObject:
    # `in_` is what an SDK wrote when it could not use the keyword: the same place, misspelled.
    return {"kind": "apiKey", "in": _text(body, "in", "location", "in_"), "name": _text(body, "name")}


def _http(body: CardObject) -> CardObject:
    return {"kind": "http", "scheme": _text(body, "scheme").translate(_LOWER)}


def _open_id(body: CardObject) -> CardObject:
    return {"kind": "openIdConnect", "url": normal_url(_text(body, "openIdConnectUrl"))}


def _mutual_tls(_body: CardObject) -> CardObject:
    return {"kind": "mutualTLS"}


def _oauth2(body: CardObject) -> CardObject:
    flows = member(body, "flows")
    if flows is not None and not isinstance(flows, dict):
        raise _OddError
    stated = {name: flow for name, flow in (flows or {}).items() if flow is not None}
    read: CardObject = {}
    for name, flow in stated.items():
        known = _FLOWS.get(name, name)
        if known == name or known not in stated:  # written twice, the camelCase one stands
            read[known] = _flow(flow)
    return {"kind": "oauth2", "flows": read, "metadataUrl": _text(body, "oauth2MetadataUrl")}


def _flow(flow: CardValue) -> CardObject:
    if not isinstance(flow, dict):
        raise _OddError
    scopes = member(flow, "scopes")
    if scopes is None:
        scopes = {}
    if isinstance(scopes, list) and not all(isinstance(scope, str) for scope in scopes):
        raise _OddError
    if not isinstance(scopes, dict | list):
        raise _OddError
    return {
        "authorizationUrl": _text(flow, "authorizationUrl"),
        "deviceAuthorizationUrl": _text(flow, "deviceAuthorizationUrl"),
        "pkceRequired": _flag(flow, "pkceRequired"),
        "refreshUrl": _text(flow, "refreshUrl"),
        "scopes": as_set(scopes),  # the names only; the texts beside them are prose
        "tokenUrl": _text(flow, "tokenUrl"),
    }


_KINDS: dict[str, Callable[[CardObject], CardObject]] = {
    "apiKey": _api_key,
    "http": _http,
    "oauth2": _oauth2,
    "openIdConnect": _open_id,
    "mutualTLS": _mutual_tls,
}


def common(schemes: CardObject) -> CardObject:
    """Return a scheme table without what only 1.0 can say, so that the two halves of a hybrid compare."""
    return {name: _common(scheme) for name, scheme in schemes.items()}


def _common(scheme: CardValue) -> CardValue:
    flows = member(scheme, "flows")
    if not isinstance(scheme, dict) or scheme.get("kind") != "oauth2" or not isinstance(flows, dict):
        return scheme
    shared: CardObject = {
        name: {**flow, "pkceRequired": False, "deviceAuthorizationUrl": ""}
        for name, flow in flows.items()
        if name != "deviceCode" and isinstance(flow, dict)
    }
    return {**scheme, "flows": shared}
