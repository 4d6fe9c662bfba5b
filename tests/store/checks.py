"""A check of a whole log by the rules of the format, written apart from the code that makes one."""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
from typing import TYPE_CHECKING

import msgpack

if TYPE_CHECKING:
    from pathlib import Path


def check_log(directory: Path) -> list[str]:
    """Recompute every event, leaf tag, chain, tag row, blob and tile; return c of each event in log order."""
    db = sqlite3.connect(directory / "ledger.db")
    keys = sqlite3.connect(directory / "keys.db")
    tips: dict[str, tuple[int, str]] = {}
    commitments: list[str] = []
    leaves: list[bytes] = []
    apart: set[bytes] = set()
    tags = 0
    rows = db.execute(
        "SELECT rowid, originator_id, originator_version, topic, c, t, state FROM ledger_events ORDER BY 1"
    )
    for at, (rowid, stream, ver, topic, c, t, state) in enumerate(rows, 1):
        assert rowid == at
        one, salt, raw, blobs = msgpack.unpackb(state, strict_map_key=False)
        record = json.loads(raw)
        before = tips.get(stream)
        assert (one, record["stream"], record["ver"], record["type"]) == (1, stream, ver, topic)
        assert (ver, record["prev"]) == ((0, None) if before is None else (before[0] + 1, before[1]))
        assert c == hashlib.sha256(b"a2a-ledger/record/v1\0" + salt + raw).digest()
        key = _key(keys, stream)
        assert t == hmac.new(key, b"a2a-ledger/stream/v1\0" + ver.to_bytes(8, "big"), "sha256").digest()
        for blob in record["blobs"].values():
            if (name := bytes.fromhex(blob["id"])) not in blobs:
                apart.add(name)
        line = {"c": c.hex(), "log": record["log"], "n": at - 1, "t": t.hex(), "v": 1}
        leaves.append(hashlib.sha256(b"\0" + json.dumps(line, sort_keys=True, separators=(",", ":")).encode()).digest())
        found = db.execute("SELECT tag FROM ledger_tags WHERE n = ?", (at - 1,)).fetchall()
        assert found == [(f"context:{record['data']['peer']}:c-1",)]
        tags += 1
        tips[stream] = (ver, c.hex())
        commitments.append(c.hex())
    assert db.execute("SELECT count(*) FROM ledger_tags").fetchone() == (tags,)
    assert {row[0] for row in db.execute("SELECT id FROM ledger_blobs")} == apart
    tiles = db.execute("SELECT idx, hashes FROM ledger_tiles WHERE level = 0 ORDER BY idx").fetchall()
    assert tiles == [(i, b"".join(leaves[256 * i : 256 * i + 256])) for i in range(len(leaves) // 256)]
    db.close()
    keys.close()
    return commitments


def _key(keys: sqlite3.Connection, stream: str) -> bytes:
    named = keys.execute("SELECT id FROM streams WHERE stream = ?", (stream,)).fetchone()
    wanted = named[0] if named else stream.removeprefix("task:")
    (key,) = keys.execute("SELECT key FROM stream_keys WHERE substr(id, 1, ?) = ?", (len(wanted), wanted)).fetchone()
    assert hashlib.sha256(b"a2a-ledger/stream-key/v1\0" + key).hexdigest().startswith(wanted)
    assert isinstance(key, bytes)
    return key
