"""What the log's own keys signed in a bundle: the export, and each finding (docs/format.md section 12).

These keys are known from the `key.added.v1` events that the bundle shows. They are worth as much as
the checkpoint that covers those events: under a checkpoint that the reader trusts they are the log's.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple, cast

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
from a2a_ledger.bundle.referred import Referred
from a2a_ledger.codec import Hole, canonical, parse_canonical
from a2a_ledger.divergence import RULE_SETS, RULES
from a2a_ledger.divergence.finding import CARD
from a2a_ledger.errors import FormatError, LedgerError, SignatureError
from a2a_ledger.statement import BASE_URI, VIOLATION, Subject, leaf_subject, open_envelope, parse_statement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from a2a_ledger.bundle import Bundle
    from a2a_ledger.checkpoint import Checkpoint
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.key_events import Keys
    from a2a_ledger.statement import Opened, Statement
    from a2a_ledger.verify.leaves import ShownLeaf
    from a2a_ledger.verify.scope import Scope
    from a2a_ledger.verify.shown import Shown

EXPORT: Final = BASE_URI + "export/v1"
"""Predicate type of `data/export.dsse.json`."""

LAPSED: Final = "a reader of a bundle that shows the revocation answers NOT PROVEN, where judging again finds them"
"""What findings come to whose signer was revoked behind them."""

_VIOLATION_TYPE = "violation.detected.v1"
_PEER_WIDE = "weaker-authorization"  # of all rules the one that is about many tasks of a peer
_OWN_MEMBERS = ("at", "exporter", "tool")  # of the export's statement, beside what it repeats
_AS_RECORDED = (
    *("about", "basis", "certainty", "not_established", "observed", "profile_hash", "rule", "rule_set", "subject"),
)


def read_claims(bundle: Bundle) -> JsonObject:
    """Return what the exporter claims, `data/claims.json`.

    Raises:
        FormatError: Missing, or no object in canonical form.
    """
    claims = bundle.json(CLAIMS)
    if not isinstance(claims, dict):
        raise FormatError(f"{CLAIMS}: expected an object")
    return claims


def check_export_signature(bundle: Bundle, keys: Keys, size: int, *, promised: bool) -> list[str]:
    """Return faults of the exporter's raw signature over the tag manifest; `promised`: the claims say there is one."""
    if SIGNATURE not in bundle.files:
        return [f"{SIGNATURE} is missing, and {CLAIMS} says that the exporter signed"] if promised else []
    if not promised:
        return [f"{SIGNATURE} is there, and {CLAIMS} says that the exporter did not sign"]
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
        ends: what it says of each stream: the last version as of the checkpoint, -1 if there is none.
        at: when it says that it was made; "" without a usable statement.
        faults: what is wrong with it as a file (claim I).
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what is signed, and all that it is held against
        self,
        bundle: Bundle,
        keys: Keys,
        leaves: Mapping[int, ShownLeaf],
        checkpoint: Checkpoint,
        claimed: JsonObject,
        scope: Scope,
    ) -> None:
        self._scope = scope
        self.ends: dict[str, int] = {}
        self.at = ""
        self.faults: list[str] = []
        promised = claimed.get("signed") is True
        if (EXPORT_STATEMENT in bundle.files) != promised:
            found = "is missing" if promised else "is there"
            self.faults.append(f"{EXPORT_STATEMENT} {found}, and {CLAIMS} says {'' if promised else 'not '}signed")
        if EXPORT_STATEMENT not in bundle.files:
            return
        try:
            parse_canonical(bundle.files[EXPORT_STATEMENT])  # an envelope of ours has one spelling
            opened = open_envelope(bundle.files[EXPORT_STATEMENT], keys.speaking("export", checkpoint.size))
            statement = parse_statement(opened.payload)
            self._read(statement, leaves, claimed, {signer.vkey for signer in opened.signers})
        except LedgerError as problem:
            self.faults.append(f"{EXPORT_STATEMENT}: {problem}")

    def _read(
        self, statement: Statement, leaves: Mapping[int, ShownLeaf], claimed: JsonObject, signers: set[str]
    ) -> None:
        said = statement.predicate
        if statement.predicate_type != EXPORT:
            raise FormatError(f"expected predicate type {EXPORT}, found {statement.predicate_type[:80]}")
        if statement.subjects != (shown_subject(leaves.values()),):
            raise FormatError("its subject is not the leaves that the bundle shows")
        expected = {*self._scope.said_twice, *_OWN_MEMBERS}
        if said.keys() != expected:
            raise FormatError(f"expected exactly the members {sorted(expected)}, found {sorted(said)}")
        for name in self._scope.said_twice:
            if name not in claimed or canonical(said[name]) != canonical(claimed[name]):
                raise FormatError(f"says another {name} than {CLAIMS}")
        at, tool, exporter = said["at"], said["tool"], said["exporter"]
        if not (isinstance(at, str) and isinstance(tool, str) and isinstance(exporter, str) and exporter in signers):
            raise FormatError("expected `at` and `tool` as texts, and `exporter` as the vkey that signed")
        ends = read_ends(said["ends"])
        if list(ends) != self._scope.ends:
            raise FormatError(f"its `ends` are of {list(ends)}, expected {self._scope.ends}, in this order")
        self.ends, self.at = ends, at


