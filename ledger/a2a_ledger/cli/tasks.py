"""`tasks`, `show`, `peers`: what is recorded, for the person on call."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, cast

import click

from a2a_ledger.cli.errors import DISPROVED
from a2a_ledger.cli.output import (
    clean,
    clock,
    counted,
    host,
    note,
    note_unchecked,
    place,
    print_json,
    short_hash,
    short_id,
    span,
    styled,
)
from a2a_ledger.cli.session import pass_session
from a2a_ledger.cli.table import print_table
from a2a_ledger.cli.verb import Verb
from a2a_ledger.commands import placed
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.cli.session import Session
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store import Store
    from a2a_ledger_projections.peers import PeerRow
    from a2a_ledger_projections.stalls import Reason, Stall
    from a2a_ledger_projections.task_contracts import TaskRow
    from a2a_ledger_projections.timeline import Story

_STATE_STYLES = {
    "completed": "green",
    "failed": "red",
    "rejected": "red",
    "aborted": "yellow",
    "input-required": "yellow",
    "auth-required": "yellow",
}
_TASK_MEMBERS = (
    "task",
    "peer",
    "peer_task",
    "context",
    "state",
    "contract",
    "sent_at",
    "last_at",
    "findings",
)
_TASK_DROPPED = ("CONTRACT", "SENT (UTC)", "FINDINGS", "PEER", "STATE")
_PEER_MEMBERS = (
    "peer",
    "url",
    "contract",
    "source",
    "caller",
    "validator",
    "signature",
    "fetches",
    "aborts",
    "probes_in_flight",
    "cancels_after_probe",
    "downgrade_windows",
    "tasks",
)
_CARD_MEMBERS = ("source", "caller", "url", "contract")
_FOLLOW_SECONDS = 0.5
_UNCHECKED = "Read models and the events behind them were"
_PREFIXES = range(8, 41)


@click.command("tasks", cls=Verb, example="a2a-ledger --ledger audit tasks --state input-required")
@click.option("--state", metavar="STATE", help="Only tasks in this state, for example input-required.")
@click.option("--peer", metavar="PEER", help="Only tasks at this peer: its card's URL, host or id.")
@click.option("--findings", is_flag=True, help="Only tasks that have findings.")
@click.option("--stalled", is_flag=True, help="Only tasks that have waited longer than their peer's usual.")
@click.option("--now", "now_text", metavar="TIME", help="With --stalled: as of this time, RFC 3339; default: now.")
@click.option(
    "--after",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="With --stalled: the limit where a peer's usual is not known; default 3600.",
)
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most that many, newest first."
)
@click.option("--skip", type=click.IntRange(min=0), default=0, help="Leave out the newest ones: the next page.")
@pass_session
def tasks(  # noqa: PLR0913 - one argument an option
    session: Session,
    *,
    state: str | None,
    peer: str | None,
    findings: bool,
    stalled: bool,
    now_text: str | None,
    after: float | None,
    limit: int,
    skip: int,
) -> None:
    """List the tasks: who works on what, under which contract.

    --stalled says of each why: nothing new for longer than 95 of 100 past waits of that peer, doubled; all artifacts
    complete and no end; a cancel acknowledged and no end; input asked for and none sent.
    """
    from a2a_ledger_projections import task_contracts  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger_projections.base import reading  # noqa: PLC0415 - same
    from a2a_ledger_projections.lookup import find_peer  # noqa: PLC0415 - same

    if not stalled and (now_text is not None or after is not None):
        raise UsageError("--now and --after belong to --stalled", hint="a2a-ledger tasks --stalled --now TIME")
    with session.reading_whole() as ledger:
        stalls = _stalls(ledger, now_text, after) if stalled else {}
        at_peer = find_peer(ledger.store, peer)["peer"] if peer else None
        with reading(ledger.store, task_contracts.VIEW) as now:
            if state is not None:
                _check_state(state, (row["state"] for row in task_contracts.tasks(now.rows)))
            wanted = (
                row
                for row in task_contracts.tasks(now.rows, peer=at_peer, findings=findings, newest_first=True)
                if (state is None or row["state"] == state) and (not stalled or row["task"] in stalls)
            )
            page = _page(wanted, skip, limit)
        _name_peers(page, ledger.store)
        _say_lag(now.lag, ledger.store)
        note_unchecked(_UNCHECKED)
        if session.as_json:
            for row in page:
                told = {name: cast("dict[str, object]", row)[name] for name in _TASK_MEMBERS}
                why = [reason.to_json() for reason in stalls[row["task"]].reasons] if stalled else None
                print_json(told if why is None else {**told, "stalls": why})
            return
        columns = ["LOCAL", "PEER", "PEER'S ID", "STATE", "CONTRACT", "SENT (UTC)", "FINDINGS"]
        shown, today = _id_length([row["task"] for row in page]), ledger.clock()
        print_table(columns, [_task_cells(row, shown, today) for row in page], styles=_STATE_STYLES, drop=_TASK_DROPPED)
        for row in page if stalled else ():
            for reason in stalls[row["task"]].reasons:
                click.echo(f"{row['task'][:shown]}  {_why(reason)}")
        if not page:
            chosen = state or peer or findings or stalled or skip
            note("No task matches." if chosen else "No task is recorded yet.")
        elif len(page) == limit:
            note(f"The newest {counted(limit, 'task')} of those that match; --skip {skip + limit} shows the next ones.")


@click.command("show", cls=Verb, example="a2a-ledger --ledger audit show T1")
@click.argument("task_id", metavar="TASK")
@click.option("--follow", is_flag=True, help="Go on with new events until interrupted.")
@pass_session
@click.pass_context
def show(context: click.Context, session: Session, *, task_id: str, follow: bool) -> None:
    """Tell one task's story.

    It opens with WHO left the contract and since when, and NOW: what can still be done. STUCK means that the
    task cannot go on and cannot be cancelled. TASK is any id: the local one or a
    unique prefix, the peer's task id, a message, context or trace id.

    Exit 1 if an event was changed or removed from outside, as far as this task shows it.
    """
    from a2a_ledger_projections.lookup import find_task  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger_projections.timeline import tell  # noqa: PLC0415 - same

    with session.reading_whole() as ledger:
        row = find_task(ledger.store, task_id)
        _name_peers([row], ledger.store)
        story = tell(ledger.store, row, ledger.clock())
        if session.as_json:
            print_json(story.to_json())
        else:
            _print_head(story, keyless=ledger.home is not None and not ledger.home.key_files())
            _print_lines(story, ledger.clock(), after=-1)
        _say_damage(session, story)
        while follow:
            last = story.lines[-1].record.n if story.lines else -1
            time.sleep(_FOLLOW_SECONDS)
            story = tell(ledger.store, find_task(ledger.store, row["task"]), ledger.clock())
            if session.as_json:
                for line in story.lines:
                    if line.record.n > last:
                        print_json(line.to_json())
            else:
                _print_lines(story, ledger.clock(), after=last)
    context.exit(DISPROVED if story.damage else 0)


@click.command("peers", cls=Verb, example="a2a-ledger --ledger audit peers")
@pass_session
def peers(session: Session) -> None:
    """List the peers: how they behave, and how we behave."""
    from a2a_ledger_projections import peers as view  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger_projections.base import reading  # noqa: PLC0415 - same

    with session.reading_whole() as ledger, reading(ledger.store, view.VIEW) as now:
        rows = [cast("PeerRow", row) for row in now.rows.prefixed(view.PEER)]
        _say_lag(now.lag, ledger.store)
    note_unchecked(_UNCHECKED)
    if session.as_json:
        for row in rows:
            cards = [
                {name: cast("dict[str, object]", card)[name] for name in _CARD_MEMBERS}
                for card in row["cards"].values()
            ]
            print_json({**{name: cast("dict[str, object]", row)[name] for name in _PEER_MEMBERS}, "cards": cards})
        return
    columns = [
        "PEER",
        "ID",
        "CONTRACT",
        "OF CARD",
        "VALIDATOR",
        "SIGNATURE",
        "TASKS",
        "FETCHES",
        "ABORTS",
        "PROBES",
        "CANCELS AFTER",
        "RAN UNDER LESS",
    ]
    cells = [_peer_cells(row) for row in rows]
    if all(row["source"] == "well-known" and row["caller"] == "anonymous" for row in rows):  # it says nothing then
        place = columns.index("OF CARD")
        for line in (columns, *cells):
            del line[place]
    print_table(columns, cells, styles={"lied": "red", "invalid": "red", "ignored": "yellow"}, drop=columns[:1:-1])
    if not rows:
        note("No peer is recorded yet.")


VERBS = (tasks, show, peers)


def _check_state(state: str, recorded: Iterator[str]) -> None:
    """See that a state is one that a task can be in: A2A's, ours, or a peer's own that is recorded.

    Raises:
        UsageError: it is none.
    """
    from a2a_ledger_projections.states import KNOWN  # noqa: PLC0415 - a heavy import belongs to the verb

    if state not in KNOWN and state not in recorded:
        raise UsageError(f"--state: no task is in a state {state!a}: expected one of {', '.join(sorted(KNOWN))}")


def _stalls(ledger: ContractLedger, now_text: str | None, after: float | None) -> dict[str, Stall]:
    """Return the stalled tasks by their local id."""
    from a2a_ledger_projections.stalls import LIMIT, Limits, stalled  # noqa: PLC0415 - a heavy import belongs to the verb

    now = ledger.clock() if now_text is None else _time(now_text)
    return {stall.row["task"]: stall for stall in stalled(ledger.store, now, Limits(after or LIMIT))}


def _time(text: str) -> datetime:
    try:
        now = datetime.fromisoformat(text)
    except ValueError:
        now = None
    if now is None or now.tzinfo is None:
        raise UsageError(f"--now: expected a time with its zone, such as 2026-09-14T12:00:00Z, found {text!a}")
    return now


def _why(reason: Reason) -> str:
    by = {
        "usual": f"usual here: {span(reason.limit)}, from {reason.samples} waits",
        "floor": f"at most {span(reason.limit)}",
        "limit": f"limit {span(reason.limit)}",
    }
    return f"{reason.reason} for {span(reason.seconds)} ({by[reason.by]}): {clean(reason.detail)}"


def _page(rows: Iterator[TaskRow], skip: int, limit: int) -> list[TaskRow]:
    found: list[TaskRow] = []
    for index, row in enumerate(rows):
        if index >= skip:
            found.append(row)
        if len(found) == limit:
            break
    return found


def _name_peers(page: list[TaskRow], store: Store) -> None:
    """Give the tasks that were stopped before their capture the URL of their peer."""
    from a2a_ledger_projections import peers as view  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger_projections.base import reading  # noqa: PLC0415 - same

    nameless = [row for row in page if not row["peer_url"]]
    if not nameless:
        return
    with reading(store, view.VIEW) as now:
        for row in nameless:
            peer = now.rows.get(view.PEER + row["peer"])
            row["peer_url"] = cast("PeerRow", peer)["url"] if peer else None


def _say_lag(lag: int, store: Store) -> None:
    """Say that the stored views are behind, where somebody could do something about it."""
    if lag and lag != store.size():
        note(f"The stored view is {counted(lag, 'event')} behind; this answer includes them (read in memory).")


def _id_length(ids: list[str]) -> int:
    return next((n for n in _PREFIXES if len({i[:n] for i in ids}) == len(set(ids))), len(max(ids, default="")))


def _task_cells(row: TaskRow, shown: int, today: datetime) -> list[str]:
    return [
        row["task"][:shown],
        host(row["peer_url"]) if row["peer_url"] else row["peer"][:8],
        clean(row["peer_task"] or "-"),
        clean(row["state"]),
        short_hash(row["contract"]),
        clock(row["sent_at"], today),
        str(row["findings"]) if row["findings"] else "none",
    ]


def _peer_cells(row: PeerRow) -> list[str]:
    counts = ("tasks", "fetches", "aborts", "probes_in_flight", "cancels_after_probe", "downgrade_windows")
    numbers = [str(cast("dict[str, object]", row)[name]) for name in counts]
    return [
        host(row["url"]),
        row["peer"][:8],
        short_hash(row["contract"]),
        clean(_which_card(row)),
        row["validator"],
        row["signature"] or "-",
        *numbers,
    ]


def _which_card(row: PeerRow) -> str:
    """Say which of the peer's cards the shown contract is of, and to whom it was served."""
    if row["source"] is None:
        return "-"
    return row["source"] if row["caller"] in {None, "anonymous"} else f"{row['source']} to {row['caller']}"


