"""Content codings of bodies and streams: taken off through all members, or else nothing of them is read or kept."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger import ContractDivergenceError, ContractLedger
from a2a_ledger.capture.coding import CodingError, Unpacking, codings_of, unpacked
from a2a_ledger.capture.guard import guard
from tests.capture.stored import all_octets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from a2a_ledger.codec import Record

SECRET = "sk-live-0123456789-very-secret-token"
PLAIN = b'{"a": "x"}'
# What Node's brotliCompressSync (brotli 1.1.0) and the command zstd 1.5.4 make of PLAIN.
BROTLI = bytes.fromhex("8b04807b2261223a202278227d03")
ZSTD = bytes.fromhex("28b52ffd04585100007b2261223a202278227d287d8f0f")
SEND: dict[str, object] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "message/send",
    "params": {"message": {"kind": "message", "role": "user", "messageId": "m1", "parts": []}},
}


def gzipped(octets: bytes) -> bytes:
    """Return one member, the same at any time: it stands in the name of a test."""
    return gzip.compress(octets, mtime=0)


def raw_deflate(octets: bytes) -> bytes:
    packing = zlib.compressobj(wbits=-15)
    return packing.compress(octets) + packing.flush()


def stored_block(octets: bytes) -> bytes:
    """Return octets in one uncompressed meta-block of brotli, readable as they are (RFC 7932 section 9.2)."""
    return ((len(octets) - 1) << 4 | 1 << 20).to_bytes(3, "little") + octets + b"\x03"


@pytest.mark.parametrize(
    ("codings", "octets", "said"),
    [
        (("gzip",), gzipped(b"") + gzipped(PLAIN), PLAIN),
        (("x-gzip",), gzipped(PLAIN[:4]) + gzipped(PLAIN[4:]) + b"\0\0", PLAIN),
        (("deflate",), zlib.compress(PLAIN), PLAIN),
        (("deflate",), raw_deflate(PLAIN), PLAIN),
        (("deflate", "gzip"), gzipped(zlib.compress(PLAIN)), PLAIN),
        ((), PLAIN, PLAIN),
        (("gzip",), b"", b""),
        (("gzip",), gzipped(PLAIN) + b"x", None),
        (("gzip",), gzipped(PLAIN) + b"\0x", None),
        (("gzip",), gzipped(PLAIN)[:-1], None),
        (("deflate",), zlib.compress(PLAIN) + b"\0", None),
        (("deflate",), b"\x78", None),
        (("br",), BROTLI, None),
        (("zstd",), ZSTD, None),
        (("gzip",) * 5, gzipped(PLAIN), None),
    ],
)
def test_a_whole_body_and_the_same_octets_one_by_one_say_the_same(
    codings: tuple[str, ...], octets: bytes, said: bytes | None
) -> None:
    assert unpacked(codings, octets) == said
    try:
        unpacking = Unpacking(codings)
        found = b"".join(piece for n in range(len(octets)) for piece in unpacking.feed(octets[n : n + 1]))
    except CodingError:
        assert said is None
    else:
        assert (found if unpacking.is_whole else None) == said


def test_all_headers_that_name_codings_count() -> None:
    headers = [("content-encoding", "Identity, GZIP"), ("a", "b"), ("Content-Encoding", "br")]
    assert codings_of(headers) == ("gzip", "br")


class Peer(httpx.AsyncBaseTransport):
    """Answers everything with the same octets, in the pieces given."""

    def __init__(self, kind: str, coding: str, pieces: list[bytes]) -> None:
        self.headers = {"content-type": kind, "content-encoding": coding}
        self.pieces = pieces

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        pieces = self.pieces

        class _Body(httpx.AsyncByteStream):
            async def __aiter__(self) -> AsyncIterator[bytes]:
                for piece in pieces:
                    yield piece

        return httpx.Response(200, headers=self.headers, stream=_Body())


def legs(ledger: ContractLedger, *of: str) -> list[Record]:
    records = ledger.store.read(0, 1000)
    return [record for record in records if record.data.get("leg") in of]


async def ask(ledger: ContractLedger, peer: Peer, url: str = "https://agent.example/rpc") -> httpx.Response:
    guarding = guard(ledger)
    async with guarding.httpx_client(transport=peer) as client:
        headers = {"authorization": f"Bearer {SECRET}"}
        if url.endswith(".json"):
            return await client.get(url, headers=headers)
        return await client.post(url, json=SEND, headers=headers)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "card"])
@pytest.mark.parametrize("coding", ["br", "zstd", "x-unheard-of"])
async def test_what_cannot_be_read_is_recorded_as_holes_and_passes(tmp_path: Path, kind: str, coding: str) -> None:
    octets = stored_block(b'{"said": "' + SECRET.encode() + b'"}')
    url = "https://agent.example/" + (".well-known/agent-card.json" if kind == "card" else "rpc")
    with ContractLedger.open(tmp_path / "ledger", mode="observe", follow=False) as ledger:
        answer = await ask(ledger, Peer("application/json" if kind == "card" else kind, coding, [octets]), url)
        assert (answer.content, answer.headers["content-encoding"]) == (octets, coding)
        if kind == "card":
            (recorded,) = [one for one in ledger.store.read(0, 1000) if one.type == "card.fetched.v1"]
        else:
            (recorded,) = legs(ledger, "response", "stream-event", "stream-end")
        assert recorded.content("body") == b"*" * len(octets)
    assert SECRET.encode() not in all_octets(tmp_path / "ledger")


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_what_cannot_be_read_is_refused_where_it_is_enforced(tmp_path: Path, kind: str) -> None:
    octets = stored_block(PLAIN)
    with ContractLedger.open(tmp_path / "ledger", mode="enforce", follow=False) as ledger:
        with pytest.raises(ContractDivergenceError, match="content coding that nobody asked for"):
            await ask(ledger, Peer(kind, "br", [octets]))
        (recorded,) = legs(ledger, "response")
        assert recorded.content("body") == b"*" * len(octets)
        assert recorded.data["flags"] == ["truncated"]


async def test_a_stream_of_members_is_read_to_its_end(tmp_path: Path) -> None:
    events = [b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n"]
    with ContractLedger.open(tmp_path / "ledger", mode="observe", follow=False) as ledger:
        answer = await ask(ledger, Peer("text/event-stream", "gzip", [gzipped(event) for event in events]))
        assert answer.content == b"".join(events)
        assert [one.content("body") for one in legs(ledger, "stream-event")] == events
        (end,) = legs(ledger, "stream-end")
        assert end.data.get("error_kind") is None


@pytest.mark.parametrize("more", [b"no member at all", gzipped(b"data: 2\n\n")[:-3]], ids=["other", "cut"])
async def test_a_stream_that_cannot_be_read_on_never_ends_well(tmp_path: Path, more: bytes) -> None:
    with ContractLedger.open(tmp_path / "ledger", mode="observe", follow=False) as ledger:
        peer = Peer("text/event-stream", "gzip", [gzipped(b"data: 1\n\n"), more])
        if more.startswith(b"no"):
            with pytest.raises(httpx.DecodingError):
                await ask(ledger, peer)
        else:
            await ask(ledger, peer)
        (end,) = legs(ledger, "stream-end")
        assert end.data["error_kind"] == "other"
        assert b"content coding" in (end.content("error") or b"")


async def test_a_coded_request_is_read_or_withheld(tmp_path: Path) -> None:
    said = json.dumps({**SEND, "secret": SECRET}).encode()
    headers = {"authorization": f"Bearer {SECRET}", "content-type": "application/json"}
    with ContractLedger.open(tmp_path / "ledger", mode="observe", follow=False) as ledger:
        async with guard(ledger).httpx_client(transport=Peer("application/json", "", [b"{}"])) as client:
            for coding, body in (("gzip", gzipped(said)), ("br", stored_block(said))):
                sent = {**headers, "content-encoding": coding}
                await client.post("https://agent.example/rpc", content=body, headers=sent)
        read, withheld = legs(ledger, "request")
        assert read.content("body") == said.replace(SECRET.encode(), b"*" * len(SECRET))
        assert withheld.content("body") == b"*" * len(stored_block(said))
    assert SECRET.encode() not in all_octets(tmp_path / "ledger")
