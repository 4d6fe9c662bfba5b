"""The zip form of a bundle: reproducible to write, one meaning only when read."""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_ledger.archive import read_archive, write_archive
from a2a_ledger.errors import BundleError

if TYPE_CHECKING:
    from pathlib import Path

FILES = {"data/b.json": b"{}", "a.txt": b"hello", "data/empty": b""}


def zipped(entries: list[tuple[zipfile.ZipInfo | str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    """Make a zip by the standard library, which lets one make odd ones."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in entries:
            archive.writestr(name, data, method)
    return out.getvalue()


def test_what_is_written_is_read_by_the_standard_library() -> None:
    with zipfile.ZipFile(io.BytesIO(write_archive(FILES))) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == FILES
        assert archive.namelist() == sorted(FILES)
        for entry in archive.infolist():
            assert entry.date_time == (1980, 1, 1, 0, 0, 0)
            assert entry.external_attr >> 16 == 0o100644
            assert entry.compress_type == zipfile.ZIP_STORED


def test_what_packs_well_is_packed_and_never_tighter_than_a_reader_unpacks() -> None:
    files = {
        "figures.txt": b"".join(b"%d\n" % number for number in range(500)),
        "noise": bytes(hashlib.shake_256(b"seed").digest(4096)),
        "same": b"x" * 70_000,
        "short": b"y" * 1023,
    }
    made = write_archive(files)
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        assert archive.testzip() is None
        methods = {entry.filename: entry.compress_type for entry in archive.infolist()}
        assert {name: archive.read(name) for name in archive.namelist()} == files
    stored = zipfile.ZIP_STORED
    assert methods == {"figures.txt": zipfile.ZIP_DEFLATED, "noise": stored, "same": stored, "short": stored}
    assert read_archive(made) == (files, ())


def test_the_order_of_the_input_changes_no_byte() -> None:
    assert write_archive(FILES) == write_archive(dict(reversed(FILES.items())))


def test_what_is_written_is_read_back() -> None:
    assert read_archive(write_archive(FILES)) == (FILES, ())


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_plain_zips_of_others_are_read(method: int) -> None:
    content = b"some text that packs well" * 20
    assert read_archive(zipped([("x/y.txt", content), ("z", b"")], method)).files == {"x/y.txt": content, "z": b""}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("dup", "one name"),
        ("lh", "one header in the directory and another"),
        ("ov", "one name"),
        ("trav", "link"),
        ("two", "in front of"),
    ],
)
def test_the_known_hostile_zips_are_refused(corpus: Path, name: str, why: str) -> None:
    with pytest.raises(BundleError, match=why):
        read_archive((corpus / "vectors" / "hostile-zips" / f"{name}.zip").read_bytes())


@pytest.mark.parametrize(
    "name", ["../x", "/x", "a/../b", "a//b", "a/", "./a", "a\\b", "C:x", "a b", "x" * 256, "a/.", "nul\x01"]
)
def test_a_name_that_is_no_plain_path_is_refused_both_ways(name: str) -> None:
    with pytest.raises(BundleError):
        write_archive({name: b""})
    with pytest.raises(BundleError):
        read_archive(zipped([(name, b"")]))


def test_names_that_meet_are_refused() -> None:
    with pytest.raises(BundleError, match="one name on some systems"):
        read_archive(zipped([("A.txt", b"1"), ("a.txt", b"2")]))
    with pytest.raises(BundleError, match="a file and the folder"):
        read_archive(zipped([("a", b"1"), ("a/b", b"2")]))


def test_a_name_outside_of_ascii_is_refused() -> None:
    with pytest.raises(BundleError, match="outside of ASCII"):
        read_archive(zipped([("caf\u00e9", b"1")]))


def test_overlapping_entries_are_refused() -> None:
    # Two directory lines that point to one stored entry: the names differ, so only the place can tell.
    archive = bytearray(write_archive({"a": b"0123456789"}))
    directory = archive[-22 - 47 : -22]
    end = bytearray(archive[-22:])
    twin = bytearray(directory)
    twin[46:47] = b"b"
    struct.pack_into("<2H", end, 8, 2, 2)
    struct.pack_into("<I", end, 12, 2 * 47)
    with pytest.raises(BundleError, match="without gap or overlap"):
        read_archive(bytes(archive[:-22] + twin + end))


def test_bytes_that_belong_to_no_entry_are_refused() -> None:
    archive = write_archive(FILES)
    for odd in (b"x" + archive, archive + b"x", archive + archive):
        with pytest.raises(BundleError):
            read_archive(odd)
    at = archive.index(b"PK\x01\x02")
    end = bytearray(archive[-22:])
    struct.pack_into("<I", end, 16, at + 4)
    with pytest.raises(BundleError, match="belong to no file"):
        read_archive(archive[:at] + b"junk" + archive[at:-22] + bytes(end))


def test_a_comment_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a", b"1")
        archive.comment = b"hello"
    with pytest.raises(BundleError, match="comment"):
        read_archive(out.getvalue())


def test_links_and_folders_are_refused() -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    with pytest.raises(BundleError, match="link, a device or a folder"):
        read_archive(zipped([(link, b"/etc/passwd")]))
    with pytest.raises(BundleError, match="not a plain relative"):
        read_archive(zipped([(zipfile.ZipInfo("folder/"), b"")]))


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    with pytest.raises(BundleError, match="200 to 1"):
        read_archive(zipped([("bomb", b"\0" * 10_000_000)], zipfile.ZIP_DEFLATED))


def test_a_size_that_the_directory_understates_is_refused() -> None:
    archive = bytearray(zipped([("a", b"x" * 150)], zipfile.ZIP_DEFLATED))
    for magic, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", archive, archive.index(magic) + place, 100)
    with pytest.raises(BundleError, match="does not unpack to the 100 bytes"):
        read_archive(bytes(archive))


def test_a_changed_content_is_named_and_kept() -> None:
    archive = write_archive(FILES).replace(b"hello", b"hallo")
    assert read_archive(archive) == ({**FILES, "a.txt": b"hallo"}, ("a.txt",))


def test_every_cut_is_refused() -> None:
    archive = write_archive(FILES)
    for length in range(len(archive)):
        with pytest.raises(BundleError):
            read_archive(archive[:length])


def test_every_flipped_bit_is_refused_or_seen() -> None:
    # Fields without meaning for the content (who made it, mode bits) may change; no content may change unseen.
    archive = write_archive(FILES)
    for at in range(len(archive)):
        for bit in range(8):
            odd = bytearray(archive)
            odd[at] ^= 1 << bit
            try:
                files, damaged = read_archive(bytes(odd))
            except BundleError:
                continue
            assert damaged or files == FILES


@given(st.binary(max_size=400))
def test_garbage_is_refused_without_a_traceback(garbage: bytes) -> None:
    with pytest.raises(BundleError):
        read_archive(garbage)


@given(st.lists(st.tuples(st.integers(0, 350), st.binary(max_size=6)), min_size=1, max_size=4))
def test_a_mangled_archive_is_refused_or_reads_as_some_files(cuts: list[tuple[int, bytes]]) -> None:
    odd = bytearray(write_archive(FILES))
    for at, piece in cuts:
        odd[at : at + len(piece)] = piece
    try:
        files, _ = read_archive(bytes(odd))
    except BundleError:
        return
    assert sorted(files) == sorted(FILES)
