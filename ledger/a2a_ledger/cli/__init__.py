"""The command line: `a2a-ledger [--ledger DIR] [--format text|json] VERB …`.

Results go to stdout, notes and progress to stderr. Exit codes: 0 proved or done, 1 disproved or
unacknowledged findings, 2 usage, 3 cannot decide. Nothing here decides anything: each verb opens
what it is told to, asks the package, and prints. Modules of this folder import `click` and nothing
heavy at the top; a verb's module is imported when the verb is called, and what it needs when it runs.
"""

from __future__ import annotations

from typing import NoReturn

import click

from a2a_ledger import __version__
from a2a_ledger.cli.errors import SafeGroup
from a2a_ledger.cli.verb_lines import VERB_LINES


@click.group(
    cls=SafeGroup,
    lines=VERB_LINES,
    example="a2a-ledger --ledger audit init\na2a-ledger --ledger audit tasks",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--ledger",
    "place",
    envvar="A2A_LEDGER",
    metavar="DIR",
    help="Where the ledger lies: a directory. Also A2A_LEDGER.",
)
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json"]),
    default="text",
    envvar="A2A_LEDGER_FORMAT",
    show_default=True,
    help="For people, or one JSON object a line.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    envvar="A2A_LEDGER_LOG_FORMAT",
    show_default=True,
    help="Of notes and log lines, on standard error.",
)
@click.version_option(__version__, prog_name="a2a-ledger")
@click.pass_context
def cli(context: click.Context, place: str | None, output: str, log_format: str) -> None:
    """Freeze the Agent Card's contract, record every message, prove it offline."""
    from a2a_ledger.cli.logs import start_logging  # noqa: PLC0415 - help logs nothing
    from a2a_ledger.cli.session import Session  # noqa: PLC0415 - and needs no session

    start_logging(as_json=log_format == "json")
    context.obj = Session(place, as_json=output == "json")


def main() -> NoReturn:
    """Run the command line and leave the process with its exit code."""
    cli.main(prog_name="a2a-ledger")
    raise SystemExit(0)  # click has left already; this says so to type checkers
