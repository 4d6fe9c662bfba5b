"""`init`, `demo`, `bench`, `follow`: what makes and runs a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.errors import UNDECIDED
from a2a_ledger.cli.output import note, print_json
from a2a_ledger.cli.session import pass_session, server_of
from a2a_ledger.cli.verb import Verb
from a2a_ledger.commands import command
from a2a_ledger.errors import BusyError, DiskFullError, UnreachableError, UsageError

if TYPE_CHECKING:
    from a2a_ledger.cli.session import Session
    from a2a_ledger.cli.stopping import Stopping
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store.fence import Fence

_FOLLOW_SECONDS = 0.25
_STAND_BY_SECONDS = 1.0


@click.command("init", cls=Verb, example="a2a-ledger --ledger audit init --origin acme/audit")
@click.option(
    "--origin",
    metavar="NAME",
    help="First part of the log's name, for example acme/audit; default: machine and directory.",
)
@click.option(
    "--store",
    "url",
    metavar="URL",
    help="A PostgreSQL server that is to have the events, without a password: postgresql://HOST/DATABASE.",
)
@click.option("--schema", metavar="NAME", help="Where they are to lie on it; default: a2a_ledger.")
@pass_session
def init(session: Session, *, origin: str | None, url: str | None, schema: str | None) -> None:
    """Make a ledger: database, keys, mark and settings.

    With --store the events lie on a PostgreSQL server; keys, mark and settings stay in the directory.
    """
    from a2a_ledger.home import LedgerHome  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.ledger import ContractLedger  # noqa: PLC0415 - same

    path = session.path
    if not LedgerHome(path.absolute()).is_new():
        raise UsageError(f"{path}: a ledger is here already; nothing was changed")
    server = server_of(url, schema)
    with ContractLedger.open(path, origin=origin, follow=False, server=server) as ledger:
        ledger.sign_checkpoint()
        keys = {role: signer.vkey for role, signer in ledger.signers.items()}
        name = ledger.origin
    if session.as_json:
        print_json({"ledger": str(path), "origin": name, "keys": keys})
        return
    database = "database" if server is None else f"settings that name schema {server.schema}"
    click.echo(f"{path}: {database}, keys (0600), high-water mark. Log key {_name_and_id(keys['log'])}.")
    note(f"Nothing outside this machine holds a head yet: {command(path, 'anchor file /ANOTHER/MOUNT/head')}")
    note("Better, have others sign it: see `a2a-ledger anchor --help`.")


def _name_and_id(vkey: str) -> str:
    """Return the parts of a verifier key that people compare; its last part, base64, may hold a `+` itself."""
    return "+".join(vkey.split("+", 2)[:2])


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
@click.option(
    "--store",
    "url",
    metavar="URL",
    help="A PostgreSQL server for the rows about one, without a password; they leave nothing on it.",
)
@pass_session
@click.pass_context
def bench(context: click.Context, session: Session, *, rows: tuple[str, ...], quick: bool, url: str | None) -> None:
    """Measure this machine, each row beside its floor."""
    from a2a_ledger.cli.bench import run  # noqa: PLC0415 - only this verb needs it

    context.exit(run(rows, quick=quick, as_json=session.as_json, url=url))


@click.command("follow", cls=Verb, example="a2a-ledger --ledger audit follow --once")
@click.option("--once", is_flag=True, help="Catch up with the log and stop.")
@click.option("--from-start", is_flag=True, help="Read the whole log again, after a read model was damaged.")
@click.option("--metrics", metavar="HOST:PORT", help="Serve /metrics there for Prometheus; 0: a free port.")
@pass_session
@click.pass_context
def follow(context: click.Context, session: Session, *, once: bool, from_start: bool, metrics: str | None) -> None:
    """Run the projections and the verifier on a ledger.

    For a ledger that others write to: it keeps up until it is interrupted, or catches up once. Of several that keep
    up, one works and the others stand by. Exit 3 if a key is not here that this needs: keys/statement.pem to sign
    findings, keys/log.pem to sign heads.

    SIGTERM, SIGHUP and Ctrl-C end it within two seconds, also where no server answers or a lock is waited for, and
    another one takes over at once. Exit 0 then, or 130 after Ctrl-C.
    """
    from a2a_ledger.cli.scraping import scraped  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.cli.stopping import stopped_by_signals  # noqa: PLC0415 - same

    if once and metrics is not None:
        raise UsageError("--metrics: expected no --once beside it: a process that stops cannot be scraped")
    if once:
        with session.writing(follow=False) as ledger:
            told = _catch_up(session, ledger, from_start=from_start)
            for line in told:
                note(line)
            context.exit(UNDECIDED if told else 0)
    with (
        stopped_by_signals() as stopping,
        session.writing(follow=False) as ledger,
        scraped(ledger, metrics) as scrape,
    ):
        if scrape is not None:
            note(f"Metrics for Prometheus: {scrape}")
        ledger.anchor_regularly()
        if _keep_up(session, ledger, stopping, from_start=from_start):
            context.exit(UNDECIDED)
    if stopping.code:
        raise click.Abort


def _keep_up(session: Session, ledger: ContractLedger, stopping: Stopping, *, from_start: bool) -> bool:
    """Follow until it is told to stop, through losses of the server and a full disk.

    Returns:
        True where the key for it is missing.
    """
    from a2a_ledger.followers import fence_of  # noqa: PLC0415 - as below

    fence = fence_of(ledger)
    told: list[str] = []
    met = ""  # what keeps it from following, said once
    try:
        while not stopping:
            try:
                if not fence.take():
                    met = _said_once("Another process follows this ledger; this one stands by.", met)
                    stopping.wait(_STAND_BY_SECONDS)
                    continue
                size = ledger.store.size()
                undone = _catch_up(session, ledger, from_start=from_start, fence=fence)
                from_start, met = False, ""
                for line in undone if not told else ():
                    note(line)
                told = undone
                if undone and ledger.statement_signer is None:
                    return True
                while ledger.store.size() == size and fence.holds() and not stopping.wait(_FOLLOW_SECONDS):
                    pass
            except (UnreachableError, BusyError, DiskFullError) as error:
                met = _said_once(f"{error}. It is tried again.", met)
                stopping.wait(_STAND_BY_SECONDS)
        return False
    finally:
        fence.let_go()


def _catch_up(session: Session, ledger: ContractLedger, *, from_start: bool, fence: Fence | None = None) -> list[str]:
    """Catch up and say how far; return a sentence for each work that a missing key keeps from being done."""
    from a2a_ledger.cli.unfinished import VERIFIER, unfinished  # noqa: PLC0415 - only the verbs that follow need it

    done = ledger.catch_up(from_start=from_start, fence=fence)
    size, verified = ledger.store.size(), ledger.store.position(VERIFIER)
    undone = unfinished(ledger)
    if session.as_json:
        print_json({"events": done, "size": size, "verified": verified})
    elif ledger.statement_signer is not None or verified >= size:
        click.echo(f"Caught up to #{verified - 1}.")
    else:
        click.echo(f"Read models caught up to #{size - 1}; the verifier stands before #{verified}.")
    return undone


def _said_once(sentence: str, before: str) -> str:
    if sentence != before:
        note(sentence)
    return sentence


VERBS = (init, demo, bench, follow)
