"""A card that passes: its octets as they came go to the client, and what they say goes into the record.

Of what is longer than any card may be the beginning is held; the rest waits in a file, and is hashed as it comes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.capture.coding import MOST_OCTETS, CodingError, Unpacking, can_unpack, codings_of
from a2a_ledger.capture.route import Answer, OverCard, Route, pairs
from a2a_ledger.capture.server.spool import Spool
from a2a_ledger.card import MAX_CARD
from a2a_ledger.codec import SECRET, Rest

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.capture.card_record import CardAsk

_HELD = MAX_CARD + 1
"""So that what is held of a card that is too large is too large a card itself, whoever reads it again."""


class AsItCame(NamedTuple):
    """An answer before anything was done to it."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: Spool


@dataclass(slots=True, kw_only=True)
class PassedRoute(Route):
    """The way of one client's card GET to the agent: it goes once, for nobody else, and as it came."""

    keep_body: int
    """Octets that are recorded of one body."""
    entropy: Callable[[int], bytes]
    passed: AsItCame | None = field(default=None, init=False)

    async def first_hand(self, ask: CardAsk, *, conditional: bool) -> Answer:
        """Send the client's own request; what cannot be decoded is recorded as it came, and is no card."""
        response = await self.send(self.own_request(ask, ours=conditional))
        headers = pairs(response.headers)
        body = Spool(_HELD, self.entropy)
        plain = _Read(codings_of(headers), min(self.keep_body, _HELD), self.entropy)
        try:
            async for chunk in response.aiter_raw():
                body.add(chunk)
                plain.add(chunk)
            self.passed = AsItCame(response.status_code, response.headers.raw, body)
            if plain.is_unread:
                plain = _Read((), min(self.keep_body, _HELD), self.entropy)
                for chunk in body.chunks():
                    plain.add(chunk)
                return self._answer(plain, response.status_code, headers, is_unread=True)
            return self._answer(plain, response.status_code, headers, is_unread=False)
        except BaseException:
            body.close()
            raise
        finally:
            await response.aclose()

    def close(self) -> None:
        """Forget what came, for nobody takes it."""
        if self.passed is not None:
            self.passed.body.close()

    def _answer(self, read: _Read, status: int, headers: list[tuple[str, str]], *, is_unread: bool) -> Answer:
        return Answer(status, headers, read.held, self.own.url, self.headers, is_unread, read.over)


class _Read:
    """What a body says, as it comes: held as far as a card may go, and hashed."""

    def __init__(self, codings: tuple[str, ...], keep: int, entropy: Callable[[int], bytes]) -> None:
        self._unpacking = Unpacking(codings) if can_unpack(codings) else None
        self._most = MOST_OCTETS if codings else None
        self._keep = keep
        self._entropy = entropy
        self._hash = hashlib.sha256()
        self._held = bytearray()
        self._came = False
        self._size = 0
        self._rest: Rest | None = None

    @property
    def is_unread(self) -> bool:
        """Say that it is in a coding that cannot be taken off."""
        return self._unpacking is None or (self._came and not self._unpacking.is_whole)

    @property
    def held(self) -> bytes:
        """Return all of it, or what is recorded where it is too large."""
        return bytes(self._held)

    @property
    def over(self) -> OverCard | None:
        """Return what all of it is, where that is not held."""
        if self._rest is None:
            return None
        return OverCard(self._size, f"sha256:{self._hash.hexdigest()}", self._rest.hole)

    def add(self, octets: bytes) -> None:
        """Take octets as they come."""
        self._came = self._came or bool(octets)
        if self._unpacking is None:
            return
        try:
            for piece in self._unpacking.feed(octets):
                self._take(piece)
                if self._most is not None and self._size > self._most:
                    self._unpacking = None
                    return
        except CodingError:
            self._unpacking = None

    def _take(self, piece: bytes) -> None:
        self._size += len(piece)
        self._hash.update(piece)
        if self._rest is not None:
            self._rest.add(piece)
            return
        self._held += piece
        if len(self._held) > MAX_CARD:
            self._rest = Rest(self._entropy(SECRET))
            self._rest.add(bytes(self._held[self._keep :]))
            del self._held[self._keep :]
