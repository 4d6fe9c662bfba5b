"""What the agent answers: recorded before it leaves, and passed on octet for octet; a stream passes live.

An answer that is no stream is recorded whole before its first octet leaves, as the guard records one before the
caller sees it; a body over the limit waits in a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.capture.coding import CUT_IN_CODING, CodingError, Unpacking, can_unpack, codings_of
from a2a_ledger.capture.failures import Failure, describe_failure
from a2a_ledger.capture.method_card import CARD_METHOD, card_in
from a2a_ledger.capture.off_loop import read_plain
from a2a_ledger.capture.recorder import is_stream
from a2a_ledger.capture.server.spool import Spool
from a2a_ledger.capture.streams import CALLER_LEFT, parser_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.capture.exchange import Exchange
    from a2a_ledger.capture.server.incoming import Incoming, Message, Send
    from a2a_ledger.capture.server.served_cards import ServedCards
    from a2a_ledger.wire import SseParser

_START, _BODY = "http.response.start", "http.response.body"
_SUCCESS = range(200, 300)


class Answering:
    """One answer on its way out."""

    def __init__(self, exchange: Exchange, request: Incoming, cards: ServedCards, send: Send) -> None:
        """Take over what the application sends.

        Args:
            exchange: the request, recorded.
            request: the same, as it came.
            cards: what we serve.
            send: of the server.
        """
        self._exchange = exchange
        self._request = request
        self._cards = cards
        self._send = send
        ledger = exchange.desk.ledger
        self._body = Spool(ledger.settings.keep_body, ledger.entropy)
        self._start: Message = {}
        self._headers: list[tuple[str, str]] = []
        self._parser: SseParser | None = None
        self._unpacking = Unpacking(())
        self._passes_unread = False
        self._unreadable = ""
        self._ended = False
        self.begun = False
        """Something of the answer has left."""

    @property
    def _status(self) -> int:
        return int(self._start["status"])

    async def send(self, message: Message) -> None:
        """Take the application's next message.

        Raises:
            LedgerUnavailableError: it could not be recorded, and so it does not leave.
        """
        if message["type"] == _START:
            await self._begin(message)
        elif message["type"] != _BODY:
            await self._send(message)
        elif self._parser is not None:
            await self._stream(self._parser, message)
        elif self._passes_unread:
            await self._unread(message)
        else:
            self._body.add(message.get("body", b""))
            if not message.get("more_body", False):
                await self._whole()

    async def _begin(self, message: Message) -> None:
        self._start = message
        self._headers = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in message.get("headers", ())]
        if not is_stream(self._status, self._headers):
            return
        codings = codings_of(self._headers)
        if can_unpack(codings):
            self._parser = parser_for(self._exchange.desk.ledger)
            self._unpacking = Unpacking(codings)
            self._exchange.stream_opened(self._status, self._headers)
        else:
            self._passes_unread = True
        self.begun = True
        await self._send(message)

    # ---- an answer that is no stream

    async def _whole(self) -> None:
        """Record the answer, and let it leave."""
        self._ended = True
        await self._record()
        if await self._request.has_left():
            gone = Failure("closed", None, "the client had gone before the answer left")
            await self._exchange.failed(gone, status=self._status)
        self.begun = True
        await self._send(self._start)
        if self._body.tail is None:
            await self._send({"type": _BODY, "body": self._body.head, "more_body": False})
        else:
            for chunk in self._body.chunks():
                await self._send({"type": _BODY, "body": chunk, "more_body": True})
            await self._send({"type": _BODY, "body": b"", "more_body": False})
        self._body.close()

    async def _record(self) -> None:
        body = await read_plain(self._headers, self._body.head) if self._body.tail is None else None
        request, exchange = self._request, self._exchange
        if body is None:
            await exchange.answered_in_part(self._status, self._headers, self._body.head, self._body.tail)
            return
        if self._status in _SUCCESS and self._cards.is_asked_for(request.method, request.url):
            await self._cards.served(request.url, self._status, body, headers=request.headers)
        elif self._status in _SUCCESS and exchange.leg.method == CARD_METHOD and exchange.leg.binding == "JSONRPC":
            place = f"{request.url.rstrip('/')}/extendedAgentCard"
            await self._cards.served(place, self._status, card_in(body), headers=request.headers)
        await exchange.answered(self._status, self._headers, body)

    # ---- a stream

    async def _unread(self, message: Message) -> None:
        """Pass a piece of a stream in a coding that nobody here can read; what all of it was is recorded at its end."""
        self._body.add(message.get("body", b""))
        if not message.get("more_body", False):
            self._ended = True
            await self._record()
            self._body.close()
        await self._send(message)

    async def _stream(self, parser: SseParser, message: Message) -> None:
        more = message.get("more_body", False)
        for text in self._text(message.get("body", b"")):
            if events := parser.feed(text):
                await self._exchange.stream_events(events)
        if not more:
            if not self._unreadable and not self._unpacking.is_whole:
                self._unreadable = CUT_IN_CODING
            await self._end("other" if self._unreadable else "complete", self._unreadable)
        await self._send(message)

    def _text(self, octets: bytes) -> Iterator[bytes]:
        """Yield what a piece of a stream says: it leaves as it is, and is read as the client will read it."""
        if self._unreadable:
            return
        try:
            yield from self._unpacking.feed(octets)
        except CodingError as error:  # nobody can read on from here: what comes is passed, and that is recorded
            self._unreadable = str(error)

    async def _end(self, how: str, text: str = "") -> None:
        """Record what was left of a stream, and how it ended, once."""
        if self._ended or self._parser is None:
            return
        self._ended = True
        try:
            if rest := self._parser.close():
                await self._exchange.stream_events(rest)
        finally:
            await self._exchange.stream_ended(self._status, how, text)

    # ---- the end

    async def finished(self, error: BaseException | None) -> None:
        """Record how the answer ended, if it did not end well.

        Args:
            error: what the application raised; None: it returned.
        """
        if self._ended:
            self._body.close()
            return
        left = self._request.client_left
        failure = describe_failure(error) if error is not None else None
        if self._parser is not None:
            if left or failure is None:
                await self._end(CALLER_LEFT if left else "closed", failure.text if failure else "")
            else:
                await self._end(failure.kind, failure.text)
            return
        self._ended = True
        if failure is None or left:
            why = "the client had gone" if left else "the application returned"
            failure = Failure("closed", None, f"{why} before there was a whole answer")
        body = self._body.head
        self._body.close()
        if self._passes_unread:
            await self._exchange.cut_short(self._status, self._headers, body, failure, undecoded=True)
        else:
            await self._exchange.failed(failure)
