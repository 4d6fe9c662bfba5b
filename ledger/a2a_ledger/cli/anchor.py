"""`anchor`: what somebody else holds of this log, and how they come to hold more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.output import note, print_json
from a2a_ledger.cli.session import pass_session
from a2a_ledger.cli.verb import Verb, VerbGroup

if TYPE_CHECKING:
    from a2a_ledger.cli.session import Session


@click.group("anchor", cls=VerbGroup, example="a2a-ledger --ledger audit anchor show")
def anchor() -> None:
    """Have the signed head held by somebody else.

    An anchor is a signed head for which we hold the signature or the token of somebody else: a
    witness, a timestamp authority. Whoever owns this machine can no longer write the log anew from
    before it. A copy of a head in a file elsewhere is *kept*, which helps to audit, and anchors nothing.
    """


@anchor.command("show", cls=Verb, example="a2a-ledger --ledger audit anchor show")
@pass_session
def show(session: Session) -> None:
    """List the anchors of this log, newest first.

    Each is checked: the holder's own signature, and that it is over these events.
    """
    from a2a_ledger.anchors import anchors_of  # noqa: PLC0415 - a heavy import belongs to the verb

    with session.reading() as ledger:
        found = list(reversed(list(anchors_of(ledger.store))))
    for held, why in found:
        if session.as_json:
            print_json({"position": held.n, "size": held.size, "kind": held.kind, "holder": held.holder, "why": why})
        else:
            counts = f"does not count: {why}" if why else "counts"
            click.echo(f"head of {held.size}, {held.kind} of {held.holder} (event {held.n}): {counts}")
    if not any(not why for _, why in found):
        note("Nothing outside of this machine vouches for this log: see `a2a-ledger anchor --help`.")


VERBS = (anchor,)