def _say_damage(session: Session, story: Story) -> None:
    for said in story.damage:
        note(clean(f"{said}."))
    if story.damage:
        note(f"The ledger was changed from outside: run `a2a-ledger --ledger {clean(str(session.path))} audit`.")


def _print_head(story: Story, *, keyless: bool) -> None:
    row = story.row
    name = f"{clean(row['peer_task'])} ({short_id(row['task'])})" if row["peer_task"] else short_id(row["task"])
    lasting = f" for {span(story.lasting)}" if story.lasting is not None and story.lasting >= 1 and row["open"] else ""
    stuck = styled(" STUCK: cannot go on, cannot be cancelled.", fg="red", bold=True) if story.stuck else ""
    copy = "   read only" if keyless else ""
    click.echo(f"{name} at {host(row['peer_url'])}: {styled(clean(row['state']), bold=True)}{lasting}.{stuck}{copy}")
    click.echo(f"WHO      {clean(story.who)}")
    click.echo(f"NOW      {clean(placed(story.now, place()))}")


def _print_lines(story: Story, today: datetime, *, after: int) -> None:
    width = len(str(story.lines[-1].record.n)) + 1 if story.lines else 0
    colours = {"violation": "red", "aborted": "yellow", "frozen": "cyan", "rebuilt": "cyan", "this side": "yellow"}
    for line in story.lines:
        if line.record.n <= after:
            continue
        kind = styled(f"{line.kind:<9}", fg=colours[line.kind]) if line.kind in colours else f"{line.kind:<9}"
        at = clock(line.record.at, today, millis=True)
        click.echo(f"  {f'#{line.record.n}':>{width}} {at} {kind} {clean(line.words)}")