def read_ends(value: Json) -> dict[str, int]:
    """Read `ends`: each stream once, with its last version, -1 for a stream that has none.

    Raises:
        FormatError: It has another shape, or a stream twice.
    """
    ends: dict[str, int] = {}
    for end in value if isinstance(value, list) else [value]:
        match end:
            case {"stream": str(stream), "ver": int(ver), **others} if type(ver) is int and ver >= -1 and not others:
                if stream in ends:
                    raise FormatError(f"`ends` has {stream[:80]} twice")
                ends[stream] = ver
            case _:
                raise FormatError(
                    "`ends` is a list of objects with a stream and a version, a whole number, and no more"
                )
    return ends


def shown_subject(leaves: Iterable[ShownLeaf]) -> Subject:
    """Name what an export speaks about: all shown leaves, as the one file that holds them."""
    digest = sha256()
    for leaf in leaves:
        digest.update(leaf.raw + b"\n")
    return Subject(LEAVES, digest.hexdigest())


def check_statements(
    bundle: Bundle, shown: Shown, leaves: Mapping[int, ShownLeaf], keys: Keys
) -> tuple[list[str], list[str]]:
    """Check the place and the signed statement of each finding that is shown (claim R).

    Returns:
        Faults, and what stays open: leaves that a finding about a peer rests on are not shown, or its signer lapsed.
    """
    faults: list[str] = []
    left: list[str] = []
    expected = Referred(bundle)
    for record in shown.of_type(_VIOLATION_TYPE):
        name = statement_file(record.n)
        expected.add(name)
        if any(isinstance(part, Hole) for part in record.stored_parts("statement") or ()):
            left.append(f"the statement of finding {record.n} is left out")
            continue
        try:
            _check_place(record)
            statement, doubt = open_finding(bundle.read(name), record, keys)
            left += [doubt] if doubt else []
            _check_predicate(statement, record, shown)
            left += _check_subjects(statement, record, shown, leaves)
        except LedgerError as problem:
            text = str(problem)
            faults.append(text if text.startswith(name) else f"{name}: {text}")
    faults += [f"{name}: no finding of the bundle has it" for name in expected.strangers(STATEMENTS)]
    return faults, left


def _check_place(record: Record) -> None:
    """A finding stands where its rule belongs, with the class and the open ends that the table gives the rule."""
    data = record.data
    name = str(data.get("rule"))
    rule_set = str(data.get("rule_set"))
    if rule_set in RULE_SETS:
        if name not in RULE_SETS[rule_set]:
            raise FormatError(f"{record_file(record.n)}: rule set {rule_set} has no rule {name[:80]}")
        rule = RULES[name]
        if (data.get("rule_class"), data.get("not_established")) != (rule.rule_class, [*rule.not_established]):
            raise FormatError(f"{record_file(record.n)}: not the class and the open ends of rule {name}")
    of_peer = data.get("rule_class") == CARD or name == _PEER_WIDE
    place = f"findings:peer:{data.get('peer')}" if of_peer else f"findings:{data.get('task')}"
    if record.stream != place or (of_peer and "task" in data):
        raise FormatError(f"{record_file(record.n)}: rule {name[:80]} is recorded in {record.stream}, expected {place}")


class SignedFinding(NamedTuple):
    """The statement in a finding's envelope, and why its signature proves nothing any more; "" where it does."""

    statement: Statement
    doubt: str


