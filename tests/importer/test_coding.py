"""Bodies with a content coding: unpacked where the standard library can, and else withheld to the last octet."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.capture.formats.coding import unpacked
from a2a_ledger.capture.import_file import import_file
from a2a_ledger.ledger import ContractLedger
from tests.capture.stored import all_octets
from tests.importer.lines import Line, card, fetch, send, task, write
from tests.importer.reading import facts, imported, kinds

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "S3cret-of-the-webhook"
CONFIG: Line = {"pushNotificationConfig": {"url": "https://client.example/hook", "token": SECRET}}
ANSWER = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"task": task("WORKING", metadata=CONFIG)}}).encode()

# What Node's brotliCompressSync (brotli 1.1.0) and the command zstd 1.5.4 make of b'{"a": "x"}'.
BROTLI = bytes.fromhex("8b04807b2261223a202278227d03")
ZSTD = bytes.fromhex("28b52ffd04585100007b2261223a202278227d287d8f0f")


def gzipped(octets: bytes) -> bytes:
    """Return one member, the same at any time: it stands in the name of a test."""
    return gzip.compress(octets, mtime=0)


def raw_deflate(octets: bytes) -> bytes:
    packing = zlib.compressobj(wbits=-15)
    return packing.compress(octets) + packing.flush()


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("gzip", gzipped(ANSWER)),
        ("X-GZip", gzipped(ANSWER[:60]) + gzipped(ANSWER[60:])),
        ("gzip", gzipped(ANSWER) + b"\0" * 8),
        ("deflate", zlib.compress(ANSWER)),
        ("deflate", raw_deflate(ANSWER)),
        ("deflate, gzip", gzipped(zlib.compress(ANSWER))),
        ("identity", ANSWER),
        ("gzip", ANSWER),
        ("br", ANSWER),
    ],
)
def test_what_can_be_unpacked_is_read_and_redacted(tmp_path: Path, coding: str, packed: bytes) -> None:
    said = send("m1")
    headers = [["Content-Encoding", coding]]
    said["response"] = {"status": 200, "headers": headers, "body_b64": base64.b64encode(packed).decode()}
    with ContractLedger.open(tmp_path / "ledger", follow=False) as ledger:
        report = import_file(ledger, write(tmp_path, fetch(card()), said))
        assert report.faults == []
        assert facts(ledger, "leg", "state_read", "flags")[-1] == ("response", "working", None)
        assert imported(ledger)[-2].content("body") == ANSWER.replace(SECRET.encode(), b"*" * len(SECRET))
    assert SECRET.encode() not in all_octets(tmp_path / "ledger")


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("br", BROTLI),
        ("zstd", ZSTD),
        ("gzip", gzipped(ANSWER)[:-4]),
        ("gzip", b"\x1f\x8b" + b"\xff" * 40),
        ("deflate", raw_deflate(ANSWER) + b"\x01\xff"),
        ("gzip, br", BROTLI),
        ("gzip, " * 5 + "gzip", gzipped(ANSWER)),
        ("x-unheard-of", b"\x00\x01\x02\xfe"),
    ],
)
@pytest.mark.parametrize("side", ["request", "response", "stream", "card"])
def test_what_cannot_is_a_hole_and_said(tmp_path: Path, coding: str, packed: bytes, side: str) -> None:
    kind = [["Content-Type", "text/event-stream"]] if side == "stream" else []
    headers = [["Content-Encoding", coding], *kind]
    coded: Line = {"headers": headers, "body_b64": base64.b64encode(packed).decode()}
    said = send("m1", {"task": task("WORKING")})
    if side == "request":
        said["request"] = {"method": "POST", "url": said["request"]["url"], **coded}
    else:
        said["response"] = {"status": 200, **coded}
    found = fetch(card())
    if side == "card":
        found["response"] = {"status": 200, **coded}
    lines = [found] if side == "card" else [found, said]
    with ContractLedger.open(tmp_path / "ledger", follow=False) as ledger:
        report = import_file(ledger, write(tmp_path, *lines))
        assert [fault.line for fault in report.faults] == [len(lines)]
        assert "content coding" in report.faults[0].problem
        leg = {"request": "request", "card": "card.fetched.v1"}.get(side, "response")
        [record] = [one for one, kind in zip(imported(ledger), kinds(ledger), strict=True) if kind == leg]
        assert record.content("body") == b"*" * len(packed)
        assert "truncated" in str(record.data["flags"])
    assert packed not in all_octets(tmp_path / "ledger")


def test_a_small_body_that_would_grow_beyond_measure_is_not_unpacked() -> None:
    packing = zlib.compressobj(wbits=31)
    octets = b"".join(packing.compress(bytes(1024 * 1024)) for _ in range(65)) + packing.flush()
    assert len(octets) < 128 * 1024
    assert unpacked(("gzip",), octets) is None
