"""The key store: durable before use, one key a stream whoever asks first, and rows that an audit can check."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import hmac
import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.errors import MissingKeysError, ReadOnlyError, StoreError
from a2a_ledger.sealing import KEY_SIZE, BoxKeys
from a2a_ledger.store import KEY_TABLES, KeyStore, box_keys, row_digest
from a2a_ledger.store.keystore import redaction_id
from a2a_ledger.store.raw import raw_tables
from tests.store.facts import PEER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "keys.db"


@pytest.fixture
def keys(place: Path) -> Iterator[KeyStore]:
    made = KeyStore(place, create=True)
    yield made
    made.close()


def rows(place: Path, table: str) -> list[tuple[object, ...]]:
    db = sqlite3.connect(place)
    found = db.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608 - a name from the test
    db.close()
    return found


def test_a_task_id_is_the_commitment_to_its_key(keys: KeyStore, place: Path) -> None:
    task = keys.new_task()
    key = keys.stream_key(f"task:{task}")
    assert task == hashlib.sha256(b"a2a-ledger/stream-key/v1\0" + key).hexdigest()[:40]
    again = KeyStore(place)
    assert again.stream_key(f"task:{task}") == key
    again.close()


def test_what_seals_the_first_row_of_a_task_is_durable_and_at_hand_with_its_id(keys: KeyStore, place: Path) -> None:
    stream = f"task:{keys.new_task()}"
    assert keys.knows(stream)
    assert (stream, 0, keys.boxes.newest(stream).id) in {row[:3] for row in rows(place, "box_keys")}


def test_task_keys_are_made_64_at_a_time(keys: KeyStore, place: Path) -> None:
    made = {keys.new_task() for _ in range(48)}
    assert len(made) == 48
    assert len(rows(place, "stream_keys")) == 64
    made |= {keys.new_task() for _ in range(80)}
    keys.close()  # waits for the batch that is made in the background
    assert len(made) == 128
    assert len(rows(place, "stream_keys")) in (128, 192)


async def test_tasks_get_ids_on_the_loop(keys: KeyStore) -> None:
    made = await asyncio.gather(*[keys.new_task_async() for _ in range(150)])
    assert len(set(made)) == 150


def test_everybody_gets_the_same_key_of_a_named_stream(place: Path) -> None:
    stores = [KeyStore(place, create=True) for _ in range(6)]
    found: list[bytes] = []

    def ask(own: KeyStore) -> None:
        found.append(own.stream_key("ledger"))

    threads = [threading.Thread(target=ask, args=(own,)) for own in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for own in stores:
        own.close()
    assert len(found) == 6
    assert len(set(found)) == 1
    assert len(rows(place, "streams")) == 1


def test_a_closed_key_store_gives_out_no_key_that_it_still_holds(keys: KeyStore) -> None:
    keys.new_task()
    assert keys.has_spare
    keys.close()
    with pytest.raises(StoreError, match=r"keys\.db to be open, found it closed"):
        keys.new_task()


def test_a_findings_key_follows_from_its_subjects(keys: KeyStore) -> None:
    task = keys.new_task()
    for about, stream in ((f"task:{task}", f"findings:{task}"), (f"peer:{PEER}", f"findings:peer:{PEER}")):
        expected = hmac.new(keys.stream_key(about), b"a2a-ledger/findings-key/v1\0", "sha256").digest()
        assert keys.stream_key(stream) == expected


def test_a_redaction_key_belongs_to_a_peer(keys: KeyStore, place: Path) -> None:
    k, key = keys.redaction_key(PEER)
    assert keys.redaction_key(PEER) == (k, key)
    assert keys.redaction_key("f" * 32)[1] != key
    assert k == redaction_id(key) == hashlib.sha256(b"a2a-ledger/redact-key/v1\0" + key).hexdigest()[:16]
    again = KeyStore(place, read_only=True)
    assert again.redaction_key(PEER) == (k, key)
    with pytest.raises(MissingKeysError):
        again.redaction_key("e" * 32)
    with pytest.raises(MissingKeysError):
        again.stream_key("ledger")
    with pytest.raises(ReadOnlyError):
        again.new_task()
    again.close()


def test_missing_keys_are_said(keys: KeyStore, tmp_path: Path) -> None:
    for stream in ("task:" + "0" * 40, "task:", "findings:" + "0" * 40):
        with pytest.raises(MissingKeysError):
            keys.stream_key(stream)
    with pytest.raises(MissingKeysError, match=r"other\.db"):
        KeyStore(tmp_path / "other.db")


def test_every_row_carries_a_digest_of_its_columns(keys: KeyStore) -> None:
    keys.new_task()
    keys.stream_key("ledger")
    keys.redaction_key(PEER)
    keys.note("origin", "a/00000000")
    seen = 0
    with raw_tables(keys.connections, KEY_TABLES) as raw:
        for table in KEY_TABLES:
            for row in raw.rows(table):
                *values, digest = row
                # the check column, spelled out from docs/format.md section 13
                expected = b"a2a-ledger/row/v1\0" + table.encode() + b"\0"
                for value in values:
                    octets = value if isinstance(value, bytes) else str(value).encode()
                    letter = b"b" if isinstance(value, bytes) else b"i" if isinstance(value, int) else b"s"
                    expected += letter + len(octets).to_bytes(8, "big") + octets
                assert digest == hashlib.sha256(expected).digest()
                seen += 1
    assert seen == 64 + 1 + 1 + 1 + 1 + 64


def test_the_streams_that_were_used_last_keep_their_keys_in_memory(
    keys: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(box_keys, "REMEMBERED", 3)
    streams = [f"task:{keys.new_task()}" for _ in range(4)]
    first, second, third, fourth = streams

    def known() -> list[bool]:
        return [keys.boxes.knows(stream) for stream in streams]

    assert known() == [False, True, True, True]
    held = keys.boxes.newest(second)  # a hit: from now on the third is the oldest
    keys.boxes.newest(first)
    assert known() == [True, True, False, True]
    keys.boxes.named(second, held.id)  # a hit by id is one too
    keys.boxes.newest(third)
    assert known() == [True, True, True, False]
    for _ in range(5):
        keys.boxes.look_again(second)
        assert keys.boxes.newest(second).id == held.id  # read again and set again: that pushes nobody out
    assert known() == [True, True, True, False]
    keys.boxes.newest(fourth)
    assert known() == [False, True, True, True]


def test_one_bound_holds_for_all_keys_of_boxes_however_they_were_asked_for(
    keys: KeyStore, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(box_keys, "REMEMBERED", 4)
    streams = [f"task:{keys.new_task()}" for _ in range(12)]
    ids = {stream: keys.boxes.newest(stream).id for stream in streams}
    gc.collect()
    before = {id(one) for one in gc.get_objects() if isinstance(one, BoxKeys)}
    again = KeyStore(place)  # has no spare keys
    for stream in streams[:8]:
        again.boxes.newest(stream)
    for stream in streams[4:]:
        again.boxes.named(stream, ids[stream])
    gc.collect()
    held = [one for one in gc.get_objects() if isinstance(one, BoxKeys) and id(one) not in before]
    assert sorted(one.id for one in held) == sorted(ids[stream] for stream in streams[8:])
    again.close()


def test_keys_held_for_a_stream_take_little_memory() -> None:
    keys = [BoxKeys(bytes([i]) * KEY_SIZE, b"b" * KEY_SIZE) for i in range(4)]
    for made in keys:  # a cipher is 2.5 KB that no count of Python objects shows
        assert all(isinstance(getattr(made, name), bytes) for name in BoxKeys.__slots__)


def test_a_row_digest_tells_types_and_borders_apart() -> None:
    rows_apart: list[tuple[str | int | bytes, ...]] = [
        ("1",),
        (1,),
        (b"1",),
        ("1", ""),
        ("", "1"),
        (),
        (-1,),
        ("\udcff",),
    ]
    assert len({row_digest("t", *row) for row in rows_apart} | {row_digest("u", "1")}) == len(rows_apart) + 1
