"""The members of 0.3 put where A2A 1.0 has them, the way the 1.x SDK for Python does before it parses a card. Pure.

Only for making the payload that this SDK signs or checks again: the contract has its own reading of such
cards (docs/format.md section 7.2), and loses nothing on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_ledger.signature.reading import NoFormError

if TYPE_CHECKING:
    from a2a_ledger.contract.card_json import CardObject, CardValue

_SCHEMES: Final = {
    "apiKey": "apiKeySecurityScheme",
    "http": "httpAuthSecurityScheme",
    "oauth2": "oauth2SecurityScheme",
    "openIdConnect": "openIdConnectSecurityScheme",
    "mutualTLS": "mtlsSecurityScheme",
}


def rewrapped(document: CardObject) -> CardObject:
    """Return a card with the members of 0.3 in their 1.0 places; those of 1.0 stand where both are stated.

    Raises:
        NoFormError: A member is of another type than the SDK can take.
    """
    card = dict(document)
    if card.pop("supportsAuthenticatedExtendedCard", None):
        card["capabilities"] = {"extendedAgentCard": True, **_object(card.get("capabilities", {}))}
    _interfaces(card)
    _security(card)
    card["skills"] = [_security(dict(_object(skill))) for skill in _list(card.get("skills", []))]
    schemes = card.get("securitySchemes")
    if schemes:
        card["securitySchemes"] = {name: _scheme(scheme) for name, scheme in _object(schemes).items()}
    return card


def _interfaces(card: CardObject) -> None:
    url, binding = card.pop("url", None), card.pop("preferredTransport", "JSONRPC")
    version = card.pop("protocolVersion", "0.3.0")
    more = card.pop("additionalInterfaces", None) or []
    if "supportedInterfaces" in card or not url:
        return
    others = [_object(one) for one in _list(more)]
    offered = [(url, binding), *((one.get("url"), one.get("transport")) for one in others)]
    card["supportedInterfaces"] = [
        {"url": place, "protocolBinding": spoken, "protocolVersion": version} for place, spoken in offered
    ]


def _security(holder: CardObject) -> CardObject:
    stated = holder.pop("security", None)
    if "securityRequirements" not in holder and stated is not None:
        holder["securityRequirements"] = [
            {"schemes": {name: {"list": scopes} for name, scopes in _object(one).items()}} for one in _list(stated)
        ]
    return holder


def _scheme(raw: CardValue) -> CardObject:
    scheme = dict(_object(raw))
    kind = scheme.pop("type", None)
    if not isinstance(kind, str) or kind not in _SCHEMES:
        return scheme
    if kind == "apiKey" and "in" in scheme:
        scheme["location"] = scheme.pop("in")
    return {_SCHEMES[kind]: scheme}


def _object(value: CardValue) -> CardObject:
    if not isinstance(value, dict):
        raise NoFormError("an object is wanted")
    return value


def _list(value: CardValue) -> list[CardValue]:
    if not isinstance(value, list):
        raise NoFormError("a list is wanted")
    return value
