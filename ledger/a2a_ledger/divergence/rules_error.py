"""`task-error-mismatch`: the error by which a task says that what it runs on is not what was frozen.

It is the signal that the answer "never re-fetch" relies on: the task's own errors speak.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.card import read_card
from a2a_ledger.contract.terms import pointer_step
from a2a_ledger.divergence.reading import content, leg_of, members, number, ref, text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from a2a_ledger.divergence.finding import Finding
    from a2a_ledger.divergence.matter import Matter
    from a2a_ledger.divergence.reading import Frozen, Lookup
    from a2a_ledger.divergence.readings import Readings
    from a2a_ledger.events import Json, JsonObject

    Steps: TypeAlias = "tuple[str, ...]"
    """Indexes and names that lead to a place in a JSON value."""

EXTENSION_SUPPORT_REQUIRED = -32008
VERSION_NOT_SUPPORTED = -32009
METHOD_NOT_FOUND = -32601

_FAILED = frozenset({"failed", "rejected"})
_TERM_MEMBERS = frozenset(
    {
        "securitySchemes",
        "securityRequirements",
        "security",
        "supportedInterfaces",
        "additionalInterfaces",
        "preferredTransport",
        "protocolVersion",
        "protocolBinding",
        "requiredExtensions",
        "skillId",
        "skills",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "inputModes",
        "outputModes",
    }
)
"""Members of a card that no ordinary result has: their name alone names the term."""
_DEEP = 8
_LONGEST = 256
_MANY = 4096


def error_rules(matter: Matter, frozen: Frozen) -> Iterator[Finding]:
    """Read an error, or a failed or rejected task, for what it says about the contract."""
    record = matter.record
    code = number(record.data, "error_code")
    method = text(record.data, "method")
    state = text(record.data, "state_read")
    if code == VERSION_NOT_SUPPORTED and _asked_otherwise(matter, frozen):
        return
    if code in {EXTENSION_SUPPORT_REQUIRED, VERSION_NOT_SUPPORTED} or (
        code == METHOD_NOT_FOUND and method in matter.told.worked
    ):
        observed: dict[str, Json] = {"error_code": code, "method": method}
        yield matter.finding("task-error-mismatch", about="peer", subject=f"{code}:{method}", observed=observed)
    elif state in _FAILED:
        named = _terms_named(leg_of(record).data_parts, frozen, matter.lookup)
        if named is not None:
            steps, kind = named
            observed = {"state": state, "term": kind, "pointer": _pointer(steps, matter.readings)}
            yield matter.finding("task-error-mismatch", about="peer", subject=f"{state}:{kind}", observed=observed)


def _asked_otherwise(matter: Matter, frozen: Frozen) -> bool:
    """Say whether the version that is refused is one that only the client chose: then the contract stands."""
    agreed = frozen.interface["version"] or matter.told.version
    asked = matter.asked.version if matter.asked is not None else None
    return asked is not None and agreed is not None and asked != agreed


def _pointer(steps: Steps, readings: Readings) -> str:
    """Return the JSON pointer of a place (RFC 6901), of one that is too long that of the last place that fits."""
    if not readings.well_formed:
        return "".join(f"/{step[:64]}" for step in steps)[:_LONGEST]
    pointer = ""
    for step in steps:
        longer = f"{pointer}/{pointer_step(step)}"
        if len(longer) > _LONGEST:
            break
        pointer = longer
    return pointer


def _terms_named(data: tuple[Json, ...], frozen: Frozen, lookup: Lookup) -> tuple[Steps, str] | None:
    """Return where structured data names a term of the card, and of which kind; None: nowhere."""
    terms = _terms(frozen, lookup)
    waiting: list[tuple[Steps, Json, int]] = [((str(index),), value, _DEEP) for index, value in enumerate(data)]
    for _ in range(_MANY):
        if not waiting:
            return None
        steps, value, depth = waiting.pop(0)
        if isinstance(value, str) and value in terms:
            return steps, terms[value]
        if depth == 0:
            continue
        if isinstance(value, list):
            waiting += [((*steps, str(index)), item, depth - 1) for index, item in enumerate(value)]
        elif isinstance(value, dict):
            for name, inner in value.items():
                if name in _TERM_MEMBERS:
                    return (*steps, name), name
                waiting.append(((*steps, name), inner, depth - 1))
    return None


def _terms(frozen: Frozen, lookup: Lookup) -> dict[str, str]:
    """Return the texts that name a frozen or a capability term, with the kind of term."""
    contract = frozen.contract or {}
    found: dict[str, str] = dict.fromkeys(members(contract.get("schemes")), "scheme")
    for name, kind in (("interfaces", "interface"), ("extensions", "extension")):
        listed = contract.get(name)
        for item in listed if isinstance(listed, list) else []:
            value = text(members(item), "url" if kind == "interface" else "uri")
            if value:
                found[value] = kind
    for skill in _skills(frozen, lookup):
        found.setdefault(skill, "skill")
    return found


def _skills(frozen: Frozen, lookup: Lookup) -> list[str]:
    fetched = None if frozen.fetch is None else lookup(frozen.fetch)
    earlier = None if fetched is None else ref(fetched.data, "not_modified")
    fetched = fetched if earlier is None else lookup(earlier)
    card: JsonObject = {} if fetched is None else members(read_card(content(fetched, "body") or b"").document)
    skills = card.get("skills")
    ids = [text(members(skill), "id") for skill in skills] if isinstance(skills, list) else []
    return [skill for skill in ids if skill]
