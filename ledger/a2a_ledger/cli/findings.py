"""`violations`: what the verifier found, what `enforce` would have refused, and what is acknowledged."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import click

from a2a_ledger.cli.errors import DISPROVED
from a2a_ledger.cli.output import clean, clock, counted, host, note, note_unchecked, print_json, short_id
from a2a_ledger.cli.session import pass_session, user
from a2a_ledger.cli.table import print_table
from a2a_ledger.cli.unfinished import VERIFIER
from a2a_ledger.cli.verb import Verb, VerbGroup
from a2a_ledger.errors import DamagedError, StoreError, UsageError

if TYPE_CHECKING:
    from a2a_ledger.cli.session import Session
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store import Store
    from a2a_ledger_projections.peers import PeerRow
    from a2a_ledger_projections.violations import Violation

_FOLLOW_SECONDS = 0.5
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@click.group(
    "violations",
    cls=VerbGroup,
    example=(
        "a2a-ledger --ledger audit violations --would-reject --since 7d\na2a-ledger --ledger audit violations --group"
    ),
    invoke_without_command=True,
)
@click.option("--would-reject", is_flag=True, help="Only answers that mode `enforce` would have refused.")
@click.option("--since", metavar="AGE|TIME", help="Only from then on: 90m, 12h, 7d, or an RFC 3339 time.")
@click.option("--task", "task_id", metavar="TASK", help="Only those that name this task (any id).")
@click.option("--unacknowledged", is_flag=True, help="Only those that nobody has acknowledged.")
@click.option("--group", is_flag=True, help="One line a rule, party and peer, with counts.")
@click.option("--follow", is_flag=True, help="Go on with new ones until interrupted.")
@pass_session
@click.pass_context
def violations(  # noqa: PLR0913 - one argument an option
    context: click.Context,
    session: Session,
    *,
    would_reject: bool,
    since: str | None,
    task_id: str | None,
    unacknowledged: bool,
    group: bool,
    follow: bool,
) -> None:
    """List or acknowledge what the verifier found.

    Suspected findings are listed too. Exit 1 if one that is listed is not acknowledged.

    `enforce` refuses answers by which the peer left the contract, and what it streams. A request of
    ours and a push are recorded and reported, never refused: when they are judged they have been
    sent, or delivered. Exit 1 too if a finding was changed from outside.
    """
    if context.invoked_subcommand is not None:
        return
    from a2a_ledger_projections import violations as found  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger_projections.lookup import find_task  # noqa: PLC0415 - same

    with session.reading_whole() as ledger:
        store = ledger.store
        start_at = parse_since(since, ledger.clock()) if since else ""
        task = find_task(store, task_id)["task"] if task_id else None

        def wanted(violation: Violation) -> bool:
            return (
                (not would_reject or found.would_reject(store, violation))
                and (store.record(violation.trigger) if would_reject else violation.record).at >= start_at
                and (task is None or violation.concerns(task))
                and not (unacknowledged and violation.acknowledged)
            )

        position = store.size()
        listed = [violation for violation in found.violations(store) if wanted(violation)]
        _say_lag(ledger)
        damaged = _say_damage(listed)
        note_unchecked("Events other than the findings themselves were")
        if group:
            _print_groups(session, _grouped(listed, _urls(store)))
        else:
            _print(session, listed, ledger.clock())
        if would_reject and not session.as_json:
            rejected = len({violation.trigger for violation in listed})
            total = found.count_messages(store, since=start_at)
            click.echo(f"{rejected} of {counted(total, 'message')} would have been rejected under `enforce`.")
        while follow:
            time.sleep(_FOLLOW_SECONDS)
            size = store.size()
            if size > position:
                new = [violation for violation in found.violations(store, start=position) if wanted(violation)]
                position = size
                _print(session, new, ledger.clock(), head=False)
    context.exit(DISPROVED if damaged or any(not violation.acknowledged for violation in listed) else 0)


@violations.command(
    "ack", cls=Verb, example="a2a-ledger --ledger audit violations ack 45 --why 'agreed with the vendor by mail'"
)
@click.argument("position", type=click.IntRange(min=0))
@click.option("--why", required=True, help="Why the finding may stand; it is recorded.")
@click.option("--who", help="Who says so; default: the name of the user who runs this.")
@pass_session
def acknowledge(session: Session, *, position: int, why: str, who: str | None) -> None:
    """Acknowledge the violation at log POSITION, with a reason."""
    from a2a_ledger.events import FindingAcknowledged, ViolationDetected  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger_projections.violations import is_acknowledged  # noqa: PLC0415 - same

    with session.writing() as ledger:
        size = ledger.store.size()
        if position >= size:
            raise UsageError(f"position {position}: expected a violation, but the log ends before {size}")
        record = ledger.store.record(position)
        if record.type != ViolationDetected.TYPE:
            raise UsageError(f"position {position}: expected a violation, found {record.type}")
        if is_acknowledged(ledger.store, record):
            note(f"#{position} is acknowledged already; nothing was recorded.")
            return
        event = FindingAcknowledged(violation=record.ref, who=who or user(), why=why)
        (appended,) = ledger.append([ledger.draft(event, stream=record.stream)])
        if session.as_json:
            print_json({"acknowledged": position, "position": appended.n})
        else:
            click.echo(f"#{position} {record.data.get('rule')} acknowledged, recorded as #{appended.n}.")


VERBS = (violations,)


def parse_since(text: str, now: datetime) -> str:
    """Return a record's time from an age (`7d`) or a time.

    Raises:
        UsageError: it is neither.
    """
    try:
        if age := re.fullmatch(r"([0-9]{1,6})([smhdw])", text):
            then = now - timedelta(seconds=int(age[1]) * _UNITS[age[2]])
        else:
            then = datetime.fromisoformat(text)
        then = then.replace(tzinfo=UTC) if then.tzinfo is None else then.astimezone(UTC)
    except ValueError:
        raise UsageError(
            f"--since: expected an age such as 90m, 12h or 7d, or an RFC 3339 time, found {text!a}"
        ) from None
    except OverflowError:
        raise UsageError(f"--since: {text!a} lies outside of the years 1 to 9999") from None
    return then.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _say_lag(ledger: ContractLedger) -> None:
    try:
        lag = ledger.store.size() - ledger.store.position(VERIFIER)
    except StoreError as damage:
        note(f"How far the verifier has looked is not known: {damage}; {damage.hint}")
        return
    if lag <= 0:
        return
    key = ledger.home.keys / "statement.pem" if ledger.home else None
    way = (
        "`a2a-ledger follow --once` catches up"
        if key is not None and key.exists()
        else f"`a2a-ledger follow --once` catches up where the key that signs findings is; {key} is missing"
    )
    note(f"The verifier has not looked at the last {counted(lag, 'event')} yet; {way}.")


def _say_damage(listed: list[Violation]) -> bool:
    """Say of which findings the content does not open, an erasure apart; return whether there are any."""
    from a2a_ledger.store.damage import unopened  # noqa: PLC0415 - a heavy import belongs to the verb

    damaged = [violation.record.n for violation in listed if unopened(violation.record)]
    for n in damaged:
        note(f"event {n} cannot be opened: it was changed.")
    if damaged:
        note(DamagedError.hint)
    return bool(damaged)


def _print(session: Session, listed: list[Violation], today: datetime, *, head: bool = True) -> None:
    if session.as_json:
        for violation in listed:
            print_json(violation.to_json())
        return
    columns = ["#", "AT (UTC)", "RULE", "ABOUT", "CERTAINTY", "TASK", "SHOWN BY", "ACK"]
    dropped = ("SHOWN BY", "AT (UTC)", "ACK", "ABOUT", "CERTAINTY")
    if listed:
        print_table(columns, [_cells(violation, today) for violation in listed], drop=dropped, head=head)
    elif head:
        note("No finding matches.")


def _print_groups(session: Session, groups: list[dict[str, object]]) -> None:
    if session.as_json:
        for group in groups:
            print_json(group)
        return
    columns = ["COUNT", "OPEN", "RULE", "ABOUT", "CERTAINTY", "PEER", "ID", "FIRST", "LAST"]
    dropped = ("LAST", "FIRST", "OPEN", "ABOUT", "CERTAINTY", "ID")
    rows = [
        [
            *(clean(str(group[name])) for name in ("count", "unacknowledged", "rule", "about", "certainty")),
            host(cast("str | None", group["url"])),
            clean(str(group["peer"])[:8]),
            *(f"#{group[name]}" for name in ("first", "last")),
        ]
        for group in groups
    ]
    if rows:
        print_table(columns, rows, drop=dropped)
    else:
        note("No finding matches.")


def _urls(store: Store) -> dict[str, str | None]:
    """Return the card's URL of each peer by its id."""
    from a2a_ledger_projections import peers as view  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger_projections.base import reading  # noqa: PLC0415 - same

    with reading(store, view.VIEW) as now:
        rows = [cast("PeerRow", row) for row in now.rows.prefixed(view.PEER)]
    return {row["peer"]: row["url"] for row in rows}


