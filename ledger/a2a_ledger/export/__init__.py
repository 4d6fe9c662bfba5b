"""Export: one task's evidence as one file that the other side's lawyer can check (docs/format.md section 11).

Reading verbs never write events, and neither does this one. Where the log key is at hand a head is
signed first, so that everything recorded is covered; a copy without keys exports under the newest
signed head that it holds, and says what that does not cover. The same events, head and clock give the
same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, cast

from a2a_ledger import bundle as layout
from a2a_ledger.anchors import anchored_head
from a2a_ledger.bundle import IndexRow, blob_files, index_text, write_bundle
from a2a_ledger.checkpoint import Checkpoint, Proof, checkpoint_of, format_hashes
from a2a_ledger.codec import Hole, canonical, count_holes, leaf, timestamp
from a2a_ledger.divergence import RULE_SET, VERIFIER
from a2a_ledger.errors import StoreError
from a2a_ledger.export.place import put_in_place
from a2a_ledger.export.readme import readme
from a2a_ledger.export.times import times_of
from a2a_ledger.export.withheld import Withheld
from a2a_ledger.freshness import RULES as FRESHNESS
from a2a_ledger.making import SOFTWARE
from a2a_ledger.report import filled_page
from a2a_ledger.report.in_bundle import add_report
from a2a_ledger.selection import story_of
from a2a_ledger.statement import Subject, sign_envelope, statement
from a2a_ledger.verify.report import LETTERS
from a2a_ledger.verify.signed import EXPORT, SAID_TWICE
from a2a_ledger.verify.stated import NOT_CLAIMED, expected_of, key_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.selection import TaskStory


@dataclass(frozen=True, slots=True)
class Exported:
    """A bundle and what it covers.

    Attributes:
        data: the zip.
        task: the local task id.
        events: how many events it holds.
        size: size of the signed head that covers them.
        later_events: events of this task behind that head, which are not in the bundle.
        signed: the exporter signed it.
        withheld: how many parts were left out for this export, beside those that were never recorded.
        foreign_profiles: hashes of profiles that something was recorded under and that the bundle does not hold:
            a replay of it stays open.
        anchored_by: who has put a signature of their own to that head.
        stamped_by: authorities whose time tokens, over heads that have all of it, go along.
    """

    data: bytes
    task: str
    events: int
    size: int
    later_events: int
    signed: bool
    withheld: int = 0
    foreign_profiles: tuple[str, ...] = ()
    anchored_by: tuple[str, ...] = ()
    stamped_by: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return the facts of the export, for `export --format json`."""
        return {
            "task": self.task,
            "bytes": len(self.data),
            "events": self.events,
            "checkpoint": self.size,
            "later_events": self.later_events,
            "signed": self.signed,
            "withheld": self.withheld,
            "anchored_by": list(self.anchored_by),
            "stamped_by": list(self.stamped_by),
        }

    def __str__(self) -> str:
        """Say in one line what the bundle holds, what covers it and who signed it."""
        signed = (
            ""
            if self.signed
            else (
                " Not signed by an exporter (no export key here): it cannot prove that nothing of the task is missing."
            )
        )
        if self.withheld:
            signed += f" {self.withheld} parts are withheld: what was judged from them cannot be judged again."
        if self.foreign_profiles:
            signed += f" Recorded under a profile that is not at hand: {', '.join(self.foreign_profiles)}."
        anchored = f"anchored by {', '.join(self.anchored_by)}" if self.anchored_by else "not anchored"
        if self.stamped_by:
            anchored += f"; time tokens of {', '.join(self.stamped_by)}"
        return (
            f"{-(-len(self.data) // 1000)} KB: {self.events} events, all of {self.task} up to checkpoint {self.size} "
            f"({anchored}; {self.later_events} later events). Unilateral: the peer signed none of it.{signed}"
        )


