"""Records, blobs, holes and references: sections 2, 3 and 12, step 4. What changes is the answer to a poll."""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, cast

from a2a_ledger.codec import canonical, parse_canonical
from tests.conformance.material import log
from tests.conformance.remaking import Remaking
from tests.conformance.sealing import sealed
from tests.conformance.table import Made, row
from tests.evidence.forging import flipped
from tests.evidence.refitting import claim, signed_again

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.events import Json, JsonObject
    from tests.conformance.table import Row
    from tests.evidence.forging import Files

POLL = 13  # nothing refers to it, and no finding rests on it
RECORD = f"data/records/{POLL}.json"


def _remade(change: Callable[[Remaking], None]) -> Made:
    made = Remaking(log())
    change(made)
    return Made(made.bundle(), log().policy)


def _raw(old: bytes, new: bytes) -> Made:
    """Change octets of the record; its leaf commits to what comes out."""

    def change(made: Remaking) -> None:
        assert old in made.records[POLL], made.records[POLL]
        made.records[POLL] = made.records[POLL].replace(old, new, 1)

    return _remade(change)


def _members(change: Callable[[JsonObject], None]) -> Made:
    return _remade(lambda made: made.change(POLL, change))


def _member(**members: Json) -> Made:
    return _members(lambda record: record.update(members))


def _field(**fields: Json) -> Made:
    return _remade(lambda made: made.data(POLL, **fields))


def _without(name: str, record: JsonObject) -> None:
    del record[name]


def _without_field(name: str, record: JsonObject) -> None:
    del cast("JsonObject", record["data"])[name]


def _of_body(record: JsonObject, **members: Json) -> None:
    cast("JsonObject", cast("JsonObject", record["blobs"])["body"]).update(members)


def _nested(levels: int) -> Made:
    value: Json = 1
    for _ in range(levels):
        value = [value]
    return _remade(partial(_write_nested, value))


def _write_nested(value: Json, made: Remaking) -> None:
    """Write it with other means than `canonical`, which refuses it where it is too deep."""
    record = cast("JsonObject", parse_canonical(made.records[POLL]))
    cast("JsonObject", record["data"])["zz"] = "@"
    made.records[POLL] = canonical(record).replace(b'"@"', repr(value).encode())


def _resealed(change: Callable[[Files], None]) -> Made:
    files = log().files
    change(files)
    return Made(sealed(files, log().signers["export"]), log().policy)


def _blob(files: Files) -> str:
    record = cast("dict[str, dict[str, dict[str, str]]]", parse_canonical(files[RECORD]))
    return f"data/blobs/{record['blobs']['body']['id']}/0"


def _flip(name: str) -> Callable[[Files], None]:
    return lambda files: files.update({name: flipped(files[name])})


def _flip_part(end: str, files: Files) -> None:
    files[_blob(files) + end] = flipped(files[_blob(files) + end])


def _drop_part(end: str, files: Files) -> None:
    del files[_blob(files) + end]


def _hole(files: Files, *, part: bytes = b"", text: bytes = b"") -> int:
    """Leave the body out; return how many octets it had."""
    name = _blob(files)
    salt, content = files.pop(f"{name}.salt"), files.pop(name)
    part = part or sha256(b"a2a-ledger/part/v1\x00" + salt + content).digest()
    files[f"{name}.hole"] = text or b'[%d,"%b"]' % (len(content), part.hex().encode())
    return len(content)


def _hole_beside(files: Files) -> None:
    name = _blob(files)
    files[f"{name}.hole"] = b'[%d,"%b"]' % (len(files[name]), b"0" * 64)


def _wrong_hole(files: Files) -> None:
    _hole(files, part=bytes(32))


def _spaced_hole(files: Files) -> None:
    name = _blob(files)
    digest = sha256(b"a2a-ledger/part/v1\x00" + files[f"{name}.salt"] + files[name]).hexdigest()
    _hole(files, text=b'[%d, "%b"]' % (len(files[name]), digest.encode()))


def _upper_hole(files: Files) -> None:
    name = _blob(files)
    digest = sha256(b"a2a-ledger/part/v1\x00" + files[f"{name}.salt"] + files[name]).hexdigest()
    _hole(files, text=b'[%d,"%b"]' % (len(files[name]), digest.upper().encode()))


def _second_part(files: Files) -> None:
    name = _blob(files).removesuffix("0") + "1"
    files |= {name: b"", f"{name}.salt": bytes(32)}


