"""Known answers: every hash of docs/format.md sections 3 to 5 once more, in a few lines and with openssl."""

from __future__ import annotations

import hashlib
import hmac
import json
import shutil
import struct
import subprocess
from datetime import UTC, datetime

import pytest

from a2a_ledger.codec import (
    Content,
    Hole,
    Kept,
    Withheld,
    blob_id,
    draft,
    findings_key,
    leaf,
    pack_container,
    part_hash,
    seal,
    stream_commitment,
    stream_tag,
    task_id,
    unpack_container,
)
from a2a_ledger.events import TaskBound

KEY = bytes(range(32))
LOG = "ledger.example/known/00c0ffee"
SECRET = b"Bearer abc"
EVENT = TaskBound(
    peer="00112233445566778899aabbccddeeff",
    task_id='tâsk "1"',
    context_id="c",
    answers={"c": "ab" * 32, "stream": "task:" + "0" * 40, "ver": 3},
)


def entropy(count: int) -> bytes:
    """Return 00 01 02 … instead of random octets."""
    return bytes(index % 256 for index in range(count))


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def openssl(*arguments: str, data: bytes) -> bytes:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed: the answers are checked with hashlib alone")
    ran = subprocess.run([program, *arguments, "-binary"], input=data, capture_output=True, check=True)
    return ran.stdout


def test_record_and_commitment() -> None:
    fact = draft(
        EVENT,
        stream="task:" + "0" * 40,
        at=datetime(2026, 8, 18, 12, 0, 0, 5, tzinfo=UTC),
        entropy=entropy,
        blobs={"body": b"hello", "header.00": Content((b'["authorization","', Withheld(SECRET), b'"]'))},
    )
    raw, c = seal(fact, log=LOG, ver=1, prev="cd" * 32)
    salts = entropy(160)
    salt, one, first, second, third = (salts[at : at + 32] for at in range(0, 160, 32))
    part = b"a2a-ledger/part/v1\0"
    blob = b"a2a-ledger/blob/v1\0"
    body = sha256(blob, struct.pack(">I", 1), struct.pack(">Q", 5), sha256(part, one, b"hello"))
    texts = ((first, b'["authorization","'), (second, SECRET), (third, b'"]'))
    header = sha256(
        blob,
        struct.pack(">I", 3),
        *(struct.pack(">Q", len(text)) + sha256(part, own, text) for own, text in texts),
    )
    expected = json.dumps(
        {
            "at": "2026-08-18T12:00:00.000005Z",
            "blobs": {
                "body": {"id": body.hex(), "kept": "all", "size": 5},
                "header.00": {"id": header.hex(), "kept": "all", "size": 30},
            },
            "data": {
                "answers": {"c": "ab" * 32, "stream": "task:" + "0" * 40, "ver": 3},
                "context_id": "c",
                "holes": {"header.00": 1},
                "peer": "00112233445566778899aabbccddeeff",
                "task_id": 'tâsk "1"',
            },
            "how": "live",
            "log": LOG,
            "prev": "cd" * 32,
            "stream": "task:" + "0" * 40,
            "type": "task.bound.v1",
            "v": 1,
            "ver": 1,
        },
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    ).encode()
    assert raw == expected
    assert c == sha256(b"a2a-ledger/record/v1\0", salt, expected)
    assert c == openssl("dgst", "-sha256", data=b"a2a-ledger/record/v1\0" + salt + expected)
    assert SECRET not in pack_container(fact.salt, raw, fact.blobs.values())
    assert second not in pack_container(fact.salt, raw, fact.blobs.values())


def test_a_hole_keeps_the_id_of_its_blob() -> None:
    whole = blob_id([Kept(b"s" * 32, b"left"), Kept(b"t" * 32, SECRET)])
    assert whole == blob_id([Kept(b"s" * 32, b"left"), Hole(len(SECRET), part_hash(b"t" * 32, SECRET))])
    assert whole != blob_id([Kept(b"s" * 32, b"left"), Hole(len(SECRET) + 1, part_hash(b"t" * 32, SECRET))])


def test_stream_keys_tags_and_ids() -> None:
    commitment = sha256(b"a2a-ledger/stream-key/v1\0", KEY)
    assert stream_commitment(KEY) == commitment.hex()
    assert task_id(KEY) == commitment.hex()[:40]
    message = b"a2a-ledger/stream/v1\0" + struct.pack(">Q", 7)
    assert stream_tag(KEY, 7) == hmac.new(KEY, message, "sha256").digest()
    assert stream_tag(KEY, 7) == openssl(
        "dgst", "-sha256", "-mac", "HMAC", "-macopt", f"hexkey:{KEY.hex()}", data=message
    )
    assert findings_key(KEY) == hmac.new(KEY, b"a2a-ledger/findings-key/v1\0", "sha256").digest()


def test_leaf_is_the_line_of_the_format() -> None:
    line = leaf(LOG, 12, b"\x01" * 32, b"\xfe" * 32)
    members = {"c": "01" * 32, "log": LOG, "n": 12, "t": "fe" * 32, "v": 1}
    assert line == json.dumps(members, sort_keys=True, separators=(",", ":")).encode()


def test_version_0_of_a_named_stream_states_its_commitment() -> None:
    fact = draft(EVENT, stream="ledger", at=datetime(2026, 8, 18, tzinfo=UTC), entropy=entropy)
    raw, c = seal(fact, log=LOG, ver=0, prev=None, stream_commitment=stream_commitment(KEY))
    assert json.loads(raw)["data"]["stream_commitment"] == sha256(b"a2a-ledger/stream-key/v1\0", KEY).hex()
    assert json.loads(raw)["prev"] is None
    assert raw == json.dumps(json.loads(raw), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert c == sha256(b"a2a-ledger/record/v1\0", fact.salt, raw)


def test_the_container_is_msgpack_of_the_format() -> None:
    # Worked by hand from the msgpack specification: array of 4, 1, bin8 32, bin8 2, map of 1, bin8 32 to an array
    # of one array of two: bin8 32 and bin8 1.
    fact = draft(EVENT, stream="ledger", at=datetime(2026, 8, 18, tzinfo=UTC), entropy=entropy, blobs={"b": b"x"})
    sealed = fact.blobs["b"]
    stored = pack_container(fact.salt, b"{}", [sealed])
    salts = entropy(64)
    assert stored == (
        b"\x94\x01\xc4\x20" + salts[:32] + b"\xc4\x02{}" + b"\x81\xc4\x20" + sealed.id
        + b"\x91\x92\xc4\x20" + salts[32:] + b"\xc4\x01x"
    )  # fmt: skip
    salt, raw, parts = unpack_container(stored)
    assert (salt, raw, dict(parts)) == (salts[:32], b"{}", {sealed.id: (Kept(salts[32:], b"x"),)})
