"""The audit: everything in a ledger worked out again from its records, in one pass, with flat memory.

Nothing that the ledger has worked out before is believed: every record is hashed again, every
stream chained again, every leaf, tile, root and lookup tag made again and compared, every
signature checked. It reads one snapshot and never writes, needs no private key, and goes on after a
fault. A fault is a value, never an exception:

| kind | what is not as it must be |
|---|---|
| `index` | the log indexes do not run densely from 0 |
| `container` | a stored state cannot be read |
| `box` | a sealed state does not open: it was changed, or put in another place |
| `record` | a record is not what its leaf commits to, or not of this log |
| `envelope` | stream, version or topic beside a record differ from the record |
| `stream` | a stream's versions or its chain of `prev` break, or an event stands where none of its type belongs |
| `tag` | a leaf does not carry its stream's tag, or two leaves carry one |
| `key` | a key is missing or not the one that the log commits to, a key event is unusable, the key store is damaged |
| `blob` | a blob is missing, not what its record commits to, cut since it was recorded, or belongs to no record |
| `tile` | a tile of the tree is not made from the leaves |
| `lookup` | the lookup tags are not those of the records |
| `checkpoint` | a signed head is malformed, gone, not by a key of the log, or not over these leaves |
| `truncated` | a signed head or a mark covers events that are not there |
| `earlier` | a head that the reader kept elsewhere is not over these leaves |
| `mark` | a copy of the high-water mark is damaged or is over other leaves, or both are missing |
| `tracking` | a follower's position is damaged, or lies beyond the log |
| `view` | a read model is not what the records give |
| `database` | the file is damaged below the level of rows, or holds tables or triggers that are not ours |
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from a2a_ledger.anchors import time_roots
from a2a_ledger.anchors.kept import Elsewhere, heads_elsewhere
from a2a_ledger.anchors.last_round import complaints
from a2a_ledger.audit.events import EventPass
from a2a_ledger.audit.fault import Fault, said
from a2a_ledger.audit.form import check_ledger
from a2a_ledger.audit.heads import Heads
from a2a_ledger.audit.keys import AuditKeys
from a2a_ledger.audit.peer_heads import check_peer_heads
from a2a_ledger.audit.pems import check_private_keys
from a2a_ledger.codec import erased_versions, says_erased
from a2a_ledger.erasing import ERASING
from a2a_ledger.migrating import MIGRATING
from a2a_ledger.store.schema import BLOBS, EVENTS, TAGS, TILES, TRACKING, row_digest
from a2a_ledger.verify.signed import LAPSED, lapsed_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from a2a_ledger.events import Json
    from a2a_ledger.key_events import Keys
    from a2a_ledger.keys import Verifier
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store import RawTables, Store
    from a2a_ledger.store.mark import HighWaterMark
    from a2a_ledger.time_token import Certificate


_STRIDE = 1000  # events between two reports of progress


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit found.

    Attributes:
        events: rows of events.
        leaves: leaves that follow one another from 0.
        checkpoint: size and root (hex) of the newest signed head that fits; None: there is none.
        anchored_size: the largest size that somebody else has put a signature to.
        faults: in the order in which they were found.
        notes: what is no fault and worth saying.
        unproven: heads of `earlier` that are of another log, or that no key signed which speaks for them, and those
            that lie there and cannot be read: they say nothing about the log.
        signed_size: the largest size that a head is known for which a key of the log signed, whether or not it fits.
    """

    events: int
    leaves: int
    checkpoint: tuple[int, str] | None
    anchored_size: int
    faults: tuple[Fault, ...]
    notes: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    signed_size: int = 0

    @property
    def clean(self) -> bool:
        """Say whether there is no fault."""
        return not self.faults

    @property
    def uncovered(self) -> int:
        """Return how many events no signed head covers yet: nothing protects them from being removed.

        A head that was signed over them counts where these leaves do not fit it: it shows that they were changed.
        """
        return max(0, self.events - max(self.signed_size, self.checkpoint[0] if self.checkpoint else 0))

    def to_json(self) -> dict[str, Json]:
        """Return the shape of `audit --format json`."""
        head: Json = None if self.checkpoint is None else {"size": self.checkpoint[0], "root": self.checkpoint[1]}
        return {
            "events": self.events,
            "leaves": self.leaves,
            "checkpoint": head,
            "anchored_size": self.anchored_size,
            "faults": [fault.to_json() for fault in self.faults],
        }


