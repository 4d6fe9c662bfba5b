"""What taking content codings off may cost: time and octets that grow with what came, and no more."""

from __future__ import annotations

import gzip
import zlib

import pytest

from a2a_ledger.capture.coding import CodingError, Unpacking, unpacked

_REAL = zlib.decompressobj
EMPTY = gzip.compress(b"", mtime=0)


def packed_again(octets: bytes, times: int) -> bytes:
    for _ in range(times):
        octets = gzip.compress(octets, mtime=0)
    return octets


def test_a_thousand_empty_members_are_read_and_a_body_of_nothing_else_is_not() -> None:
    assert unpacked(("gzip",), EMPTY * 1000 + gzip.compress(b"said")) == b"said"
    assert unpacked(("gzip",), EMPTY * 3000) is None  # 1,024 and one for each 32 of 60,000 octets are 2,899


def test_a_small_body_of_many_members_under_several_codings_is_not_read() -> None:
    body = packed_again(EMPTY * 100_000, 2)
    assert len(body) < 1000
    with pytest.raises(CodingError, match=r"expected at most 10\d\d members of gzip in \d{3} octets"):
        list(Unpacking(("gzip",) * 3).feed(body))


def test_what_one_coding_gives_the_next_is_bounded() -> None:
    inner = gzip.compress(bytes(6 * 1024 * 1024), compresslevel=0)
    with pytest.raises(CodingError, match="octets between its content codings"):
        list(Unpacking(("gzip", "gzip")).feed(gzip.compress(inner)))


def test_a_long_stream_that_packs_each_event_is_read_to_its_end() -> None:
    events = [b'data: {"jsonrpc": "2.0", "id": 1, "result": %d}\n\n' % n for n in range(5000)]
    for times in (1, 2):
        unpacking = Unpacking(("gzip",) * times)
        found = [b"".join(unpacking.feed(packed_again(event, times))) for event in events]
        assert found == events
        assert unpacking.is_whole


class _Counting:
    """Inflates, and counts what it is given."""

    given = 0

    def __init__(self, wbits: int) -> None:
        self._real = _REAL(wbits=wbits)

    @property
    def eof(self) -> bool:
        return self._real.eof

    @property
    def unused_data(self) -> bytes:
        return self._real.unused_data

    @property
    def unconsumed_tail(self) -> bytes:
        return self._real.unconsumed_tail

    def decompress(self, data: bytes, most: int) -> bytes:
        _Counting.given += len(data)
        return self._real.decompress(data, most)


def test_the_members_of_a_body_are_not_copied_over_and_over(monkeypatch: pytest.MonkeyPatch) -> None:
    body = gzip.compress(b"x" * 20, compresslevel=0) * 20_000  # each copied behind each before it: 20,000 times a half
    monkeypatch.setattr(_Counting, "given", 0)
    monkeypatch.setattr(zlib, "decompressobj", _Counting)
    assert unpacked(("gzip",), body) == b"x" * 400_000
    assert len(body) <= _Counting.given < 400 * len(body)
