"""`reconcile`: two sides' bundles, or ledgers, laid together."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.errors import DISPROVED, UNDECIDED
from a2a_ledger.cli.output import clean, counted, print_json, short_hash, short_id, styled
from a2a_ledger.cli.session import Session, pass_session
from a2a_ledger.cli.verb import Verb
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from a2a_ledger.codec import Record
    from a2a_ledger.events import JsonObject
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.reconcile import CardSeen, Difference, Reconciliation, Side, SideReport, TaskReport

_EXIT = {"consistent": 0, "contradiction": DISPROVED, "mutually-consistent-stale": DISPROVED}
_COLOURS = {
    "consistent": "green",
    "contradiction": "red",
    "mutually-consistent-stale": "red",
    "incomplete": "yellow",
}
_PAGE = 500
_SHOWN = 20
"""Differences of one task that are shown to people; JSON has all."""

_CARD_STREAMS = ("peer:self",)


@click.command(
    "reconcile",
    cls=Verb,
    example="a2a-ledger reconcile ours.zip theirs.zip --policy-a ours.txt --policy-b theirs.txt",
)
@click.argument("first", metavar="A", type=click.Path(path_type=Path))
@click.argument("second", metavar="B", type=click.Path(path_type=Path))
@click.option("--policy-a", type=click.Path(path_type=Path), help="What you trust of A's log: a C2SP tlog-policy file.")
@click.option("--policy-b", type=click.Path(path_type=Path), help="What you trust of B's log.")
@pass_session
@click.pass_context
def reconcile(  # noqa: PLR0913 - one argument an option
    context: click.Context,
    session: Session,
    *,
    first: Path,
    second: Path,
    policy_a: Path | None,
    policy_b: Path | None,
) -> None:
    """Lay two sides' records of the same tasks together.

    A and B are bundles or ledger directories: the client's and the agent's, or two clients' of one agent. Legs are
    matched by content and ids, never by clocks. MUTUALLY-CONSISTENT-STALE: both went on under one contract, though
    one side's own record shows that the card had changed before.

    Exit 0: consistent, 1: contradiction, or stale, 3: cannot be decided from these records.
    """
    from a2a_ledger.reconcile import reconcile as lay_together  # noqa: PLC0415 - a heavy import belongs to the verb

    with ExitStack() as open_ledgers:
        a = _side(first, policy_a, "--policy-a", open_ledgers)
        b = _side(second, policy_b, "--policy-b", open_ledgers)
        if a.report.origin and a.report.origin == b.report.origin:
            raise UsageError(
                f"expected the records of two sides, found twice those of one ledger, {a.report.origin}: "
                "what one side says twice confirms nothing"
            )
        found = lay_together(a, b)
    if session.as_json:
        print_json(found.to_json())
    else:
        _print(found)
    context.exit(_EXIT.get(found.verdict, UNDECIDED))


VERBS = (reconcile,)


@dataclass(slots=True)
class LedgerSide:
    """A side that is an open ledger: its tasks are read one at a time."""

    ledger: ContractLedger
    report: SideReport
    whole: bool = True
    _cards: dict[str, list[CardSeen]] = field(default_factory=dict[str, "list[CardSeen]"])

    def tasks(self) -> list[str]:
        """Return the local ids of its tasks, in the order in which they began."""
        from a2a_ledger_projections import task_contracts  # noqa: PLC0415 - a heavy import belongs to the verb
        from a2a_ledger_projections.base import reading  # noqa: PLC0415 - same

        with reading(self.ledger.store, task_contracts.VIEW) as now:
            return [row["task"] for row in task_contracts.tasks(now.rows)]

    def events(self, task: str) -> list[Record]:
        """Return the stream of one task."""
        return self.ledger.store.read_stream(f"task:{task}")

    def cards(self, peer: str) -> list[CardSeen]:
        """Return the cards of one peer that were fetched, and those that were served here, in log order."""
        if peer not in self._cards:
            streams = (f"peer:{peer}", *_CARD_STREAMS)
            self._cards[peer] = sorted(seen for stream in streams for seen in self._read_cards(stream))
        return self._cards[peer]

    def _read_cards(self, stream: str) -> list[CardSeen]:
        from a2a_ledger.reconcile import card_seen  # noqa: PLC0415 - a heavy import belongs to the verb

        found: list[CardSeen] = []
        ver = -1
        while page := self.ledger.store.read_stream(stream, gt=ver, limit=_PAGE):
            found += [seen for record in page if (seen := card_seen(record)) is not None]
            ver = page[-1].ver
        return found


def _side(place: Path, policy_file: Path | None, option: str, open_ledgers: ExitStack) -> Side:
    """Read one side: a directory is a ledger, everything else has to be a bundle."""
    from a2a_ledger.cli.reading import MAX_BUNDLE, read_as, read_input  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.policy import parse_policy  # noqa: PLC0415 - same
    from a2a_ledger.reconcile import bundle_side, ledger_report  # noqa: PLC0415 - same

    if place.is_dir():
        if policy_file is not None:
            raise UsageError(
                f"{option}: a policy says whom you trust of a bundle, and {place} is a ledger that is read directly",
                hint="Export a bundle from it, or leave the option out.",
            )
        ledger = open_ledgers.enter_context(Session(str(place), as_json=False).reading())
        return LedgerSide(ledger, ledger_report(ledger.origin))
    policy = read_as(policy_file, "a policy", parse_policy) if policy_file is not None else None
    return bundle_side(read_input(place, "a bundle, or a ledger's directory", limit=MAX_BUNDLE), policy)


def _print(found: Reconciliation) -> None:
    for name, side in zip("AB", found.sides, strict=True):
        click.echo(f"{name}  {clean(side.origin) or '-'} ({side.kind}), {_side_verdict(side)}. {clean(side.detail)}")
    click.echo(_verdict(found.verdict) + f": {counted(len(found.tasks), 'task')} on both sides")
    if idle := [name for name, side in zip("AB", found.sides, strict=True) if not side.usable]:
        click.echo(
            f"Nothing is decided by {' and '.join(idle)}: what the records say of the tasks is in --format json."
        )
    else:
        _print_compared(found)
    from a2a_ledger.reconcile import NOT_ESTABLISHED  # noqa: PLC0415 - a heavy import belongs to the verb

    for line in NOT_ESTABLISHED:
        click.echo(f"  does not establish: {line}")


def _print_compared(found: Reconciliation) -> None:
    for task in found.tasks:
        _print_task(task)
    for difference in found.cards:
        click.echo(f"  card  {_line(difference)}")
    left_a, left_b = found.unmatched
    if left_a or left_b:
        click.echo(f"Not on the other side: {counted(left_a, 'task')} of A, {counted(left_b, 'task')} of B.")


def _print_task(task: TaskReport) -> None:
    name = clean(task.peer_task or short_id(task.task_a))
    legs = task.legs
    click.echo(
        f"{name}  A {short_id(task.task_a)} ({task.stances[0]}), B {short_id(task.task_b)} ({task.stances[1]}), "
        f"by {', '.join(task.matched_by)}: {_verdict(task.verdict)}"
    )
    hashes = [short_hash(_hash(frozen)) for frozen in (task.contract_a, task.contract_b)]
    click.echo(f"  contract  {task.contracts}: A {hashes[0]}, B {hashes[1]}")
    hidden = f" ({legs.cannot_tell} of them in part hidden, {legs.unseen} wholly)" if legs.cannot_tell else ""
    click.echo(
        f"  legs      {legs.both} on both{hidden}, {legs.only_a} on A alone, {legs.only_b} on B alone, "
        f"{legs.differ} with other content"
    )
    ranked = sorted(task.differences, key=_rank)
    for difference in ranked[:_SHOWN]:
        click.echo(f"  {_line(difference)}")
    if len(ranked) > _SHOWN:
        click.echo(f"  and {len(ranked) - _SHOWN} more; --format json lists all")


def _line(difference: Difference) -> str:
    where = " ".join(f"{side} #{n}" for side, n in (("A", difference.a), ("B", difference.b)) if n is not None)
    pointer = f" at {clean(difference.pointer)}" if difference.pointer else ""
    return f"{difference.kind} [{where}]: {clean(difference.detail)}{pointer}"


def _verdict(verdict: str) -> str:
    return styled(verdict.upper(), fg=_COLOURS[verdict], bold=True)


def _side_verdict(side: SideReport) -> str:
    return side.verdict if side.verdict == "verified" else styled(side.verdict, fg="yellow")


def _hash(frozen: JsonObject | None) -> str | None:
    value = (frozen or {}).get("hash")
    return value if isinstance(value, str) else None


def _rank(difference: Difference) -> int:
    return ("contradiction", "stale", "open", "explained").index(difference.weight)
