"""The events that a bundle shows, held against the leaves that commit to them (docs/format.md section 12).

Everything here asks one question in small pieces: are these records, blobs and streams what the
leaves say? Whether the leaves are in anybody's log is the question of `proven`. A fault is one
sentence that names the file; a list of none means that the check held. The records are read one
by one and let go: what is remembered of each are its place and its digests.
"""

from __future__ import annotations

from array import array
from itertools import pairwise
from typing import TYPE_CHECKING

from a2a_ledger.bundle import BLOBS, INDEX, RECORDS, STREAMS, record_file, salt_file, stream_key_file
from a2a_ledger.bundle.referred import Referred
from a2a_ledger.codec import (
    LaterHoles,
    commitment,
    findings_key,
    read_record,
    stream_commitment,
    stream_tag,
    tags_of,
    task_id,
)
from a2a_ledger.errors import FormatError
from a2a_ledger.verify.beside import Said
from a2a_ledger.verify.blobs import Blobs, LeftOut
from a2a_ledger.verify.leaves import LeafTags
from a2a_ledger.verify.records import BlobParts, ShownRecords
from a2a_ledger.verify.references import References
from a2a_ledger.verify.reread import Reread
from a2a_ledger.verify.streams import ShownStream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2a_ledger.bundle import Bundle, IndexRow
    from a2a_ledger.codec import Part, Record
    from a2a_ledger.verify.leaves import ShownLeaves

_VIOLATION = "violation.detected.v1"

_TAGGED = frozenset({"contract.captured.v1", "contract.reconstructed.v1"})
"""The events that the rules look up by a tag."""


