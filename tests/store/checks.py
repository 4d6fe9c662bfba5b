"""A check of a whole log by the rules of the format, written apart from the code that makes one."""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
from typing import TYPE_CHECKING, Any

import msgpack
import psycopg
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.store.facts import Where

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.store import Server


def check_log(place: Path | Where) -> list[str]:
    """Recompute every event, leaf tag, chain, tag row, blob and tile; return c of each event in log order."""
    directory, server = (place.directory, place.server) if isinstance(place, Where) else (place, None)
    assert directory is not None
    db = sqlite3.connect(directory / "ledger.db") if server is None else _OnServer(server)
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
        salt, raw, blobs = _opened(keys, stream, ver, state)
        record = json.loads(raw)
        before = tips.get(stream)
        assert (record["stream"], record["ver"], record["type"]) == (stream, ver, topic)
        assert (ver, record["prev"]) == ((0, None) if before is None else (before[0] + 1, before[1]))
        assert c == hashlib.sha256(b"a2a-ledger/record/v1\0" + salt + raw).digest()
        key = _key(keys, stream)
        assert t == hmac.new(key, b"a2a-ledger/stream/v1\0" + ver.to_bytes(8, "big"), "sha256").digest()
        for blob in record["blobs"].values():
            if (name := bytes.fromhex(blob["id"])) not in blobs:
                apart.add(name)
                cell = db.execute("SELECT parts FROM ledger_blobs WHERE id = ?", (name,)).fetchall()[0][0]
                if stream != "ledger":
                    assert _parts_apart(keys, stream, ver, (name, cell))
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


class _OnServer:
    """A server asked with the statements of this module."""

    def __init__(self, server: Server) -> None:
        self._connection = psycopg.connect(server.url, options=f"-c search_path={server.schema}", autocommit=True)

    def execute(self, statement: str, values: tuple[bytes | int, ...] = ()) -> psycopg.Cursor[Any]:
        return self._connection.execute(statement.replace("?", "%s").encode(), values)

    def close(self) -> None:
        self._connection.close()


def _key(keys: sqlite3.Connection, stream: str) -> bytes:
    named = keys.execute("SELECT id FROM streams WHERE stream = ?", (stream,)).fetchone()
    wanted = named[0] if named else stream.removeprefix("task:")
    (key,) = keys.execute("SELECT key FROM stream_keys WHERE substr(id, 1, ?) = ?", (len(wanted), wanted)).fetchone()
    assert hashlib.sha256(b"a2a-ledger/stream-key/v1\0" + key).hexdigest().startswith(wanted)
    assert isinstance(key, bytes)
    return key


def _opened(keys: sqlite3.Connection, stream: str, ver: int, state: bytes) -> tuple[bytes, bytes, dict[bytes, object]]:
    """Open a container by docs/format.md section 13.1: those of `ledger` are clear, all others sealed."""
    version, *fields = msgpack.unpackb(state, strict_map_key=False)
    assert version == (1 if stream == "ledger" else 2)
    if version == 1:
        salt, raw, blobs = fields
        return salt, raw, blobs
    key_id, first, record, second, parts = fields
    opened = _box(keys, stream, ver, (key_id, b"record", first, record))
    return opened[:32], opened[32:], msgpack.unpackb(_box(keys, stream, ver, (key_id, b"parts", second, parts)))


def _parts_apart(keys: sqlite3.Connection, stream: str, ver: int, row: tuple[bytes, bytes]) -> object:
    version, key_id, nonce, box = msgpack.unpackb(row[1])
    assert version == 2
    return msgpack.unpackb(_box(keys, stream, ver, (key_id, b"blob\0" + row[0], nonce, box)))


def _box(keys: sqlite3.Connection, stream: str, ver: int, box: tuple[bytes, bytes, bytes, bytes]) -> bytes:
    key_id, name, nonce, sealed = box
    about = stream.removeprefix("findings:")
    owner = stream if about == stream else about if about.startswith("peer:") else f"task:{about}"
    record, blob = keys.execute(
        "SELECT record, blob FROM box_keys WHERE stream = ? AND id = ?", (owner, key_id)
    ).fetchone()
    assert key_id == hashlib.sha256(b"a2a-ledger/box-key/v1\0" + record + blob).digest()[:8]
    (origin,) = keys.execute("SELECT value FROM facts WHERE name = 'origin'").fetchone()
    bound = b"a2a-ledger/box/v2\0" + origin.encode() + b"\0" + stream.encode() + b"\0" + ver.to_bytes(8, "big") + name
    return AESGCM(record if name == b"record" else blob).decrypt(nonce, sealed, bound)
