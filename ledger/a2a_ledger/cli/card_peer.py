"""Whose card lies at a URL that somebody typed, and how many tasks a fetch of it may disturb.

A server takes many spellings of a URL for one, and several URLs lead to cards of one peer, so a URL is told by what
it is: the public card that it belongs to, in the spelling of the wire. Where that names no peer that the ledger knows,
every peer of the origin may be meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.address import origin_of, wire_url
from a2a_ledger.capture.attribution import Peer, card_source, peer_of_card, peer_of_card_at
from a2a_ledger_projections import peers
from a2a_ledger_projections.base import reading

if TYPE_CHECKING:
    from a2a_ledger.cli.session import Session
    from a2a_ledger_projections.peers import PeerRow


class Whose(NamedTuple):
    """The peer whose card lies at a URL, as far as can be told, and the tasks in flight of all that may be meant."""

    peer: Peer
    in_flight: int


def whose(session: Session, url: str) -> Whose:
    """Say whose card a URL leads to; without a ledger by its path alone."""
    if not session.place:
        return Whose(peer_of_card(url), 0)
    with session.reading() as ledger:
        named = peer_of_card_at(ledger.store, wire_url(url))
        with reading(ledger.store, peers.VIEW) as now:
            rows = [cast("PeerRow", row) for row in now.rows.prefixed(peers.PEER)]
    known = [row for row in rows if row["url"] and wire_url(row["url"]) == wire_url(named.url)]
    meant = known
    if not known or card_source("GET", wire_url(url)) != "well-known":
        meant = [row for row in rows if row in known or (row["url"] and _origin(row["url"]) == _origin(url))]
    peer = Peer(known[0]["peer"], known[0]["url"] or named.url) if known else peer_of_card(url)
    return Whose(peer, sum(row["in_flight"] for row in meant))


def _origin(url: str) -> str:
    """Return the origin of a URL; a dot behind the name of its host is the root of the DNS and makes no other one."""
    scheme, _, authority = origin_of(wire_url(url)).partition("://")
    host, colon, port = authority.rpartition(":")
    if not colon or "]" in port:
        host, colon, port = authority, "", ""
    return f"{scheme}://{host.rstrip('.')}{colon}{port}"