class Shown:
    """What the bundle shows, and every fault that was found on the way. Never raises.

    Attributes:
        records: the records that could be read, by index in the log, in log order.
        streams: their places by stream.
        tagged: log indexes of the events that rules look up, by lookup tag.
        profiles: of each profile that something was recorded under, the log index of the first such event.
        peer_urls: what the events name as their peers.
        received: how many messages are shown as received.
        keyed: the streams whose key is disclosed and is the right one.
        left_out: parts that were left out.
        changed: of each event that lost octets after it was recorded, the role of the first blob that did.
        faults: what is wrong with records, blobs and references (claim C1).
        stream_faults: what is wrong with streams as a whole (claim C2).
        unresolved: references to events that are not shown, and that the bundle need not show.
        later: what became of blobs after they were recorded: nobody can read again what was judged then.
        said: what the events say of peers and of each other's ids.
        content: the shown content read again, but for what takes several records.
    """

    def __init__(self, bundle: Bundle, rows: Iterable[IndexRow], leaves: ShownLeaves, origin: str) -> None:
        self._bundle = bundle
        self._leaves = leaves
        self._origin = origin
        self._used = Referred(bundle)
        self._blobs = Blobs(bundle)
        self._references = References()
        self._types: dict[str, array[int]] = {}
        self.records = ShownRecords(bundle, leaves)
        self.streams: dict[str, ShownStream] = {}
        self.tagged: dict[str, array[int]] = {}
        self.profiles: dict[str, int] = {}
        self.peer_urls: set[str] = set()
        self.received = 0
        self.keyed: set[str] = set()
        self.left_out = LeftOut()
        self.faults: list[str] = []
        self.stream_faults: list[str] = []
        self.unresolved: list[str] = []
        holes, self.said, self.content = LaterHoles(), Said(), Reread()
        for row in rows:
            record = self._read(row)
            if record is not None:
                holes.take(record)
                self.said.take(record)
                self.content.take(record)
        self.changed = holes.changed
        self._tags = LeafTags(leaves)
        for stream, shown in self.streams.items():
            shown.sort()
            self._check_versions(stream, shown)
            self._check_key(stream, shown)
        self._check_tags_differ()
        self._check_references()
        self.later = holes.told(lambda stream, ver: self.at(stream, ver) is not None)
        strangers = self._used.strangers(RECORDS, BLOBS, STREAMS)
        self.faults += [f"{name}: no event of the bundle refers to it" for name in strangers]

    def of_type(self, *types: str) -> Iterator[Record]:
        """Yield the records of these types in log order."""
        numbers = sorted(n for name in types for n in self._types.get(name, ()))
        return (self.records[n] for n in numbers)

    def stating(self) -> Iterator[Record]:
        """Yield findings, and of each profile that something was recorded under the first such record, in log order."""
        return (self.records[n] for n in sorted({*self._types.get(_VIOLATION, ()), *self.profiles.values()}))

    def stream(self, stream: str, *, after: int = -1) -> Iterator[Record]:
        """Yield the records of a stream behind a version, in order of version."""
        numbers = self.streams[stream].numbers(after=after) if stream in self.streams else ()
        return (self.records[n] for n in numbers)

    def at(self, stream: str, ver: int) -> int | None:
        """Return the log index of an event by its place in its stream; None: it is not shown."""
        return self.streams[stream].find(ver) if stream in self.streams else None

    def peer_of(self, task: str) -> str:
        """Return the peer that a task's events name first, "" if none does."""
        return self.streams[f"task:{task}"].peer if f"task:{task}" in self.streams else ""

    def end(self, stream: str) -> int:
        """Return the last shown version of a stream, -1 if none is shown."""
        return self.streams[stream].last if stream in self.streams else -1

    def _read(self, row: IndexRow) -> Record | None:
        """Read the record of one row and its blobs, and remember it if all of it fits its leaf."""
        name = record_file(row.n)
        self._used.add(name, salt_file(row.n))
        try:
            record = self._read_record(name, row)
            record = record._replace(parts=BlobParts(self._bundle, self._read_blobs(record)))
        except FormatError as problem:
            text = str(problem)
            self.faults.append(text if text.startswith("data/") else f"{name}: {text}")
            return None
        self._remember(record)
        return record

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

    def _read_blobs(self, record: Record) -> dict[str, tuple[Part, ...]]:
        """Hold a record's blobs against it; return the parts of those that were read for it."""
        read: dict[str, tuple[Part, ...]] = {}
        for role, ref in record.blobs.items():
            blob, parts = self._blobs.read(record.n, role, ref)
            self._used.add(*blob.files(ref.id))
            self.left_out.add(record.n, role, ref, blob)
            if parts is not None:
                read[ref.id] = parts
        return read

    def _remember(self, record: Record) -> None:
        self.records.add(record)
        self.streams.setdefault(record.stream, ShownStream()).add(record)
        self._references.add(record)
        self._types.setdefault(record.type, array("Q")).append(record.n)
        if record.type in _TAGGED:
            for tag in tags_of(record.stream, record.type, record.data):
                self.tagged.setdefault(tag, array("Q")).append(record.n)
        if "profile_hash" in record.data:
            self.profiles.setdefault(str(record.data["profile_hash"]), record.n)
        if "peer_url" in record.data:
            self.peer_urls.add(str(record.data["peer_url"]))
        self.received += record.type == "message.recorded.v1" and record.data.get("direction") == "in"

    def _check_versions(self, stream: str, shown: ShownStream) -> None:
        """Check the chain of `prev` where neighbours are shown."""
        for before, place in pairwise(shown):
            if place.ver == before.ver:
                self.stream_faults.append(f"{stream}: version {place.ver} is there twice, at {before.n} and {place.n}")
            elif place.ver == before.ver + 1 and (place.prev != self._leaves[before.n].c or place.n < before.n):
                self.stream_faults.append(f"{stream}: version {place.ver} does not follow the version before it")

    def _check_key(self, stream: str, shown: ShownStream) -> None:
        """Where the key is disclosed: it is the stream's own, no version is missing, every tag is right."""
        name = stream_key_file(stream)
        try:
            key = self._bundle.stream_key(stream)
            ours = key is not None and self._commits_to(stream, shown, key)
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
        missing = shown.missing
        if missing is not None:
            self.stream_faults.append(
                f"{stream}: version {missing} is missing; {len(shown)} of {shown.last + 1} are shown"
            )
        wrong = [place for place in shown if self._leaves[place.n].t != stream_tag(key, place.ver)]
        self.stream_faults += [
            f"{record_file(place.n)}: leaf {place.n} does not carry the tag of {stream} version {place.ver}"
            for place in wrong
        ]
        self._check_nothing_follows(stream, key, shown.last)
        if stream.startswith(("task:", "peer:")) and (findings := findings_of(stream)) not in self.streams:
            self._check_nothing_follows(findings, findings_key(key), -1)

    def _check_nothing_follows(self, stream: str, key: bytes, last: int) -> None:
        """Search the shown leaves for the version behind the last one."""
        later = self._tags.carrying(stream_tag(key, last + 1))
        self.stream_faults += [f"{record_file(n)}: leaf {n} is {stream} version {last + 1}, not shown" for n in later]

    def _task_key(self, stream: str) -> bytes | None:
        """Return the disclosed key of the task, or the peer, whose findings a stream holds."""
        kind, _, name = stream.partition(":")
        if kind != "findings":
            return None
        return self._bundle.stream_key(name if name.startswith("peer:") else f"task:{name}")

    def _commits_to(self, stream: str, shown: ShownStream, key: bytes) -> bool:
        """Say whether a stream commits to this key: by its name, or in version 0 and through its task's key."""
        kind, _, name = stream.partition(":")
        if kind == "task":
            return task_id(key) == name
        task = self._task_key(stream)
        if task is not None and findings_key(task) != key:
            return False
        return shown.commitment == stream_commitment(key)

    def _check_tags_differ(self) -> None:
        """Two leaves with one tag are two stories for one place: proof of misconduct of the log's owner."""
        self.stream_faults += [
            f"leaves {twins} carry one tag: two stories for one place of a stream" for twins in self._tags.twins
        ]

    def _check_references(self) -> None:
        """Where one shown event refers to another shown event, hold the reference against it."""
        for n, target, other in self._references.differing(self._commitment):
            named = f"{target.stream} version {target.ver}"
            if other:
                self.faults.append(f"{record_file(n)}: refers to another {named} than is shown")
            elif target.stream in self.keyed:
                self.stream_faults.append(f"event {n} refers to {named}, which is not shown")
            else:
                self.unresolved.append(f"event {n} rests on {named}, which is not shown")

    def _commitment(self, stream: str, ver: int) -> str | None:
        n = self.at(stream, ver)
        return None if n is None else self._leaves[n].c.hex()


def findings_of(stream: str) -> str:
    """Return the stream of the findings about a task or a peer, by the stream of its events."""
    return f"findings:{stream.removeprefix('task:')}"
