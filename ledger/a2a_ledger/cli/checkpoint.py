"""`checkpoint`: show, sign and hand out signed tree heads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.errors import UNDECIDED, USAGE
from a2a_ledger.cli.output import counted, note, print_json
from a2a_ledger.cli.session import pass_session
from a2a_ledger.cli.verb import Verb, VerbGroup
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from a2a_ledger.cli.session import Session


@click.group(
    "checkpoint",
    cls=VerbGroup,
    example="a2a-ledger --ledger audit checkpoint sign\na2a-ledger --ledger audit checkpoint export > head.txt",
    invoke_without_command=True,
)
@click.option(
    "--recover-mark",
    is_flag=True,
    help="Start a new high-water mark, after both copies were lost; asks first, and says what has to be compared.",
)
@click.option("--yes", "sure", is_flag=True, help="With --recover-mark: the heads were compared; do not ask.")
@pass_session
@click.pass_context
def checkpoint(context: click.Context, session: Session, *, recover_mark: bool, sure: bool) -> None:
    """Show, sign or export the signed tree head.

    A head says how many events the log has and commits to every one of them. While only this machine
    holds one, whoever owns the machine can write the log anew. Keep heads where he cannot reach: mail
    them, commit them to a repository of somebody else, print them. A later `audit` or `verify` against
    an old head shows whether anything before it was changed.
    """
    if sure and not recover_mark:
        raise UsageError("--yes: expected it together with --recover-mark")
    if context.invoked_subcommand is not None:
        if recover_mark:
            raise UsageError(f"--recover-mark: expected it alone, found `{context.invoked_subcommand}` behind it")
        return
    if not recover_mark:
        note(context.get_help())
        context.exit(USAGE)
    from a2a_ledger.cli.recover import recover_mark as recover  # noqa: PLC0415 - a heavy import belongs to the verb

    recover(session, sure=sure)


@checkpoint.command("show", cls=Verb, example="a2a-ledger --ledger audit checkpoint show")
@pass_session
@click.pass_context
def show(context: click.Context, session: Session) -> None:
    """Show the newest signed head, and what it does not cover.

    Only signatures that verify count, by keys that the log names. Exit 3 if there is no head.
    """
    from a2a_ledger.anchors import anchored_size, time_roots  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.heads import newest_head  # noqa: PLC0415 - a heavy import belongs to the verb

    with session.reading() as ledger:
        head, size = newest_head(ledger.store), ledger.store.size()
        anchored = anchored_size(ledger.store, time_roots(ledger))
    if session.as_json:
        shown = {"size": head.size, "root": head.root.hex()} if head else None
        print_json({"origin": ledger.origin, "checkpoint": shown, "events": size, "anchored_size": anchored})
    elif head is None:
        click.echo(f"{ledger.origin}: {counted(size, 'event')}, no signed head yet; none is anchored.")
    else:
        click.echo(f"{ledger.origin}: head of {counted(head.size, 'event')}, root {head.root.hex()}")
        held = f"anchored up to {anchored}" if anchored else "no head is anchored"
        later = size - head.size
        click.echo(f"{counted(later, 'later event')} {'is' if later == 1 else 'are'} not covered; {held}.")
    context.exit(0 if head else UNDECIDED)


@checkpoint.command("sign", cls=Verb, example="a2a-ledger --ledger audit checkpoint sign")
@pass_session
def sign(session: Session) -> None:
    """Sign the head as it is now; needs the log key."""
    from a2a_ledger.checkpoint import checkpoint_of  # noqa: PLC0415 - a heavy import belongs to the verb

    with session.writing(follow=False) as ledger:
        head = checkpoint_of(ledger.sign_checkpoint())
    if session.as_json:
        print_json({"origin": ledger.origin, "checkpoint": {"size": head.size, "root": head.root.hex()}})
    else:
        click.echo(f"{ledger.origin}: signed a head of {counted(head.size, 'event')}, root {head.root.hex()}")
        note("Keep a copy elsewhere: a2a-ledger checkpoint export > somewhere-else.txt")


@checkpoint.command("export", cls=Verb, example="a2a-ledger --ledger audit checkpoint export > head.txt")
@pass_session
@click.pass_context
def export(context: click.Context, session: Session) -> None:
    """Print the newest signed head, to be kept elsewhere.

    It is a signed note in the form of C2SP tlog-checkpoint.
    """
    with session.reading() as ledger:
        newest = ledger.store.latest_checkpoint()
    if newest is None:
        note("No head is signed yet: a2a-ledger checkpoint sign")
        context.exit(UNDECIDED)
    if session.as_json:
        print_json({"origin": ledger.origin, "note": newest[1]})
    else:
        click.echo(newest[1].encode(), nl=False)  # a signed note is UTF-8, whatever the terminal speaks


@checkpoint.command("publish", cls=Verb, example="a2a-ledger --ledger audit checkpoint publish public/log")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--whole", is_flag=True, help="Hold each octet that is there against the log, not the newest part alone.")
@pass_session
def publish(session: Session, *, folder: Path, whole: bool) -> None:
    """Write head, tiles and leaves as files for a static server.

    In the layout of C2SP tlog-tiles, which monitors read. Leaves are commitments: no content of a message or a card, no
    task's or peer's name leaves by it, only how many events there are. What is there already is added to, and mended
    where it is damaged.
    """
    from a2a_ledger.publish import publish as put  # noqa: PLC0415 - a heavy import belongs to the verb

    with session.with_keys() as ledger:
        done = put(ledger, folder, whole=whole)
    if session.as_json:
        head = {"size": done.head.size, "root": done.head.root.hex()}
        print_json({"origin": done.head.origin, "checkpoint": head, "written": done.written, "mended": done.mended})
    else:
        click.echo(f"{done.head.origin}: head of {counted(done.head.size, 'event')} published in {folder}.")
        damaged = f", {counted(done.mended, 'damaged tile')} written again" if done.mended else ""
        note(f"{counted(done.written, 'tile')} written{damaged}.")


VERBS = (checkpoint,)
