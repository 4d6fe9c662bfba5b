"""`card`: one card read, two cards compared, a changed contract accepted.

A URL is fetched once, plainly. While the peer has tasks in flight a fetch is a probe that can
change what they may do, so it is refused unless `--diagnostic` asks for it, and then it is recorded.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from a2a_ledger.cli.errors import DISPROVED, UNDECIDED
from a2a_ledger.cli.output import clean, host, note, print_json, quoted, short_hash, styled
from a2a_ledger.cli.reading import read_input
from a2a_ledger.cli.session import pass_session, user
from a2a_ledger.cli.verb import Verb, VerbGroup
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from a2a_ledger.card import Card
    from a2a_ledger.cli.session import Session
    from a2a_ledger.contract import Diff

_SCHEMES = ("http://", "https://")
_VALUE_SHOWN = 100
_SHOW_EXAMPLE = (
    "a2a-ledger card show agent-card.json\na2a-ledger --ledger audit card show https://vendor.example --diagnostic"
)
_diagnostic = click.option(
    "--diagnostic", is_flag=True, help="Fetch although tasks are in flight; the probe is recorded."
)


@click.group(
    "card", cls=VerbGroup, example="a2a-ledger card show agent-card.json\na2a-ledger card diff before.json after.json"
)
def card() -> None:
    """Read, compare and accept Agent Cards."""


@card.command(
    "show",
    cls=Verb,
    example="a2a-ledger card show agent-card.json",
)
@click.argument("source", metavar="FILE|URL")
@_diagnostic
@pass_session
@click.pass_context
def show(context: click.Context, session: Session, *, source: str, diagnostic: bool) -> None:
    """Show what a card is: dialect, hashes, contract, flags. Exit 3 if it cannot be captured."""
    from a2a_ledger.contract import summary  # noqa: PLC0415 - a heavy import belongs to the verb

    read = load(session, source, diagnostic=diagnostic)
    if session.as_json:
        print_json(summary(read))
    else:
        _print_card(read)
    context.exit(0 if read.contract is not None else UNDECIDED)


@card.command("diff", cls=Verb, example="a2a-ledger card diff before.json after.json")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@_diagnostic
@pass_session
@click.pass_context
def diff(context: click.Context, session: Session, *, old: str, new: str, diagnostic: bool) -> None:
    """Compare two cards, each a file or a URL.

    Exit 0: the same contract, 1: it changed, 3: undecidable.
    """
    from a2a_ledger.contract import diff as compare  # noqa: PLC0415 - a heavy import belongs to the verb

    found = compare(load(session, old, diagnostic=diagnostic), load(session, new, diagnostic=diagnostic))
    if session.as_json:
        print_json(found.to_json())
    else:
        _print_diff(found)
    context.exit({"contract": DISPROVED, "undecidable": UNDECIDED}.get(found.verdict, 0))


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


VERBS = (card,)


def load(session: Session, source: str, *, diagnostic: bool) -> Card:
    """Return the card at a path or URL.

    Raises:
        UsageError: it cannot be had, or a fetch would disturb tasks in flight.
    """
    from a2a_ledger.card import agent_card_url, read_card  # noqa: PLC0415 - a heavy import belongs to the verb

    if source.lower().startswith(_SCHEMES):
        url = source if _path_of(source).strip("/") else agent_card_url(source)
        if _tasks_in_flight(session, url, diagnostic=diagnostic):
            from a2a_ledger.cli.fetch import probe  # noqa: PLC0415 - needs the extra, and only this path does

            return read_card(probe(session, url))
        from a2a_ledger.cli.fetch import get  # noqa: PLC0415 - the network belongs to this path

        return read_card(get(url))
    return read_card(read_input(Path(source), "a card's file, `-` or an http(s) URL"))


def _path_of(url: str) -> str:
    """Return the path of a URL that was typed.

    Raises:
        UsageError: it is none.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.port != 0 else None
    except ValueError as e:
        raise UsageError(f"{url}: expected an http(s) URL, found none ({e})") from e
    if not host:
        raise UsageError(f"{url}: expected an http(s) URL with a host, found none")
    return parts.path


def _tasks_in_flight(session: Session, url: str, *, diagnostic: bool) -> bool:
    """Say whether the peer of this URL has tasks in flight; refuse when it has and nobody asked for a probe."""
    if not session.place:
        return False
    from a2a_ledger.card import peer_id  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger_projections import peers  # noqa: PLC0415 - same
    from a2a_ledger_projections.base import reading  # noqa: PLC0415 - same

    with session.reading() as ledger, reading(ledger.store, peers.VIEW) as now:
        row = now.rows.get(peers.PEER + peer_id(url))
    count = row["in_flight"] if row else 0
    if not isinstance(count, int) or count == 0:
        return False
    if not diagnostic:
        raise UsageError(
            f"{url}: {count} of its tasks are in flight, and a card fetch now is a probe that can change what they "
            "may do; nothing was fetched",
            hint="If you want it all the same: --diagnostic. The probe is recorded as one.",
        )
    return True


def _print_card(read: Card) -> None:
    from a2a_ledger.contract import summary  # noqa: PLC0415 - a heavy import belongs to the verb

    told = summary(read)
    hashes = told["hashes"]
    assert isinstance(hashes, dict)  # noqa: S101 - design: `card show` always has its hashes
    if not read.is_card:
        click.echo(f"not an Agent Card: {clean(read.problem)}")
    else:
        click.echo(f"Agent Card, dialect {read.dialect}")
    for name, value in hashes.items():
        shown = clean(str(value)) if value else "-"
        click.echo(f"  {name:<9} {shown}" + (f"  ({told['form']})" if name == "contract" and value else ""))
    if read.flags:
        click.echo(f"  flags     {', '.join(read.flags)}")
    if read.is_card and read.problem:
        click.echo(f"  problem   {clean(read.problem)}")
    contract = told["contract"]
    if isinstance(contract, dict):
        for member in ("interfaces", "schemes", "security", "skills", "extensions", "extendedCard", "legacy"):
            if member in contract:
                click.echo(f"  {member:<12} {_value(contract[member])}")
    signature = told["signature"]
    if isinstance(signature, dict):
        click.echo(f"  signature {signature.get('status')}")


def _print_diff(found: Diff) -> None:
    click.echo(
        f"{styled(found.verdict, bold=True)}"
        + (f"  authorization: {found.authorization}" if found.authorization else "")
    )
    for change in found.changes:
        click.echo(f"  {change.kind:<12} {clean(change.pointer)}")
        click.echo(styled(f"    - {_value(change.old)}", fg="red"))
        click.echo(styled(f"    + {_value(change.new)}", fg="green"))
    if not found.changes:
        note("No field differs.")


def _value(value: object) -> str:
    import json  # noqa: PLC0415 - only what prints for people needs it

    return clean(
        quoted(value, _VALUE_SHOWN) if isinstance(value, str) else json.dumps(value, ensure_ascii=True, default=str)
    )
