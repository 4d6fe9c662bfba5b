"""What a person should know about a card before acting on it: one sentence a point. Pure.

docs/format.md section 7.1 has the flags. Nothing here decides anything: what is decided, the freshness
table and the rules of the verifier decide.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import urlsplit

from a2a_ledger.contract.card_json import printable
from a2a_ledger.contract.dialect import states

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.card import Card
    from a2a_ledger.contract.card_json import CardObject

_FLAGS = {
    "ambiguous-keys": "two members differ only in case or underscores: readers of other languages may mix them up",
    "bom": "the text begins with a byte order mark, at which some readers stop",
    "duplicate-skill-ids": "two skills have one id, so a requirement of one may be read as that of the other",
    "halves-disagree": "the 0.3 and the 1.0 half state different terms: clients of two generations are bound otherwise",
    "odd-shape": "a member has another JSON type than its dialect gives it; it was read as format.md section 7.2 says",
    "odd-version": "a protocol version is not Major.Minor; it is compared as text",
    "unknown-scheme": "a security scheme is of a kind that no dialect has; it is kept as it stands",
}


class Check(NamedTuple):
    """One point about a card: a stable id, the JSON pointer of the contract's member, and one sentence."""

    id: str
    pointer: str
    text: str


def checks(card: Card) -> tuple[Check, ...]:
    """Return what is worth knowing about a card that can be captured; nothing for any other."""
    if card.contract is None:
        return ()
    found = [Check(flag, "", text) for flag, text in _FLAGS.items() if flag in card.flags]
    found += _authorization(card, card.contract.value)
    found += _interfaces(card.contract.value)
    return tuple(found)


def _authorization(card: Card, contract: CardObject) -> Iterator[Check]:
    security = cast("list[object]", contract["security"])
    schemes = cast("dict[str, object]", contract["schemes"])
    if not states(card.document, "security", "securityRequirements", "authentication"):
        yield Check(
            "security-not-stated", "/security", "no requirement is stated; that is not the statement that none is made"
        )
    elif not security:
        yield Check("nothing-required", "/security", "the stated requirement is empty: nothing is required")
    if {} in security:
        yield Check("anonymous-allowed", "/security", "calling without any credential is one of the alternatives")
    lists = {"/security": security}
    for skill, own in cast("dict[str, list[object]]", contract["skills"]).items():
        lists[f"/skills/{printable(skill)}"] = own
    named: set[str] = set()
    for pointer, alternatives in lists.items():
        here = {name for one in alternatives if isinstance(one, dict) for name in cast("dict[str, object]", one)}
        named |= here
        for name in sorted(here - schemes.keys()):
            yield Check("scheme-not-defined", pointer, f"scheme {printable(name)!a} is required and not defined")
    for name in sorted(schemes.keys() - named):
        yield Check("scheme-not-required", "/schemes", f"scheme {printable(name)!a} is defined and never required")


def _interfaces(contract: CardObject) -> Iterator[Check]:
    listed = cast("list[dict[str, str | None]]", contract["interfaces"])
    if not listed:
        yield Check("no-interface", "/interfaces", "no place to send to is named")
    for place, one in enumerate(listed):
        if one["version"] is None:
            yield Check("version-not-stated", f"/interfaces/{place}", "no protocol version is stated; none is assumed")
        if _plain_http(one["url"] or ""):
            yield Check(
                "plain-http", f"/interfaces/{place}", "http without TLS: credentials cross the network readable"
            )


def _plain_http(url: str) -> bool:
    """Say whether a url leaves this machine without TLS."""
    if not url.startswith("http://"):
        return False
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return True
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost" and not host.endswith(".localhost")