def audit_ledger(
    ledger: ContractLedger,
    *,
    earlier: Mapping[str, bytes | str] = MappingProxyType({}),
    trust: Sequence[Verifier] = (),
    views: Iterable[Callable[[], Iterable[str]]] = (),
    progress: Callable[[int, int], None] | None = None,
) -> AuditReport:
    """Audit an open ledger: its database, its key store, both copies of its mark, and what others hold; see `audit`."""
    elsewhere = Elsewhere({}, [], [])
    if ledger.home is not None:
        elsewhere = heads_elsewhere(ledger.home.root, ledger.settings.anchor.files)
        elsewhere.remarks.extend(complaints(ledger.home.root))
    held = {**elsewhere.heads, **earlier}
    roots = time_roots(ledger)
    report = audit(
        ledger.store, mark=ledger.mark, earlier=held, trust=trust, roots=roots, views=views, progress=progress
    )
    faults, notes = check_peer_heads(ledger)
    return replace(
        report,
        faults=(*report.faults, *faults),
        notes=(*report.notes, *elsewhere.remarks, *notes),
        unproven=(*report.unproven, *elsewhere.unread),
    )


def audit(  # noqa: PLR0913 - one argument for each thing that is looked at
    store: Store,
    *,
    mark: HighWaterMark | None = None,
    earlier: Mapping[str, bytes | str] = MappingProxyType({}),
    trust: Sequence[Verifier] = (),
    roots: Sequence[Certificate] = (),
    views: Iterable[Callable[[], Iterable[str]]] = (),
    progress: Callable[[int, int], None] | None = None,
) -> AuditReport:
    """Work everything out again and say what does not fit.

    Args:
        store: the ledger's store; may be read-only.
        mark: where both copies of the high-water mark lie.
        earlier: signed heads that the reader kept elsewhere, by what they are called in the report.
        trust: keys of this log that the reader had from its owner, beside those that the log itself names.
        roots: of the timestamp authorities whose tokens count as anchors.
        views: one callable a read model that makes it again and yields a sentence for each difference.
        progress: told how many events are done, and of how many, now and then.

    Raises:
        StoreError: the database cannot be read at all.
    """
    faults: list[Fault] = []
    with AuditKeys(store) as keys, store.raw() as raw:
        heads = Heads(raw, mark, store.origin, faults, earlier, trust, roots)
        events = EventPass(store.origin, raw, keys, heads, faults)
        steps: tuple[Callable[[], Iterable[Fault]], ...] = (
            lambda: [Fault("database", None, text) for text in raw.damage()],
            lambda: check_ledger(raw),
            keys.check,
            lambda: _pass(raw, events, progress),
            lambda: heads.finish(events.next),
            lambda: _check_leftovers(raw, events),
            lambda: _check_tracking(raw, events.next),
            lambda: keys.finish(events.redaction_ids),
            lambda: check_private_keys(mark.root, store.origin, heads.keys, heads.notes) if mark is not None else [],
        )
        for step in steps:
            try:
                faults += step()
            except Exception as problem:  # noqa: BLE001 - a damage that stops one step must not stop the others
                faults.append(Fault("database", None, said(problem)))
        heads.notes += _storage_notes(keys.fact_names(), events)
        heads.notes += _lapsed_notes(heads.keys, events)
    for view in views:
        faults += _differences(view)
    return AuditReport(
        events=events.count,
        leaves=events.tree.size,
        checkpoint=heads.newest,
        anchored_size=heads.anchored,
        faults=tuple(faults),
        notes=tuple(heads.notes),
        unproven=tuple(heads.unproven),
        signed_size=heads.signed,
    )


