"""`erase`: the content of one task is destroyed, the proof of all else stays, and the log says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.output import clean, counted, note, print_json
from a2a_ledger.cli.session import pass_session, user
from a2a_ledger.cli.verb import Verb

if TYPE_CHECKING:
    from a2a_ledger.cli.session import Session


@click.command(
    "erase",
    cls=Verb,
    example='a2a-ledger --ledger audit erase T2 --reason "request 17 of a data subject"',
)
@click.argument("task_id", metavar="TASK")
@click.option("--reason", required=True, metavar="TEXT", help="Why. It is logged for ever: name no person in it.")
@click.option("--requested-by", metavar="WHO", help="Who asked; logged as well. Default: the user who runs this.")
@pass_session
def erase(session: Session, *, task_id: str, reason: str, requested_by: str | None) -> None:
    """Destroy the content of one task; the log says so.

    Gone are bodies, headers, URLs and error texts of its messages, from the database, its write-ahead log and the key
    store. Kept are the records (ids, states, times, hosts and paths), the frozen contract, the findings with their
    statements, the peer's cards, and whatever other tasks hold. Leaves, proofs and all other bundles verify as before;
    what was judged from the content cannot be judged again, and a bundle made from now on says so.

    OUT OF REACH, and not erased: bundles that were exported before, backups and copies of this ledger (with their key
    store they open), what the peer recorded, and older octets that a disk or its snapshots keep.

    An erasure that was cut short is finished by whoever opens the ledger next to write.
    """
    from a2a_ledger.erasing import OUT_OF_REACH, erase_content  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.wire import TERMINAL  # noqa: PLC0415 - same
    from a2a_ledger_projections.lookup import find_task  # noqa: PLC0415 - same
    from a2a_ledger_projections.states import ABORTED, ANSWERED  # noqa: PLC0415 - same

    with session.writing(follow=False) as ledger:
        ledger.catch_up()  # while the content can still be judged
        row = find_task(ledger.store, task_id)
        done = erase_content(ledger, row["task"], reason=reason, requested_by=requested_by or user())
    if session.as_json:
        print_json({"task": done.task, "erased": done.erased, "erased_before": done.before})
    elif done.erased:
        click.echo(f"{done.task}: content of {counted(done.erased, 'event')} erased.")
    else:
        before = f"; content of {counted(done.before, 'event')} was erased before" if done.before else ""
        click.echo(f"{done.task}: there is nothing to erase{before}.")
    if row["state"] not in {*TERMINAL, ABORTED, ANSWERED}:
        note(clean(f"The task is {row['state']}: what it still brings is recorded whole. Erase again at its end."))
    note(OUT_OF_REACH)


VERBS = (erase,)
