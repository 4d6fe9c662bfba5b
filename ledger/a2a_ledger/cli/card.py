"""`card`: one card read, two cards compared, one held against the contract in force, a changed contract accepted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.card_key import key
from a2a_ledger.cli.card_manifest import manifest
from a2a_ledger.cli.card_source import METAVAR, load
from a2a_ledger.cli.errors import DISPROVED, UNDECIDED
from a2a_ledger.cli.output import host, print_json, short_hash
from a2a_ledger.cli.reading import read_as
from a2a_ledger.cli.session import pass_session, user
from a2a_ledger.cli.verb import Verb, VerbGroup

if TYPE_CHECKING:
    from a2a_ledger.cli.session import Session
    from a2a_ledger.contract import Profile

_diagnostic = click.option(
    "--diagnostic", is_flag=True, help="Fetch although tasks are in flight; the probe is recorded."
)
_profile = click.option("--profile", metavar="FILE", help="Profile that names the vendor terms; default: the ledger's.")
_keys = click.option("--keys", metavar="FILE", help="JWK or JWKS of keys that may have signed this card.")


@click.group(
    "card",
    cls=VerbGroup,
    example="a2a-ledger card show agent-card.json\na2a-ledger card diff before.json after.json\n"
    "a2a-ledger --ledger audit card check agent-card.json --peer vendor.example",
)
def card() -> None:
    """Read, compare, check and accept Agent Cards.

    A card is named by a file, `-` for standard input, an http(s) URL, or the number of an event.
    """


@card.command("show", cls=Verb, example="a2a-ledger card show agent-card.json")
@click.argument("source", metavar=METAVAR)
@_diagnostic
@_profile
@_keys
@pass_session
@click.pass_context
def show(  # noqa: PLR0913 - one argument an option
    context: click.Context, session: Session, *, source: str, diagnostic: bool, profile: str | None, keys: str | None
) -> None:
    """Show what a card is: dialect, hashes, contract, signature.

    Exit 3 if it cannot be captured.
    """
    from a2a_ledger.cli.card_check import described  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.cli.card_view import print_card  # noqa: PLC0415 - same

    loaded = load(session, source, diagnostic=diagnostic)
    told = described(session, loaded, read_profile(session, profile), keys)
    if session.as_json:
        print_json(told)
    else:
        print_card(loaded.card, told)
    context.exit(0 if loaded.card.contract is not None else UNDECIDED)


@card.command("diff", cls=Verb, example="a2a-ledger card diff before.json after.json")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@_diagnostic
@_profile
@pass_session
@click.pass_context
def diff(  # noqa: PLR0913 - one argument an option
    context: click.Context, session: Session, *, old: str, new: str, diagnostic: bool, profile: str | None
) -> None:
    """Compare two cards, each a file, a URL or an event, side by side.

    Exit 0: the same contract, 1: it changed, 3: undecidable.
    """
    from a2a_ledger.cli.card_view import print_diff, print_problems  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.contract import diff as compare  # noqa: PLC0415 - same

    before, after = (load(session, one, diagnostic=diagnostic).card for one in (old, new))
    found = compare(before, after, read_profile(session, profile))
    if session.as_json:
        print_json(found.to_json())
    else:
        print_diff(found, old, new)
        print_problems({old: before, new: after})
    context.exit({"contract": DISPROVED, "undecidable": UNDECIDED}.get(found.verdict, 0))


@card.command(
    "check",
    cls=Verb,
    example="a2a-ledger card check agent-card.json\n"
    "a2a-ledger --ledger audit card check agent-card.json --peer vendor.example",
)
@click.argument("source", metavar=METAVAR)
@click.option("--peer", metavar="PEER", help="Hold it against the contract of this peer that is in force.")
@_diagnostic
@_profile
@_keys
@pass_session
@click.pass_context
def check(  # noqa: PLR0913 - one argument an option
    context: click.Context,
    session: Session,
    *,
    source: str,
    peer: str | None,
    diagnostic: bool,
    profile: str | None,
    keys: str | None,
) -> None:
    """Say what is to be known about a card before acting on it.

    Whether it can be captured, whose signature it carries, what in it is open or odd and, in a
    ledger that knows the peer, how it differs from the contract in force. Exit 1: it differs, or
    its signature is invalid; 3: it cannot be captured.
    """
    from a2a_ledger.cli.card_check import checked  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.cli.card_view import print_check  # noqa: PLC0415 - same

    loaded = load(session, source, diagnostic=diagnostic)
    found = checked(session, loaded, read_profile(session, profile), keys, peer)
    if session.as_json:
        print_json(found.to_json())
    else:
        print_check(found)
    context.exit(found.exit_code)


@card.command("accept", cls=Verb, example="a2a-ledger --ledger audit card accept vendor.example sha256:e07b")
@click.argument("peer", metavar="PEER")
@click.argument("contract_hash", metavar="HASH")
@click.option("--who", help="Who accepts; default: the name of the user who runs this.")
@pass_session
def accept(session: Session, *, peer: str, contract_hash: str, who: str | None) -> None:
    """Accept a changed contract by its hash.

    HASH is `sha256:…` or a unique beginning of it. Only a contract that the ledger has
    seen the peer serve can be accepted; nothing is fetched.
    """
    from a2a_ledger.cli.accept import accept_contract  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger_projections.lookup import find_peer  # noqa: PLC0415 - same

    with session.writing() as ledger:
        row = find_peer(ledger.store, peer)
        event, position = accept_contract(ledger, row["peer"], contract_hash, who=who or user())
    if session.as_json:
        print_json(
            {
                "peer": event.peer,
                "old": event.old_hash,
                "new": event.new_hash,
                "form": event.form,
                "authorization": event.authorization,
                "position": position,
            }
        )
    else:
        click.echo(
            f"{host(row['url'])}: {short_hash(event.old_hash)} -> {short_hash(event.new_hash)} accepted, "
            f"authorization: {event.authorization}; recorded as #{position}."
        )


card.add_command(manifest)
card.add_command(key)

VERBS = (card,)


def read_profile(session: Session, named: str | None) -> Profile:
    """Return the profile of a file that was named, else the ledger's, else the shipped one."""
    from a2a_ledger.contract import default_profile, parse_profile  # noqa: PLC0415 - a heavy import belongs to the verb

    if named is not None:
        return read_as(Path(named), "a profile, TOML", parse_profile)
    if session.place:
        with session.reading() as ledger:
            return ledger.profile
    return default_profile()
