"""Card manifests: a card that is pinned for a time by a key that the deployment trusts. Pure.

docs/format.md section 7.7. A manifest is a DSSE envelope around an in-toto Statement v1 about one
card of one peer: its octets, its contract, and the *floor*, the time before which nobody has to ask
whether the card still stands. Everything read here may be hostile. What a manifest says is read
also where nobody known signed it, so that it can be recorded; only `status` says what it is worth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_ledger.address import peer_id
from a2a_ledger.address import peer_url as peer_url_of
from a2a_ledger.codec import timestamp
from a2a_ledger.errors import FormatError, SignatureError
from a2a_ledger.freshness.member_reader import rfc3339
from a2a_ledger.keys import ED25519
from a2a_ledger.statement import (
    BASE_URI,
    Subject,
    open_envelope,
    parse_statement,
    read_envelope,
    sign_envelope,
    statement,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.events import Json
    from a2a_ledger.keys import Signer, Verifier

CARD_MANIFEST: Final = BASE_URI + "card-manifest/v1"
MAX_MANIFEST: Final = 64 * 1024  # bytes of an envelope
MAX_SIGNATURES: Final = 16  # of an envelope: every trusted key is tried on each before a send
MAX_FLOOR: Final = timedelta(days=366)
"""How far a floor reaches beyond the signing at most: an exemption without an end is a mistake of somebody's."""

VALID: Final = "valid"
EXPIRED: Final = "expired"
BAD_SIGNATURE: Final = "bad-signature"
UNKNOWN_KEY: Final = "unknown-key"

