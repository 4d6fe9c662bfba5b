"""Card signatures in a bundle: what was recorded of them, and what the shown octets say (docs/format.md section 12).

Two questions, kept apart. Does a record contradict itself? That is answered by the keys that the log itself shows,
and makes claim R INVALID. Did the peer sign the card? That is answered by the reader's own keys alone, and is said in
the detail of claim S: a key from inside of the bundle never speaks there, and a signed card is no signed message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.card import read_card
from a2a_ledger.divergence.reading import CARD_FETCHED, content, members, text, texts
from a2a_ledger.errors import FormatError
from a2a_ledger.signature import judge, thumbprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from a2a_ledger.card import Card
    from a2a_ledger.codec import Record
    from a2a_ledger.events import JsonObject
    from a2a_ledger.signature import CardKey, Judgement
    from a2a_ledger.signature.peer_keys import RecordedKey

_LONGEST = 80  # characters of a key id that are shown
_SOURCES = {"policy": "the recorder's file", "ledger": "the log", "card": "the card itself, which names no signer"}


def contradictions(record: Record, card: Card, shown: Iterable[RecordedKey]) -> Iterator[str]:
    """Say where the recorded result of a fetch cannot be, by the card and the keys that the log shows.

    What was valid under a key stays valid; what was not may have been decided by a reader who knew fewer forms or
    had other keys, so that a better result now is no contradiction. A key that was retired in the moment between the
    judgement and its record is none either.

    Args:
        record: a `card.fetched.v1` with the card's octets.
        card: these octets, read.
        shown: the keys that the shown events record for any peer.
    """
    recorded = members(record.data.get("signature"))
    status, source, kid = text(recorded, "status"), text(recorded, "key"), text(recorded, "kid")
    listed = (card.document or {}).get("signatures")
    if status == "absent" and isinstance(listed, list) and listed:
        yield "signature says that the card carries none, and it does"
    if status != "valid" or source not in {"ledger", "card"}:
        return
    keys = [one.key for one in shown if one.key.peer == record.data.get("peer") and one.added.n < record.n]
    if source == "ledger" and not any(kid in {key.kid, thumbprint(key.jwk)} for key in keys):
        return  # the key is not shown; `card_signatures` says so
    again = judge(card, keys if source == "ledger" else ())
    if again.status != "valid" or again.key != source:
        yield f"signature says valid by key {_quoted(kid)} of {_SOURCES[source]}, and by that key it is {again.status}"
    elif recorded.get("covers_contract") is True and again.covers_contract is not True:
        yield "signature says that the contract is covered, and it is not"


def key_contradiction(data: JsonObject) -> str:
    """Say where a `card_key.added.v1` names another key than it holds; "" if it does not, or if that cannot be told."""
    jwk = members(data.get("jwk"))
    try:
        made = thumbprint(jwk)
    except FormatError:
        return ""
    if made != data.get("thumbprint"):
        return "thumbprint is not that of its jwk"
    return "" if jwk.get("kid", data.get("kid")) == data.get("kid") else "kid is not that of its jwk"


def card_signatures(records: Iterable[Record], trusted: Sequence[CardKey]) -> list[str]:
    """Say of each shown card that is signed, or that should be, what was recorded and what the reader's keys say.

    Args:
        records: the shown records.
        trusted: keys that the reader brought, each for one peer.
    """
    said: dict[str, list[int]] = {}
    for record in records:
        if record.type != CARD_FETCHED or "body" not in record.blobs:
            continue
        keys = [key for key in trusted if key.peer == record.data.get("peer")]
        recorded = members(record.data.get("signature"))
        if keys or text(recorded, "status") not in {None, "absent"}:
            said.setdefault(f"recorded as {_recorded(recorded)}; {_now(record, keys)}", []).append(record.n)
    return [f"card of {_events(places)}: {sentence}" for sentence, places in said.items()]


def _recorded(recorded: JsonObject) -> str:
    status = text(recorded, "status") or "not judged"
    source = _SOURCES.get(text(recorded, "key") or "")
    if source is None:
        return {"absent": "unsigned"}.get(status, status)
    return f"{status} by key {_quoted(text(recorded, 'kid'))} of {source}"


def _now(record: Record, keys: Sequence[CardKey]) -> str:
    if not keys:
        return "you name no key for this peer"
    octets = content(record, "body")
    card = read_card(octets or b"")
    if octets is None or card.raw_hash != record.data.get("raw_hash"):
        return "its octets are not all here, so your keys cannot tell"
    found = judge(card, keys)
    if found.status == "absent":
        return "it carries no signature, though you name a key for this peer"
    if found.status != "valid" and "lossy" in texts(record.data.get("flags")):
        return "its octets are not those that were served, so your keys cannot tell"
    if found.key != "policy":
        return "none of your keys for this peer signed it"
    return f"by your key {_quoted(found.kid)} {_meaning(found)}"


def _meaning(found: Judgement) -> str:
    if found.status != "valid":
        return f"{found.status}"
    return "valid, and the contract is covered" if found.covers_contract else "valid, and the contract is not covered"


def _events(places: Sequence[int]) -> str:
    names = ", ".join(map(str, places[:3])) + (", …" if len(places) > 3 else "")  # noqa: PLR2004 - enough to find one
    return f"event {names}" if len(places) == 1 else f"events {names}"


def _quoted(kid: str | None) -> str:
    return "without an id" if kid is None else ascii(kid[:_LONGEST])
