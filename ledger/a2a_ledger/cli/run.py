"""`init`, `demo`, `bench`, `follow`: what makes and runs a ledger."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.output import note, print_json
from a2a_ledger.cli.session import pass_session
from a2a_ledger.cli.verb import Verb
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from a2a_ledger.cli.session import Session

_FOLLOW_SECONDS = 0.25


@click.command("init", cls=Verb, example="a2a-ledger --ledger audit init --origin acme/audit")
@click.option(
    "--origin",
    metavar="NAME",
    help="First part of the log's name, for example acme/audit; default: machine and directory.",
)
@pass_session
def init(session: Session, *, origin: str | None) -> None:
    """Make a ledger: database, keys, mark and settings."""
    from a2a_ledger.home import LedgerHome  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.ledger import ContractLedger  # noqa: PLC0415 - same

    path = session.path
    if not LedgerHome(path.absolute()).is_new():
        raise UsageError(f"{path}: a ledger is here already; nothing was changed")
    with ContractLedger.open(path, origin=origin, follow=False) as ledger:
        ledger.sign_checkpoint()
        keys = {role: signer.vkey for role, signer in ledger.signers.items()}
        name = ledger.origin
    if session.as_json:
        print_json({"ledger": str(path), "origin": name, "keys": keys})
        return
    click.echo(f"{path}: database, keys (0600), high-water mark. Log key {keys['log'].rsplit('+', 1)[0]}.")
    note("Nothing outside this machine holds a head: see `a2a-ledger checkpoint --help`.")


@click.command("demo", cls=Verb, example="a2a-ledger demo\na2a-ledger demo --keep /tmp/demo")
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Leave DIR/ledger, DIR/bundles/*.zip and DIR/policy.txt behind.",
)
@pass_session
@click.pass_context
def demo(context: click.Context, session: Session, *, keep: Path | None) -> None:
    """Run three disputes on real agents on loopback.

    Each case runs with and without the guard; then the evidence is exported, verified and tampered with.
    Exit 0 only if every case ended as it must.
    """
    from a2a_ledger.cli.demo import run  # noqa: PLC0415 - needs the extra, and only this verb does

    context.exit(run(keep, as_json=session.as_json))


@click.command("bench", cls=Verb, example="a2a-ledger bench --quick")
@click.option("--row", "rows", multiple=True, metavar="NAME", help="Only this row; may be given more than once.")
@click.option("--quick", is_flag=True, help="Smaller rounds: a look, not a measurement.")
@pass_session
@click.pass_context
def bench(context: click.Context, session: Session, *, rows: tuple[str, ...], quick: bool) -> None:
    """Measure this machine, each row beside its floor."""
    from a2a_ledger.cli.bench import run  # noqa: PLC0415 - only this verb needs it

    context.exit(run(rows, quick=quick, as_json=session.as_json))


@click.command("follow", cls=Verb, example="a2a-ledger --ledger audit follow --once")
@click.option("--once", is_flag=True, help="Catch up with the log and stop.")
@pass_session
def follow(session: Session, *, once: bool) -> None:
    """Run the projections and the verifier on a ledger.

    For a ledger that others write to: it keeps up until it is interrupted, or catches up once.
    """
    with session.writing(follow=False) as ledger:
        done = ledger.catch_up()
        if session.as_json:
            print_json({"events": done, "size": ledger.store.size()})
        else:
            click.echo(f"Caught up to #{ledger.store.size() - 1}.")
        while not once:
            time.sleep(_FOLLOW_SECONDS)
            done = ledger.catch_up()
            if done and not session.as_json:
                click.echo(f"Caught up to #{ledger.store.size() - 1}.")
            elif done:
                print_json({"events": done, "size": ledger.store.size()})


VERBS = (init, demo, bench, follow)
