"""What `card show` and `card check` say of a card: signature, terms, and the contract in force that it meets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from a2a_ledger.address import peer_id, typed_card_url
from a2a_ledger.capture.card_identity import key_of
from a2a_ledger.capture.card_keys import keys_in_force
from a2a_ledger.capture.in_force import InForce, contract_in_force
from a2a_ledger.cli.errors import DISPROVED, UNDECIDED
from a2a_ledger.cli.output import counted, note
from a2a_ledger.cli.reading import read_input
from a2a_ledger.contract import diff, hashes, summary, terms_of
from a2a_ledger.contract.card_json import CardValue, plain
from a2a_ledger.contract.checks import checks
from a2a_ledger.errors import FormatError, UsageError
from a2a_ledger.signature import judge, keys_for, read_card_keys
from a2a_ledger.signature.judgement import of_other_octets

if TYPE_CHECKING:
    from a2a_ledger.card import Card
    from a2a_ledger.cli.card_source import Source
    from a2a_ledger.cli.session import Session
    from a2a_ledger.contract import Diff, Profile
    from a2a_ledger.contract.card_json import CardObject
    from a2a_ledger.contract.checks import Check
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.signature import CardKey


@dataclass(frozen=True, slots=True)
class Checked:
    """What is to be known about one card.

    Attributes:
        card: the card.
        points: what is open or odd in it.
        signature: what was judged of its signatures.
        in_force: the contract that is in force for the peer; None: none is, or no peer is known.
        change: from the card in force to this one; None where there is none whole in the ledger.
    """

    card: Card
    points: tuple[Check, ...]
    signature: CardObject
    in_force: InForce | None
    change: Diff | None

    @property
    def same_contract(self) -> bool | None:
        """Say whether this card states the contract in force; None: nothing to compare, or under another form."""
        if self.in_force is None or self.card.contract is None:
            return None
        if self.in_force.fetch.data.get("form") != self.card.contract.form:
            return None
        return self.card.contract.hash == self.in_force.contract_hash

    @property
    def exit_code(self) -> int:
        """Return 0, 1 or 3 as `card check` exits."""
        if self.card.contract is None:
            return UNDECIDED
        changed = self.same_contract is False or (self.change is not None and self.change.verdict == "contract")
        return DISPROVED if changed or self.signature["status"] == "invalid" else 0

    def to_json(self) -> CardObject:
        """Return the JSON of `card check`."""
        force = self.in_force
        points: list[CardValue] = [dict[str, CardValue](point._asdict()) for point in self.points]
        return {
            "capture": self.card.contract is not None,
            "problem": self.card.problem or None,
            "hashes": dict[str, CardValue](hashes(self.card)),
            "signature": self.signature,
            "points": points,
            "in_force": None
            if force is None
            else {
                "contract": force.contract_hash,
                "position": force.since.n,
                "at": force.since.at,
                "same": self.same_contract,
            },
            "diff": self.change.to_json() if self.change else None,
        }


def described(session: Session, source: Source, profile: Profile, keys: str | None) -> CardObject:
    """Return the JSON of `card show`."""
    card = source.card
    terms = terms_of(card, profile)
    named: CardObject = {
        "form": terms.form,
        "hash": terms.hash,
        "profile": profile.hash,
        "extensions": terms.value["extensions"],
        "paths": terms.value["paths"],
    }
    return {**summary(card, _judged(session, source, keys)), "terms": plain(named) if card.contract else None}


def checked(session: Session, source: Source, profile: Profile, keys: str | None, peer: str | None) -> Checked:
    """Look at a card, and at what a ledger knows about its peer.

    Raises:
        UsageError: a peer is named and there is no ledger, or it knows none of that name.
    """
    if peer is not None and not session.place:
        raise UsageError("--peer names a peer of a ledger: expected --ledger DIR before the verb, or A2A_LEDGER")
    force, change = None, None
    if session.place:
        with session.reading() as ledger:
            source = source if peer is None else source._replace(peer=_peer_id(ledger, peer))
            force = _in_force(ledger, source)
            before = force.card(ledger.store) if force else None
        change = diff(before, source.card, profile) if before is not None else None
    card = source.card
    return Checked(card, checks(card), _judged(session, source, keys), force, change)


def _peer_id(ledger: ContractLedger, named: str) -> str:
    """Return the id of a peer that the ledger knows: by what it did, or by a key that may speak for it alone."""
    from a2a_ledger_projections.lookup import find_peer  # noqa: PLC0415 - read models are for this case alone

    url = typed_card_url(named)
    if url is not None and keys_in_force(ledger, peer_id(url)):
        return peer_id(url)
    return str(find_peer(ledger.store, named)["peer"])


def _in_force(ledger: ContractLedger, source: Source) -> InForce | None:
    """Return the contract in force of the same card, or of the peer's card that was agreed to last."""
    if source.peer is None:
        return None
    key = key_of(source.fetch.data) if source.fetch is not None else None
    return contract_in_force(ledger.store, source.peer, key)


def _judged(session: Session, source: Source, named: str | None) -> CardObject:
    """Judge a card's signatures by the keys of a file that was named, and by those that the ledger trusts."""
    keys: tuple[CardKey, ...] = ()
    if named is not None:
        data = read_input(Path(named), "a JWK or a JWKS")
        try:
            given = read_card_keys(data, source="policy", peer=None)
        except FormatError as e:
            raise UsageError(f"{named}: {e}") from e
        keys = keys_for(given, source.peer)
        if len(keys) < len(given):
            note(f"{named}: {counted(len(given) - len(keys), 'key')} left out, bound to another peer than this card's.")
    if session.place and source.peer is not None:
        with session.reading() as ledger:
            keys += keys_in_force(ledger, source.peer)
    told = judge(source.card, keys)
    return cast("CardObject", (of_other_octets(told, source.not_as_served) if source.not_as_served else told).to_json())
