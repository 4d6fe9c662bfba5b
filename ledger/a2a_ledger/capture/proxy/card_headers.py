"""The headers of a card that is rewritten on its way: what they say of the agent's octets is not true of ours. Pure.

A strong tag names octets (RFC 9110 section 8.8.3), so a rewritten card has one of its own, made from the agent's: as
long as that stands for one content, so does ours, and where it comes with two, ours does too. What a client asks with
is turned back, and what it has from elsewhere, a copy of the card as the agent serves it, is never confirmed to it.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    RawHeaders = list[tuple[bytes, bytes]]

_OF_OCTETS = frozenset(
    {
        *(b"accept-ranges", b"content-encoding", b"content-length", b"content-location", b"content-range"),
        *(b"content-digest", b"content-md5", b"digest", b"repr-digest", b"unencoded-digest"),
        *(b"signature", b"signature-input"),  # RFC 9421: over a digest of what came
        b"last-modified",  # says of the agent's copy when it changed, and nothing tells the two copies apart by it
    }
)
_ASKED_IN_PART = frozenset({b"if-modified-since", b"if-range", b"range"})
"""By places or times of the agent's octets; a server may always answer with all of it."""

_TAG = re.compile(rb'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
_DIGITS = 16


class CardHeaders:
    """Turns the headers of card requests and of rewritten cards, for one pair of addresses."""

    def __init__(self, upstream: str, public: str, software: str) -> None:
        """Make tags of its own.

        Args:
            upstream: the agent's base url.
            public: the proxy's.
            software: what rewrites, and its version: the same card may come out otherwise of another.
        """
        told = f"{upstream}\n{public}\n{software}".encode()
        self._mark = b"-rewritten-" + sha256(told).hexdigest()[:_DIGITS].encode()

    def asked(self, headers: RawHeaders) -> RawHeaders:
        """Return the headers of a request for a card as the agent is to see them."""
        turned: RawHeaders = []
        for name, value in headers:
            key = name.lower()
            if key in {b"if-none-match", b"if-match"} and value.strip() != b"*":
                tags = [*self._agents_own(value)]
                if tags:
                    turned.append((name, b", ".join(tags)))
            elif key not in _ASKED_IN_PART:
                turned.append((name, value))
        return turned

    def answered(self, headers: RawHeaders) -> RawHeaders:
        """Return the headers of a card as the client is to see them, without its length; of a 304, and of HEAD, too."""
        turned: RawHeaders = []
        for name, value in headers:
            key = name.lower()
            if key == b"etag":
                tag = _TAG.fullmatch(value.strip())
                if tag is not None:
                    turned.append((name, b'%b"%b%b"' % (tag[1] or b"", tag[2], self._mark)))
            elif key not in _OF_OCTETS:
                turned.append((name, value))
        return turned

    def _agents_own(self, value: bytes) -> Iterable[bytes]:
        for tag in _TAG.finditer(value):
            if tag[2].endswith(self._mark):
                yield b'%b"%b"' % (tag[1] or b"", tag[2].removesuffix(self._mark))
