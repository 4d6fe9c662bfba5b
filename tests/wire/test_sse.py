"""Server-sent events by the WHATWG rules, incrementally, with every byte kept."""

from __future__ import annotations

from itertools import pairwise

import httpx
import pytest
from a2a.client.transports.http_helpers import parse_sse_stream
from hypothesis import given, settings
from hypothesis import strategies as st

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