def export_task(  # noqa: PLR0913 - what goes in, and where it goes
    ledger: ContractLedger,
    task: str,
    out: Path | None = None,
    *,
    since: Sequence[int] = (),
    report: bool = False,
    withhold: Sequence[str] = (),
) -> Exported:
    """Make the bundle of one task, and write it to `out` if that is given.

    Args:
        ledger: the ledger; with its keys a head is signed first and the bundle is signed.
        task: the local task id.
        out: the file to write; it is replaced as a whole or not at all.
        since: sizes of earlier heads that the reader holds; the bundle proves that the log only grew since.
        report: put the report page into the bundle, filled with the bundle as it is without the page.
        withhold: what to leave out: `headers`, `blobs`, `cut`, or ids of blobs (see `withheld.Withheld`).

    Raises:
        UsageError: there is no such task, or nothing of it that could be withheld so.
        ConsistencyError: a size of `since` lies behind the signed head.
        StoreError: no signed head covers any of it, or `out` cannot be written.
        BundleError: the task has more or larger content than a bundle may have.
    """
    left_out = Withheld.of(withhold, ledger.profile.withhold)
    note, head = _head_of(ledger)
    story = story_of(ledger.store, task, before=head.size)
    anchored = anchored_head(ledger.store, story.all, head.size, max(since, default=0))
    holders: tuple[str, ...] = ()
    if anchored is not None:
        note, holders = anchored
        head = checkpoint_of(note)
        story = story.before(head.size)
    everything = len(ledger.store.read_stream(f"task:{task}")) + len(ledger.store.read_stream(f"findings:{task}"))
    maker = _Maker(ledger, story, note, head, everything - len(story.events) - len(story.findings), left_out)
    maker.add_growth(since)
    times = times_of(ledger.store, story.all, head.size)
    maker.add(times.files)
    made = replace(maker.make(), anchored_by=holders, stamped_by=times.holders)
    if report:
        exporter = ledger.signers.get("export")
        page = filled_page(made.data, name=f"{task}.zip")
        made = replace(made, data=add_report(made.data, page, None if exporter is None else exporter.sign))
    if out is not None:
        put_in_place(out, made.data, "the bundle")
    return made


def _head_of(ledger: ContractLedger) -> tuple[str, Checkpoint]:
    """Return a signed head over everything, or the newest that there is."""
    if "log" in ledger.signers and not ledger.read_only and ledger.home is not None:
        note = ledger.sign_checkpoint()
    else:
        kept = ledger.store.latest_checkpoint()
        if kept is None:
            raise StoreError(
                f"no signed head covers any event of {ledger.origin}: sign one with `a2a-ledger checkpoint sign` "
                "where the log key is, and export then"
            )
        note = kept[1]
    return note, checkpoint_of(note)