def _cells(violation: Violation, today: datetime) -> list[str]:
    line = violation.to_json()
    evidence = line["evidence"]
    shown = ", ".join(f"#{index}" for index in evidence) if isinstance(evidence, list) else ""
    task = violation.data.get("task")
    return [
        f"#{violation.record.n}",
        clock(violation.record.at, today),
        clean(str(line["rule"])),
        clean(str(line["about"])),
        clean(str(line["certainty"])),
        short_id(task) if isinstance(task, str) else f"peer {str(violation.data.get('peer'))[:8]}",
        shown,
        "yes" if violation.acknowledged else "no",
    ]


def _grouped(listed: list[Violation], urls: dict[str, str | None]) -> list[dict[str, object]]:
    groups: dict[tuple[str, str, str, str], list[Violation]] = {}
    for violation in listed:
        rule, about, certainty, peer = (
            str(violation.data.get(name)) for name in ("rule", "about", "certainty", "peer")
        )
        groups.setdefault((rule, about, certainty, peer), []).append(violation)
    return [
        {
            "count": len(members),
            "unacknowledged": sum(not violation.acknowledged for violation in members),
            "rule": rule,
            "about": about,
            "certainty": certainty,
            "peer": peer,
            "url": urls.get(peer),
            "first": members[0].record.n,
            "last": members[-1].record.n,
        }
        for (rule, about, certainty, peer), members in sorted(groups.items(), key=lambda group: -len(group[1]))
    ]
