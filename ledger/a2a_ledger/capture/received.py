"""The body of an answer as it comes in, so that what came is there when the rest does not."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import httpx

from a2a_ledger.capture.coding import CUT_IN_CODING, CodingError, Unpacking, codings_of
from a2a_ledger.capture.off_loop import EXPANDS, worked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class TooLongError(httpx.TransportError):
    """An answer is longer than whoever asked reads of one."""

    def __init__(self, most: int) -> None:
        super().__init__(f"expected a body of {most} octets at most, found more: the rest was not read")


async def octets_of(response: httpx.Response, most: int | None = None) -> AsyncIterator[bytes]:
    """Yield the body of an answer as it came, before content decoding; one that was made of octets has them for ever.

    Args:
        response: the answer.
        most: so many octets are read of it; None: all of them.

    Raises:
        httpx.HTTPError: it does not come whole, or is longer than that.
    """
    size = 0
    async for octets in cast("httpx.AsyncByteStream", response.stream):
        size += len(octets)
        if most is not None and size > most:
            raise TooLongError(most)
        yield octets


class ReceivedBody:
    """Reads one answer's body; may be asked at any time for what has come of it."""

    def __init__(self, response: httpx.Response) -> None:
        """Take over the body of an answer that nobody has read.

        Raises:
            CodingError: its content coding is none that can be taken off here.
        """
        self._response = response
        codings = codings_of(response.headers.multi_items())
        self._unpacking = Unpacking(codings)
        self._is_coded = bool(codings)
        self._decoded = bytearray()
        self._coded = bytearray()

    async def read(self, most: int | None = None) -> bytes:
        """Return the whole body, after content decoding.

        Args:
            most: so many octets are read of it, before and after decoding; None: all of them.

        Raises:
            httpx.HTTPError: it did not come whole, is longer than that, or cannot be decoded.
        """
        async for octets in octets_of(self._response, most):
            if not self._is_coded:
                self._decoded += octets
                continue
            self._coded += octets
            try:
                await worked(len(octets) * EXPANDS, partial(self._unpack, octets, most))
            except CodingError as error:
                raise httpx.DecodingError(str(error)) from error
        if not self._unpacking.is_whole:
            raise httpx.DecodingError(CUT_IN_CODING)
        return bytes(self._decoded)

    def _unpack(self, octets: bytes, most: int | None) -> None:
        for piece in self._unpacking.feed(octets):
            self._decoded += piece
            if most is not None and len(self._decoded) > most:
                raise TooLongError(most)

    @property
    def undecoded(self) -> bool:
        """Say whether octets came and none of them could be decoded: nobody knows what they say."""
        return bool(self._coded) and not self._decoded

    @property
    def octets(self) -> bytes:
        """Return what came: after content decoding, or as it is where nothing could be decoded."""
        return bytes(self._coded if self.undecoded else self._decoded)
