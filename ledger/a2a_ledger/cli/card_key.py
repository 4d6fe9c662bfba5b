"""`card key`: which keys may speak for a peer's cards; each change is an event, and none is ever taken back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from a2a_ledger.cli.card_manifest import peer_url_of
from a2a_ledger.cli.output import clean, host, note, print_json
from a2a_ledger.cli.reading import read_input
from a2a_ledger.cli.session import pass_session, user
from a2a_ledger.cli.table import print_table
from a2a_ledger.cli.verb import Verb, VerbGroup
from a2a_ledger.errors import FormatError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.cli.session import Session
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.signature import CardKey
    from a2a_ledger.signature.peer_keys import RecordedKey

IN_FORCE, RETIRED = "in force", "retired"

_OF_EVENTS = ("position", "at", "who", "retired", "retired_at", "reason")
"""What is known of a key by its events alone."""

_who = click.option("--who", help="Who decides it; default: the name of the user who runs this.")


@click.group("key", cls=VerbGroup, example="a2a-ledger --ledger audit card key list")
def key() -> None:
    """Say which keys may speak for a peer's cards.

    A key speaks for one peer. Beside the recorded keys count those in the file that `card_keys` names
    in config.toml. A key that a card names or brings along is never taken.
    """


@key.command(
    "add", cls=Verb, example="a2a-ledger --ledger audit card key add https://vendor.example vendor.jwk.json --who ops"
)
@click.argument("peer", metavar="PEER")
@click.argument("file", metavar="JWK-FILE", type=click.Path(path_type=Path))
@_who
@pass_session
def add(session: Session, *, peer: str, file: Path, who: str | None) -> None:
    """Trust a key, or a set of keys, for the cards of one peer.

    PEER is the URL of its public card or of its agent, also of one that the ledger has not met, or the
    host of one that it has. JWK-FILE holds public keys, as JWK or JWKS. Get it on a way that a forger
    of cards does not control.
    """
    from a2a_ledger.capture.attribution import peer_at  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.capture.card_keys import add_card_keys  # noqa: PLC0415 - same

    data = read_input(file, "a JWK or a JWKS with public keys")
    url = peer_url_of(session, peer)
    with session.writing() as ledger:
        try:
            added = add_card_keys(ledger, peer_at(url), data, who=who or user())
        except FormatError as e:
            raise UsageError(f"{file}: {e}; nothing was recorded") from None
    for event, placed in added:
        if session.as_json:
            names = ("peer", "peer_url", "kid", "thumbprint", "who")
            print_json({"position": placed.n, **{name: getattr(event, name) for name in names}})
        else:
            click.echo(
                f"{host(url)}: key {clean(event.kid)} (thumbprint {event.thumbprint}) is trusted from here on; "
                f"recorded as #{placed.n}."
            )


@key.command("list", cls=Verb, example="a2a-ledger --ledger audit card key list")
@click.argument("peer", metavar="[PEER]", required=False)
@pass_session
def list_keys(session: Session, *, peer: str | None) -> None:
    """List the keys that speak, or once spoke, for the cards of all peers or of one."""
    from a2a_ledger.address import peer_id  # noqa: PLC0415 - a heavy import belongs to the verb

    wanted = peer_id(peer_url_of(session, peer)) if peer is not None else None
    with session.reading() as ledger:
        found = list(_listed(ledger, wanted))
    if session.as_json:
        for row in found:
            print_json(row)
        return
    columns = ["PEER", "KEY ID", "THUMBPRINT", "TYPE", "STATE", "SINCE", "WHO"]
    rows = [
        [
            host(str(row["peer_url"])) if row["peer_url"] else str(row["peer"])[:8],
            clean(str(row["kid"])),
            str(row["thumbprint"]),
            str(row["type"]),
            str(row["state"]) if row["retired"] is None else f"{RETIRED} #{row['retired']} {_day(row['retired_at'])}",
            f"#{row['position']} {_day(row['at'])}" if row["source"] == "ledger" else "config.toml",
            clean(str(row["who"] or "-")),
        ]
        for row in found
    ]
    print_table(columns, rows, styles={"retired": "yellow"}, drop=("TYPE", "WHO", "SINCE"))
    if not rows:
        note("No key is trusted for a card: signatures stay undecidable, or show integrity only.")


@key.command(
    "retire",
    cls=Verb,
    example='a2a-ledger --ledger audit card key retire https://vendor.example vendor-2026 --reason "rotated"',
)
@click.argument("peer", metavar="PEER")
@click.argument("kid", metavar="KID")
@click.option("--reason", required=True, help="Why; it is recorded.")
@_who
@pass_session
def retire(session: Session, *, peer: str, kid: str, reason: str, who: str | None) -> None:
    """Stop trusting a key for the cards of one peer.

    What was judged by it before stays recorded as it was.
    """
    from a2a_ledger.capture.attribution import peer_at  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.capture.card_keys import retire_card_key  # noqa: PLC0415 - same

    url = peer_url_of(session, peer)
    with session.writing() as ledger:
        event, placed = retire_card_key(ledger, peer_at(url), kid, who=who or user(), reason=reason)
    if session.as_json:
        names = ("peer", "peer_url", "kid", "thumbprint", "who", "reason")
        print_json({"position": placed.n, **{name: getattr(event, name) for name in names}})
    else:
        click.echo(f"{host(url)}: key {clean(kid)} is retired; recorded as #{placed.n}.")


def _listed(ledger: ContractLedger, wanted: str | None) -> Iterator[dict[str, object]]:
    from a2a_ledger.capture.card_keys import file_keys, keys_of_all, keys_of_peer  # noqa: PLC0415 - a heavy import
    from a2a_ledger.signature import thumbprint  # noqa: PLC0415 - same

    recorded = keys_of_all(ledger.store) if wanted is None else keys_of_peer(ledger.store, wanted)
    yield from map(_recorded, recorded)
    urls, known = _urls(ledger), {(one.key.peer, one.thumbprint) for one in recorded}
    for one in file_keys(ledger, wanted):
        if (one.peer, thumbprint(one.jwk)) in known:
            continue  # whether it is in force, the log alone says
        yield {**_described(one), "peer_url": urls.get(str(one.peer)), "state": IN_FORCE, **dict.fromkeys(_OF_EVENTS)}


def _day(at: object) -> str:
    """Return date and minute of a record's time: a key lives for longer than a day."""
    return str(at)[:16].replace("T", " ")


