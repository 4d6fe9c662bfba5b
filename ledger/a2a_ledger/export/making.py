"""Makes the files of one bundle from the events that were chosen for it, one event at a time."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from contextlib import ExitStack
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from a2a_ledger import bundle as layout
from a2a_ledger.bundle import IndexRow, blob_files, index_line
from a2a_ledger.checkpoint import Checkpoint, Proof, format_hashes
from a2a_ledger.codec import NEVER_CUT, Hole, canonical, count_holes, leaf, recorded_holes, timestamp
from a2a_ledger.divergence import RULE_SET, VERIFIER
from a2a_ledger.errors import DamagedError
from a2a_ledger.export.readme import readme
from a2a_ledger.export.withheld import without_content
from a2a_ledger.freshness import RULES as FRESHNESS
from a2a_ledger.making import SOFTWARE
from a2a_ledger.statement import Subject, sign_envelope, statement
from a2a_ledger.store.damage import must_open
from a2a_ledger.verify.counts import Counts
from a2a_ledger.verify.elsewhere import Elsewhere, in_words, rests_elsewhere, shown_by
from a2a_ledger.verify.report import LETTERS
from a2a_ledger.verify.signed import EXPORT
from a2a_ledger.verify.stated import expected_of, key_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.export.chosen import Chosen
    from a2a_ledger.export.sinks import Sink
    from a2a_ledger.export.withheld import Withheld
    from a2a_ledger.ledger import ContractLedger

_PAGE = 200
_HELD = 1 << 20  # octets of a list that are held in memory


class Made(NamedTuple):
    """What came of it.

    Attributes:
        withheld: how many parts were left out for this export.
        erased: how many parts an erasure took, or has still to take.
        foreign_profiles: hashes of profiles that something was recorded under and that the bundle does not hold.
        counts: how many events it holds.
        elsewhere: findings that rest on events of other tasks.
    """

    withheld: int
    erased: int
    foreign_profiles: tuple[str, ...]
    counts: Counts
    elsewhere: tuple[Elsewhere, ...]


class Lists:
    """Files that grow with every event: leaves, their index, outcomes, and what is left out."""

    def __init__(self, closing: ExitStack) -> None:
        def spool() -> IO[bytes]:
            return closing.enter_context(SpooledTemporaryFile(_HELD))

        self.leaves, self.index, self.expected, self.withheld = spool(), spool(), spool(), spool()


class Maker:
    """Makes one bundle."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a bundle is made from, and where it goes
        self,
        ledger: ContractLedger,
        chosen: Chosen,
        note: str,
        head: Checkpoint,
        left_out: Withheld,
        sink: Sink,
    ) -> None:
        self._ledger = ledger
        self._chosen = chosen
        self._note = note
        self._head = head
        self._left_out = left_out
        self._sink = sink
        self._signer = ledger.signers.get("export")
        self._withheld: list[Json] = []  # in plain files, where no list of its own says it
        self._holes = self._left_out_parts = self._erased_parts = 0
        self._profiles: set[str] = set()
        self._streams: Counter[str] = Counter()
        self._elsewhere: list[Elsewhere] = []
        self._erased = False
        self._last = -1  # log index of the last event, but for those of the log itself
        self._verified_to = min(ledger.store.position(VERIFIER), head.size)
        self._further: dict[str, bytes] = {}
        self._blobs: set[str] = set()  # of those that were named, the ones that are there

    def add_growth(self, since: Sequence[int]) -> None:
        """Add a consistency proof from each of these sizes to the head."""
        for size in since:
            path = self._ledger.store.consistency(size, self._head.size)
            self._further[layout.consistency_file(size, self._head.size)] = format_hashes(path).encode()

    def add(self, files: Mapping[str, bytes]) -> None:
        """Add further files; some may be among those that prove growth."""
        self._further |= files

    def make(self) -> Made:
        """Make it.

        Raises:
            UsageError: a blob that is to be withheld is not there, or must not be.
            DamagedError: content is missing from the database, or does not open.
            BundleError: more or larger content than a bundle may have.
        """
        at = timestamp(self._ledger.clock())
        with ExitStack() as closing:
            lists = Lists(closing)
            lists.index.write(layout.INDEX_HEAD)
            for line, (record, path) in enumerate(self._proven(), start=1):
                self._add_event(line, record, path, lists)
            self._left_out.check(self._blobs)
            self._add_lists(lists, at)
        self._add_keys()
        self._add_replay()
        for name, data in self._further.items():
            self._sink.add(name, data)
        self._sink.add(layout.CHECKPOINT, self._note.encode())
        self._sink.finish(
            readme=readme(
                self._ledger.origin, self._chosen.scope, self._head.size, self._chosen.later, self._unproven()
            ),
            info={
                "Bagging-Date": at[:10],
                "External-Identifier": f"{self._ledger.origin}#{self._chosen.scope.identifier}",
                "Log-Size": str(self._head.size),
            },
            sign=None if self._signer is None else self._signer.sign,
        )
        return Made(
            self._left_out_parts,
            self._erased_parts,
            self._foreign_profiles(),
            Counts.of(self._streams.items()),
            tuple(self._elsewhere),
        )

    def _foreign_profiles(self) -> tuple[str, ...]:
        return tuple(sorted(self._profiles - {self._ledger.profile.hash}))

    def _unproven(self) -> list[str]:
        """Return why a replay of what was added stays open."""
        found: list[str] = []
        if self._elsewhere:
            found.append(f"{in_words(self._elsewhere)}; shown by\n    {shown_by(self._elsewhere)}")
        if self._left_out_parts:
            found.append(f"{self._left_out_parts} parts are withheld")
        if self._erased or self._erased_parts:
            found.append("parts were erased")
        if self._foreign_profiles():
            found.append("some of it was recorded under a profile that is not in here")
        if self._verified_to <= self._last:
            found.append(f"it was judged up to log size {self._verified_to} only when this was written")
        return found

    def _is_shown(self, n: int) -> bool:
        numbers = self._chosen.numbers
        at = bisect_left(numbers, n)
        return at < len(numbers) and numbers[at] == n

    def _proven(self) -> Iterator[tuple[Record, list[bytes]]]:
        """Yield each event with the path of its inclusion proof."""
        numbers = self._chosen.numbers
        for start in range(0, len(numbers), _PAGE):
            page = numbers[start : start + _PAGE]
            paths = self._ledger.store.inclusions(page, self._head.size)
            for n, path in zip(page, paths, strict=True):
                yield self._chosen.load(n), path

    def _add_event(self, line: int, record: Record, path: Sequence[bytes], lists: Lists) -> None:
        add = self._sink.add
        body = record.blobs.get("body")
        where = f"{layout.BLOBS}{body.id}" if body else "-"
        row = IndexRow(line, record.n, record.stream, record.ver, layout.record_file(record.n), where)
        lists.index.write(index_line(row))
        lists.leaves.write(leaf(record.log, record.n, bytes.fromhex(record.c), bytes.fromhex(record.t)) + b"\n")
        lists.expected.write(expected_of([record]))
        add(layout.proof_file(record.n), str(Proof(record.n, tuple(path), self._note)).encode())
        add(layout.record_file(record.n), record.raw)
        add(layout.salt_file(record.n), record.salt)
        for role in record.blobs:
            self._add_blob(record, role, lists)
        if record.type == "violation.detected.v1":
            add(layout.statement_file(record.n), record.content("statement") or b"")
        self._streams[record.stream] += 1
        self._elsewhere += rests_elsewhere([record], self._is_shown)
        if record.stream != "ledger":
            self._last = record.n
        self._erased |= record.type == "content.erased.v1"
        if "profile_hash" in record.data:
            self._profiles.add(str(record.data["profile_hash"]))

    def _add_blob(self, record: Record, role: str, lists: Lists) -> None:
        ref = record.blobs[role]
        must_open([record])
        stored = record.stored_parts(role)
        if stored is None:
            raise DamagedError(f"content {role} of event {record.n} is missing")
        if ref.id in self._left_out.blobs:
            self._blobs.add(ref.id)
        if role not in NEVER_CUT and (record.stream, record.ver) in self._chosen.erased:
            parts = without_content(stored)
            self._erased_parts += len(parts) - recorded_holes(record, role)
        else:
            parts = self._left_out.parts_of(record, role, stored)
            self._left_out_parts += count_holes(parts) - count_holes(stored)
        for name, data in blob_files(ref.id, parts).items():
            self._sink.add(name, data)
        for number, part in enumerate(parts):
            if isinstance(part, Hole):
                self._holes += 1
                hole: Json = {"blob": ref.id, "index": record.n, "part": number, "role": role, "size": part.length}
                if self._chosen.scope.lists_apart:
                    lists.withheld.write(canonical(hole) + b"\n")
                else:
                    self._withheld.append(hole)

    def _add_lists(self, lists: Lists, at: str) -> None:
        """Add what grew with the events, and what is said about all of them."""
        self._sink.add_from(layout.LEAVES, lists.leaves)
        self._sink.add_from(layout.INDEX, lists.index)
        self._sink.add_from(layout.EXPECTED, lists.expected)
        withheld: Json = self._withheld
        if self._chosen.scope.lists_apart:
            self._sink.add_from(layout.WITHHELD, lists.withheld)
            withheld = {"parts": self._holes, "sha256": _digest(lists.withheld)}
        claims = self._claims(withheld)
        self._sink.add(layout.CLAIMS, canonical(claims))
        self._sink.add(
            layout.CUSTODY,
            canonical(
                {
                    "acquired_by": SOFTWARE,
                    "clock": "the clock of the recording machine; nobody attests to it",
                    "custodian": self._ledger.origin,
                    "exported_at": at,
                    "hand_overs": [],
                }
            ),
        )
        if self._signer is not None:
            said = {name: claims[name] for name in self._chosen.scope.said_twice}
            payload = statement(
                [Subject(layout.LEAVES, _digest(lists.leaves))],
                EXPORT,
                {**said, "at": at, "exporter": self._signer.vkey, "tool": SOFTWARE},
            )
            self._sink.add(layout.EXPORT_STATEMENT, sign_envelope(payload, self._signer))

    def _claims(self, withheld: Json) -> JsonObject:
        scope = self._chosen.scope
        return {
            "checkpoint": {"root": self._head.root.hex(), "size": self._head.size},
            "claims": list(cast("Sequence[Json]", LETTERS)),
            "ends": [{"stream": stream, "ver": self._chosen.ends[stream]} for stream in scope.ends],
            "events": len(self._chosen.numbers),
            "form": scope.profile,
            "later_events": self._chosen.later,
            "log": self._ledger.origin,
            "not_claimed": scope.not_claimed,
            "signed": self._signer is not None,
            "withheld": withheld,
            **scope.members([self._chosen.peers[task] for task in scope.tasks]),
        }

    def _add_keys(self) -> None:
        for stream, ver in self._chosen.ends.items():
            if ver >= 0:
                self._sink.add(layout.stream_key_file(stream), self._ledger.store.keys.stream_key(stream))
        files = key_files(self._chosen.keys)
        for name, data in files.items():
            self._sink.add(name, data)
        logs = [vkey.decode().strip() for name, vkey in files.items() if name.startswith(f"{layout.KEYS}log-")]
        lines = [
            "# What the exporter suggests. Nobody should trust a policy that came with the evidence:",
            "# get the key of the log from its owner by another way, compare, and write a policy of your own.",
            *(f"log {vkey}" for vkey in logs),
            "quorum none",
        ]
        self._sink.add(layout.POLICY_EXAMPLE, "".join(f"{line}\n" for line in lines).encode())

    def _add_replay(self) -> None:
        profile = self._ledger.profile
        self._sink.add(layout.REPLAY_PROFILE, profile.source)
        engine: JsonObject = {
            "freshness": FRESHNESS,
            "profile": profile.hash,
            "rule_set": RULE_SET,
            "software": SOFTWARE,
            "verified_to": self._verified_to,
        }
        self._sink.add(layout.ENGINE, canonical(engine))


def _digest(source: IO[bytes]) -> str:
    """Return the SHA-256 of a file, in hex."""
    source.seek(0)
    made = sha256()
    while piece := source.read(_HELD):
        made.update(piece)
    return made.hexdigest()
