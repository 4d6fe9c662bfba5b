"""The contract's normal form `a2a-contract/1`: one shape for every dialect. Pure.

docs/format.md section 7. Works on raw JSON, never on an SDK's parse of it, which loses terms. Every member
is always present: absent text is "", an absent flag false, absent params null; only a version may be null,
which means not stated. Interfaces keep their order; every other list is a set in the order of RFC 8785 bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from a2a_ledger.address import normal_url
from a2a_ledger.contract.card_json import CardObject, CardValue, canonical, sha256_name
from a2a_ledger.contract.dialect import member, states
from a2a_ledger.contract.requirements import as_set, read_requirements
from a2a_ledger.contract.schemes import WRAPPERS, common, read_authentication, read_schemes
from a2a_ledger.events import Interface

FORM = "a2a-contract/1"
"""Name of the normal form; a hash never travels or is compared without it."""

_MAJOR_MINOR = re.compile(r"[0-9]+\.[0-9]+")
_VERSION = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,9})(?:\.[0-9A-Za-z.+-]+)?)?")


@dataclass(frozen=True, slots=True)
class Contract:
    """The authorization-bearing part of a card in normal form, its RFC 8785 bytes and its `sha256:<hex>`."""

    form: str
    value: CardObject
    canonical: bytes
    hash: str

    @property
    def interfaces(self) -> list[Interface]:
        """The offered interfaces in the card's order, first preferred."""
        return [Interface(**item) for item in cast("list[Interface]", self.value["interfaces"])]


def major_minor(version: str | None) -> str | None:
    """Return a protocol version as Major.Minor, since patch numbers do not count (A2A 1.0 section 3.6).

    None and "" are not stated: None. Text that is no version number is kept as it is.
    """
    if not version:
        return None
    found = _VERSION.fullmatch(version)
    return f"{int(found[1])}.{int(found[2] or '0')}" if found else version


def normalise(document: CardObject, dialect: str, *, simple_numbers: bool = False) -> tuple[Contract, frozenset[str]]:
    """Return the contract of a card and the flags that reading it raised.

    Where a term is written in both vocabularies, that of 1.0 is read; if the 0.3 one says otherwise, what a
    0.3 client is bound to stands in `legacy`.

    Flags: duplicate-skill-ids, halves-disagree, odd-shape, odd-version, unknown-scheme.

    Args:
        document: The card as parsed JSON.
        dialect: Its dialect: a card of 1.0 alone has no half for 0.3 clients, who find no address in it.
        simple_numbers: What `Parsed.simple_numbers` says of it.

    Raises:
        UnrepresentableError: a number or text inside the contract part has no RFC 8785 form.
    """
    flags: set[str] = set()
    half = _half(document, flags, new_first=True)
    value: CardObject = {
        "extensions": _extensions(document, flags),
        "form": FORM,
        "interfaces": _interfaces(document, flags),
        **half,
    }
    if dialect != "1.0" and _written_twice(document):
        legacy = _half(document, flags, new_first=False)
        both = (canonical(_shared(one), simple_numbers=simple_numbers) for one in (legacy, half))
        if len(set(both)) > 1:
            value["legacy"] = legacy
            flags.add("halves-disagree")
    data = canonical(value, simple_numbers=simple_numbers)
    return Contract(FORM, value, data, sha256_name(data)), frozenset(flags)


def _half(document: CardObject, flags: set[str], *, new_first: bool) -> CardObject:
    """Return what one half says; a member that it does not state is read from the other half's spelling."""
    schemes = read_schemes(member(document, "securitySchemes"), new_first=new_first, flags=flags)
    security = read_requirements(_security(document, new_first=new_first), flags)
    if not states(document, "securitySchemes", "security", "securityRequirements"):
        schemes, security = read_authentication(member(document, "authentication"), flags)
    return {
        "extendedCard": _extended_card(document, flags, new_first=new_first),
        "schemes": schemes,
        "security": security,
        "skills": _skills(document, flags, new_first=new_first),
    }


def _written_twice(document: CardObject) -> bool:
    """Say whether any term is written in both vocabularies; the halves are the same where none is."""
    schemes, skills = member(document, "securitySchemes"), member(document, "skills")
    holders = [document, *(skills if isinstance(skills, list) else [skills])]
    flag = states(member(document, "capabilities"), "extendedAgentCard")
    return (
        (flag and states(document, "supportsAuthenticatedExtendedCard"))
        or any(states(one, "security") and states(one, "securityRequirements") for one in holders)
        or (
            isinstance(schemes, dict)
            and any(states(one, "type") and states(one, *WRAPPERS) for one in schemes.values())
        )
    )


def _shared(half: CardObject) -> CardObject:
    """Return what both vocabularies can say of a half."""
    return {
        "extendedCard": half["extendedCard"],
        "schemes": common(cast("CardObject", half["schemes"])),
        "security": half["security"],
        "skills": half["skills"],
    }


def _security(holder: CardValue, *, new_first: bool) -> CardValue:
    if new_first:
        return member(holder, "securityRequirements", "security")
    return member(holder, "security", "securityRequirements")


