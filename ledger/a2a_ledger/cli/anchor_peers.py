"""`anchor peers`: what this ledger holds of its peers' logs, and one such head to hand to its owner."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.errors import DISPROVED
from a2a_ledger.cli.output import clean, counted, note, print_json
from a2a_ledger.cli.session import pass_session
from a2a_ledger.cli.verb import Verb
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from a2a_ledger.anchors.peers.held_now import HeldNow
    from a2a_ledger.cli.session import Session


@click.command("peers", cls=Verb, example="a2a-ledger --ledger audit anchor peers")
@click.argument("origin", required=False)
@pass_session
@click.pass_context
def peers(context: click.Context, session: Session, *, origin: str | None) -> None:
    """List the heads that we hold of peers' logs.

    With ORIGIN, print the signed head that is held of that log, as its owner needs it to find out whether theirs is
    an old copy: `audit --earlier FILE` there. Exit 1 where a log has forked.

    docs/peers.md says how peers come to hold each other's heads.
    """
    from a2a_ledger.anchors.peers.held_now import held_now  # noqa: PLC0415 - a heavy import belongs to the verb

    with session.reading() as ledger:
        found = held_now(ledger)
    if origin is not None:
        _print_note(found, origin)
        return
    for one in found:
        if session.as_json:
            _print_json(one)
        else:
            click.echo(clean(_sentence(one)))
    if not found and not session.as_json:
        note("No peer is named: `peers` below the line [anchor] of config.toml names a file of their logs' keys.")
    if any(one.fork is not None and not one.fork_why for one in found):
        context.exit(DISPROVED)


def _print_note(found: list[HeldNow], origin: str) -> None:
    held = next((one for one in found if one.origin == origin), None)
    if held is None or not held.note:
        known = ", ".join(one.origin for one in found if one.note) or "none"
        raise UsageError(f"expected a log of which a head is held ({known}), found {origin!a}")
    click.echo(held.note, nl=False)


def _print_json(one: HeldNow) -> None:
    print_json(
        {
            "log": one.origin,
            "urls": list(one.urls),
            "checkpoint": {"size": one.size, "root": one.root} if one.note else None,
            "cosigned_at": _time(one.at) if one.at is not None else None,
            "why": one.why,
            "fork": str(one.fork) if one.fork is not None else None,
            "fork_why": one.fork_why,
        }
    )


def _sentence(one: HeldNow) -> str:
    where = f" ({', '.join(one.urls)})" if one.urls else ""
    if one.why:
        said = f"the head that is held cannot be used: {one.why}"
    elif not one.note:
        said = "no head came yet"
    else:
        when = f", cosigned by us at {_time(one.at)}" if one.at is not None else ", not cosigned by us"
        said = f"head of {counted(one.size, 'event')} held{when}"
    if one.fork is not None:
        proves = f"does not prove it: {one.fork_why}" if one.fork_why else "proves it"
        said += f". THIS LOG HAS FORKED: {one.fork} {proves}"
    return f"{one.origin}{where}: {said}"


def _time(seconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError, OSError):
        return f"POSIX second {seconds}"
