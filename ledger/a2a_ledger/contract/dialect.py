"""How the dialects of A2A spell the members of a card. Pure.

A2A 0.1 to 0.3 JSON, 0.3 proto JSON, 1.0 JSON, and snake_case copies of each (ProtoJSON readers accept
them). docs/format.md section 7 has the table.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_ledger.contract.card_json import CardObject, CardValue

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def snake(name: str) -> str:
    """Return the proto spelling of a member: `protocolVersion` is `protocol_version`."""
    return _HUMP.sub("_", name).lower()


def camel(name: str) -> str:
    """Return the JSON spelling of a member: `protocol_version` is `protocolVersion`."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


class _Snake(dict[str, str]):
    """Proto spellings by the JSON spelling; only names written in this package are asked for, a few dozen."""

    def __missing__(self, name: str) -> str:
        self[name] = snake(name)
        return self[name]


_SNAKE = _Snake()


def member(holder: CardValue, *names: str) -> CardValue:
    """Return the first of some members that is stated, in camelCase or else in snake_case; None if none is.

    `null` is not stated; a holder that is no object states nothing.
    """
    if isinstance(holder, dict):
        for name in names:
            value = holder.get(name)
            if value is None:
                value = holder.get(_SNAKE[name])
            if value is not None:
                return value
    return None


def states(holder: CardValue, *names: str) -> bool:
    """Say whether an object states any of these members."""
    return member(holder, *names) is not None


_OWN = (
    "supportedInterfaces",
    "protocolVersion",
    "preferredTransport",
    "additionalInterfaces",
    "securitySchemes",
    "securityRequirements",
    "skills",
    "capabilities",
    "supportsAuthenticatedExtendedCard",
)
"""Members that, of all documents found at an agent's addresses, only agent cards have."""


def is_card(document: CardObject) -> bool:
    """Say whether an object is an Agent Card at all, of any dialect, rather than some other JSON.

    It is when it has a member that only agent cards have, or at least a name and a url; a list of agents
    (an index document), the documents of other standards, and an envelope around a card are not.
    """
    if any(key in document for key in ("openapi", "swagger", "@context", "jsonrpc")):
        return False
    if isinstance(document.get("agents"), list) and not states(document, "supportedInterfaces", "url", "skills"):
        return False
    if states(document, *_OWN):
        return True
    named = isinstance(document.get("url"), str) and states(document, "name", "authentication")
    return named and card_inside(document) is None


def card_inside(document: CardObject) -> str | None:
    """Return the member of an envelope that holds an Agent Card, one level down; None when there is none."""
    for name in sorted(document):
        value = document[name]
        if isinstance(value, dict) and states(value, "name") and states(value, *_OWN):
            return name
    return None


def dialect_of(document: CardObject) -> str:
    """Return the dialect that a card is written in: 0.1, 0.2, 0.3, 1.0, hybrid or unknown.

    The shape decides, then the stated version: real cards claim versions whose shape they do not have.
    A card without either connection shape is 1.0 when it uses another 1.0 member.
    """
    # An empty list offers nothing to a 1.0 client, an empty text or list nothing to a 0.3 client.
    new = bool(member(document, "supportedInterfaces"))
    old = any(member(document, name) for name in ("url", "preferredTransport", "additionalInterfaces"))
    if new:
        return "hybrid" if old else "1.0"
    version = member(document, "protocolVersion")
    secured = states(document, "securitySchemes", "security", "securityRequirements")
    if version is None and states(document, "authentication") and not secured:
        return "0.1"
    if isinstance(version, str):
        for dialect in ("0.1", "0.2", "0.3"):
            if version == dialect or version.startswith(dialect + "."):
                return dialect
    if not old:
        only_new = states(document, "securityRequirements") or _claims_1(version)
        return "1.0" if only_new else "unknown"
    if version is None:
        return "0.3" if _uses_0_3(document) else "0.2"
    return "0.3" if _claims_1(version) else "unknown"


def _claims_1(version: CardValue) -> bool:
    return isinstance(version, str) and re.fullmatch(r"1(\.[0-9]+)*", version) is not None


def _uses_0_3(document: CardObject) -> bool:
    """Say whether a card without a version uses a member that 0.2 did not have."""
    skills = document.get("skills")
    own = isinstance(skills, list) and any(states(skill, "security", "securityRequirements") for skill in skills)
    return own or states(document, "signatures", "securityRequirements")