def _extended_card(document: CardObject, flags: set[str], *, new_first: bool) -> bool:
    stated = [
        member(member(document, "capabilities"), "extendedAgentCard"),
        member(document, "supportsAuthenticatedExtendedCard"),
    ]
    if not new_first:
        stated.reverse()
    return _truth(next((value for value in stated if value is not None), None), flags)


def _truth(value: CardValue, flags: set[str]) -> bool:
    """Return a flag; absent is false.

    Of other JSON values only 0, "" and the text "false" are false: some client reads the rest as true, and a
    term too many does less harm than one that is missed.
    """
    if value is None or isinstance(value, bool):
        return value is True
    flags.add("odd-shape")
    return value.lower() not in {"", "false"} if isinstance(value, str) else value != 0


def _list(value: CardValue, flags: set[str]) -> list[CardValue]:
    """Return a list; absent is empty, and so is an empty value of another type; any other value is a list of one."""
    if value is None:
        return []
    if isinstance(value, list):
        return value
    flags.add("odd-shape")
    return [value] if value else []


def _text(value: CardValue, flags: set[str]) -> str:
    """Return a text; absent is "", and another JSON value is its RFC 8785 text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    flags.add("odd-shape")
    return canonical(value).decode()


def _version(value: CardValue, flags: set[str]) -> str | None:
    version = major_minor(_text(value, flags))
    if version is not None and _MAJOR_MINOR.fullmatch(version) is None:
        flags.add("odd-version")
    return version


def _interface(raw: CardValue, version: CardValue, flags: set[str]) -> CardObject:
    """Return one interface; another value where an object belongs is its url."""
    if not isinstance(raw, dict):
        flags.add("odd-shape")
        raw = {"url": raw}
    return {
        "binding": _text(member(raw, "protocolBinding", "transport"), flags),
        "tenant": _text(member(raw, "tenant"), flags),
        "url": normal_url(_text(member(raw, "url"), flags)),
        "version": _version(version, flags),
    }


def _interfaces(document: CardObject, flags: set[str]) -> list[CardValue]:
    """Return the offered interfaces in the card's order, without exact repeats.

    A card that lists interfaces the 1.0 way may name further places for 0.3 clients: those whose url its list
    does not have are offers too, behind it. (The 0.3 half has no versions of its own, and a binding by default.)
    """
    listed = _list(member(document, "supportedInterfaces"), flags)
    found = [_interface(item, member(item, "protocolVersion"), flags) for item in listed]
    known = [one["url"] for one in found]
    found += [one for one in _interfaces_0_3(document, flags) if not known or (one["url"] and one["url"] not in known)]
    return list({tuple(item.values()): item for item in found}.values())  # of texts and null


def _interfaces_0_3(document: CardObject, flags: set[str]) -> list[CardObject]:
    """Return the interfaces that the members of 0.3 name; a binding that is not stated is JSONRPC."""
    version = member(document, "protocolVersion")
    url, transport = member(document, "url"), member(document, "preferredTransport")
    found: list[CardObject] = []
    if any(value not in (None, "") for value in (url, transport, version)):
        main: CardObject = {"url": url, "transport": "JSONRPC" if transport in (None, "") else transport}
        found.append(_interface(main, version, flags))
    more = _list(member(document, "additionalInterfaces"), flags)
    return found + [_interface(item, version, flags) for item in more]


def _extensions(document: CardObject, flags: set[str]) -> list[CardValue]:
    """Return the required extensions as a set of {params, uri}."""
    capabilities = member(document, "capabilities")
    if capabilities is not None and not isinstance(capabilities, dict):
        flags.add("odd-shape")
    listed = _list(member(capabilities, "extensions"), flags)
    if not all(isinstance(item, dict) for item in listed):
        flags.add("odd-shape")
    return as_set(extension_term(item, flags) for item in listed if _truth(member(item, "required"), flags))


def extension_term(entry: CardValue, flags: set[str]) -> CardObject:
    """Return the terms of one extension entry: `{"params", "uri"}`, without its description."""
    return {"params": member(entry, "params"), "uri": _text(member(entry, "uri"), flags)}


def skill_id(skill: CardValue, flags: set[str]) -> str:
    """Return a skill's id as text; "" when it has none."""
    return _text(member(skill, "id"), flags)


def _skills(document: CardObject, flags: set[str], *, new_first: bool) -> CardObject:
    """Return the requirement lists of the skills that have one, by id.

    Two skills of one id put their alternatives together, so that their order in the card does not matter.
    """
    alternatives: dict[str, list[CardValue]] = {}
    for skill in _list(member(document, "skills"), flags):
        stated = read_requirements(_security(skill, new_first=new_first), flags)
        if stated:
            name = skill_id(skill, flags)
            if name in alternatives:
                flags.add("duplicate-skill-ids")
            alternatives.setdefault(name, []).extend(stated)
    return {name: as_set(stated) for name, stated in alternatives.items()}