def _withheld(*, listed: bool = True, more: int = 0) -> Made:
    """Leave the body out as an exporter would, and list it."""
    files = log().files
    blob = _blob(files)
    size = _hole(files)
    entry: Json = {"blob": blob.split("/")[2], "index": POLL, "part": 0, "role": "body", "size": size + more}
    claim(files, withheld=[entry] if listed else [])
    return Made(signed_again(files, log().signers["export"]), log().policy)


def _listed_otherwise(member: str, value: Json) -> Made:
    """Leave the body out, and list it with a value that is not what it equals in some languages."""
    files = log().files
    blob = _blob(files)
    _hole(files)
    hole: JsonObject = {"blob": blob.split("/")[2], "index": POLL, "part": 0, "role": "body"}
    size = len(log().files[blob])
    entry: Json = {**hole, "size": size, member: value}
    claim(files, withheld=[entry])
    return Made(signed_again(files, log().signers["export"]), log().policy)


def _left_out(kind: str) -> Made:
    return Made(log().withheld[kind], log().policy)


def _listed_and_there() -> Made:
    files = log().files
    entry: Json = {"blob": _blob(files).split("/")[2], "index": POLL, "part": 0, "role": "body", "size": 1}
    claim(files, withheld=[entry])
    return Made(signed_again(files, log().signers["export"]), log().policy)


def _refers(n: int, field: str, **members: Json) -> Made:
    def change(record: JsonObject) -> None:
        cast("JsonObject", cast("JsonObject", record["data"])[field]).update(members)

    return _remade(lambda made: made.change(n, change))


def _kinds() -> Iterator[Row]:
    """Records that are none: the leaf commits to them, and nobody can read them as an event."""
    none = partial(row, section="3.1", invalid="I C1 C2", unproven="X")
    yield none("record_spaced_fail", recipe=partial(_raw, b":", b": "))
    yield none("record_key_twice_fail", recipe=partial(_raw, b'"v":1', b'"v":1,"v":1'))
    yield none("record_unsorted_fail", recipe=partial(_raw, b'"v":1,"ver":8', b'"ver":8,"v":1'))
    yield none("record_with_float_fail", recipe=partial(_raw, b'"ver":8', b'"ver":8.0'))
    yield none("record_with_large_number_fail", recipe=partial(_raw, b'"status":200', b'"status":9007199254740992'))
    yield none("record_with_escaped_letter_fail", recipe=partial(_raw, b'"how"', b'"\\u0068ow"'))
    yield none("record_with_lone_surrogate_fail", recipe=partial(_raw, b'"working"', b'"\\ud800"'))
    yield none("record_with_key_outside_ascii_fail", recipe=partial(_raw, b'"url":', '"urł":1,"url":'.encode()))
    yield none("record_not_utf_8_fail", recipe=partial(_raw, b'"working"', b'"\xff"'))
    yield none("record_is_list_fail", recipe=partial(_raw, b"{", b"[{"))
    yield none("record_17_deep_fail", recipe=partial(_nested, 15))
    yield row("record_16_deep", "3.2", partial(_nested, 14))
    yield none("record_with_member_more_fail", recipe=partial(_member, zz=1))
    yield none("record_with_member_less_fail", recipe=partial(_members, partial(_without, "how")))
    yield none("record_of_version_2_fail", recipe=partial(_member, v=2))
    yield none("record_version_true_fail", recipe=partial(_member, v=True))
    yield none("record_without_microseconds_fail", recipe=partial(_member, at="2026-09-14T09:00:20Z"))
    yield none("record_with_other_zone_fail", recipe=partial(_member, at="2026-09-14T09:00:20.000000+00:00"))
    yield none("record_how_guessed_fail", recipe=partial(_member, how="guessed"))
    yield none("record_of_another_log_fail", recipe=partial(_member, log="acme/other-00112233"))
    yield none("record_without_prev_fail", recipe=partial(_member, prev=None))
    yield none("record_prev_short_fail", recipe=partial(_member, prev="00"))
    yield none("record_data_is_list_fail", recipe=partial(_member, data=[]))
    yield none("record_kept_otherwise_fail", recipe=partial(_members, partial(_of_body, kept="some")))
    yield none("record_blob_with_member_more_fail", recipe=partial(_members, partial(_of_body, zz=1)))
    yield none("record_blob_of_negative_size_fail", recipe=partial(_members, partial(_of_body, size=-1)))
    field = partial(none, section="2")
    yield field("field_missing_fail", recipe=partial(_members, partial(_without_field, "peer")))
    yield field("field_number_for_text_fail", recipe=partial(_field, peer=1))
    yield field("field_text_for_number_fail", recipe=partial(_field, status="200"))
    yield field("field_true_for_number_fail", recipe=partial(_field, status=True))
    yield field("field_null_fail", recipe=partial(_field, tenant=None))
    yield field("field_list_of_another_type_fail", recipe=partial(_field, flags=[1]))
    yield field("field_ref_without_version_fail", recipe=partial(_field, answers={"c": "0" * 64, "stream": "ledger"}))
    other: JsonObject = {"c": "0" * 64, "stream": f"task:{log().task}", "ver": True}  # which is version 1 to nobody
    yield row("field_unknown_with_version_true", "2", partial(_field, zz=other))
    yield row("field_unknown", "2", partial(_field, zz=[{"any": None}]))
    yield none("record_of_no_type_fail", recipe=partial(_member, type=""))


