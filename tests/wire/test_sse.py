"""Server-sent events by the WHATWG rules, incrementally, with every byte kept."""

from __future__ import annotations

from itertools import pairwise

import httpx
import pytest
from a2a.client.transports.http_helpers import parse_sse_stream
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_ledger.codec import Hole, Rest, part_hash
from a2a_ledger.wire import SseEvent, SseParser, split_stream

PIECES = [b"data: x", b"data:y", b"data", b"event: e", b": c", b"\xff", b"z", b"\xef\xbb\xbf"]
ENDS = [b"\n", b"\r", b"\r\n", b"\n\n"]
streams = st.lists(st.sampled_from([*PIECES, *ENDS, *ENDS])).map(b"".join)


def summary(events: list[SseEvent]) -> list[tuple[bytes, bool, bool]]:
    return [(event.data, event.has_data, event.complete) for event in events]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_all_line_ends_and_multi_line_data(end: bytes) -> None:
    stream = end.join([b"id: 7", b"event: message", b"data: {", b"data:  1}", b"", b"data: b", b"", b""])
    assert summary(split_stream(stream)) == [(b"{\n 1}", True, True), (b"b", True, True)]


def test_names_comments_and_keep_alives() -> None:
    events = split_stream(b": ping\n\nevent: error\ndata: x\nretry: 5\n\n")
    assert [(event.name, event.has_data, event.data) for event in events] == [("", False, b""), ("error", True, b"x")]


def test_one_space_after_the_colon_is_dropped_and_no_more() -> None:
    assert split_stream(b"data:  a\n\n")[0].data == b" a"
    assert split_stream(b"data:a\n\n")[0].data == b"a"
    assert split_stream(b"data\n\n")[0].data == b""


def test_byte_order_mark_at_the_start_alone_is_dropped() -> None:
    assert split_stream(b"\xef\xbb\xbfdata: a\n\n")[0].data == b"a"
    assert not split_stream(b"data: a\n\n\xef\xbb\xbfdata: b\n\n")[1].has_data


@pytest.mark.parametrize("stream", [b"data: last", b"data: last\n", b"data: last\r\n"])
def test_last_event_without_a_blank_line_is_not_lost(stream: bytes) -> None:
    (event,) = split_stream(stream)
    assert (event.data, event.complete, event.raw) == (b"last", False, stream)


def test_events_come_out_as_soon_as_their_blank_line_is_there() -> None:
    parser = SseParser()
    assert parser.feed(b"data: a\r\n") == []
    assert summary(parser.feed(b"\r")) == [(b"a", True, True)]
    assert parser.feed(b"\ndata: b") == []
    assert summary(parser.feed(b"\n\n")) == [(b"b", True, True)]
    assert parser.close() == []


def test_a_line_end_cut_by_the_end_of_a_chunk_is_one_line_end() -> None:
    parser = SseParser()
    events = [event for chunk in (b"data: a\r", b"\n\r", b"\n") for event in parser.feed(chunk)]
    rest = parser.close()
    assert summary(events) == [(b"a", True, True)]
    assert summary(rest) == [(b"", False, True)]
    assert b"".join(event.raw for event in events + rest) == b"data: a\r\n\r\n"


def test_an_empty_stream_has_no_events() -> None:
    assert split_stream(b"") == []


@settings(max_examples=100, deadline=None)
@given(streams, st.lists(st.integers(0, 60), max_size=6))
def test_where_chunks_are_cut_changes_no_data_and_loses_no_byte(stream: bytes, cuts: list[int]) -> None:
    places = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    parser = SseParser()
    events = [event for a, b in pairwise(places) for event in parser.feed(stream[a:b])]
    events += parser.close()
    assert b"".join(event.raw for event in events) == stream
    assert [event.data for event in events if event.has_data] == [e.data for e in split_stream(stream) if e.has_data]


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_kept(stream: bytes) -> None:
    assert b"".join(event.raw for event in split_stream(stream)) == stream


async def test_data_agrees_with_the_sdks_own_reader() -> None:
    stream = 'event: error\ndata: {"a":\ndata: "ü"}\n\n: c\n\ndata:x\r\n\r\ndata: y\nid: 3\n\n'
    response = httpx.Response(200, content=stream.encode())
    theirs = [found async for found in parse_sse_stream(response)]
    ours = [event for event in split_stream(stream.encode()) if event.has_data]
    assert [(event.name or "message", event.data.decode()) for event in ours] == theirs


SALT = bytes(32)


def limited(keep: int) -> SseParser:
    return SseParser(keep, lambda: Rest(SALT))


def tail(octets: bytes) -> Hole:
    """Return the hole of docs/format.md section 3 for these octets."""
    return Hole(len(octets), part_hash(SALT, octets))


@pytest.mark.parametrize("step", [1, 3, 1000])
@pytest.mark.parametrize(
    "long", [b"data: " + b"x" * 90 + b"\r\n\r\n", b"data: ab\n: c\r" * 7 + b"\n\n", b": " + b"y" * 40 + b"\n\n"]
)
def test_of_a_long_event_the_beginning_is_held_and_the_rest_is_committed_to(long: bytes, step: int) -> None:
    stream = b"data: before\n\n" + long + b"data: after\n\n"
    parser = limited(20)
    events = [event for at in range(0, len(stream), step) for event in parser.feed(stream[at : at + step])]
    assert parser.close() == []
    before, over, after = events
    assert (before.data, before.tail, after.data, after.tail) == (b"before", None, b"after", None)
    held = after.raw.removesuffix(b"data: after\n\n")  # a line feed that came apart from its CR
    assert (over.raw, over.data, over.complete) == (long[:20], b"", True)
    assert over.tail == tail(long[20 : len(long) - len(held)])


def test_an_event_of_just_the_limit_has_no_tail() -> None:
    (event,) = limited(9).feed(b"data: a\n\n")
    assert (event.raw, event.data, event.tail) == (b"data: a\n\n", b"a", None)
    (event,) = limited(8).feed(b"data: a\n\n")
    assert (event.raw, event.data, event.tail) == (b"data: a\n", b"", tail(b"\n"))


def test_a_stream_that_ends_in_a_long_event_is_not_complete() -> None:
    parser = limited(4)
    assert parser.feed(b"data: " + b"x" * 50) == []
    (event,) = parser.close()
    assert (event.raw, event.tail, event.complete) == (b"data", tail(b": " + b"x" * 50), False)
