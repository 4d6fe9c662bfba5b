"""`card manifest`: pin a card for a time by a signature, record that, and see what is in force."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.card_source import METAVAR, load
from a2a_ledger.cli.errors import DISPROVED, UNDECIDED
from a2a_ledger.cli.output import host, note, print_json, short_hash
from a2a_ledger.cli.reading import read_input
from a2a_ledger.cli.session import asked, pass_session, user
from a2a_ledger.cli.table import print_table
from a2a_ledger.cli.verb import Verb, VerbGroup
from a2a_ledger.errors import ReadOnlyError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from a2a_ledger.capture.manifests import LookedAt
    from a2a_ledger.cli.card_source import Source
    from a2a_ledger.cli.session import Session
    from a2a_ledger.codec import Record
    from a2a_ledger.keys import Signer
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.manifest import Manifest

IN_FORCE = "in force"

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_GOVERN = frozenset({"valid", "expired"})
_EXIT = {"valid": 0, "unknown-key": UNDECIDED}
_WORTH = {
    "expired": "its floor has passed, so it counts as none; if it is the latest, it withdraws the one before",
    "bad-signature": "a trusted key is named, and did not sign this: it counts as none",
    "unknown-key": "no key that this ledger trusts has signed it: it counts as none",
}


@click.group(
    "manifest", cls=VerbGroup, example="a2a-ledger --ledger audit card manifest list\na2a-ledger card manifest --help"
)
def manifest() -> None:
    """Pin a peer's card for a time.

    Until the floor of a manifest no send asks whether the card still stands. Trusted are the
    ledger's own statement key and the keys of `manifest_keys` in its config.toml.
    """


@manifest.command(
    "make",
    cls=Verb,
    example="a2a-ledger --ledger audit card manifest make agent-card.json --peer https://vendor.example "
    "--floor 1h --out vendor.manifest.json",
)
@click.argument("source", metavar=METAVAR)
@click.option("--peer", required=True, metavar="URL", help="Whose card it is: the URL of the public card, or its host.")
@click.option("--floor", required=True, metavar="AGE", help="For how long from now: 90s, 30m, 12h, 7d. 0s withdraws.")
@click.option("--out", type=click.Path(path_type=Path), help="Write it to this new file; default: standard output.")
@click.option(
    "--key", type=click.Path(path_type=Path), help="Sign with this Ed25519 key, PKCS 8 PEM, and not with the ledger's."
)
@click.option("--key-name", default="manifest", show_default=True, help="Name of the key of --key, in its vkey.")
@click.option("--diagnostic", is_flag=True, help="Fetch although tasks are in flight; the probe is recorded.")
@pass_session
def make(  # noqa: PLR0913 - one argument an option
    session: Session,
    *,
    source: str,
    peer: str,
    floor: str,
    out: Path | None,
    key: Path | None,
    key_name: str,
    diagnostic: bool,
) -> None:
    """Sign a manifest for a card: its bytes, its contract, a floor.

    It is in force nowhere until `card manifest add` records it. Exit 3 if the card cannot be captured.
    """
    from datetime import UTC, datetime  # noqa: PLC0415 - only this verb and `add` read the clock

    from a2a_ledger.capture.attribution import peer_at  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.manifest import Manifest, make_manifest  # noqa: PLC0415 - same

    lasting = _span(floor)
    card_hash, contract_hash, form = _hashes(load(session, source, diagnostic=diagnostic))
    url = peer_url_of(session, peer)
    signer, now = _signer(session, key, key_name), datetime.now(UTC)
    made = Manifest(peer_at(url).id, url, card_hash, contract_hash, form, now, _later(now, lasting))
    envelope = make_manifest(made, signer)
    if out is None:
        sys.stdout.buffer.write(envelope + b"\n")
    else:
        _write_new(out, envelope)
    if session.as_json and out is not None:
        print_json({**_said(made), "vkey": signer.vkey, "out": str(out)})
    else:
        until = f"pinned until {_spelled(made.floor_until)}" if lasting else "withdrawn"
        note(f"{host(url)}: {short_hash(contract_hash)} {until}, signed by")
        note(signer.vkey)


@manifest.command("add", cls=Verb, example="a2a-ledger --ledger audit card manifest add vendor.manifest.json")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--who", help="Who adds it; default: the name of the user who runs this.")
@pass_session
@click.pass_context
def add(context: click.Context, session: Session, *, file: Path, who: str | None) -> None:
    """Record a manifest; the latest issued one of a peer governs.

    One that is good for nothing is recorded too. Exit 0: valid, 1: expired or badly signed, 3: no
    trusted key has signed it.
    """
    from a2a_ledger.capture.manifests import add_manifest  # noqa: PLC0415 - a heavy import belongs to the verb

    envelope = read_input(file, "a manifest, as `card manifest make` writes it")
    with session.writing() as ledger:
        added = add_manifest(ledger, envelope, who=who or user())
    said = _said(added.manifest)
    if session.as_json:
        print_json({"status": added.status, **said, "position": added.position})
    else:
        peer = host(added.manifest.peer_url)
        click.echo(f"{added.status}  {peer}, floor {said['floor_until']}; recorded as #{added.position}.")
        if added.status in _WORTH:
            note(f"{_WORTH[added.status].capitalize()}.")
    context.exit(_EXIT.get(added.status, DISPROVED))


@manifest.command("list", cls=Verb, example="a2a-ledger --ledger audit card manifest list vendor.example")
@click.argument("peer", required=False)
@pass_session
def list_manifests(session: Session, *, peer: str | None) -> None:
    """List the recorded manifests, of all peers or of one, and what each is worth now.

    A manifest is held against the newest card that the ledger has of its peer.
    """
    from a2a_ledger.capture.attribution import peer_at  # noqa: PLC0415 - a heavy import belongs to the verb

    tag = "type:card.manifest.v1" if peer is None else f"manifest:{peer_at(peer_url_of(session, peer)).id}"
    with session.reading() as ledger:
        listed = list(_listed(ledger, ledger.store.tagged(tag)))
    if session.as_json:
        for record, worth in listed:
            print_json(_row(record, worth))
        return
    rows = [
        [
            f"#{record.n}",
            host(str(record.data["peer_url"])),
            str(record.data["status"]),
            str(record.data.get("issued_at") or "-"),
            str(record.data["floor_until"]),
            short_hash(str(record.data["contract_hash"])),
            worth,
        ]
        for record, worth in listed
    ]
    columns = ["#", "PEER", "STATUS", "ISSUED", "FLOOR UNTIL", "CONTRACT", "NOW"]
    styles = {"in": "green", "bad-signature": "red"}
    print_table(columns, rows, styles=styles, drop=("ISSUED", "CONTRACT"), fold=("NOW",))
    if not rows:
        note("No manifest is recorded.")


def _listed(ledger: ContractLedger, records: list[Record]) -> Iterator[tuple[Record, str]]:
    """Yield each manifest with what it is worth now."""
    from a2a_ledger.capture.manifests import Manifests  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.capture.peerview import PeerViews  # noqa: PLC0415 - same

    manifests, views, now = Manifests(ledger), PeerViews(ledger.store), ledger.clock()
    looked: dict[str, LookedAt | None] = {}
    for record in records:
        peer = str(record.data["peer"])
        if peer not in looked:
            view = views.of(peer)
            looked[peer] = manifests.look(view, max(view.cards.values(), key=lambda kept: kept.n, default=None), now)
        governing = looked[peer]
        if governing is not None and governing.position == record.n:
            yield record, governing.why_not or IN_FORCE
        else:
            yield record, "another one governs" if record.data["status"] in _GOVERN else "counts as none"


def _row(record: Record, worth: str) -> dict[str, object]:
    members = ("peer", "peer_url", "status", "contract_hash", "form", "issued_at", "floor_until", "key_id", "who")
    data = record.data
    return {
        "position": record.n,
        "card_hash": data["raw_hash"],
        **{name: data.get(name) for name in members},
        "in_force": worth == IN_FORCE,
        "now": worth,
    }


def peer_url_of(session: Session, named: str) -> str:
    """Return the public card's url of a peer that a person named by a URL or, where a ledger knows it, by its host.

    Raises:
        UsageError: nobody is known by that name.
    """
    from a2a_ledger.address import agent_card_url  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.capture.attribution import peer_of_card  # noqa: PLC0415 - same

    if re.match(r"https?://", named, re.IGNORECASE):
        bare = re.fullmatch(r"https?://[^/?#]*/?", named, re.IGNORECASE)
        return peer_of_card(agent_card_url(named) if bare else named).url
    if not session.place:
        raise UsageError(f"{named!a}: expected the URL of the peer's public card, such as https://vendor.example")
    from a2a_ledger_projections.lookup import find_peer  # noqa: PLC0415 - only this path reads a view

    with session.reading() as ledger:
        url = find_peer(ledger.store, named)["url"]
    if url is None:
        raise UsageError(f"{named!a}: the ledger has not seen this peer's card; name it by the card's URL")
    return url


def _hashes(source: Source) -> tuple[str, str, str]:
    """Return raw hash, contract hash and form of a card: those that its fetch recorded, where the ledger has it.

    Raises:
        CardError: no contract can be frozen from it.
    """
    from a2a_ledger.contract import require_contract  # noqa: PLC0415 - a heavy import belongs to the verb

    contract = require_contract(source.card)
    raw_hash = source.fetch.data.get("raw_hash") if source.fetch is not None else source.card.raw_hash
    return str(raw_hash), contract.hash, contract.form


def _signer(session: Session, key: Path | None, name: str) -> Signer:
    """Return who signs: a key from outside, or the ledger's statement key.

    Raises:
        UsageError: neither was named.
        ReadOnlyError: the statement key is not here.
    """
    if key is not None:
        from a2a_ledger.keys import load_pem  # noqa: PLC0415 - a heavy import belongs to the verb
        from a2a_ledger.passphrase import Passphrase  # noqa: PLC0415 - same

        return load_pem(key, name, Passphrase(ask=asked()))
    if not session.place:
        raise UsageError(
            "no key to sign with: name the ledger whose statement key signs (--ledger DIR), or a --key PEM"
        )
    with session.with_keys() as ledger:
        if ledger.statement_signer is None:
            raise ReadOnlyError(
                f"{session.path}: keys/statement.pem is not here, and it is what signs; run this where the keys are, "
                "or name a key with --key PEM"
            )
        return ledger.statement_signer


def _write_new(out: Path, envelope: bytes) -> None:
    """Write a file that is not there yet.

    Raises:
        UsageError: it is, or it cannot be made.
    """
    try:
        with out.open("xb") as file:
            file.write(envelope)
    except FileExistsError:
        raise UsageError(f"{out}: expected the name of a new file, found one that is here already") from None
    except (OSError, ValueError) as e:
        raise UsageError(f"{out}: cannot be written ({getattr(e, 'strerror', None) or e})") from e


def _span(text: str) -> timedelta:
    """Return a length of time as a person writes it.

    Raises:
        UsageError: it is none.
    """
    from datetime import timedelta  # noqa: PLC0415 - only `make` reckons with time

    found = re.fullmatch(r"([0-9]{1,9})([smhd])", text)
    if found is None:
        raise UsageError(f"--floor: expected a length of time such as 90s, 30m, 12h or 7d, found {text!a}")
    return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


def _later(now: datetime, lasting: timedelta) -> datetime:
    from a2a_ledger.manifest import MAX_FLOOR  # noqa: PLC0415 - a heavy import belongs to the verb

    if lasting > MAX_FLOOR:
        raise UsageError(f"--floor: expected {MAX_FLOOR.days}d at most, found {lasting.days} days")
    return now + lasting


def _said(made: Manifest) -> dict[str, object]:
    """Return the JSON of what a manifest says."""
    return {
        "peer": made.peer,
        "peer_url": made.peer_url,
        "card_hash": made.card_hash,
        "contract_hash": made.contract_hash,
        "form": made.form,
        "issued_at": _spelled(made.issued_at),
        "floor_until": _spelled(made.floor_until),
    }


def _spelled(at: datetime) -> str:
    from a2a_ledger.codec import timestamp  # noqa: PLC0415 - a heavy import belongs to the verb

    return timestamp(at)
