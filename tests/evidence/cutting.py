"""Cuts what is stored of a ledger the way somebody with the database can: parts become holes, and the blob ids stay."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from a2a_ledger.codec import (
    Hole,
    Place,
    SealedBlob,
    pack_container,
    pack_parts,
    part_hash,
    read_record,
    unpack_container,
    unpack_parts,
)
from a2a_ledger.store import KeyStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from a2a_ledger.codec import Part, Record


def cut_blobs(place: Path, choose: Callable[[Record, str], bool]) -> set[tuple[int, str]]:
    """Make holes of every part of the blobs that `choose` takes by record and role; return which lost octets."""
    lost: set[tuple[int, str]] = set()
    with (
        closing(KeyStore(place / "keys.db", read_only=True)) as keys,
        closing(sqlite3.connect(place / "ledger.db")) as connection,
    ):
        rows = connection.execute(
            "SELECT rowid, originator_id, originator_version, state FROM ledger_events"
        ).fetchall()
        for rowid, stream, ver, state in rows:
            at = Place(keys.fact("origin") or "", stream, ver)
            salt, raw, inline = unpack_container(state, at, keys.boxes.named)
            record = read_record(salt, raw, n=rowid - 1)
            stored = dict(inline)
            for role, ref in record.blobs.items():
                if not choose(record, role):
                    continue
                identity = bytes.fromhex(ref.id)
                if identity in stored:
                    parts, stored[identity] = stored[identity], _cut(stored[identity])
                else:
                    (large,) = connection.execute("SELECT parts FROM ledger_blobs WHERE id = ?", (identity,)).fetchone()
                    parts = unpack_parts(large, identity, at, keys.boxes.named)
                    changed = (pack_parts(_cut(parts)), identity)
                    connection.execute("UPDATE ledger_blobs SET parts = ? WHERE id = ?", changed)
                if not all(isinstance(part, Hole) for part in parts):
                    lost.add((record.n, role))
            blobs = [SealedBlob(identity, "all", 0, parts) for identity, parts in stored.items()]
            changed = (pack_container(salt, raw, blobs), rowid)
            connection.execute("UPDATE ledger_events SET state = ? WHERE rowid = ?", changed)
        connection.commit()
    return lost


def _cut(parts: Iterable[Part]) -> tuple[Part, ...]:
    return tuple(
        part if isinstance(part, Hole) else Hole(len(part.content), part_hash(part.salt, part.content))
        for part in parts
    )
