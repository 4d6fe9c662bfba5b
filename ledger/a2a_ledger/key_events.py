"""What the log itself says of its keys: which speaks for which role, at which sizes. Pure; docs/format.md section 6.

Key events come from whoever could append, so each is held against what came before it. What is wrong with one is a
sentence: the writer refuses it, the audit names it, and a bundle that shows it is INVALID.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.bundle import record_file
from a2a_ledger.errors import FormatError, LedgerError
from a2a_ledger.keys import ROLES, parse_vkey, verify_handover

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.codec import Record
    from a2a_ledger.events import JsonObject
    from a2a_ledger.keys import Verifier

ADDED, RETIRED, REVOKED = "key.added.v1", "key.retired.v1", "key.revoked.v1"
KEY_EVENTS = (ADDED, RETIRED, REVOKED)
_SIGNATURE = re.compile("[0-9a-f]{128}")
_OWN_ROLES = frozenset({"log", "statement", "export"})  # keys of this log carry its name; others carry their own


class KeyTerm(NamedTuple):
    """How long a key speaks for its role: tree sizes, as checkpoints carry no time."""

    role: str
    key: Verifier
    added: int  # index of its key.added.v1
    retired: int | None
    revoked: int | None  # the size that the revocation states
    revoked_by: int | None = None  # index of its first key.revoked.v1

    def covers(self, size: int) -> bool:
        """Say whether the key speaks for a head of this size, or for an event at index size - 1."""
        return (
            self.added < size
            and (self.retired is None or size <= self.retired)
            and (self.revoked is None or size <= self.revoked)
        )

    def lapsed(self, size: int) -> bool:
        """Say whether the key spoke for an event at this index when it was logged, and no more since a revocation."""
        behind = self.revoked_by is not None and size < self.revoked_by
        return behind and not self.covers(size) and self._replace(revoked=None).covers(size)

    def why_not(self, size: int) -> str:
        """Say why the key does not speak for a head of this size, of one that it signed."""
        signed = f"signed over {size} events by {self.key.vkey}"
        if self.revoked is not None and size > self.revoked:
            return f"{signed}, which is revoked for heads larger than {self.revoked}"
        if self.retired is not None and size > self.retired:
            return f"{signed}, which was retired at event {self.retired}"
        return f"{signed}, which was added later, at event {self.added}"


@dataclass(slots=True)
class Keys:
    """The keys that the log's own events name, and hand-overs from one to the next."""

    terms: list[KeyTerm] = field(default_factory=list[KeyTerm])
    follows: dict[str, Verifier] = field(default_factory=dict["str", "Verifier"])  # new vkey -> old key, both signed
    faults: list[str] = field(default_factory=list[str])

    def speaking(self, role: str, size: int) -> list[Verifier]:
        """Return the keys that speak for a role at a size."""
        return [term.key for term in self.terms if term.role == role and term.covers(size)]

    def lapsed(self, role: str, size: int) -> list[KeyTerm]:
        """Return the keys that spoke for a role at a size until a revocation that was logged behind it."""
        return [term for term in self.terms if term.role == role and term.lapsed(size)]

    def handed_over(self) -> dict[str, Verifier]:
        """Return, by the vkey of each key, the one that handed over to it while that spoke for its role itself."""
        terms = {term.key: term for term in self.terms}
        return {
            term.key.vkey: old
            for term in self.terms
            if (old := self.follows.get(term.key.vkey)) is not None
            and (old not in terms or terms[old].covers(term.added + 1))
        }

    def term(self, key: Verifier) -> KeyTerm | None:
        """Return what the log says of a key."""
        return next((term for term in self.terms if term.key == key), None)


