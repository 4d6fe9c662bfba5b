"""The events that a bundle shows, held against the leaves that commit to them (docs/format.md section 12).

Everything here asks one question in small pieces: are these records, blobs and streams what the
leaves say? Whether the leaves are in anybody's log is the question of `proven`. A fault is one
sentence that names the file; a list of none means that the check held.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.bundle import BLOBS, INDEX, RECORDS, STREAMS, record_file, salt_file, stream_key_file
from a2a_ledger.codec import (
    Hole,
    blob_id,
    commitment,
    findings_key,
    later_holes,
    read_record,
    stream_commitment,
    stream_tag,
    task_id,
)
from a2a_ledger.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from a2a_ledger.bundle import Bundle, IndexRow
    from a2a_ledger.codec import Part, Record
    from a2a_ledger.events import Json
    from a2a_ledger.verify.proven import ShownLeaf

_MOST_GAPS = 20_000  # more than the largest `claims.json` can list, so that no honest list is as long


class Gap(NamedTuple):
    """A part that was left out of a blob, as the bundle lists it."""

    n: int  # index of the event
    role: str
    blob: str
    part: int
    size: int


class Shown:
    """The records that could be read, and every fault that was found on the way. Never raises.

    Attributes:
        records: by index in the log, in log order.
        streams: the same records by stream, in order of version.
        keyed: the streams whose key is disclosed and is the right one.
        gaps: parts that were left out.
        faults: what is wrong with records, blobs and references (claim C1).
        stream_faults: what is wrong with streams as a whole (claim C2).
        unresolved: references to events that are not shown, and that the bundle need not show.
        later: what became of blobs after they were recorded: nobody can read again what was judged then.
    """

    def __init__(self, bundle: Bundle, rows: Iterable[IndexRow], leaves: Mapping[int, ShownLeaf], origin: str) -> None:
        self._bundle = bundle
        self._leaves = leaves
        self._origin = origin
        self._used: set[str] = set()
        self._blobs: dict[str, tuple[Part, ...]] = {}  # by id: a hostile bundle names one many times
        self.records: dict[int, Record] = {}
        self.streams: dict[str, list[Record]] = {}
        self.keyed: set[str] = set()
        self.gaps: list[Gap] = []
        self.faults: list[str] = []
        self.stream_faults: list[str] = []
        self.unresolved: list[str] = []
        for row in rows:
            if row.n in leaves:  # else the check of the leaves has said so
                self._read(row)
        for stream, records in self.streams.items():
            records.sort(key=lambda record: record.ver)
            self._check_versions(stream, records)
            self._check_key(stream, records)
        self._check_tags_differ()
        self._check_references()
        self.later = later_holes(self.records)
        for folder in (RECORDS, BLOBS, STREAMS):
            strangers = [name for name in bundle.under(folder) if name not in self._used]
            self.faults += [f"{name}: no event of the bundle refers to it" for name in strangers]

    def _read(self, row: IndexRow) -> None:
        """Read the record of one row and its blobs; keep it if all of it fits its leaf."""
        name = record_file(row.n)
        self._used |= {name, salt_file(row.n)}
        try:
            record = self._read_record(name, row)
            parts = {ref.id: self._read_blob(row.n, role, ref.id, ref.size) for role, ref in record.blobs.items()}
        except FormatError as problem:
            text = str(problem)
            self.faults.append(text if text.startswith("data/") else f"{name}: {text}")
            return
        self.records[row.n] = record = record._replace(parts=parts)
        self.streams.setdefault(record.stream, []).append(record)

    def _read_record(self, name: str, row: IndexRow) -> Record:
        leaf = self._leaves[row.n]
        raw, salt = self._bundle.read(name), self._bundle.salt(row.n)
        if commitment(salt, raw) != leaf.c:
            raise FormatError(f"{name}: not the record that leaf {row.n} commits to")
        record = read_record(salt, raw, n=row.n, t=leaf.t.hex())
        record.event()  # of a known type: every required field is there, and each of its JSON type
        if record.log != self._origin:
            raise FormatError(f"{name}: belongs to log {record.log}, expected {self._origin}")
        body = record.blobs.get("body")
        listed = (record.stream, record.ver, name, f"{BLOBS}{body.id}" if body else "-")
        if listed != (row.stream, row.ver, row.record, row.body):
            raise FormatError(f"{INDEX}: lists leaf {row.n} as {row.stream} version {row.ver}, expected {listed}")
        return record

    def _read_blob(self, n: int, role: str, blob: str, size: int) -> tuple[Part, ...]:
        folder = f"{BLOBS}{blob}"
        if blob not in self._blobs:
            parts = tuple(self._bundle.blob_parts(blob))
            if blob_id(parts).hex() != blob:
                raise FormatError(f"{folder}: not the blob {role} that {record_file(n)} commits to")
            self._blobs[blob] = parts
        parts = self._blobs[blob]
        if sum(part.length if isinstance(part, Hole) else len(part.content) for part in parts) != size:
            raise FormatError(f"{folder}: {record_file(n)} gives its size as {size}, its parts have another")
        for number, part in enumerate(parts):
            if isinstance(part, Hole):
                self._used.add(f"{folder}/{number}.hole")
                if len(self.gaps) < _MOST_GAPS or self._bundle.packed is not None:
                    self.gaps.append(Gap(n, role, blob, number, part.length))
            else:
                self._used |= {f"{folder}/{number}", f"{folder}/{number}.salt"}
        return parts

    def _check_versions(self, stream: str, records: list[Record]) -> None:
        """Check the chain of `prev` where neighbours are shown."""
        for before, record in pairwise(records):
            if record.ver == before.ver:
                self.stream_faults.append(
                    f"{stream}: version {record.ver} is there twice, at {before.n} and {record.n}"
                )
            elif record.ver == before.ver + 1 and (record.prev != before.c or record.n < before.n):
                self.stream_faults.append(f"{stream}: version {record.ver} does not follow the version before it")

    def _check_key(self, stream: str, records: list[Record]) -> None:
        """Where the key is disclosed: it is the stream's own, no version is missing, every tag is right."""
        name = stream_key_file(stream)
        try:
            key = self._bundle.stream_key(stream)
            ours = key is not None and self._commits_to(stream, records[0], key)
            follows = self._task_key(stream)
        except FormatError as problem:
            self.stream_faults.append(str(problem))
            return
        if key is None:
            if follows is not None:
                self.stream_faults.append(f"{name} is missing: it follows from the task's key, which is disclosed")
            return
        self._used.add(name)
        if not ours:
            self.stream_faults.append(f"{name}: not the key that {stream} commits to")
            return
        self.keyed.add(stream)
        last = records[-1].ver
        missing = sorted({*range(min(last, len(records)) + 1)} - {record.ver for record in records})
        if missing:
            self.stream_faults.append(
                f"{stream}: version {missing[0]} is missing; {len(records)} of {last + 1} are shown"
            )
        wrong = [record for record in records if record.t != stream_tag(key, record.ver).hex()]
        self.stream_faults += [
            f"{record_file(record.n)}: leaf {record.n} does not carry the tag of {stream} version {record.ver}"
            for record in wrong
        ]
        self._check_nothing_follows(stream, key, last)
        if stream.startswith(("task:", "peer:")) and (findings := findings_of(stream)) not in self.streams:
            self._check_nothing_follows(findings, findings_key(key), -1)

    def _check_nothing_follows(self, stream: str, key: bytes, last: int) -> None:
        """Search the shown leaves for the version behind the last one."""
        after = stream_tag(key, last + 1)
        later = [n for n, leaf in self._leaves.items() if leaf.t == after]
        self.stream_faults += [f"{record_file(n)}: leaf {n} is {stream} version {last + 1}, not shown" for n in later]

    def _task_key(self, stream: str) -> bytes | None:
        """Return the disclosed key of the task, or the peer, whose findings a stream holds."""
        kind, _, name = stream.partition(":")
        if kind != "findings":
            return None
        return self._bundle.stream_key(name if name.startswith("peer:") else f"task:{name}")

    def _commits_to(self, stream: str, first: Record, key: bytes) -> bool:
        """Say whether a stream commits to this key: by its name, or in version 0 and through its task's key."""
        kind, _, name = stream.partition(":")
        if kind == "task":
            return task_id(key) == name
        task = self._task_key(stream)
        if task is not None and findings_key(task) != key:
            return False
        return first.ver == 0 and first.data.get("stream_commitment") == stream_commitment(key)

    def _check_tags_differ(self) -> None:
        """Two leaves with one tag are two stories for one place: proof of misconduct of the log's owner."""
        places: dict[bytes, list[int]] = {}
        for n, leaf in self._leaves.items():
            places.setdefault(leaf.t, []).append(n)
        self.stream_faults += [
            f"leaves {twins} carry one tag: two stories for one place of a stream"
            for twins in places.values()
            if len(twins) > 1
        ]

    def _check_references(self) -> None:
        """Where one shown event refers to another shown event, hold the reference against it."""
        known = {(record.stream, record.ver): record.c for record in self.records.values()}
        for record in self.records.values():
            for field, value in record.data.items():
                for stream, ver, c in references(value):
                    there = known.get((stream, ver))
                    if there is not None and there != c:
                        self.faults.append(
                            f"{record_file(record.n)}: refers to another {stream} version {ver} than is shown"
                        )
                    if there is not None or (field == "within" and stream.startswith("task:")):
                        continue  # a card came within a message of another task: its octets stand in the fetch
                    if stream in self.keyed:
                        self.stream_faults.append(
                            f"event {record.n} refers to {stream} version {ver}, which is not shown"
                        )
                    else:
                        self.unresolved.append(f"event {record.n} rests on {stream} version {ver}, which is not shown")

    def end(self, stream: str) -> int:
        """Return the last shown version of a stream, -1 if none is shown."""
        return self.streams[stream][-1].ver if stream in self.streams else -1


def findings_of(stream: str) -> str:
    """Return the stream of the findings about a task or a peer, by the stream of its events."""
    return f"findings:{stream.removeprefix('task:')}"


def references(value: Json) -> Iterator[tuple[str, int, str]]:
    """Yield (stream, ver, c) of every reference to another event in an event's data.

    Members beside these three make it no other thing: a reader skips what he does not know (section 2).
    """
    if isinstance(value, dict):
        stream, ver, c = value.get("stream"), value.get("ver"), value.get("c")
        if isinstance(stream, str) and isinstance(ver, int) and isinstance(c, str):
            yield stream, ver, c
        for member in value.values():
            yield from references(member)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)
