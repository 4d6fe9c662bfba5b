"""Drafts, containers and records: what is refused on the way in and on the way out, and what comes back."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_ledger.codec import (
    MAX_RECORD,
    Content,
    Hole,
    Kept,
    Parts,
    SealedBlob,
    Withheld,
    blob_id,
    draft,
    pack_container,
    pack_parts,
    read_record,
    seal,
    unpack_container,
    unpack_parts,
)
from a2a_ledger.errors import FormatError
from a2a_ledger.events import CardFetched, ContractCaptured, Event, MessageRecorded, TaskBound
from tests.store.facts import AT, ORIGIN, event, message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_ledger.events import JsonObject

STREAM = "task:" + "0" * 40
kept_parts = st.builds(Kept, st.binary(min_size=32, max_size=32), st.binary(max_size=40))
holes = st.builds(Hole, st.integers(0, 2**53 - 1), st.binary(min_size=32, max_size=32))
part_lists = st.lists(kept_parts | holes, min_size=1, max_size=5).map(tuple)


def record_object() -> JsonObject:
    fact = message(STREAM)
    raw, _ = seal(fact, log=ORIGIN, ver=1, prev="0" * 64)
    found: JsonObject = json.loads(raw)
    return found


def spelled(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=80), st.lists(part_lists, max_size=3))
def test_container_gives_back_what_was_put_in(salt: bytes, raw: bytes, lists: list[tuple[Kept | Hole, ...]]) -> None:
    blobs = {blob_id(parts): parts for parts in lists}
    sealed = [SealedBlob(key, "all", 0, parts) for key, parts in blobs.items()]
    assert [*unpack_container(pack_container(salt, raw, sealed))[:2]] == [salt, raw]
    assert dict(unpack_container(pack_container(salt, raw, sealed))[2]) == blobs
    for parts in lists:
        assert unpack_parts(pack_parts(parts)) == parts


@given(st.binary(max_size=200))
def test_odd_octets_are_refused_by_name(stored: bytes) -> None:
    for read in (unpack_container, unpack_parts):
        try:
            read(stored)
        except FormatError:
            continue


@pytest.mark.parametrize(
    "container",
    [
        None,
        {},
        [],
        [1],
        [2, b"s" * 32, b"{}", {}],
        ["1", b"s" * 32, b"{}", {}],
        [1, b"s" * 31, b"{}", {}],
        [1, "s" * 32, b"{}", {}],
        [1, b"s" * 32, "{}", {}],
        [1, b"s" * 32, b"{}", []],
        [1, b"s" * 32, b"{}", {}, 1],
    ],
)
def test_refuses_other_containers(container: object) -> None:
    with pytest.raises(FormatError):
        unpack_container(msgpack.packb(container))


@pytest.mark.parametrize("cell", [None, 1, 1.5, "text"])
def test_refuses_a_cell_of_another_type(cell: object) -> None:
    with pytest.raises(FormatError, match="cell of type"):
        unpack_container(cell)


@pytest.mark.parametrize(
    "parts",
    [
        7,
        [7],
        [[b"s" * 31, b"x"]],
        [[b"s" * 32, "x"]],
        [[b"s" * 32]],
        [[-1, b"h" * 32]],
        [[True, b"h" * 32]],
        [[2**53, b"h" * 32]],
        [[1, b"h" * 31]],
    ],
)
def test_refuses_other_parts(parts: object) -> None:
    with pytest.raises(FormatError):
        unpack_parts(msgpack.packb(parts))
    _, _, blobs = unpack_container(msgpack.packb([1, b"s" * 32, b"{}", {b"i" * 32: parts}]))
    with pytest.raises(FormatError):
        _ = blobs[b"i" * 32]


def test_a_record_reads_back_whole() -> None:
    fact = message(STREAM, blobs={"body": b"\xff\x00", "url": b""}, how="import")
    raw, c = seal(fact, log=ORIGIN, ver=0, prev=None)
    salt, stored, parts = unpack_container(pack_container(fact.salt, raw, fact.blobs.values()))
    record = read_record(salt, stored, n=5, t="00" * 32, parts=Parts(parts))
    assert (record.n, record.c, record.t, record.log) == (5, c.hex(), "00" * 32, ORIGIN)
    assert (record.stream, record.ver, record.type, record.prev) == (STREAM, 0, "message.recorded.v1", None)
    assert (record.at, record.how) == ("2026-08-18T12:00:00.000250Z", "import")
    assert record.event() == event()
    assert (record.content("body"), record.content("url"), record.content("error")) == (b"\xff\x00", b"", None)
    assert record.ref == {"c": c.hex(), "stream": STREAM, "ver": 0}


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (Content((b'{"a":"', Withheld(b"secret"), b'"}')), b'{"a":"******"}'),
        (Content((b"head", Withheld(b"a long tail")), kept="head"), b"head"),
        (Content((Withheld(b"everything"),), kept="none"), b""),
        (Content.of(b""), b""),
    ],
)
def test_holes_are_filled_and_cut_tails_are_not(content: Content, read: bytes) -> None:
    fact = message(STREAM, blobs={"body": content})
    raw, _ = seal(fact, log=ORIGIN, ver=0, prev=None)
    _, _, parts = unpack_container(pack_container(fact.salt, raw, fact.blobs.values()))
    record = read_record(fact.salt, raw, parts=Parts(parts))
    assert record.content("body") == read
    assert record.blobs["body"].size == sum(length(part) for part in content.parts)


def length(part: bytes | Withheld | Hole) -> int:
    if isinstance(part, Hole):
        return part.length
    return len(part if isinstance(part, bytes) else part.content)


def test_a_hostile_length_costs_no_memory() -> None:
    value = record_object()
    hole = Hole(2**50, b"h" * 32)
    key = blob_id([hole])
    value["blobs"] = {"body": {"id": key.hex(), "kept": "all", "size": 2**50}}
    record = read_record(b"s" * 32, spelled(value), parts=Parts({key: (hole,)}))
    with pytest.raises(FormatError, match="left-out part"):
        record.content("body")


def test_an_erased_blob_has_no_content() -> None:
    record = read_record(b"s" * 32, spelled(record_object()))
    assert record.content("body") is None


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("at", "2026-08-18T12:00:00Z"),
        ("at", "2026-08-18T12:00:00.000000+00:00"),
        ("blobs", []),
        ("blobs", {"body": {"id": "0" * 64, "kept": "all"}}),
        ("blobs", {"body": {"id": "0" * 64, "kept": "all", "size": -1}}),
        ("blobs", {"body": {"id": "0" * 63, "kept": "all", "size": 1}}),
        ("blobs", {"body": {"id": "A" * 64, "kept": "all", "size": 1}}),
        ("blobs", {"body": {"id": "0" * 64, "kept": "some", "size": 1}}),
        ("blobs", {"body": {"id": "0" * 64, "kept": [], "size": 1}}),
        ("data", []),
        ("how", "guess"),
        ("how", []),
        ("log", "UPPER"),
        ("log", ""),
        ("prev", None),
        ("prev", "0" * 63),
        ("stream", ""),
        ("stream", 1),
        ("type", None),
        ("v", 2),
        ("v", True),
        ("ver", 0),
        ("ver", -1),
        ("ver", "1"),
    ],
)
def test_refuses_a_member_that_is_not_as_the_format_has_it(member: str, value: object) -> None:
    found = dict[str, object](record_object()) | {member: value}
    raw = json.dumps(found, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(FormatError):
        read_record(b"s" * 32, raw)


def test_refuses_missing_and_additional_members() -> None:
    for name in record_object():
        value = record_object()
        del value[name]
        with pytest.raises(FormatError, match="exactly the members"):
            read_record(b"s" * 32, spelled(value))
    with pytest.raises(FormatError, match="exactly the members"):
        read_record(b"s" * 32, spelled(record_object() | {"extra": 1}))
    with pytest.raises(FormatError, match="object"):
        read_record(b"s" * 32, b"[]")


def test_refuses_a_record_over_the_size_limit() -> None:
    value = record_object() | {"data": {"x": "y" * MAX_RECORD}}
    with pytest.raises(FormatError, match="at most 65536"):
        read_record(b"s" * 32, spelled(value))
    with pytest.raises(FormatError, match="belong in a blob"):
        message(STREAM, "m" * MAX_RECORD)


def test_the_longest_draft_fits_whatever_its_place() -> None:
    longest = next(n for n in range(MAX_RECORD, 0, -1) if _fits(n))
    fact = message("ledger", "m" * longest)
    raw, _ = seal(fact, log="l" * 128, ver=2**53 - 1, prev="0" * 64, stream_commitment="0" * 64)
    assert MAX_RECORD - 100 < len(raw) <= MAX_RECORD


def _fits(length: int) -> bool:
    try:
        message("ledger", "m" * length)
    except FormatError:
        return False
    return True


def test_refuses_odd_drafts() -> None:
    def make(fact: Event, stream: str = STREAM, how: str = "live", **blobs: Content | bytes) -> None:
        draft(fact, stream=stream, at=AT, entropy=os.urandom, blobs=blobs, how=how)

    with pytest.raises(FormatError, match="stream named"):
        make(event(), stream="elsewhere")
    with pytest.raises(FormatError, match="expected how"):
        make(event(), how="guessed")
    with pytest.raises(FormatError, match="role"):
        make(event(), Body=b"")
    with pytest.raises(FormatError, match="at least one part"):
        make(event(), body=Content(()))
    with pytest.raises(FormatError, match="expected kept"):
        make(event(), body=Content((b"",), kept="some"))
    with pytest.raises(FormatError, match="closed table"):
        make(Event())
    with pytest.raises(FormatError, match="stream_commitment"):
        make(MessageRecorded(peer="p", direction="in", leg="push", binding="", url="", stream_commitment="0" * 64))
    headers: dict[str, Content | bytes] = {f"header.{i:02}": b"" for i in range(17)}
    with pytest.raises(FormatError, match="16 kept headers"):
        draft(event(), stream=STREAM, at=AT, entropy=os.urandom, blobs=headers)
    with pytest.raises(FormatError, match="octets of entropy"):
        draft(event(), stream=STREAM, at=AT, entropy=lambda _: b"short")


def test_salts_of_a_record_come_from_one_read() -> None:
    reads: list[int] = []

    def entropy(count: int) -> bytes:
        reads.append(count)
        return os.urandom(count)

    draft(
        event(),
        stream=STREAM,
        at=AT,
        entropy=entropy,
        blobs={"body": Content((b"a", Withheld(b"b"), b"c")), "url": b""},
    )
    assert reads == [32 * 5]


def test_an_unknown_name_is_a_record_without_an_event() -> None:
    record = read_record(b"s" * 32, spelled(record_object() | {"type": "os.system"}))
    assert record.type == "os.system"
    assert record.event() is None


@pytest.mark.parametrize(
    ("name", "value"), [("status", "200"), ("status", True), ("peer", 1), ("flags", "x"), ("flags", [1]), ("pin", [])]
)
def test_a_field_of_another_type_is_refused(name: str, value: object) -> None:
    found = record_object()
    assert isinstance(found["data"], dict)
    data = dict[str, object](found["data"]) | {name: value}
    record = read_record(b"s" * 32, json.dumps({**found, "data": data}, sort_keys=True, separators=(",", ":")).encode())
    with pytest.raises(FormatError, match=name):
        record.event()


def test_a_missing_field_is_refused_and_an_unknown_one_is_skipped() -> None:
    found = record_object()
    data = found["data"]
    assert isinstance(data, dict)
    assert read_record(b"s" * 32, spelled({**found, "data": {**data, "later": [1]}})).event() == event()
    del data["direction"]
    with pytest.raises(FormatError, match="direction"):
        read_record(b"s" * 32, spelled(found)).event()


def test_nested_shapes_are_checked() -> None:
    fetched: JsonObject = {
        "peer": "p", "peer_url": "u", "url": "u", "answered_url": "u", "source": "well-known", "purpose": "discovery",
        "caller": "anonymous", "status": 200, "flags": [], "form": "f",
    }  # fmt: skip
    value = record_object() | {"type": CardFetched.TYPE, "data": fetched}
    interface: JsonObject = {"binding": "JSONRPC", "tenant": "", "url": "u", "version": None}
    assert isinstance(read_record(b"s" * 32, spelled(value)).event(), CardFetched)
    fetched["interfaces"] = [interface]
    assert isinstance(read_record(b"s" * 32, spelled(value)).event(), CardFetched)
    interface["version"] = 1
    with pytest.raises(FormatError, match="interfaces"):
        read_record(b"s" * 32, spelled(value)).event()
    with pytest.raises(FormatError, match="required field"):
        read_record(b"s" * 32, spelled(value | {"type": ContractCaptured.TYPE, "data": {}})).event()


def test_a_required_field_may_not_be_none() -> None:
    broken = TaskBound(peer="p", task_id="t", answers={"c": "0" * 64, "stream": STREAM, "ver": 0})
    object.__setattr__(broken, "peer", None)
    with pytest.raises(FormatError, match="required field peer"):
        draft(broken, stream=STREAM, at=AT, entropy=os.urandom)
