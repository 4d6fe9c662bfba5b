"""`migrate`: rows of older releases are sealed where they lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.errors import UNDECIDED
from a2a_ledger.cli.output import counted, note, print_json, progress
from a2a_ledger.cli.session import pass_session
from a2a_ledger.cli.verb import Verb

if TYPE_CHECKING:
    from a2a_ledger.cli.session import Session


@click.command("migrate", cls=Verb, example="a2a-ledger --ledger audit migrate")
@pass_session
@click.pass_context
def migrate(context: click.Context, session: Session) -> None:
    """Seal the rows that an older release wrote in clear.

    Leaves, proofs, heads and bundles stay as they are. End processes of releases before this one first: they cannot
    read sealed rows. The database is written anew at the end, which takes as much room again. Run it again to go on
    with a migration that was cut short. Copies and backups of before stay in clear.

    Exit 3: there are rows that cannot be read; they lie as they did, and `audit` names them.
    """
    from a2a_ledger.migrating import seal_older_rows  # noqa: PLC0415 - a heavy import belongs to the verb

    with session.writing(follow=False) as ledger, progress("migrate") as step:
        done = seal_older_rows(ledger, step)
    if session.as_json:
        print_json({"sealed": done.sealed, "unread": [*done.unread]})
    elif done.sealed or done.unread:
        click.echo(f"{counted(done.sealed, 'row')} sealed.")
    else:
        click.echo("Every row is sealed; there is nothing to do.")
    if done.unread:
        note(f"{counted(len(done.unread), 'row')} cannot be read and lie as they did: run `a2a-ledger audit`")
    context.exit(UNDECIDED if done.unread else 0)


VERBS = (migrate,)
