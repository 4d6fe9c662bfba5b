"""The audit's one pass over the events: each row held against its record, its stream, its leaf, its tags."""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, cast

from a2a_ledger.anchors.held import ANCHORS
from a2a_ledger.audit.fault import Fault, said
from a2a_ledger.audit.keys import commits_to
from a2a_ledger.audit.tree import TreePass
from a2a_ledger.codec import (
    NEVER_CUT,
    SECRET,
    Hole,
    Place,
    SealedParts,
    blob_id,
    changed_holes,
    erased_versions,
    leaf,
    misplaced,
    read_record,
    sealed_by,
    states_holes,
    stream_tag,
    tags_of,
    unpack_container,
    unpack_parts,
)
from a2a_ledger.errors import FormatError, MissingKeysError
from a2a_ledger.merkle import leaf_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from a2a_ledger.audit.heads import Heads
    from a2a_ledger.audit.keys import AuditKeys
    from a2a_ledger.codec import Part, Record
    from a2a_ledger.events import Json
    from a2a_ledger.store import RawTables

_IN_MEMORY = 65_536  # stream tips held at once; the rest lies in a temporary file
_REDACTION_ID = re.compile("[0-9a-f]{16}")
_ALL_ONES = (1 << 64) - 1

Row = tuple[object, ...]


