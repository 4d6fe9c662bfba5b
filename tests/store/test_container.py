"""Sealed containers: what was sealed opens in its place alone, and nothing is opened that nobody asks for."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_ledger.codec import (
    NONCES,
    SECRET,
    Hole,
    Kept,
    Parts,
    Place,
    SealedBlob,
    SealedParts,
    pack_container,
    pack_sealed,
    pack_sealed_parts,
    sealed_by,
    unpack_container,
    unpack_parts,
)
from a2a_ledger.errors import FormatError, StoreError
from a2a_ledger.sealing import KEY_SIZE, BoxKeys
from tests.store.facts import message, new_store, new_stream

if TYPE_CHECKING:
    from pathlib import Path

KEYS = BoxKeys(b"r" * KEY_SIZE, b"b" * KEY_SIZE)
HERE = Place("a/0a1b2c3d", "task:" + "0" * 40, 3)
ELSEWHERE = (HERE._replace(log="b/0a1b2c3d"), HERE._replace(stream="task:" + "1" * 40), HERE._replace(ver=4))
SALT = b"s" * SECRET
BLOB = SealedBlob(b"i" * SECRET, "all", 6, (Kept(b"k" * SECRET, b"octets"), Hole(4, b"h" * SECRET)))
NEEDLE = b"a needle that nobody else writes"


def find(stream: str, key_id: bytes) -> BoxKeys:
    assert (stream[:5], key_id) == ("task:", KEYS.id)
    return KEYS


def sealed(raw: bytes = b"{}") -> bytes:
    return pack_sealed(KEYS, HERE, os.urandom(NONCES), SALT, raw, [BLOB])


def parts_of(container: bytes, place: Place = HERE) -> dict[bytes, object]:
    _, _, parts = unpack_container(container, place, find)
    return dict(parts)


@given(st.binary(max_size=300), st.lists(st.binary(max_size=40), max_size=3))
def test_what_was_sealed_comes_back(raw: bytes, contents: list[bytes]) -> None:
    parts = tuple(Kept(os.urandom(SECRET), content) for content in contents)
    blob = SealedBlob(b"i" * SECRET, "all", 0, parts)
    state = pack_sealed(KEYS, HERE, os.urandom(NONCES), SALT, raw, [blob])
    salt, read, found = unpack_container(state, HERE, find)
    assert (salt, read, dict(found), sealed_by(state)) == (SALT, raw, {blob.id: parts}, KEYS.id)
    large = pack_sealed_parts(KEYS, HERE, os.urandom(NONCES // 2), blob.id, parts)
    assert unpack_parts(large, blob.id, HERE, find) == parts


def test_no_flipped_bit_is_read() -> None:
    state = sealed()
    for at in range(len(state) * 8):
        changed = bytearray(state)
        changed[at // 8] ^= 1 << at % 8
        with pytest.raises((FormatError, AssertionError)):  # the assertion: keys that nobody has
            parts_of(bytes(changed))


@pytest.mark.parametrize("place", ELSEWHERE)
def test_a_box_opens_in_its_place_alone(place: Place) -> None:
    large = pack_sealed_parts(KEYS, HERE, os.urandom(NONCES // 2), BLOB.id, BLOB.parts)
    with pytest.raises(FormatError, match="does not open"):
        unpack_container(sealed(), place, find)
    with pytest.raises(FormatError, match="does not open"):
        unpack_parts(large, BLOB.id, place, find)


def test_a_large_blob_opens_under_its_own_id_alone() -> None:
    large = pack_sealed_parts(KEYS, HERE, os.urandom(NONCES // 2), BLOB.id, BLOB.parts)
    with pytest.raises(FormatError, match="does not open"):
        unpack_parts(large, b"j" * SECRET, HERE, find)


def test_without_keys_nothing_is_said_of_a_sealed_row() -> None:
    with pytest.raises(FormatError, match="open the ledger by its directory"):
        unpack_container(sealed())
    assert sealed_by(pack_container(SALT, b"{}", [BLOB])) is None


def test_parts_are_opened_when_they_are_asked_for() -> None:
    opened: list[bytes] = []

    def box() -> bytes:
        opened.append(b"")
        return b"\x80"  # an empty map

    parts = SealedParts(box)
    assert opened == []
    assert (len(parts), list(parts), opened) == (0, [], [b""])


def test_no_octet_of_a_task_lies_in_clear(tmp_path: Path) -> None:
    with closing(new_store(tmp_path)) as store:
        stream = new_stream(store)
        store.append([message(stream, NEEDLE.decode(), {"body": NEEDLE, "url": NEEDLE * 3000})])
        files = [path for path in tmp_path.iterdir() if path.name.startswith("ledger.db")]
        assert {path.name for path in files} >= {"ledger.db", "ledger.db-wal"}
        assert not any(NEEDLE in path.read_bytes() for path in files)
        with store.views() as connection:
            held = [b"".join(map(bytes, row)) for row in connection.execute("SELECT state FROM ledger_events")]
            held += [row[0] for row in connection.execute("SELECT parts FROM ledger_blobs")]
        assert not any(NEEDLE in cell for cell in held)
        assert store.record(0).content("url") == NEEDLE * 3000


def test_no_head_is_signed_over_a_row_that_does_not_open(tmp_path: Path) -> None:
    with closing(new_store(tmp_path)) as store:
        stream = new_stream(store)
        store.append([message(stream) for _ in range(2)])
        store.check_open(0, 2)
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        (state,) = connection.execute("SELECT state FROM ledger_events WHERE rowid = 2").fetchone()
        damaged = (state[:-1] + bytes([state[-1] ^ 1]),)  # the last octet of the parts' tag
        connection.execute("UPDATE ledger_events SET state = ? WHERE rowid = 2", damaged)
        connection.commit()
    with closing(new_store(tmp_path)) as store:
        assert isinstance(
            store.record(1).parts, Parts
        )  # the record itself opens, so it is its parts that are looked at
        with pytest.raises((FormatError, StoreError), match="does not open"):
            store.check_open(0, 2)
        store.check_open(0, 1)


@pytest.mark.parametrize(
    ("column", "value"), [("topic", "task.bound.v1"), ("c", b"\0" * 32), ("originator_version", 7), ("topic", 5)]
)
def test_no_head_is_signed_over_a_row_that_names_another_record(tmp_path: Path, column: str, value: object) -> None:
    with closing(new_store(tmp_path)) as store:
        store.append([message(new_stream(store))])
        store.check_open(0, 1)
        with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
            connection.execute(f"UPDATE ledger_events SET {column} = ? WHERE rowid = 1", (value,))  # noqa: S608 - a column named above
            connection.commit()
        with pytest.raises(StoreError, match="event 0"):
            store.check_open(0, 1)