def _storage_notes(facts: list[str], events: EventPass) -> list[str]:
    """Return what is no fault and worth saying of what is stored."""
    notes = [
        f"event {record.n}: {says_erased(record, len(erased_versions(record)))} ({record.stream})"
        for record in events.erased
    ]
    notes += [
        f"an erasure of task {task} was begun and is not finished: its content may still lie in the files; the next "
        "process that opens the ledger to write finishes it"
        for task in (name.removeprefix(ERASING) for name in facts if name.startswith(ERASING))
    ]
    if events.clear:
        notes.append(
            f"{events.clear} events lie in clear in the database: they were written before rows were sealed; "
            "`a2a-ledger migrate` seals them"
        )
    elif MIGRATING in facts:
        notes.append(
            "events were sealed, and octets of before may still lie in clear in free pages of the database; "
            "`a2a-ledger migrate` ends it"
        )
    return notes


def _lapsed_notes(keys: Keys, events: EventPass) -> list[str]:
    """Say how many findings lost their signer by a revocation; it takes another pass, which is rarely needed."""
    if all(term.role != "statement" or term.revoked is None for term in keys.terms):
        return []
    count = lapsed_findings(events.statements(), keys)
    if not count:
        return []
    what = "1 finding was" if count == 1 else f"{count} findings were"
    return [f"{what} signed by a statement key behind the size that it was later revoked for: {LAPSED}"]


def _pass(raw: RawTables, events: EventPass, progress: Callable[[int, int], None] | None) -> list[Fault]:
    """Take every event; the faults are noted as they are met."""
    size = raw.count(EVENTS) if progress is not None else 0
    for row in raw.rows(EVENTS):
        events.take(row)
        if progress is not None and not events.count % _STRIDE:
            progress(events.count, size)
    events.finish()
    return []


def _differences(view: Callable[[], Iterable[str]]) -> list[Fault]:
    try:
        return [Fault("view", None, text) for text in view()]
    except Exception as problem:  # noqa: BLE001 - a view stands on damaged rows too: say it, and go on
        return [Fault("view", None, f"cannot be made again: {said(problem)}")]


def _check_leftovers(raw: RawTables, events: EventPass) -> list[Fault]:
    """Find rows that nothing of the log accounts for."""
    faults: list[Fault] = []
    unknown = bool(events.lost_keys)  # what belongs to records that cannot be opened cannot be told
    if not unknown and raw.count(BLOBS) != len(events.large_blobs):
        strangers = [row[0] for row in raw.rows(BLOBS) if row[0] not in events.large_blobs]
        faults += [Fault("blob", None, f"a stored blob belongs to no record: {_shown(blob)}") for blob in strangers]
    tree = events.tree
    if not tree.broken and raw.count(TILES) != sum(tree.tiles):
        for level, place, _ in raw.rows(TILES):
            there = isinstance(level, int) and isinstance(place, int) and 0 <= level < len(tree.tiles)
            if not there or not 0 <= cast("int", place) < tree.tiles[cast("int", level)]:
                faults.append(Fault("tile", None, f"the tile at level {level!a}, index {place!a} has no leaves"))
    if not unknown and events.tags_differ(raw.rows(TAGS)):
        missing = _missing_tags(raw, events)
        extra = raw.count(TAGS) - (events.tag_count - len(missing))
        faults += missing
        if extra:
            faults.append(Fault("lookup", None, f"{extra} lookup tags belong to no record"))
    return faults


def _missing_tags(raw: RawTables, events: EventPass) -> list[Fault]:
    """Go over the records again, which only a fault makes necessary, and name the tags that are gone."""
    return [
        Fault("lookup", n, f"lookup tag {tag} of event {n} is missing")
        for row in raw.rows(EVENTS)
        for n, tag in events.tags_of_row(row)
        if not raw.has_tag(tag, n)
    ]


def _check_tracking(raw: RawTables, size: int) -> list[Fault]:
    """Check the followers' positions, which nothing in the log determines, by the check column of each row."""
    faults: list[Fault] = []
    for name, position, digest in raw.rows(TRACKING):
        where = position - 1 if isinstance(position, int) else None
        if not isinstance(name, str) or not isinstance(position, int) or digest != row_digest(TRACKING, name, position):
            faults.append(Fault("tracking", None, f"the position of follower {_shown(name)} was changed from outside"))
        elif not 0 <= position <= size:
            faults.append(Fault("tracking", where, f"follower {name} is at {position}, the log has {size} events"))
    return faults


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else ascii(value)