class _Maker:
    """Collects the files of one bundle."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a bundle is made from
        self, ledger: ContractLedger, story: TaskStory, note: str, head: Checkpoint, later: int, left_out: Withheld
    ) -> None:
        self._ledger = ledger
        self._story = story
        self._records = story.all
        self._note = note
        self._head = head
        self._later = later
        self._left_out = left_out
        self._left_out_parts = 0
        self._signer = ledger.signers.get("export")
        self._files: dict[str, bytes] = {}
        self._withheld: list[Json] = []
        self._leaves = {
            record.n: leaf(ledger.origin, record.n, bytes.fromhex(record.c), bytes.fromhex(record.t))
            for record in self._records
        }

    def add_growth(self, since: Sequence[int]) -> None:
        """Add a consistency proof from each of these sizes to the head."""
        for size in since:
            path = self._ledger.store.consistency(size, self._head.size)
            self._files[f"{layout.CONSISTENCY}{size}-{self._head.size}"] = format_hashes(path).encode()

    def add(self, files: Mapping[str, bytes]) -> None:
        """Add further files."""
        self._files |= files

    def make(self) -> Exported:
        """Return the bundle."""
        at = self._ledger.clock()
        self._add_log()
        self._left_out.check({ref.id for record in self._records for ref in record.blobs.values()})
        for record in self._records:
            self._add_record(record)
        self._add_streams()
        self._add_keys()
        self._add_replay()
        claims = self._claims()
        self._files[layout.CLAIMS] = canonical(claims)
        self._files[layout.CUSTODY] = canonical(
            {
                "acquired_by": SOFTWARE,
                "clock": "the clock of the recording machine; nobody attests to it",
                "custodian": self._ledger.origin,
                "exported_at": timestamp(at),
                "hand_overs": [],
            }
        )
        if self._signer is not None:
            payload = statement(
                [Subject(layout.LEAVES, sha256(self._files[layout.LEAVES]).hexdigest())],
                EXPORT,
                {
                    **{name: claims[name] for name in SAID_TWICE},
                    "at": timestamp(at),
                    "exporter": self._signer.vkey,
                    "tool": SOFTWARE,
                },
            )
            self._files[layout.EXPORT_STATEMENT] = sign_envelope(payload, self._signer)
        data = write_bundle(
            self._files,
            readme=readme(self._ledger.origin, self._story.task, self._head.size, self._later),
            info={
                "Bagging-Date": timestamp(at)[:10],
                "External-Identifier": f"{self._ledger.origin}#task:{self._story.task}",
                "Log-Size": str(self._head.size),
            },
            sign=None if self._signer is None else self._signer.sign,
        )
        return Exported(
            data=data,
            task=self._story.task,
            events=len(self._story.events) + len(self._story.findings) + len(self._story.fetches),
            foreign_profiles=tuple(self._foreign_profiles()),
            size=self._head.size,
            later_events=self._later,
            signed=self._signer is not None,
            withheld=self._left_out_parts,
        )

    def _add_log(self) -> None:
        store, size = self._ledger.store, self._head.size
        rows: list[IndexRow] = []
        paths = store.inclusions([record.n for record in self._records], size)
        for line, (record, path) in enumerate(zip(self._records, paths, strict=True), start=1):
            body = record.blobs.get("body")
            where = f"{layout.BLOBS}{body.id}" if body else "-"
            rows.append(IndexRow(line, record.n, record.stream, record.ver, layout.record_file(record.n), where))
            proof = Proof(record.n, tuple(path), self._note)
            self._files[layout.proof_file(record.n)] = str(proof).encode()
        self._files[layout.CHECKPOINT] = self._note.encode()
        self._files[layout.LEAVES] = b"".join(raw + b"\n" for raw in self._leaves.values())
        self._files[layout.INDEX] = index_text(rows)

    def _add_record(self, record: Record) -> None:
        self._files[layout.record_file(record.n)] = record.raw
        self._files[layout.salt_file(record.n)] = record.salt
        for role, ref in record.blobs.items():
            stored = record.stored_parts(role)
            if stored is None:
                raise StoreError(f"blob {role} of event {record.n} is missing: run `a2a-ledger audit`")
            parts = self._left_out.parts_of(record, role, stored)
            self._left_out_parts += count_holes(parts) - count_holes(stored)
            self._files |= blob_files(ref.id, parts)
            for number, part in enumerate(parts):
                if isinstance(part, Hole):
                    self._withheld.append(
                        {"blob": ref.id, "index": record.n, "part": number, "role": role, "size": part.length}
                    )
        if record.type == "violation.detected.v1":
            self._files[layout.statement_file(record.n)] = record.content("statement") or b""

    def _disclosed(self) -> list[tuple[str, list[Record]]]:
        """Return the streams whose keys go along: the task's, that of its findings, and that of the log's keys."""
        return [
            (f"findings:{self._story.task}", self._story.findings),
            ("ledger", self._story.keys),
            (f"task:{self._story.task}", self._story.events),
        ]

    def _add_streams(self) -> None:
        for stream, records in self._disclosed():
            if records:
                self._files[layout.stream_key_file(stream)] = self._ledger.store.keys.stream_key(stream)

    def _add_keys(self) -> None:
        files = key_files(self._story.keys)
        self._files |= files
        logs = [vkey.decode().strip() for name, vkey in files.items() if name.startswith(f"{layout.KEYS}log-")]
        lines = [
            "# What the exporter suggests. Nobody should trust a policy that came with the evidence:",
            "# get the key of the log from its owner by another way, compare, and write a policy of your own.",
            *(f"log {vkey}" for vkey in logs),
            "quorum none",
        ]
        self._files[layout.POLICY_EXAMPLE] = "".join(f"{line}\n" for line in lines).encode()

    def _add_replay(self) -> None:
        profile = self._ledger.profile
        self._files[layout.REPLAY_PROFILE] = profile.source
        self._files[layout.ENGINE] = canonical(
            {
                "freshness": FRESHNESS,
                "profile": profile.hash,
                "rule_set": RULE_SET,
                "software": SOFTWARE,
                "verified_to": min(self._ledger.store.position(VERIFIER), self._head.size),
            }
        )
        self._files[layout.EXPECTED] = expected_of({record.n: record for record in self._records})

    def _foreign_profiles(self) -> list[str]:
        """Return the profiles that something was recorded under and that are not the one of this ledger."""
        under = {str(record.data["profile_hash"]) for record in self._records if "profile_hash" in record.data}
        return sorted(under - {self._ledger.profile.hash})

    def _checkpoint(self) -> JsonObject:
        return {"root": self._head.root.hex(), "size": self._head.size}

    def _ends(self) -> list[Json]:
        return [{"stream": stream, "ver": records[-1].ver if records else -1} for stream, records in self._disclosed()]

    def _claims(self) -> JsonObject:
        return {
            "checkpoint": self._checkpoint(),
            "claims": list(cast("Sequence[Json]", LETTERS)),
            "ends": self._ends(),
            "events": len(self._records),
            "form": layout.PROFILE,
            "later_events": self._later,
            "log": self._ledger.origin,
            "not_claimed": list(cast("Sequence[Json]", NOT_CLAIMED)),
            "peer": self._story.peer,
            "signed": self._signer is not None,
            "task": self._story.task,
            "withheld": self._withheld,
        }
