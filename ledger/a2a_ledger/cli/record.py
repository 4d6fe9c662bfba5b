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

FORMATS = ("jsonl", "har", "vcr", "tasks", "message")
"""As `capture.formats.FORMATS`, which is too heavy for a help text; a test holds them together."""

_FAULTS_SHOWN = 10


@click.command("import", cls=Verb, example="a2a-ledger --ledger audit import exchanges.jsonl")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--as", "form", type=click.Choice(FORMATS), help="The format, where the content does not tell it.")
@click.option(
    "--url", default="", help="Where a message was sent, or whose tasks a dump holds, if the file does not say."
)
@click.option("--again", is_flag=True, help="Import a file that was imported already.")
@pass_session
@click.pass_context
def import_traffic(  # noqa: PLR0913 - one argument an option
    context: click.Context, session: Session, *, file: Path, form: str | None, url: str, again: bool
) -> None:
    """Import recorded traffic from a file.

    Exchanges as JSON lines (one a line), a HAR file, a cassette (vcrpy, betamax, VCR; YAML or JSON), a dump of a
    task store (Tasks or rows as JSON), or one message alone (HTTP text, an event stream, a JSON body); which of
    them is told by the content. The verifier then runs over it. What is rebuilt from such a file is called
    reconstructed, never captured, and its times are claimed, not observed. An entry that cannot be read is
    recorded as such and reported; the exit code is then 3.
    """
    from a2a_ledger.capture.import_file import import_file  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.cli.unfinished import unfinished  # noqa: PLC0415 - only the verbs that follow need it

    with session.writing(follow=False) as ledger:
        with progress(f"import {file.name}") as step:
            report = import_file(ledger, file, form=form, url=url, again=again, progress=step)
        ledger.catch_up()
        undone = unfinished(ledger)
    if session.as_json:
        print_json(report.to_json())
    else:
        click.echo(clean(report.summary()))
        one = "line" if report.form == "jsonl" else "entry"
        for fault in report.faults[:_FAULTS_SHOWN]:
            note(clean(f"{one} {fault.line}: {fault.problem}"))
        if len(report.faults) > _FAULTS_SHOWN:
            note(f"and {len(report.faults) - _FAULTS_SHOWN} more")
    for line in undone:
        note(line)
    context.exit(UNDECIDED if report.faults else 0)


VERBS = (import_traffic,)