def _commitments() -> Iterator[Row]:
    """What a leaf commits to, changed in the bundle alone."""
    changed = partial(row, section="12, step 4", invalid="I C1 C2", unproven="X")
    yield changed("record_changed_fail", recipe=partial(_resealed, _flip(RECORD)))
    yield changed("salt_changed_fail", recipe=partial(_resealed, _flip(f"data/records/{POLL}.salt")))
    yield changed(
        "salt_short_fail", recipe=partial(_resealed, lambda files: files.update({f"data/records/{POLL}.salt": b""}))
    )
    yield changed("record_missing_fail", recipe=partial(_resealed, partial(_drop, RECORD)))
    yield changed("salt_missing_fail", recipe=partial(_resealed, partial(_drop, f"data/records/{POLL}.salt")))
    yield changed("records_swapped_fail", recipe=partial(_resealed, _swap_records))
    yield changed("part_changed_fail", recipe=partial(_resealed, partial(_flip_part, "")))
    yield changed("part_salt_changed_fail", recipe=partial(_resealed, partial(_flip_part, ".salt")))
    yield changed("part_missing_fail", recipe=partial(_resealed, partial(_drop_part, "")))
    yield changed("part_salt_missing_fail", recipe=partial(_resealed, partial(_drop_part, ".salt")))
    yield changed("part_more_fail", recipe=partial(_resealed, _second_part))
    yield changed("blob_size_fail", recipe=partial(_members, partial(_of_body, size=1)))
    yield changed("hole_beside_part_fail", recipe=partial(_resealed, _hole_beside))
    yield changed("hole_of_another_part_fail", recipe=partial(_resealed, _wrong_hole))
    yield changed("hole_spaced_fail", recipe=partial(_resealed, _spaced_hole))
    yield changed("hole_upper_case_fail", recipe=partial(_resealed, _upper_hole))


def _drop(name: str, files: Files) -> None:
    del files[name]


def _swap_records(files: Files) -> None:
    """Both are polls; with the salts of each other."""
    for end in ("json", "salt"):
        one, other = f"data/records/{POLL}.{end}", f"data/records/11.{end}"
        files[one], files[other] = files[other], files[one]


def _holes() -> Iterator[Row]:
    """What was left out since it was recorded can be listed, and cannot be read again."""
    left = partial(row, section="12, step 4", unproven="R")
    yield left("withheld_notproven", recipe=_withheld)
    for kind in ("headers", "blobs"):
        yield left(f"withheld_all_{kind}_notproven", recipe=partial(_left_out, kind))
    yield left("withheld_unlisted_fail", recipe=partial(_withheld, listed=False), invalid="X")
    yield left("withheld_part_false_fail", recipe=partial(_listed_otherwise, "part", value=False), invalid="X")
    yield left("withheld_of_another_size_fail", recipe=partial(_withheld, more=1), invalid="X")
    yield row("withheld_listed_and_there_fail", "12, step 4", _listed_and_there, invalid="X")


def _references() -> Iterator[Row]:
    refers = partial(row, section="12, step 4")
    task = f"task:{log().task}"
    recipe = partial(_refers, POLL, "answers", c="0" * 64)
    yield refers("reference_to_another_fail", recipe=recipe, invalid="C1", unproven="X")
    # Of a stream whose key is disclosed every event is shown, so what is referred to is missing from it.
    recipe = partial(_refers, POLL, "answers", stream=task, ver=99)
    yield refers("reference_to_version_that_is_not_fail", recipe=recipe, invalid="C2")
    # Of a peer's stream only some events are shown.
    peer = f"peer:{'00' * 16}"
    recipe = partial(_refers, POLL, "answers", stream=peer, ver=99)
    yield refers("reference_to_peer_not_shown_notproven", recipe=recipe, unproven="R")


def rows() -> Iterator[Row]:
    """Yield the cases of records."""
    yield from _kinds()
    yield from _commitments()
    yield from _holes()
    yield from _references()
