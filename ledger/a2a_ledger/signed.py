"""What the log's own keys signed in a bundle: the export, and each finding (docs/format.md section 12).

These keys are known from the `key.added.v1` events that the bundle shows. They are worth as much as
the checkpoint that covers those events: under a checkpoint that the reader trusts they are the log's.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final, cast

from a2a_ledger.bundle import (
    CLAIMS,
    EXPORT_STATEMENT,
    LEAVES,
    SIGNATURE,
    STATEMENTS,
    TAG_MANIFEST,
    record_file,
    statement_file,
)
from a2a_ledger.codec import parse_canonical
from a2a_ledger.errors import FormatError, LedgerError, SignatureError
from a2a_ledger.statement import BASE_URI, VIOLATION, Subject, leaf_subject, open_envelope, parse_statement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from a2a_ledger.bundle import Bundle
    from a2a_ledger.checkpoint import Checkpoint
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.proven import Keys, ShownLeaf
    from a2a_ledger.shown import Shown
    from a2a_ledger.statement import Statement

EXPORT: Final = BASE_URI + "export/v1"
"""Predicate type of `data/export.dsse.json`."""

_VIOLATION_TYPE = "violation.detected.v1"


def read_claims(bundle: Bundle) -> JsonObject:
    """Return what the exporter claims, `data/claims.json`.

    Raises:
        FormatError: Missing, or no object in canonical form.
    """
    try:
        claims = parse_canonical(bundle.read(CLAIMS))
    except FormatError as problem:
        raise FormatError(f"{CLAIMS}: {problem}") from None
    if not isinstance(claims, dict):
        raise FormatError(f"{CLAIMS}: expected an object")
    return claims


def check_export_signature(bundle: Bundle, keys: Keys, size: int, *, promised: bool) -> list[str]:
    """Return faults of the exporter's raw signature over the tag manifest; `promised`: the claims say there is one."""
    if SIGNATURE not in bundle.files:
        return [f"{SIGNATURE} is missing, and {CLAIMS} says that the exporter signed"] if promised else []
    exporters = keys.speaking("export", size)
    for key in exporters:
        try:
            key.verify(bundle.files[SIGNATURE], bundle.files[TAG_MANIFEST])
        except SignatureError:
            continue
        return []
    by = ", ".join(f"{key.name}+{key.key_id}" for key in exporters) or "none, no export key is shown"
    return [f"{SIGNATURE}: does not verify over {TAG_MANIFEST} (export keys of the log: {by})"]


class ExportStatement:
    """The exporter's signed statement, if there is one, and what is wrong with it.

    Attributes:
        ends: what it says of each stream: the last version as of the checkpoint.
        faults: what is wrong with it as a file (claim I).
    """

    def __init__(
        self, bundle: Bundle, keys: Keys, leaves: Mapping[int, ShownLeaf], checkpoint: Checkpoint, *, promised: bool
    ) -> None:
        self.ends: dict[str, int] = {}
        self.faults: list[str] = []
        if EXPORT_STATEMENT not in bundle.files:
            if promised:
                self.faults.append(f"{EXPORT_STATEMENT} is missing, and {CLAIMS} says that the exporter signed")
            return
        try:
            opened = open_envelope(bundle.files[EXPORT_STATEMENT], keys.speaking("export", checkpoint.size))
            self._read(parse_statement(opened.payload), leaves, checkpoint)
        except LedgerError as problem:
            self.faults.append(f"{EXPORT_STATEMENT}: {problem}")

    def _read(self, statement: Statement, leaves: Mapping[int, ShownLeaf], checkpoint: Checkpoint) -> None:
        if statement.predicate_type != EXPORT:
            raise FormatError(f"expected predicate type {EXPORT}, found {statement.predicate_type[:80]}")
        if statement.subjects != (shown_subject(leaves.values()),):
            raise FormatError("its subject is not the leaves that the bundle shows")
        head = {"root": checkpoint.root.hex(), "size": checkpoint.size}
        if statement.predicate.get("checkpoint") != head:
            raise FormatError("it speaks of another checkpoint than the bundle's")
        for end in cast("list[Json]", statement.predicate.get("ends") or []):
            match end:
                case {"stream": str(stream), "ver": int(ver)}:
                    self.ends[stream] = ver
                case _:
                    raise FormatError("a member of `ends` has a stream and a version")


def shown_subject(leaves: Iterable[ShownLeaf]) -> Subject:
    """Name what an export speaks about: all shown leaves, as the one file that holds them."""
    return Subject(LEAVES, sha256(b"".join(leaf.raw + b"\n" for leaf in leaves)).hexdigest())


def check_statements(bundle: Bundle, shown: Shown, leaves: Mapping[int, ShownLeaf], keys: Keys) -> list[str]:
    """Return faults of the signed statements of the findings that are shown (claim R)."""
    faults: list[str] = []
    expected: set[str] = set()
    for record in shown.records.values():
        if record.type != _VIOLATION_TYPE:
            continue
        name = statement_file(record.n)
        expected.add(name)
        try:
            _check_statement(bundle.read(name), record, leaves, keys)
        except LedgerError as problem:
            text = str(problem)
            faults.append(text if text.startswith(name) else f"{name}: {text}")
    return faults + [
        f"{name}: no finding of the bundle has it" for name in bundle.under(STATEMENTS) if name not in expected
    ]


def open_finding(raw: bytes, record: Record, keys: Keys) -> Statement:
    """Return the statement in a finding's envelope, signed by the key that speaks for statements there.

    Raises:
        FormatError: It is not the statement that the record names.
        SignatureError: No such key signed it.
    """
    opened = open_envelope(raw, keys.speaking("statement", record.n))
    if record.content("statement") != raw or sha256(opened.payload).hexdigest() != record.data.get("statement_sha256"):
        raise FormatError(f"not the statement that {record_file(record.n)} holds")
    return parse_statement(opened.payload)


def _check_statement(raw: bytes, record: Record, leaves: Mapping[int, ShownLeaf], keys: Keys) -> None:
    """Hold a finding's envelope against its record, its key and the leaves that it speaks about."""
    data = record.data
    statement = open_finding(raw, record, keys)
    if statement.predicate_type != VIOLATION:
        raise FormatError(f"expected predicate type {VIOLATION}, found {statement.predicate_type[:80]}")
    shown_at = cast("list[int]", data.get("evidence_index") or [])
    if len(statement.subjects) != len(shown_at):
        raise FormatError(f"has {len(statement.subjects)} subjects, its record names {len(shown_at)} events")
    of_the_peer = record.stream.startswith("findings:peer:")  # may rest on other tasks, which are not disclosed
    for subject, n in zip(statement.subjects, shown_at, strict=True):
        if n in leaves or not of_the_peer:
            _check_subject(subject, n, record.log, leaves)
    for member in ("about", "basis", "certainty", "observed", "not_established", "rule", "rule_set", "subject"):
        if statement.predicate.get(member) != data.get(member):
            raise FormatError(f"says another {member} than {record_file(record.n)}")


def _check_subject(subject: Subject, n: int, origin: str, leaves: Mapping[int, ShownLeaf]) -> None:
    """A subject whose leaf is shown must be that leaf."""
    shown = leaves.get(n)
    if shown is None:
        raise FormatError(f"speaks about leaf {n}, which is not shown")
    if subject != leaf_subject(origin, n, shown.raw):
        raise FormatError(f"speaks about another leaf {n} than is shown")
