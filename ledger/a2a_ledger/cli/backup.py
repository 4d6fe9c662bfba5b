"""`backup`: a copy of the ledger that is whole, taken while others write to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.output import clean, counted, note, print_json
from a2a_ledger.cli.session import pass_session
from a2a_ledger.cli.verb import Verb

if TYPE_CHECKING:
    from a2a_ledger.cli.session import Session


@click.command("backup", cls=Verb, example="a2a-ledger --ledger audit backup copy --keys copy-keys")
@click.argument("place", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--keys",
    "keys_place",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Put key store and private keys there, to be kept apart.",
)
@pass_session
def backup(session: Session, *, place: Path, keys_place: Path | None) -> None:
    """Copy the ledger while others write to it.

    The copy is one state of the log. No record of it opens without the key store, so with --keys the two can lie with
    different people. The high-water mark is not copied: what was signed since stays signed, and a mark from an older
    day would vouch for an old log. docs/backup.md says how to put one back.
    """
    from a2a_ledger.backup import back_up  # noqa: PLC0415 - a heavy import belongs to the verb

    made = back_up(session.path, place, keys=keys_place)
    if session.as_json:
        kept = str(keys_place or place)
        print_json({"events": made.events, "head": made.head, "place": str(place), "keys": kept})
    else:
        keys = f"its keys in {keys_place}" if keys_place else "its keys with it"
        head = f"signed head over {made.head}" if made.head else "no signed head"
        click.echo(f"{place}: {counted(made.events, 'event')}, {head}, {keys}.")
    for name in made.not_copied:
        note(clean(f"{name} is named in config.toml and was not copied: it lies elsewhere, or holds a head."))


VERBS = (backup,)
"""What this module gives to the command line."""