def open_finding(raw: bytes, record: Record, keys: Keys) -> SignedFinding:
    """Return the statement in a finding's envelope, signed by the key that speaks for statements there.

    A key that spoke there when the finding was logged, and was revoked later for a size before it, signed what anybody
    with that key could sign by now: the finding is not refuted by it, and not proven.

    Raises:
        FormatError: It is not the statement that the record names.
        SignatureError: No such key signed it.
    """
    parse_canonical(raw)  # an envelope of ours has one spelling
    opened, doubt = _open(raw, record.n, keys)
    if record.content("statement") != raw or sha256(opened.payload).hexdigest() != record.data.get("statement_sha256"):
        raise FormatError(f"not the statement that {record_file(record.n)} holds")
    return SignedFinding(parse_statement(opened.payload), doubt)


def _open(raw: bytes, n: int, keys: Keys) -> tuple[Opened, str]:
    """Open the envelope of the finding at log index n; say why its signer counts no more, "" where one counts."""
    lapsed = keys.lapsed("statement", n)
    try:
        return open_envelope(raw, keys.speaking("statement", n)), ""
    except SignatureError:
        if not lapsed:
            raise
    opened = open_envelope(raw, [term.key for term in lapsed])
    term = next(term for term in lapsed if term.key == opened.signers[0])
    return opened, (
        f"finding {n} is signed by {term.key.name}+{term.key.key_id}, which event {term.revoked_by}, logged later, "
        f"revoked from size {term.revoked} on: who else held that key could sign it too"
    )


def lapsed_findings(statements: Iterable[tuple[int, bytes]], keys: Keys) -> int:
    """Return how many findings have a signer that spoke for them once, and was revoked since.

    Args:
        statements: the envelope of each finding, with the finding's log index.
        keys: what the log says of its keys.
    """
    count = 0
    for n, raw in statements:
        with suppress(LedgerError):  # what is no statement at all is a fault that others name
            count += bool(_open(raw, n, keys)[1])
    return count


def _check_predicate(statement: Statement, record: Record, shown: Shown) -> None:
    """Hold what was signed against the record, and the trigger against the shown event that it names."""
    data, said = record.data, statement.predicate
    if statement.predicate_type != VIOLATION:
        raise FormatError(f"expected predicate type {VIOLATION}, found {statement.predicate_type[:80]}")
    framed = "frozen_hash" in data
    if framed != ("frozen_form" in data):
        raise FormatError(f"{record_file(record.n)}: a hash stands with its form")
    at = cast("int", data["trigger_index"])
    trigger = shown.records.get(at)
    if trigger is None or trigger.ref != data["trigger"] or at >= record.n:
        raise FormatError(f"its trigger, event {at}, is not an event that is shown")
    expected: JsonObject = {name: data[name] for name in _AS_RECORDED}
    expected["trigger"] = trigger.c
    expected["as_of"] = at + 1
    expected["frozen"] = {"form": data["frozen_form"], "hash": data["frozen_hash"]} if framed else None
    for name in sorted(expected.keys() | said.keys()):
        if name not in said or name not in expected or canonical(said[name]) != canonical(expected[name]):
            raise FormatError(f"says another {name} than {record_file(record.n)}")


def _check_subjects(statement: Statement, record: Record, shown: Shown, leaves: Mapping[int, ShownLeaf]) -> list[str]:
    """Hold the subjects against the leaves, in the order of the record's evidence; return which are not shown."""
    data = record.data
    indexes = cast("list[int]", data["evidence_index"])
    refs = cast("list[Json]", data["evidence"])
    if not len(statement.subjects) == len(indexes) == len(refs):
        raise FormatError(f"has {len(statement.subjects)} subjects, its record names {len(indexes)} events")
    if sorted(set(indexes)) != indexes or data["trigger_index"] not in indexes:
        raise FormatError(f"{record_file(record.n)}: its evidence is in order of the log, the trigger among it")
    left: list[str] = []
    for subject, n, ref in zip(statement.subjects, indexes, refs, strict=True):
        leaf = leaves.get(n)
        if leaf is None:
            # A finding about the peer may rest on other tasks, which are not disclosed.
            if not record.stream.startswith("findings:peer:") or subject.name != f"{record.log}#{n}" or n >= record.n:
                raise FormatError(f"speaks about leaf {n}, which is not shown")
            left.append(f"finding {record.n} rests on event {n}, which is not shown")
        elif subject != leaf_subject(record.log, n, leaf.raw):
            raise FormatError(f"speaks about another leaf {n} than is shown")
        elif n in shown.records and shown.records[n].ref != ref:
            raise FormatError(f"{record_file(record.n)}: refers to another event {n} than is shown")
    return left
