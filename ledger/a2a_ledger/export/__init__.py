"""Export: evidence as one file that the other side's lawyer can check (docs/format.md section 11).

Reading verbs never write events, and neither does this one. Where the log key is at hand a head is
signed first, so that everything recorded is covered; a copy without keys exports under the newest
signed head that it holds, and says what that does not cover. The same events, head and clock give the
same bytes. What takes packs is written as it is read: a task of any length takes little memory.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from a2a_ledger.anchors import anchored_head
from a2a_ledger.bundle import PACKED_PROFILE
from a2a_ledger.checkpoint import Checkpoint, checkpoint_of
from a2a_ledger.errors import BundleError, StoreError
from a2a_ledger.export.chosen import choose_context, choose_peer, choose_task
from a2a_ledger.export.making import Maker
from a2a_ledger.export.place import placed
from a2a_ledger.export.sinks import HeldFiles, WrittenFiles
from a2a_ledger.export.times import times_of
from a2a_ledger.export.withheld import Withheld
from a2a_ledger.report import filled_page
from a2a_ledger.report.in_bundle import add_report
from a2a_ledger.verify.elsewhere import Elsewhere, in_words, shown_by

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_ledger.events import Json
    from a2a_ledger.export.chosen import Chosen
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store import Store
    from a2a_ledger.verify.counts import Counts

_MOST_WITH_PAGE = 40 << 20  # octets of a bundle that a report page can hold


@dataclass(frozen=True, slots=True)
class Exported:
    """A bundle and what it covers.

    Attributes:
        data: the zip; b"" where it was written to an open file, or has packs and was written to one: that may be large.
        octets: how large it is.
        about: what it is about, such as `task 0123…`.
        tasks: local ids of the tasks that it shows.
        counts: how many events it holds, of the tasks, of their peers and of the log itself.
        size: size of the signed head that covers them.
        later_events: events of its streams behind that head, which are not in the bundle.
        signed: the exporter signed it.
        withheld: how many parts were left out for this export, beside those that were never recorded.
        erased: how many parts an erasure took; what one has logged and not yet taken is left out as well.
        foreign_profiles: hashes of profiles that something was recorded under and that the bundle does not hold:
            a replay of it stays open.
        elsewhere: findings that rest on events of other tasks, which it does not show: a replay of it stays open.
        anchored_by: who has put a signature of their own to that head.
        stamped_by: authorities whose time tokens, over heads that have all of it, go along.
    """

    data: bytes
    octets: int
    about: str
    tasks: tuple[str, ...]
    counts: Counts
    size: int
    later_events: int
    signed: bool
    withheld: int = 0
    erased: int = 0
    foreign_profiles: tuple[str, ...] = ()
    elsewhere: tuple[Elsewhere, ...] = ()
    anchored_by: tuple[str, ...] = ()
    stamped_by: tuple[str, ...] = ()

    @property
    def events(self) -> int:
        """Return how many events it holds, those of the log itself apart."""
        return self.counts.tasks + self.counts.peers

    @property
    def task(self) -> str:
        """Return the local task id, "" if it is about several."""
        return self.tasks[0] if len(self.tasks) == 1 else ""

    def to_json(self) -> dict[str, Json]:
        """Return the facts of the export, for `export --format json`."""
        what: dict[str, Json] = (
            {"task": self.tasks[0]} if self.about.startswith("task ") else {"tasks": list(self.tasks)}
        )
        return {
            **what,
            "bytes": self.octets,
            "events": self.events,
            "of_tasks": self.counts.tasks,
            "of_peers": self.counts.peers,
            "of_log": self.counts.log,
            "checkpoint": self.size,
            "later_events": self.later_events,
            "signed": self.signed,
            "withheld": self.withheld,
            "erased": self.erased,
            "elsewhere": [one.to_json() for one in self.elsewhere],
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
            signed += f" {self.withheld} parts are withheld: claim R (replay) is NOT PROVEN of it, every other stands."
        if self.erased:
            signed += f" {self.erased} parts were erased: claim R (replay) is NOT PROVEN of it, every other stands."
        if self.elsewhere:
            signed += (
                f" Claim R (replay) is NOT PROVEN of it: {in_words(self.elsewhere)}, which it does not show; "
                f"{shown_by(self.elsewhere)} does."
            )
        if self.foreign_profiles:
            signed += f" Recorded under a profile that is not at hand: {', '.join(self.foreign_profiles)}."
        anchored = f"anchored by {', '.join(self.anchored_by)}" if self.anchored_by else "not anchored"
        if self.stamped_by:
            anchored += f"; time tokens of {', '.join(self.stamped_by)}"
        kind = self.about.partition(" ")[0]
        what = self.task if kind == "task" else f"{len(self.tasks)} tasks of {self.about}"
        return (
            f"{-(-self.octets // 1000)} KB: {sum(self.counts)} events ({self.counts.words(kind)}): all of {what} up to "
            f"checkpoint {self.size} ({anchored}; {self.later_events} later events). Unilateral: the peer "
            f"signed none of it.{signed}"
        )


def export_task(  # noqa: PLR0913 - what goes in, and where it goes
    ledger: ContractLedger,
    task: str,
    out: Path | IO[bytes] | None = None,
    *,
    since: Sequence[int] = (),
    report: bool = False,
    withhold: Sequence[str] = (),
) -> Exported:
    """Make the bundle of one task, and write it to `out` if that is given.

    A task of many events takes packs (docs/format.md section 11.4).

    Args:
        ledger: the ledger; with its keys a head is signed first and the bundle is signed.
        task: the local task id.
        out: the file to write; it is replaced as a whole or not at all. Or one that is open for reading and writing.
        since: sizes of earlier heads that the reader holds; the bundle proves that the log only grew since.
        report: put the report page into the bundle, filled with the bundle as it is without the page.
        withhold: what to leave out: `headers`, `blobs`, `cut`, or ids of blobs (see `withheld.Withheld`).

    Raises:
        UsageError: there is no such task, or nothing of it that could be withheld so.
        ConsistencyError: a size of `since` lies behind the signed head.
        StoreError: no signed head covers any of it, or `out` cannot be written.
        BundleError: the task has more or larger content than a bundle may have, or than a page can show.
    """
    return _export(
        ledger, lambda store, size: choose_task(store, task, size), out, since=since, report=report, withhold=withhold
    )


def export_context(  # noqa: PLR0913 - see export_task
    ledger: ContractLedger,
    context: str,
    out: Path | IO[bytes] | None = None,
    *,
    since: Sequence[int] = (),
    report: bool = False,
    withhold: Sequence[str] = (),
) -> Exported:
    """Make the bundle of all tasks of an A2A context id; arguments and errors are those of `export_task`."""
    return _export(
        ledger,
        lambda store, size: choose_context(store, context, size),
        out,
        since=since,
        report=report,
        withhold=withhold,
    )


def export_peer(  # noqa: PLR0913 - see export_task
    ledger: ContractLedger,
    peer: str,
    out: Path | IO[bytes] | None = None,
    *,
    since: Sequence[int] = (),
    report: bool = False,
    withhold: Sequence[str] = (),
) -> Exported:
    """Make the bundle of a peer, by its id: its stream, and all tasks with it. The rest is as for `export_task`."""
    return _export(
        ledger, lambda store, size: choose_peer(store, peer, size), out, since=since, report=report, withhold=withhold
    )


def _export(  # noqa: PLR0913 - see export_task
    ledger: ContractLedger,
    choose: Callable[[Store, int], Chosen],
    out: Path | IO[bytes] | None,
    *,
    since: Sequence[int],
    report: bool,
    withhold: Sequence[str],
) -> Exported:
    left_out = Withheld.of(withhold, ledger.profile.withhold)
    note, head = _head_of(ledger)
    chosen = choose(ledger.store, head.size)
    anchored = anchored_head(ledger.store, chosen.latest(), head.size, max(since, default=0))
    holders: tuple[str, ...] = ()
    if anchored is not None:
        note, holders = anchored
        head = checkpoint_of(note)
        chosen.end_at(head.size)
    times = times_of(ledger.store, chosen.latest(), head.size)

    packed = chosen.scope.profile == PACKED_PROFILE

    def write(target: IO[bytes]) -> Exported:
        sink = WrittenFiles(target) if packed else HeldFiles(target)
        maker = Maker(ledger, chosen, note, head, left_out, sink)
        maker.add_growth(since)
        maker.add(times.files)
        made = maker.make()
        if report:
            _add_page(ledger, target, f"{chosen.scope.identifier.removeprefix('task:')}.zip")
        return Exported(
            data=b"",
            octets=target.seek(0, io.SEEK_END),
            about=str(chosen.scope),
            tasks=chosen.scope.tasks,
            counts=made.counts,
            size=head.size,
            later_events=chosen.later,
            signed="export" in ledger.signers,
            withheld=made.withheld,
            erased=made.erased,
            foreign_profiles=made.foreign_profiles,
            elsewhere=made.elsewhere,
            anchored_by=holders,
            stamped_by=times.holders,
        )

    if isinstance(out, Path):
        with placed(out, "the bundle") as target:
            done = write(target)
            target.seek(0)
            return done if packed else replace(done, data=target.read())
    if out is not None:
        return write(out)
    held = io.BytesIO()
    return replace(write(held), data=held.getvalue())


def _add_page(ledger: ContractLedger, target: IO[bytes], name: str) -> None:
    """Put the report page into the bundle that was just written."""
    size = target.seek(0, io.SEEK_END)
    if size > _MOST_WITH_PAGE:
        raise BundleError(
            f"a bundle of {size} bytes is too large for a page that holds it (at most {_MOST_WITH_PAGE}): export it "
            "without --report, and open it in the page that `a2a-ledger report` writes alone"
        )
    target.seek(0)
    bundle = target.read()
    exporter = ledger.signers.get("export")
    made = add_report(bundle, filled_page(bundle, name=name), None if exporter is None else exporter.sign)
    target.seek(0)
    target.write(made)


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
