"""A small coded stream in mode "enforce", cut at every octet: what is whole passes, and reads as whole."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import httpx
import pytest

from a2a_ledger import ContractDivergenceError
from a2a_ledger.capture.streams import RecordedStream
from tests.capture.peer import Chunks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence

    from a2a_ledger.capture.exchange import Exchange
    from a2a_ledger.wire import SseEvent

ENDS = [b"\r\n", b"\r", b"\n"]


class Recorded:
    """What a stream would be recorded as."""

    def __init__(self) -> None:
        settings = SimpleNamespace(keep_body=1000)
        self.desk = SimpleNamespace(enforces=True, ledger=SimpleNamespace(settings=settings, entropy=bytes))
        self.arrivals = object()
        self.events: list[SseEvent] = []
        self.ends: list[tuple[str, str]] = []

    def stream_opened(self, *_: object) -> None:
        """Take no note."""

    async def stream_events(self, events: Sequence[SseEvent], *, judge: bool = True) -> None:
        assert judge == all(event.complete for event in events)
        self.events += events

    async def stream_ended(self, _: int, how: str, text: str = "") -> None:
        self.ends.append((how, text))


class Counting(Chunks):
    """Tells how many pieces it has sent."""

    sent = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in super().__aiter__():
            self.sent += 1
            yield piece


def no_drain(work: Coroutine[object, object, None]) -> None:
    work.close()
    pytest.fail("the stream was refused")


async def passed(pieces: Sequence[bytes], *, as_it_came: bool, with_length: bool) -> tuple[bytes, Recorded]:
    """Return what passes of a stream in gzip that comes in these pieces, and its record."""
    headers = [("content-type", "text/event-stream"), ("content-encoding", "gzip")]
    if with_length:
        headers.append(("content-length", str(sum(map(len, pieces)))))
    recorded, got = Recorded(), list[bytes]()
    response = httpx.Response(200, headers=headers, stream=Chunks(*pieces))
    stream = RecordedStream(response, cast("Exchange", recorded), no_drain, as_it_came=as_it_came)
    with contextlib.suppress(ContractDivergenceError):
        async for octets in stream:
            got.append(octets)
    return b"".join(got), recorded


def bodies(text: bytes) -> Iterator[bytes]:
    """Yield a text in gzip: in one, and flushed, or begun anew as another member, at each octet of it."""
    yield gzip.compress(text, mtime=0)
    for at in range(1, len(text)):
        yield gzip.compress(text[:at], mtime=0) + gzip.compress(text[at:], mtime=0)
        coding = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
        first = coding.compress(text[:at]) + coding.flush(zlib.Z_SYNC_FLUSH)
        yield first + coding.compress(text[at:]) + coding.flush()


@pytest.mark.parametrize("as_it_came", [True, False])
@pytest.mark.parametrize("with_length", [True, False])
@pytest.mark.parametrize("end", ENDS)
async def test_wherever_it_is_cut_all_of_it_passes(end: bytes, with_length: bool, as_it_came: bool) -> None:
    text = b"data: 1" + end + end + b"data: 2" + end + end
    for body in bodies(text):
        for cut in range(len(body) + 1):
            pieces = [body[:cut], body[cut:]]
            got, recorded = await passed(pieces, as_it_came=as_it_came, with_length=with_length)
            assert got == (body if as_it_came else text), pieces
            assert recorded.ends == [("complete", "")]
            assert b"".join(event.raw for event in recorded.events) == text
            assert all(event.complete for event in recorded.events)


@pytest.mark.parametrize("end", ENDS)
async def test_an_event_without_its_blank_line_never_passes(end: bytes) -> None:
    whole, rest = b"data: 1" + end + end, b"data: 2" + end
    for body in bodies(whole + rest):
        for cut in range(len(body) + 1):
            got, recorded = await passed([body[:cut], body[cut:]], as_it_came=False, with_length=False)
            assert got == whole
            assert [event.complete for event in recorded.events] == [True, False]


@pytest.mark.parametrize("coded", [True, False])
async def test_the_second_half_of_a_line_end_does_not_wait_for_the_next_event(coded: bool) -> None:
    """Readers that take CRLF for the end of a line wait for it behind a CR: they would see each event one too late."""
    said = [b"data: 1\r\n\r", b"\n", b"data: 2\r\n", b"\r", b"\ndata: 3", b"\r\n\r\n"]
    coding = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    pieces = [coding.compress(one) + coding.flush(zlib.Z_SYNC_FLUSH) for one in said] if coded else said
    headers = [("content-type", "text/event-stream"), *([("content-encoding", "gzip")] if coded else [])]
    recorded, waiting = Recorded(), Counting(*pieces)
    response = httpx.Response(200, headers=headers, stream=waiting)
    stream = RecordedStream(response, cast("Exchange", recorded), no_drain, as_it_came=True)
    got = [(waiting.sent, octets) async for octets in stream]
    if coded:  # a piece in a coding passes whole
        assert got == [(1, pieces[0]), (2, pieces[1]), (4, pieces[2] + pieces[3]), (6, pieces[4] + pieces[5])]
    else:
        assert got == [(1, said[0]), (2, said[1]), (4, said[2] + said[3]), (5, b"\n"), (6, b"data: 3\r\n\r\n")]