def read_keys(records: Iterable[Record], origin: str) -> Keys:
    """Return what the shown events of the stream `ledger` say about the log's keys, in order of the log.

    A key ends once: of several retirements the first counts, of several revocations the smallest size. Whatever
    comes after it and does not shorten the term is a fault, as is what names a key otherwise than it was added.
    """
    keys = Keys()
    for record in sorted(records, key=lambda record: record.n):
        if record.stream == "ledger" and record.type in KEY_EVENTS:
            fault = take_key_event(keys, record.type, record.data, record.n, origin)
            if fault:
                keys.faults.append(f"{record_file(record.n)}: no usable {record.type}: {fault}")
    return keys


def take_key_event(keys: Keys, event: str, data: JsonObject, n: int, origin: str) -> str:
    """Take one key event at log index n into what is known of the keys; return what is wrong with it, "" if nothing.

    What is usable of a faulty end is taken in all the same: a key never speaks for longer by it.
    """
    try:
        key, role = parse_vkey(cast("str", data["vkey"])), data["role"]
        term = keys.term(key)
        if event == ADDED:
            return _take_added(keys, data, n, origin, key)
        if term is None:
            return f"{key.vkey} was never added"
        fault = _take_end(keys, term, event, data, n)
        if (role, data["key_id"]) != (term.role, key.key_id):
            fault = f"names {key.vkey} as {role} key {data['key_id']}, it was added as {term.role} key {key.key_id}"
    except (LedgerError, KeyError, TypeError, AttributeError, ValueError) as problem:
        return str(problem)
    return fault


def _take_added(keys: Keys, data: JsonObject, n: int, origin: str, key: Verifier) -> str:
    role = data["role"]
    if not isinstance(role, str) or role not in ROLES:
        return f"expected one of the roles {', '.join(sorted(ROLES))}, found {role!a:.40}"
    if any(term.key.public_key == key.public_key for term in keys.terms):
        return "adds a key that is there already: one key speaks for one role"
    if (data["public_key"], data["key_id"]) != (key.public_key.hex(), key.key_id):
        return "adds two keys in one: public key, key id and vkey differ"
    if role in _OWN_ROLES and key.name != origin:
        return f"adds a {role} key named {key.name[:80]!a}, expected {origin}"
    follows = _read_handover(data, origin, role, key)
    keys.terms.append(KeyTerm(role, key, n, None, None))
    if follows is not None:
        keys.follows[key.vkey] = follows
    return ""


def _take_end(keys: Keys, term: KeyTerm, event: str, data: JsonObject, n: int) -> str:
    """End a key's term; the smallest size counts."""
    retired, revoked, revoked_by, fault = term.retired, term.revoked, term.revoked_by, ""
    if event == RETIRED:
        fault = "the key is retired already" if retired is not None else ""
        retired = n if retired is None else min(retired, n)
    else:
        size = data["size"]
        if type(size) is not int or size < 0:
            return f"expected a size, found {size!a:.40}"
        fault = f"the key is revoked already, behind size {revoked}" if revoked is not None and size >= revoked else ""
        revoked = size if revoked is None else min(revoked, size)
        revoked_by = n if revoked_by is None else min(revoked_by, n)
    ended = term._replace(retired=retired, revoked=revoked, revoked_by=revoked_by)
    keys.terms[keys.terms.index(term)] = ended
    return fault


def _read_handover(data: JsonObject, origin: str, role: str, key: Verifier) -> Verifier | None:
    """Return the key that a new one follows, where both have signed so."""
    old = data.get("old")
    if old is None:
        return None
    verify_handover(
        origin,
        role,
        old=cast("str", old),
        new=key.vkey,
        signature_old=_signature(data, "signature_old"),
        signature_new=_signature(data, "signature_new"),
    )
    return parse_vkey(cast("str", old))


def _signature(data: JsonObject, name: str) -> bytes:
    """Return a signature that stands in its one spelling: `fromhex` would take capitals and white space too."""
    text = data[name]
    if not isinstance(text, str) or not _SIGNATURE.fullmatch(text):
        raise FormatError(f"{name} of the hand-over: expected 128 lower-case hex digits, found {text!a:.40}")
    return bytes.fromhex(text)
