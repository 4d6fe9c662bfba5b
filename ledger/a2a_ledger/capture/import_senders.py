"""Whose word a push or a snapshot is that names nothing but a task: whoever can have said it, else nobody.

Task ids are the peers' own, so two peers may have the same one. A push is told by what the peer was given for it: the
token, or the url, of the push configuration that was sent with that task (docs/format.md section 13.4).
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.address import wire_url
from a2a_ledger.capture.attribution import Peer
from a2a_ledger.capture.push_objects import may_hold_push
from a2a_ledger.capture.redact import Secret, cut_url, filled
from a2a_ledger.capture.redacted import credentials_of
from a2a_ledger.divergence.reading import content

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from a2a_ledger.capture.peerview import PeerViews
    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json
    from a2a_ledger.ledger import ContractLedger

_TOKEN = "push-token"  # noqa: S105 - the name of a scheme
_PEER_DIGITS = 32
_LOOK_AT = 64
"""Records of a task among which its push configurations are looked for."""


class _Given(NamedTuple):
    """What a peer was given for the pushes of one task."""

    tokens: frozenset[str]
    urls: frozenset[str]


class Senders:
    """Finds the peer of a task by the peer's id of it alone."""

    def __init__(self, ledger: ContractLedger, reader: LogReader, views: PeerViews) -> None:
        self._ledger = ledger
        self._reader = reader
        self._views = views
        self._peers: defaultdict[str, set[str]] | None = None

    def learn(self, task_id: str, peer: Peer) -> None:
        """Take note of a task that this run has tied to a peer."""
        if self._peers is not None:
            self._peers[task_id].add(peer.id)

    def of_task(self, task_id: str | None) -> Peer | None:
        """Return the only peer with a task of this id; None: there is none, or more than one."""
        known = self._with(task_id)
        return self._peer(known[0]) if len(known) == 1 else None

    def of_push(
        self, task_id: str | None, url: str, secrets: Sequence[Secret], also: Iterable[Peer] = ()
    ) -> Peer | None:
        """Return the only peer that can have sent a push; None: nobody can say which one it was.

        One that was given the push's token goes before one that was given its url, and that one before others. One that
        was given tokens, and none of them is the push's, has not sent it.

        Args:
            task_id: the peer's id of the task that is spoken of.
            url: where the push came to.
            secrets: what it carried.
            also: peers whose answers, not recorded yet, will give that id.
        """
        known = {**{one.id: one for one in also}, **{one: self._peer(one) for one in self._with(task_id)}}
        shown = [Secret(_TOKEN, secret.value) for secret in secrets]
        stated = any(secret.scheme == _TOKEN for secret in secrets)
        came_to = wire_url(filled(cut_url(url, secrets)))
        fits: list[tuple[int, Peer]] = []
        for peer in known.values():
            given = self._given(peer.id, task_id)
            marks = {mark["mac"] for mark in credentials_of(shown, peer.id, self._ledger) or ()}
            if given.tokens & marks:
                fits.append((2, peer))
            elif not (stated and given.tokens):
                fits.append((int(came_to in given.urls), peer))
        best = [peer for fit, peer in fits if fit == max(fit for fit, _ in fits)]
        return best[0] if len(best) == 1 else None

    def _with(self, task_id: str | None) -> list[str]:
        """Return the ids of the peers that have a task of this id; all tasks of the log are read once."""
        if task_id is None:
            return []
        if self._peers is None:
            self._peers = defaultdict(set)
            for tag, _ in self._ledger.store.tagged_prefix("task:", -1):
                _, peer, its_id = tag.split(":", 2)
                self._peers[its_id].add(peer)
        return sorted(peer for peer in self._peers.get(task_id, ()) if len(peer) == _PEER_DIGITS)

    def _peer(self, peer: str) -> Peer:
        return Peer(peer, self._views.of(peer).url)

    def _given(self, peer: str, task_id: str | None) -> _Given:
        tokens, urls = set[str](), set[str]()
        for record in self._asked(peer, task_id):
            marks = record.data.get("credential")
            for mark in marks if isinstance(marks, list) else []:
                if isinstance(mark, dict) and mark.get("scheme") == _TOKEN:
                    tokens.add(str(mark.get("mac")))
            urls.update(_urls_in(content(record, "body") or b""))
        return _Given(frozenset(tokens), frozenset(urls))

    def _asked(self, peer: str, task_id: str | None) -> Iterator[Record]:
        """Yield the requests of the task, among the first records of its stream."""
        for bound in self._reader.tagged(f"task:{peer}:{task_id}", limit=1, desc=True):
            for record in self._reader.read_stream(bound.stream, limit=_LOOK_AT):
                if record.data.get("leg") == "request":
                    yield record


def _urls_in(body: bytes) -> Iterator[str]:
    """Yield the urls in a request that may hold a push configuration, `*` for what was cut out of them."""
    if may_hold_push(body):
        try:
            yield from _urls(json.loads(body))
        except (ValueError, RecursionError):
            return


def _urls(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        url = value.get("url")
        if isinstance(url, str):
            yield wire_url(url)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from _urls(one)
