"""Which peer and which task does an exchange belong to? Looked up in the log (docs/format.md section 4)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from a2a_ledger.address import (
    CARD_PATH,
    agent_card_url,
    host_spellings,
    normal_url,
    origin_of,
    peer_id,
    peer_url,
    wire_url,
)
from a2a_ledger.capture.card_identity import key_of
from a2a_ledger.capture.resends import resent_task
from a2a_ledger.wire import message_digest
from a2a_ledger.wire.spellings import SENDS, rest_bases

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Interface
    from a2a_ledger.wire import Leg

_WELL_KNOWN = re.compile(r"/agent(?:-card)?\.json$")
_EXTENDED = re.compile(r"(?:/extendedAgentCard|/agent/authenticatedExtendedCard|/v1/card)$")
_REMEMBERED = 256
"""Urls whose interfaces are not worked out again: each request asks several times for those of its own."""

_LOOK_BACK = 32
"""Records that are looked at for one answer at most, so that a lookup costs the same in an old ledger."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer by its id and by the url that the id is made from."""

    id: str
    url: str


@dataclass(frozen=True, slots=True)
class Attribution:
    """Where an exchange belongs.

    `task` is a local task that is there already; if it is None, `opens` says what to do: `send` opens a
    new task, `adopted` opens one that was first seen past its submission, "" leaves it with the peer.
    """

    peer: Peer
    task: str | None
    opens: str = ""


def card_source(method: str, url: str) -> str | None:
    """Say which card a request asks for, `well-known` or `extended`; None: it is no card fetch."""
    path = _path(url)
    if method.upper() != "GET":
        return None
    if _EXTENDED.search(path):
        return "extended"
    return "well-known" if _WELL_KNOWN.search(path) else None


def peer_of_card(url: str) -> Peer:
    """Return the peer whose card lies at `url`.

    The fallback card `agent.json` and the extended card belong to the public card beside them.
    """
    if _EXTENDED.search(_path(url)):
        return peer_at(agent_card_url(url))
    return peer_at(re.sub(r"/agent\.json$", "/agent-card.json", peer_url(url)))


def peer_of_card_at(reader: LogReader, url: str) -> Peer:
    """Return the peer whose card lies at `url`, as the log knows it.

    An extended card belongs to the peer whose card lists the interface beside which it lies, wherever its
    public card is; else to the public card beside it, if that was ever seen.
    """
    if not _EXTENDED.search(_path(url)):
        return peer_of_card(url)
    listed = peer_of_extended(reader, url)
    if listed is not None:
        return listed
    beside = peer_at(f"{_beside(url)}{CARD_PATH}")
    seen = reader.read_stream(f"peer:{beside.id}", limit=_LOOK_BACK, desc=True)
    return beside if any(record.type == "card.fetched.v1" for record in seen) else peer_of(reader, url, None)


def peer_of_extended(reader: LogReader, url: str) -> Peer | None:
    """Return the peer whose extended card lies at `url`; None: no card lists an interface beside which it would lie.

    Any API may have something at `/v1/card`.
    """
    return _listed_by(reader, url, [*urls_of_interface(url), *urls_of_interface(_beside(url))])


def peer_at(url: str) -> Peer:
    """Return the peer with this public card url."""
    return Peer(peer_id(url), peer_url(url))


def attribute(
    reader: LogReader, leg: Leg, body: bytes = b"", *, peer: Peer | None = None, current: str | None = None
) -> Attribution:
    """Say where an exchange belongs, by its request or, for a push, by the push itself.

    Never by a context id alone. In this order: the task of the caller's context; the peer's task id;
    a message that was sent before (a resend is the same task); a send without a task id opens one;
    an unknown task id is adopted; everything else stays with the peer.

    Args:
        reader: the log.
        leg: the request, or the push.
        body: of a request that may be a send: a resend is told by its id and by its content.
        peer: whom it was sent to, where the caller knows (a client that is bound to a card).
        current: local task of the caller's context.
    """
    whom = peer or peer_of(reader, leg.url, leg.task_id, tenant=leg.tenant)
    found = current or _known_task(reader, whom.id, leg, body)
    if found is not None:
        return Attribution(whom, found)
    if leg.task_id is not None:
        return Attribution(whom, None, "adopted")
    return Attribution(whom, None, "send" if leg.method in SENDS else "")


def peer_of(reader: LogReader, url: str, task_id: str | None, *, tenant: str | None = None) -> Peer:
    """Return the peer that a url belongs to.

    The one with a card whose newest answer lists the url, else one of the same origin that knows the task, else the one
    of the same origin, else the one whose card would lie at that origin's well-known path. Of several whose cards list
    the url: the one that knows the task, else the one that lists it for the tenant, else the one seen last.

    Args:
        reader: the log.
        url: of the request.
        task_id: the peer's task id that it names.
        tenant: the tenant that its body or query names; one in its path is told from the url.
    """
    listed = _listed_by(reader, url, urls_of_interface(url), task_id, tenant)
    if listed is not None:
        return listed
    same_origin = list(_peers_of(reader.tagged(f"origin:{origin_of(url)}", limit=_LOOK_BACK, desc=True)))
    if task_id is not None:
        for record in same_origin:
            if knows_task(reader, _peer(record).id, task_id):
                return _peer(record)
    return _peer(same_origin[0]) if same_origin else peer_at(agent_card_url(url))


