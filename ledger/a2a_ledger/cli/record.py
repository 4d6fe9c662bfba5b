"""`import`: recorded exchanges of somebody who ran without a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.errors import UNDECIDED
from a2a_ledger.cli.output import clean, note, print_json, progress
from a2a_ledger.cli.session import pass_session
from a2a_ledger.cli.verb import Verb

if TYPE_CHECKING:
    from a2a_ledger.cli.session import Session

_FAULTS_SHOWN = 10


@click.command("import", cls=Verb, example="a2a-ledger --ledger audit import exchanges.jsonl")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.jsonl")
@click.option("--again", is_flag=True, help="Import a file that was imported already.")
@pass_session
@click.pass_context
def import_file(context: click.Context, session: Session, *, file: Path, again: bool) -> None:
    """Import exchanges from a file of JSON lines.

    One exchange a line; the verifier then runs over them. What is rebuilt from such a file is
    called reconstructed, never captured. A line that cannot be read is recorded as such and reported; the
    exit code is then 3.
    """
    from a2a_ledger.capture.jsonl import import_jsonl  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.cli.unfinished import unfinished  # noqa: PLC0415 - only the verbs that follow need it

    with session.writing(follow=False) as ledger:
        with progress(f"import {file.name}") as step:
            report = import_jsonl(ledger, file, again=again, progress=step)
        ledger.catch_up()
        undone = unfinished(ledger)
    if session.as_json:
        print_json(report.to_json())
    else:
        click.echo(clean(report.summary()))
        for fault in report.faults[:_FAULTS_SHOWN]:
            note(clean(f"line {fault.line}: {fault.problem}"))
        if len(report.faults) > _FAULTS_SHOWN:
            note(f"and {len(report.faults) - _FAULTS_SHOWN} more")
    for line in undone:
        note(line)
    context.exit(UNDECIDED if report.faults else 0)


VERBS = (import_file,)
