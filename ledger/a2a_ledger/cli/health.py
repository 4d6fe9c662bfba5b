"""`metrics` and `health`: how a ledger is doing, for a monitoring system."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from a2a_ledger.cli.errors import DISPROVED, UNDECIDED
from a2a_ledger.cli.output import clean, counted, place, print_json, span, styled
from a2a_ledger.cli.session import pass_session
from a2a_ledger.cli.table import print_table
from a2a_ledger.cli.verb import Verb
from a2a_ledger.commands import placed
from a2a_ledger.errors import LedgerError, UsageError

if TYPE_CHECKING:
    from a2a_ledger.cli.session import Session
    from a2a_ledger_projections.health import Health, Waiting

_MIB = 1024 * 1024


@click.command("metrics", cls=Verb, example="a2a-ledger --ledger audit metrics")
@pass_session
def metrics(session: Session) -> None:
    """Print what is measured of a ledger, as Prometheus reads it.

    For a textfile collector or a look by hand: events, signed and anchored heads, lag of each projection, findings by
    rule. How long appends take, and how many wait, only the process that records can say: see --metrics of `proxy` and
    `follow`, and docs/operations.md for a program of your own.
    """
    from a2a_ledger_projections.exposition import exposition  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger_projections.measures import Measures  # noqa: PLC0415 - same

    with session.reading() as ledger:
        measures = Measures(ledger)
        if not session.as_json:
            click.echo(exposition(measures.all(), None), nl=False)
            return
        for measure in measures.all():
            for label, value in measure.read():
                labels = {} if label is None else dict([label])
                print_json({"name": measure.name, "unit": measure.unit, "labels": labels, "value": value})


@click.command("health", cls=Verb, example="a2a-ledger --ledger audit health")
@click.option(
    "--max-lag",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Age of the oldest event that a projection may not have processed.",
)
@click.option(
    "--max-unsigned",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Age of the oldest event that may be under no signed head.",
)
@click.option(
    "--max-unanchored",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Age of the oldest event that may be under no anchor; default: any.",
)
@click.option(
    "--min-free",
    type=click.IntRange(min=0),
    default=256,
    show_default=True,
    metavar="MIB",
    help="Room that must be left where the ledger lies.",
)
@pass_session
@click.pass_context
def health(  # noqa: PLR0913 - one argument an option
    context: click.Context,
    session: Session,
    *,
    max_lag: float,
    max_unsigned: float,
    max_unanchored: float | None,
    min_free: int,
) -> None:
    """Say whether a ledger is well; for a probe.

    Looks at the high-water mark, the signed head, projections, anchors, private keys, free room, and whether a process
    runs the projections. Writes nothing.

    Exit 0: well, 1: a problem was found, 3: it cannot be opened, so nothing is known.
    """
    from a2a_ledger_projections.health import Limits, examine  # noqa: PLC0415 - a heavy import belongs to the verb

    limits = Limits(lag=max_lag, unsigned=max_unsigned, unanchored=max_unanchored, free=min_free * _MIB)
    try:
        with session.reading() as ledger:
            found = examine(ledger, limits)
        found = replace(found, problems=[placed(problem, place()) for problem in found.problems])
    except UsageError:
        raise
    except LedgerError as problem:
        said = placed(str(problem), place())
        if not session.as_json:
            click.echo(f"Unknown: {clean(said)}", err=True)
        else:
            print_json({"healthy": None, "problems": [said]})
        context.exit(UNDECIDED)
    if session.as_json:
        print_json(_as_json(found))
    else:
        _show(found)
    context.exit(DISPROVED if found.problems else 0)


def _as_json(found: Health) -> dict[str, Any]:
    return {
        "healthy": not found.problems,
        "problems": found.problems,
        "events": found.events,
        "mark": found.mark,
        "head": found.head,
        "unsigned": found.unsigned,
        "unanchored": found.unanchored,
        "projections": found.projections,
        "keys": found.keys,
        "following": found.following,
        "free_bytes": found.free,
    }


def _show(found: Health) -> None:
    said = counted(len(found.problems), "problem")
    click.echo(styled("Well.", fg="green") if not found.problems else styled(f"Not well: {said}.", fg="red"))
    for problem in found.problems:
        click.echo(f"  {clean(problem)}")
    mark = "none" if found.mark is None else f"over {found.mark}"
    rows = [
        ["events", str(found.events)],
        ["high-water mark", mark],
        ["signed head", f"over {found.head}, {_behind(found.unsigned)}"],
        ["anchors", _behind(found.unanchored)],
        *([f"projection {name}", _behind(waiting)] for name, waiting in found.projections.items()),
        *([f"{role} key", state] for role, state in found.keys.items()),
        ["a process follows", {True: "yes", False: "no", None: "the server knows"}[found.following]],
        *([["free", f"{found.free // _MIB} MiB"]] if found.free is not None else []),
    ]
    print_table(["WHAT", "NOW"], rows)


def _behind(waiting: Waiting) -> str:
    if not waiting["events"]:
        return "nothing waits"
    return f"{counted(waiting['events'], 'event')} behind, the oldest {span(waiting['age'])} old"


VERBS = (metrics, health)
