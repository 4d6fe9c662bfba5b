"""Zips that two readers could read differently, section 11.1: nothing of them is read."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from tests.conformance.material import log
from tests.conformance.table import Made, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conformance.table import Row

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_NOTHING_READ = "L P C1 C2 R X"


@dataclass
class Member:
    """One file of a zip; what both headers say, and what only one of them says otherwise."""

    name: bytes
    content: bytes  # as packed
    both: dict[str, int] = field(default_factory=dict[str, int])
    local: dict[str, int] = field(default_factory=dict[str, int])
    central: dict[str, int] = field(default_factory=dict[str, int])
    local_name: bytes = b""
    extra_local: bytes = b""
    extra_central: bytes = b""
    before: bytes = b""  # in front of its header
    behind: bytes = b""  # behind its content


@dataclass
class Zip:
    """A whole zip, with what stands between and what its end record says."""

    members: list[Member]
    in_front: bytes = b""
    before_directory: bytes = b""
    behind: bytes = b""
    comment: bytes = b""
    end: dict[str, int] = field(default_factory=dict[str, int])
    end_magic: bytes = b"PK\x05\x06"

    def octets(self) -> bytes:
        """Put it together."""
        body, directory = self.in_front, b""
        for member in self.members:
            body += member.before
            said = {"crc": zlib.crc32(member.content), "packed": len(member.content), "size": len(member.content)}
            said |= {"needed": 20, "flags": 0, "method": 0, "time": 0, "date": 33, "offset": len(body)} | member.both
            body += _local(member, {**said, **member.local}) + member.content + member.behind
            directory += _central(member, {**said, **member.central})
        body += self.before_directory
        said = {"disk": 0, "first": 0, "here": len(self.members), "count": len(self.members)}
        said |= {"length": len(directory), "offset": len(body)} | self.end
        end = _END.pack(
            self.end_magic,
            *(said[name] for name in ("disk", "first", "here", "count", "length", "offset")),
            len(self.comment),
        )
        return body + directory + end + self.comment + self.behind


def _local(member: Member, said: dict[str, int]) -> bytes:
    name = member.local_name or member.name
    numbers = [said[name] for name in ("needed", "flags", "method", "time", "date", "crc", "packed", "size")]
    return _LOCAL.pack(b"PK\x03\x04", *numbers, len(name), len(member.extra_local)) + name + member.extra_local


def _central(member: Member, said: dict[str, int]) -> bytes:
    numbers = [said[name] for name in ("needed", "flags", "method", "time", "date", "crc", "packed", "size")]
    tail = (len(member.name), len(member.extra_central), 0, 0, 0, said.get("mode", 0o100644) << 16, said["offset"])
    made = _CENTRAL.pack(b"PK\x01\x02", said.get("made", 0x0314), *numbers, *tail)
    return made + member.name + member.extra_central


def _zip(*, without: str = "") -> Zip:
    files = sorted(log().files.items())
    return Zip([Member(name.encode(), content) for name, content in files if name != without])


def _of(change: Callable[[Zip], None]) -> Made:
    made = _zip()
    change(made)
    return Made(made.octets(), log().policy)


def _octets(change: Callable[[bytes], bytes]) -> Made:
    return Made(change(_zip().octets()), log().policy)


def _first(**changed: dict[str, int] | bytes) -> Made:
    made = _zip()
    for name, value in changed.items():
        setattr(made.members[0], name, value)
    return Made(made.octets(), log().policy)


def _added(name: str, content: bytes = b"x", **both: int) -> Made:
    made = _zip()
    made.members.append(Member(name.encode(), content, both))
    return Made(made.octets(), log().policy)


def _deflated(content: bytes, size: int | None = None, **said: int) -> Member:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(content) + packer.flush()
    both = {"method": 8, "crc": zlib.crc32(content), "size": len(content) if size is None else size} | said
    return Member(b"data/blobs/" + b"0" * 64 + b"/0", packed, both)


def _with(member: Member) -> Made:
    made = _zip()
    made.members.append(member)
    return Made(made.octets(), log().policy)


def _all_deflated() -> Made:
    made = _zip()
    for member in made.members:
        packed = _deflated(member.content)
        member.both, member.content = packed.both, packed.content
    return Made(made.octets(), log().policy)


def _front(made: Zip) -> None:
    made.in_front = b"MZ"


def _between(made: Zip) -> None:
    made.members[3].before = b"\x00"


def _before_directory(made: Zip) -> None:
    made.before_directory = b"\x00"


def _commented(made: Zip) -> None:
    made.comment = b"hello"


def _disks(made: Zip) -> None:
    made.end = {"disk": 1, "first": 1}


def _zip64(made: Zip) -> None:
    made.end = {"here": 0xFFFF, "count": 0xFFFF, "length": 0xFFFFFFFF, "offset": 0xFFFFFFFF}


def _counts_more(made: Zip) -> None:
    made.end = {"here": len(made.members) + 1, "count": len(made.members) + 1}


def _counts_less(made: Zip) -> None:
    made.end = {"here": len(made.members) - 1, "count": len(made.members) - 1}


def _overlapping(made: Zip) -> None:
    made.members[1].central = {"offset": 0}


def _twice(made: Zip) -> None:
    made.members.append(made.members[0])


def _larger_than_all(made: Zip) -> None:
    for number in range(17):  # 17 times 64 MiB, as the directory says
        name = b"data/blobs/" + b"%064d" % number + b"/0"
        made.members.append(Member(name, b"", {"method": 8, "size": 64 << 20, "packed": (64 << 20) // 200 + 1}))


def _too_many(made: Zip) -> None:
    made.members += [Member(b"data/blobs/" + b"0" * 64 + b"/%d" % number, b"") for number in range(10_001)]


_OTHER_HEADER = {
    "version": {"needed": 10},
    "flags": {"flags": 0x0800},
    "method": {"method": 8},
    "date": {"date": 34},
    "time": {"time": 1},
    "checksum": {"crc": 1},
    "size": {"size": 1},
    "packed_size": {"packed": 1},
}


def rows() -> Iterator[Row]:
    """Yield the cases of zips."""
    refused = partial(row, section="11.1", invalid="I", unproven=_NOTHING_READ)
    yield refused("zip_octets_in_front_fail", recipe=partial(_of, _front))
    yield refused("zip_octets_between_entries_fail", recipe=partial(_of, _between))
    yield refused("zip_octets_before_directory_fail", recipe=partial(_of, _before_directory))
    yield refused("zip_octets_behind_fail", recipe=partial(_octets, lambda data: data + b"\x00"))
    yield refused("zip_cut_fail", recipe=partial(_octets, lambda data: data[:-1]))
    yield refused("zip_cut_in_the_middle_fail", recipe=partial(_octets, lambda data: data[: len(data) // 2]))
    yield refused("zip_second_archive_fail", recipe=partial(_octets, lambda data: data + log("another").bundle))
    yield refused("zip_comment_fail", recipe=partial(_of, _commented))
    yield refused("zip_several_disks_fail", recipe=partial(_of, _disks))
    yield refused("zip_zip64_fail", recipe=partial(_of, _zip64))
    yield refused("zip_counts_more_fail", recipe=partial(_of, _counts_more))
    yield refused("zip_counts_less_fail", recipe=partial(_of, _counts_less))
    yield refused("zip_overlapping_fail", recipe=partial(_of, _overlapping))
    yield refused("zip_empty_fail", recipe=partial(_octets, lambda _: b""))
    yield refused("zip_is_none_fail", recipe=partial(_octets, lambda _: b"not a zip at all, and longer than 22 octets"))
    for what, said in _OTHER_HEADER.items():
        yield refused(f"zip_other_{what}_in_local_header_fail", recipe=partial(_first, local=said))
    yield refused("zip_other_name_in_local_header_fail", recipe=partial(_first, local_name=b"README.TXT"))
    yield refused("zip_extra_field_in_directory_fail", recipe=partial(_first, extra_central=b"ab\x00\x00"))
    yield refused("zip_extra_field_in_local_header_fail", recipe=partial(_first, extra_local=b"ab\x00\x00"))
    yield refused("zip_encrypted_fail", recipe=partial(_first, both={"flags": 1}))
    yield refused("zip_data_descriptor_fail", recipe=partial(_first, both={"flags": 8}, behind=bytes(12)))
    yield refused("zip_bzip2_fail", recipe=partial(_first, both={"method": 12}))
    yield refused("zip_link_fail", recipe=partial(_first, central={"mode": 0o120777}))
    yield refused("zip_device_fail", recipe=partial(_first, central={"mode": 0o020644}))
    yield refused("zip_folder_mode_fail", recipe=partial(_first, central={"mode": 0o040755}))
    yield refused("zip_folder_fail", recipe=partial(_added, "data/empty/", b""))
    for what, name in {
        "absolute": "/data/x",
        "parent": "data/../x",
        "dot": "data/./x",
        "backslash": "data\\x",
        "empty_segment": "data//x",
        "space": "data/a b",
        "drive": "C:x",
        "not_ascii": "data/ä",
        "control_character": "data/\x01",
        "long": "data/" + "x" * 251,
    }.items():
        yield refused(f"zip_name_{what}_fail", recipe=partial(_added, name))
    yield refused("zip_name_twice_fail", recipe=partial(_of, _twice))
    yield refused("zip_name_in_other_case_fail", recipe=partial(_added, "readme.TXT"))
    yield refused("zip_file_is_folder_fail", recipe=partial(_added, "README.txt/x"))
    yield refused("zip_file_is_grand_folder_fail", recipe=partial(_added, "README.txt/x/y"))
    yield refused("zip_too_many_files_fail", recipe=partial(_of, _too_many))
    yield refused("zip_file_too_large_fail", recipe=partial(_with, _deflated(b"x", (64 << 20) + 1, packed=400_000)))
    yield refused("zip_all_too_large_fail", recipe=partial(_of, _larger_than_all))
    yield refused("zip_bomb_fail", recipe=partial(_with, _deflated(bytes(1 << 20))))
    yield refused("zip_unpacks_to_more_fail", recipe=partial(_with, _deflated(b"abc" * 5, 14)))
    yield refused("zip_unpacks_to_less_fail", recipe=partial(_with, _deflated(b"abc" * 5, 16)))
    yield refused("zip_stored_size_differs_fail", recipe=partial(_first, both={"size": 1}))
    # A checksum that does not fit is a changed file, and no more.
    yield row("zip_checksum_fail", "11.1", partial(_first, both={"crc": 1}), invalid="I")
    yield row("zip_deflated", "11.1", _all_deflated)