def _listed_by(
    reader: LogReader, url: str, bases: Sequence[str], task_id: str | None = None, tenant: str | None = None
) -> Peer | None:
    """Return the peer one of whose cards lists one of these interface urls, in its newest answer; see `peer_of`."""

    def fits(record: Record) -> tuple[bool, int]:
        interfaces = cast("list[Interface]", record.data.get("interfaces") or [])
        named = [tenant_fit(one, url, tenant) for one in interfaces if one["url"] == base]
        return task_id is None or knows_task(reader, _peer(record).id, task_id), max(named, default=0)

    for base in bases:
        for look_back in (1, _LOOK_BACK):  # nearly always the newest card that lists the url is its peer's newest
            found = list(_peers_of(reader.tagged(f"lists:{base}", limit=look_back, desc=True)))
            listing = [(fits(record), record) for record in found if record.n >= _newest_answer(reader, record)]
            (knows, tenants), best = max(listing, key=lambda one: one[0], default=((False, 0), None))
            if best is not None and (look_back > 1 or (knows and tenants)):
                return _peer(best)
    return None


def knows_task(reader: LogReader, peer: str, task_id: str) -> bool:
    """Say whether a task of this peer has this id."""
    return bool(reader.tagged(f"task:{peer}:{task_id}", limit=1))


def tenant_fit(interface: Interface, url: str, tenant: str | None) -> int:
    """Say how well an interface fits a request by its tenant: 2 named by both, 1 by neither, 0 another one.

    Args:
        interface: of a card.
        url: of the request; HTTP+JSON puts the tenant into its path.
        tenant: the tenant that its body or query names.
    """
    named = interface["tenant"]
    if named == (tenant or ""):
        return 2 if named else 1
    return 2 if named and normal_url(f"{interface['url'].rstrip('/')}/{named}") in urls_of_interface(url) else 0


@lru_cache(maxsize=_REMEMBERED)
def urls_of_interface(url: str) -> tuple[str, ...]:
    """Return the interface urls that a request's url may belong to, the likeliest first, in their normal spelling.

    JSON-RPC uses the interface's url itself; HTTP+JSON appends a path, and a tenant, to it. A slash at
    the end is what some clients add. A host may have two spellings, of which a card has one.
    """
    found: list[str] = []
    for base in rest_bases(peer_url(url)):
        found += [base, base.removesuffix("/") if base.endswith("/") else f"{base}/"]
    return tuple(dict.fromkeys(url for base in found for url in (normal_url(base), *host_spellings(base))))


def interface_used(interfaces: Sequence[Interface], leg: Leg) -> Interface:
    """Return the card's interface that a request uses; what the card does not list is told from the wire.

    Of two interfaces with one url and binding the one of the tenant is used, and of the spoken version: by
    `A2A-Version`, else by the spelling of the method.
    """
    urls = urls_of_interface(leg.url)
    sent_to = set(map(wire_url, urls))  # a client encodes a host or a path that the card writes out
    at_url = [one for one in interfaces if wire_url(one["url"]) in sent_to and _same(one["binding"], leg.binding)]
    best = max((tenant_fit(one, leg.url, leg.tenant) for one in at_url), default=0)
    at_url = [one for one in at_url if tenant_fit(one, leg.url, leg.tenant) == best]
    for version in (leg.version_stated, leg.version):
        for one in at_url:
            if one["version"] == version and version is not None:
                return one
    if at_url:
        return at_url[0]
    return {"binding": leg.binding, "tenant": leg.tenant or "", "url": urls[0] if urls else "", "version": leg.version}


def _known_task(reader: LogReader, peer: str, leg: Leg, body: bytes) -> str | None:
    for record in reader.tagged(f"task:{peer}:{leg.task_id}", limit=1) if leg.task_id is not None else []:
        if record.stream.startswith("task:"):
            return record.stream.removeprefix("task:")
    if leg.method not in SENDS or leg.message_id is None:
        return None
    return resent_task(reader, peer, leg.message_id, message_digest(body))


def _peers_of(records: Sequence[Record]) -> Iterator[Record]:
    """Yield the newest record of each peer."""
    seen: set[str] = set()
    for record in records:
        if record.stream not in seen:
            seen.add(record.stream)
            yield record


def _newest_answer(reader: LogReader, record: Record) -> int:
    """Return the index of the newest answer about the card of a record: one peer has several true cards at once."""
    origin, place = origin_of(_peer(record).url), key_of(record.data).place
    for look_back in (1, _LOOK_BACK):
        for card in reader.tagged(f"origin:{origin}", limit=look_back, desc=True):
            if card.stream == record.stream and card.data.get("interfaces") and key_of(card.data).place == place:
                return card.n
    return -1


def _peer(record: Record) -> Peer:
    return Peer(str(record.data.get("peer", "")), str(record.data.get("peer_url", "")))


def _same(stated: str, spoken: str) -> bool:
    return stated.upper() == spoken.upper()


def _beside(url: str) -> str:
    """Return the url beside which an extended card lies."""
    found = _EXTENDED.search(_path(url))
    return peer_url(url).rstrip("/").removesuffix(found[0] if found is not None else "")


def _path(url: str) -> str:
    try:
        return urlsplit(url).path.rstrip("/")
    except ValueError:
        return ""
