"""Where `card` verbs get a card from: a file, standard input, a URL, or an event of the ledger.

A URL is fetched once, plainly. While the peer has tasks in flight a fetch is a probe that can
change what they may do, so it is refused unless `--diagnostic` asks for it, and then it is recorded.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import urlsplit

from a2a_ledger.cli.output import note
from a2a_ledger.cli.reading import read_input
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from a2a_ledger.card import Card
    from a2a_ledger.cli.session import Session
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Ref
    from a2a_ledger.ledger import ContractLedger

METAVAR = "FILE|URL|N"
"""What a card may be named by; N is the position of an event, as `show` prints it."""

_SCHEMES = ("http://", "https://")
_POSITION = re.compile(r"#?([0-9]{1,15})")
_ITS_OWN = frozenset({"card.fetched.v1", "card.served.v1"})
_OF_A_FETCH = frozenset({"contract.captured.v1", "contract.reconstructed.v1", "contract.accepted.v1"})


class Source(NamedTuple):
    """A card as it was named on the command line.

    Attributes:
        card: what the bytes are.
        name: the word that named it.
        peer: id of the peer that serves it; None for a file.
        fetch: the fetch that brought it; None for what the ledger does not hold.
        not_as_served: why what is recorded is not what was served, so that no signature of it counts as broken; "".
    """

    card: Card
    name: str
    peer: str | None = None
    fetch: Record | None = None
    not_as_served: str = ""


def load(session: Session, source: str, *, diagnostic: bool) -> Source:
    """Return the card that a word names.

    Raises:
        UsageError: it cannot be had, or a fetch would disturb tasks in flight.
    """
    from a2a_ledger.card import read_card  # noqa: PLC0415 - a heavy import belongs to the verb

    if source.lower().startswith(_SCHEMES):
        return _of_url(session, source, diagnostic=diagnostic)
    position = _POSITION.fullmatch(source)
    if position and not Path(source).exists():
        with session.reading() as ledger:
            return _of_event(ledger, int(position[1]), source)
    return Source(
        read_card(read_input(Path(source), "a card's file, `-`, an http(s) URL or an event's number")), source
    )


def _of_url(session: Session, source: str, *, diagnostic: bool) -> Source:
    """Fetch a card once: plainly, or as a recorded probe where tasks are in flight."""
    from a2a_ledger.card import agent_card_url, read_card  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.cli.card_peer import whose  # noqa: PLC0415 - same

    url = source if _path_of(source).strip("/") else agent_card_url(source)
    found = whose(session, url)
    if found.in_flight and diagnostic:
        from a2a_ledger.cli.fetch import probe  # noqa: PLC0415 - needs the extra, and only this path does

        return Source(read_card(probe(session, url, found.peer)), source, found.peer.id)
    from a2a_ledger.cli.fetch import get  # noqa: PLC0415 - the network belongs to this path

    return Source(read_card(get(url, may_ask=lambda hop: _refuse_in_flight(session, hop))), source, found.peer.id)


def _of_event(ledger: ContractLedger, position: int, name: str) -> Source:
    """Return the card that an event brought or speaks of."""
    from a2a_ledger.capture.card_signature import LOSSY  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.capture.cards import has_holes, read_event  # noqa: PLC0415 - same
    from a2a_ledger.card import read_card  # noqa: PLC0415 - same

    if position >= ledger.store.size():
        raise UsageError(
            f"{name}: expected the number of an event below {ledger.store.size()}, the size of this ledger"
        )
    record = ledger.store.record(position)
    fetch: Record | None = record
    if record.type in _OF_A_FETCH:
        ref = cast("Ref | None", record.data.get("fetch"))
        fetch = read_event(ledger.store, ref) if ref else None
    elif record.type not in _ITS_OWN:
        raise UsageError(
            f"{name}: expected an event that brought a card or froze one, found {record.type}",
            hint="`a2a-ledger show TASK` and `a2a-ledger peers` name the events that do.",
        )
    if fetch is None:
        raise UsageError(f"{name}: this contract was made from imported material without any card")
    stands = cast("Ref | None", fetch.data.get("not_modified"))
    holder = read_event(ledger.store, stands) if stands else fetch
    if holder is None or "body" not in holder.blobs:
        raise UsageError(f"{name}: the bytes of this card are not in the ledger")
    other = ""
    if has_holes(holder):
        note(f"{name}: credentials were cut out of this card when it was recorded, so its raw hash is another one.")
        other = "octets were cut out of this card when it was recorded, and the signature does not hold without them"
    elif "lossy" in cast("list[str]", holder.data.get("flags") or []):
        other = LOSSY
    peer = fetch.data.get("peer")
    whose = peer if isinstance(peer, str) else None
    return Source(read_card(holder.content("body") or b""), name, whose, fetch, other and f"{other} (#{holder.n})")


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


def _refuse_in_flight(session: Session, url: str) -> None:
    """Refuse a fetch from a peer that has tasks in flight.

    Raises:
        UsageError: it has.
    """
    from a2a_ledger.cli.card_peer import whose  # noqa: PLC0415 - a heavy import belongs to the verb

    count = whose(session, url).in_flight
    if count:
        raise UsageError(
            f"{url}: {count} of its tasks are in flight, and a card fetch now is a probe that can change what they "
            "may do; nothing was fetched",
            hint="If you want it all the same: --diagnostic. The probe is recorded as one.",
        )