_MAX_URL = 1024
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_FORM = re.compile(r"[a-z0-9][a-z0-9./-]{0,63}")
_URL = re.compile(r"https?://[^\s\x00-\x1f\x7f]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a manifest says.

    Attributes:
        peer: peer id.
        peer_url: the public card's url, which the peer id is made from.
        card_hash: `sha256:<hex>` of the card's exact octets.
        contract_hash: `sha256:<hex>` of its contract.
        form: the normal form of `contract_hash`.
        issued_at: when it was signed, as the signer says: of two manifests of a peer the later one governs.
        floor_until: until when freshness rules do not apply; not later than `issued_at` withdraws.

    Making one raises FormatError where a value is not of this form, the peer id is not that of the url, or
    the floor is more than `MAX_FLOOR` beyond the signing.
    """

    peer: str
    peer_url: str
    card_hash: str
    contract_hash: str
    form: str
    issued_at: datetime
    floor_until: datetime

    def __post_init__(self) -> None:
        """Check every value, whether somebody typed it or signed it."""
        url = self.peer_url
        if len(url) > _MAX_URL or not _URL.fullmatch(url) or peer_url_of(url) != url:
            raise FormatError(
                f"a manifest names its peer by the http(s) url of the public card, in its one spelling, without user "
                f"info, query and fragment, {_MAX_URL} characters at most, found {url[:80]!a}"
            )
        if self.peer != peer_id(url):
            raise FormatError(f"a manifest of {url}: expected the peer id {peer_id(url)}, found {self.peer[:40]!a}")
        for what, value in (("card", self.card_hash), ("contract", self.contract_hash)):
            if not _HASH.fullmatch(value):
                raise FormatError(
                    f"a manifest states its {what} hash as sha256: and 64 hex digits, found {value[:80]!a}"
                )
        if not _FORM.fullmatch(self.form):
            raise FormatError(f"a manifest states the form of its contract hash, found {self.form[:80]!a}")
        for what, at in (("issued_at", self.issued_at), ("floor_until", self.floor_until)):
            if at.tzinfo is None:
                raise FormatError(f"a manifest's {what} is a time with its zone, found {at}")
        if self.floor_until - self.issued_at > MAX_FLOOR:
            raise FormatError(
                f"a manifest's floor reaches {MAX_FLOOR.days} days beyond issued_at at most, found "
                f"{timestamp(self.floor_until)} for one of {timestamp(self.issued_at)}; sign a new one in time instead"
            )


class ReadManifest(NamedTuple):
    """A manifest that was read, and what it is worth.

    Attributes:
        manifest: what it says.
        status: `valid`, `expired` (a trusted key signed it, and its floor has passed), `bad-signature` (it
            names a trusted key, which did not sign this), `unknown-key` (no trusted key has to do with it).
        key_id: the trusted key whose signature verified, 8 hex digits; None: there is none.
    """

    manifest: Manifest
    status: str
    key_id: str | None


def make_manifest(manifest: Manifest, signer: Signer) -> bytes:
    """Sign a manifest and return the envelope's RFC 8785 octets."""
    predicate: dict[str, Json] = {
        "card_hash": manifest.card_hash,
        "contract_hash": manifest.contract_hash,
        "floor_until": timestamp(manifest.floor_until),
        "form": manifest.form,
        "issued_at": timestamp(manifest.issued_at),
        "peer": manifest.peer,
    }
    subject = Subject(manifest.peer_url, manifest.card_hash.removeprefix("sha256:"))
    return sign_envelope(statement([subject], CARD_MANIFEST, predicate), signer)


def read_manifest(envelope: bytes, trusted: Iterable[Verifier], now: datetime) -> ReadManifest:
    """Read a manifest and say what it is worth.

    Every trusted key is tried on every signature; one that verifies is enough, whoever else signed.

    Args:
        envelope: the DSSE envelope, as it came.
        trusted: the keys that the deployment trusts for manifests; others than plain Ed25519 keys count as none.
        now: our clock.

    Raises:
        FormatError: it is no manifest at all, whoever signed it.
    """
    if len(envelope) > MAX_MANIFEST:
        raise FormatError(f"a manifest has {MAX_MANIFEST} bytes at most, found {len(envelope)}")
    keys = [key for key in trusted if key.kind == ED25519]
    written = read_envelope(envelope)
    if len(written.signatures) > MAX_SIGNATURES:
        raise FormatError(f"a manifest has {MAX_SIGNATURES} signatures at most, found {len(written.signatures)}")
    try:
        opened = open_envelope(envelope, keys)
    except SignatureError:
        named = {one.key_id for one in written.signatures}
        status = BAD_SIGNATURE if named & {key.key_id for key in keys} else UNKNOWN_KEY
        return ReadManifest(_parse(written.payload), status, None)
    manifest = _parse(opened.payload)
    status = VALID if now < manifest.floor_until else EXPIRED
    return ReadManifest(manifest, status, opened.signers[0].key_id)


def _parse(payload: bytes) -> Manifest:
    read = parse_statement(payload)
    if read.predicate_type != CARD_MANIFEST:
        raise FormatError(f"expected predicate type {CARD_MANIFEST}, found {read.predicate_type[:80]!a}")
    match read.predicate:
        case {
            "card_hash": str(card_hash),
            "contract_hash": str(contract_hash),
            "floor_until": str(floor_until),
            "form": str(form),
            "issued_at": str(issued_at),
            "peer": str(peer),
            **others,
        } if not others:
            pass
        case _:
            raise FormatError(
                "a manifest's predicate has exactly card_hash, contract_hash, floor_until, form, issued_at and peer"
            )
    if len(read.subjects) != 1 or f"sha256:{read.subjects[0].sha256}" != card_hash:
        raise FormatError("a manifest has one subject, the card, whose digest is the card_hash of the predicate")
    return Manifest(
        peer=peer,
        peer_url=read.subjects[0].name,
        card_hash=card_hash,
        contract_hash=contract_hash,
        form=form,
        issued_at=_time("issued_at", issued_at),
        floor_until=_time("floor_until", floor_until),
    )


def _time(name: str, text: str) -> datetime:
    made = rfc3339(text)
    if made is None:
        raise FormatError(f"a manifest's {name} is an RFC 3339 time with its zone, found {text[:40]!a}")
    return made.astimezone(UTC)