class Tips:
    """The newest version and commitment of every stream, with bounded memory."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, str]] = {}
        self._spilled: sqlite3.Connection | None = None

    def get(self, stream: str) -> tuple[int, str | None]:
        """Return version and c of the newest event met; -1 and None before the first."""
        found: tuple[int, str] | None = self._held.get(stream)
        if found is None and self._spilled is not None:
            found = self._spilled.execute("SELECT ver, c FROM tips WHERE stream = ?", (stream,)).fetchone()
        return found or (-1, None)

    def set(self, stream: str, ver: int, c: str) -> None:
        """Note the newest event of a stream."""
        self._held[stream] = ver, c
        if len(self._held) > _IN_MEMORY:
            self._spill()

    def _spill(self) -> None:
        if self._spilled is None:
            self._spilled = sqlite3.connect("")  # a private temporary file that SQLite removes itself
            self._spilled.execute("CREATE TABLE tips (stream TEXT PRIMARY KEY, ver INTEGER, c TEXT) WITHOUT ROWID")
        rows = ((stream, ver, c) for stream, (ver, c) in self._held.items())
        self._spilled.executemany("INSERT OR REPLACE INTO tips VALUES (?, ?, ?)", rows)
        self._held.clear()

    def close(self) -> None:
        """Remove the temporary file."""
        if self._spilled is not None:
            self._spilled.close()


class EventPass:
    """Takes the rows of events in log order.

    Attributes:
        count: rows taken.
        next: the log index that the next row has to have.
        tree: the tree over the leaves so far.
        large_blobs: ids of the blobs that lie in a table of their own and belong to a record.
        tag_count: lookup tags that the records have.
        clear: rows that lie in clear though their stream has keys to seal them.
        lost_keys: ids of keys that rows were sealed with and that are nowhere.
        erased: the events that say what was erased.
        redaction_ids: ids of the redaction keys that records name, with the index of the first one that does.
    """

    def __init__(self, origin: str, raw: RawTables, keys: AuditKeys, heads: Heads, faults: list[Fault]) -> None:
        self._origin = origin
        self._raw = raw
        self._keys = keys
        self._heads = heads
        self._faults = faults
        self._tips = Tips()
        self._lost: list[tuple[str, int, Fault]] = []  # stream, version, what is gone; erasure may explain it
        self._states_holes = False  # from some record on, each states how many holes it was recorded with
        self._erased: set[tuple[str, int]] = set()
        self._tag_sum = 0
        self._tag_fault = False
        self.count = 0
        self.next = 0
        self.tree = TreePass(raw, faults)
        self.large_blobs: set[object] = set()
        self.tag_count = 0
        self.redaction_ids: dict[str, int] = {}
        self.clear = 0
        self.erased: list[Record] = []
        self.lost_keys: set[bytes] = set()

    def take(self, row: Row) -> None:
        """Check one row and everything that hangs on it."""
        rowid, _, _, _, c, t, _ = row
        n = cast("int", rowid) - 1
        if n != self.next:
            self._fault("index", n, f"expected the event at index {self.next}, found index {n}: events are missing")
            self.tree.broken = True
        self.count += 1
        self.next = n + 1
        if isinstance(c, bytes) and isinstance(t, bytes) and len(c) == len(t) == SECRET:
            self.tree.push(leaf_hash(leaf(self._origin, n, c, t)))
        else:
            self._fault("record", n, "the commitment or the tag beside the event is not 32 octets")
            self.tree.broken = True
        try:
            self._take_state(n, row)
        except Exception as problem:  # noqa: BLE001 - whatever stands in a row, the audit goes on to the next
            self._fault("record", n, f"event {n} cannot be checked: {said(problem)}")
        if self.next >= self._heads.due:
            self._heads.meet(self.next, self.tree)

    def _take_state(self, n: int, row: Row) -> None:
        """Check the record against the rest of its row."""
        _, stream, ver, topic, c, t, state = row
        try:
            salt, raw, inline = unpack_container(state, self._place(stream, ver), self._keys.boxes)
            if isinstance(inline, SealedParts):
                inline.check()
            else:
                self.clear += stream != "ledger"
            record = read_record(salt, raw, n=n, trusted=True)
        except (FormatError, MissingKeysError) as problem:
            self._unopened(n, state, problem, placed=self._place(stream, ver) is not None)
            if isinstance(stream, str) and isinstance(ver, int) and isinstance(c, bytes):
                self._tips.set(stream, ver, c.hex())  # what comes after it is not at fault
        else:
            if not isinstance(c, bytes) or record.c != c.hex():
                self._fault("record", n, f"the record of event {n} is not what its leaf commits to")
            elif record.log != self._origin:
                self._fault("record", n, f"event {n} belongs to log {record.log}")
            if (record.stream, record.ver, record.type) != (stream, ver, topic):
                found = f"{stream!a} version {ver!a}, {topic!a}"
                self._fault(
                    "envelope",
                    n,
                    f"event {n} is {record.stream} version {record.ver}, {record.type}; its row says {found}",
                )
            self._take_record(record, t, inline)

    def _place(self, stream: object, ver: object) -> Place | None:
        """Return where the row says that it stands; None where that can be no place."""
        if isinstance(stream, str) and isinstance(ver, int) and 0 <= ver < 1 << 63:
            return Place(self._origin, stream, ver)
        return None

    def _unopened(self, n: int, state: object, problem: FormatError | MissingKeysError, *, placed: bool) -> None:
        """Note a row that cannot be read: its box does not open, its keys are gone, or it is no container at all."""
        try:
            key_id = sealed_by(state)
        except FormatError:
            key_id = None
        if key_id is None:
            self._fault("container", n, str(problem))
        elif not placed:
            self._fault("envelope", n, f"the row of event {n} says no stream and version, so its box opens nowhere")
        elif isinstance(problem, FormatError):
            self._fault("box", n, f"event {n} cannot be opened: {problem}")
        elif key_id not in self.lost_keys:  # said once, not for each of the rows that they sealed
            self.lost_keys.add(key_id)
            self._fault("key", n, f"event {n} cannot be opened: {problem}")

    def _take_record(self, record: Record, t: object, inline: Mapping[bytes, tuple[Part, ...]]) -> None:
        """Check what only the record itself can tell."""
        n, stream = record.n, record.stream
        self._check_stream(record, t)
        self._states_holes = self._states_holes or states_holes(record)
        if record.blobs or inline:
            self._check_blobs(record, inline)
        for tag in tags_of(stream, record.type, record.data):
            self.tag_count += 1
            self._tag_sum += hash((self._raw.tag_cell(tag), n))
        self._note_redaction(n, record.data.get("credential"))
        if stream in {"ledger", ANCHORS}:
            self._heads.learn(record, lambda role: self._content(record, role, inline))
        elif record.type == "content.erased.v1":
            self.erased.append(record)
            self._erased |= {(stream, ver) for ver in erased_versions(record)}

    def _check_stream(self, record: Record, t: object) -> None:
        """Check where a record stands in its stream, and the tag that its leaf has from there."""
        n, stream = record.n, record.stream
        ver, c = self._tips.get(stream)
        if record.ver != ver + 1 or record.prev != c:
            self._fault("stream", n, f"event {n} is {stream} version {record.ver}; it does not follow version {ver}")
        self._tips.set(stream, record.ver, record.c)
        if wrong := misplaced(stream, record.type):
            self._fault("stream", n, f"event {n} {wrong}")
        key = self._keys.find(stream)
        if key is None:
            if ver < 0:
                self._fault("key", n, f"the key store has no key of {stream}")
            return
        if record.ver == 0 and not commits_to(stream, key, record.data.get("stream_commitment")):
            self._fault("key", n, f"{stream} does not commit to the key that the key store has for it")
        if t != stream_tag(key, record.ver):
            self._fault("tag", n, f"the leaf of event {n} does not carry the tag of {stream} version {record.ver}")
            self._tag_fault = True

    def _note_redaction(self, n: int, marks: Json) -> None:
        for mark in marks if isinstance(marks, list) else []:
            match mark:
                case {"k": str(k)} if _REDACTION_ID.fullmatch(k):
                    self.redaction_ids.setdefault(k, n)
                case _:  # a contract lists scheme names here
                    pass

    def _content(self, record: Record, role: str, inline: Mapping[bytes, tuple[Part, ...]]) -> bytes:
        """Return what is left of a blob's octets, nothing if it cannot be read."""
        ref = record.blobs.get(role)
        if ref is None:
            return b""
        identity = bytes.fromhex(ref.id)
        try:
            parts = inline[identity] if identity in inline else self._large(record, identity, self._raw.blob(identity))
        except (FormatError, MissingKeysError):
            return b""
        return b"".join(part.content for part in parts if not isinstance(part, Hole))

    def _large(self, record: Record, identity: bytes, stored: object) -> tuple[Part, ...]:
        """Return the parts of a large blob, which opens for its record alone."""
        return unpack_parts(stored, identity, self._place(record.stream, record.ver), self._keys.boxes)

    def _check_blobs(self, record: Record, inline: Mapping[bytes, tuple[Part, ...]]) -> None:
        elsewhere = 0
        for role, ref in record.blobs.items():
            identity = bytes.fromhex(ref.id)
            try:
                try:
                    parts = inline[identity]
                except KeyError:
                    elsewhere += 1
                    stored = self._raw.blob(identity)
                    if stored is None:
                        self._note_lost(record, role, "is missing")
                        continue
                    self.large_blobs.add(identity)
                    parts = self._large(record, identity, stored)
            except (FormatError, MissingKeysError) as problem:
                self._fault("blob", record.n, f"blob {role} of event {record.n} cannot be read: {problem}")
                continue
            size = 0
            for part in parts:
                size += part.length if isinstance(part, Hole) else len(part.content)
            if size != ref.size or blob_id(parts) != identity:
                self._fault("blob", record.n, f"blob {role} of event {record.n} is not what its record commits to")
            elif changed := changed_holes(record, role, parts, stated=self._states_holes):
                self._note_lost(record, role, changed)
        strangers = len(inline) + elsewhere - len(record.blobs)
        if strangers:
            self._fault("blob", record.n, f"{strangers} blobs stored with event {record.n} belong to no record")

    def _note_lost(self, record: Record, role: str, what: str) -> None:
        fault = Fault("blob", record.n, f"blob {role} of event {record.n} {what}")
        if role in NEVER_CUT:  # by no erasure either
            self._faults.append(fault)
        else:
            self._lost.append((record.stream, record.ver, fault))

    def finish(self) -> None:
        """Say what only the end of the log can tell."""
        self._faults += [fault for stream, ver, fault in self._lost if (stream, ver) not in self._erased]
        if self._tag_fault:
            self._check_twins()
        self.tree.finish()
        self._tips.close()

    def _check_twins(self) -> None:
        """Look for two leaves with one tag; where all tags are right there can be none."""
        with sqlite3.connect("") as places:
            places.execute("CREATE TABLE tags (t BLOB, n INTEGER)")
            rows = self._raw.rows("ledger_events")
            places.executemany("INSERT INTO tags VALUES (?, ?)", ((row[5], cast("int", row[0]) - 1) for row in rows))
            twins = places.execute("SELECT min(n), max(n) FROM tags GROUP BY t HAVING count(*) > 1").fetchall()
        places.close()
        for first, last in twins:
            self._fault(
                "tag", last, f"the leaves of events {first} and {last} carry one tag: two stories for one place"
            )

    def tags_differ(self, rows: Iterable[Row]) -> bool:
        """Say whether the stored lookup tags are another set than that of the records."""
        total, count = 0, 0
        for row in rows:
            total += hash(row)
            count += 1
        return count != self.tag_count or (total - self._tag_sum) & _ALL_ONES != 0

    def tags_of_row(self, row: Row) -> Iterator[tuple[int, str]]:
        """Yield (log index, lookup tag) for one raw row of events, nothing if it cannot be read."""
        for record, _ in self._read_again(row):
            for tag in tags_of(record.stream, record.type, record.data):
                yield record.n, tag

    def statements(self) -> Iterator[tuple[int, bytes]]:
        """Yield (log index, envelope) of each finding, going over all rows again."""
        for row in self._raw.rows("ledger_events"):
            if str(row[1]).startswith("findings:"):
                for record, inline in self._read_again(row):
                    if record.type == "violation.detected.v1":
                        yield record.n, self._content(record, "statement", inline)

    def _read_again(self, row: Row) -> Iterator[tuple[Record, Mapping[bytes, tuple[Part, ...]]]]:
        """Yield the record of one raw row with the parts in it, nothing if it cannot be read."""
        try:
            salt, raw, inline = unpack_container(row[6], self._place(row[1], row[2]), self._keys.boxes)
            yield read_record(salt, raw, n=cast("int", row[0]) - 1, trusted=True), inline
        except (FormatError, MissingKeysError):
            return

    def _fault(self, kind: str, position: int | None, detail: str) -> None:
        self._faults.append(Fault(kind, position, detail))