def _recorded(one: RecordedKey) -> dict[str, object]:
    end = one.retired
    return {
        **_described(one.key),
        "peer_url": one.added.data["peer_url"],
        "state": IN_FORCE if one.in_force else RETIRED,
        "position": one.added.n,
        "at": one.added.at,
        "who": one.added.data["who"],
        "retired": end.n if end else None,
        "retired_at": end.at if end else None,
        "reason": end.data["reason"] if end else None,
    }


def _described(one: CardKey) -> dict[str, object]:
    from a2a_ledger.signature import thumbprint  # noqa: PLC0415 - a heavy import belongs to the verb

    kind, curve = one.jwk["kty"], one.jwk.get("crv")
    return {
        "peer": one.peer,
        "kid": one.kid,
        "thumbprint": thumbprint(one.jwk),
        "type": f"{kind} {curve}" if curve else kind,
        "source": one.source,
    }


def _urls(ledger: ContractLedger) -> dict[str, str | None]:
    """Return the url of each peer that the ledger has met, by its id."""
    from a2a_ledger_projections import peers  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger_projections.base import reading  # noqa: PLC0415 - same

    with reading(ledger.store, peers.VIEW) as now:
        rows = [cast("peers.PeerRow", row) for row in now.rows.prefixed(peers.PEER)]
    return {row["peer"]: row["url"] for row in rows}
