"""Packs: many small files in few large ones, for bundles of more files than a zip of ours may have.

docs/format.md section 11.4. A pack is one file behind the other, each a line `<length> <name>` and then its octets.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from a2a_ledger.archive.form import MAX_FILE
from a2a_ledger.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Callable

PACKS: Final = "data/packs/"
MAX_PACKED: Final = 2_000_000
"""Files in all packs of a bundle."""

_FULL = 4 << 20  # octets from which on a pack takes no more files
_HEAD = re.compile(rb"(0|[1-9][0-9]{0,8}) ([A-Za-z0-9._/-]{1,255})\n")
_LONGEST_HEAD = 9 + 1 + 255 + 1
_RECENT = 1024
_SMALL, _RECORD = 32, 64 << 10  # octets that a salt may have, and a record: every other kind may have more
_PACK_SIZE = MAX_FILE + 1  # so that a place is one number
_NUMBER_BITS = 21  # hold every number below MAX_PACKED
_NUMBER = (1 << _NUMBER_BITS) - 1
_HASH = (1 << (64 - _NUMBER_BITS)) - 1
_PACKED = re.compile(
    r"data/records/[0-9]+\.(?:json|salt)|data/log/proofs/[0-9]+\.tlog-proof|data/statements/[0-9]+\.dsse\.json"
    r"|data/blobs/[0-9a-f]{64}/[0-9]+(?:\.salt|\.hole)?"
)


def is_packed(name: str) -> bool:
    """Say whether a file of this name stands in a pack, where there are packs."""
    return _PACKED.fullmatch(name) is not None


class PackWriter:
    """Collects files into packs, and hands each pack on when it is full."""

    def __init__(self, hand_on: Callable[[str, bytes], None]) -> None:
        self._hand_on = hand_on
        self._pack = bytearray()
        self._count = 0
        self.files = 0

    def add(self, name: str, data: bytes) -> None:
        """Put a file behind those before it.

        Raises:
            BundleError: These are more files than a bundle may have, or of another name.
        """
        if not is_packed(name):
            raise BundleError(f"{name}: no file of this name stands in a pack")
        self.files += 1
        if self.files > MAX_PACKED:
            raise BundleError(f"more than {MAX_PACKED} files, which a bundle may have")
        self._pack += b"%d %b\n" % (len(data), name.encode("ascii"))
        self._pack += data
        if len(self._pack) >= _FULL:
            self.close()

    def close(self) -> None:
        """Hand on what is left."""
        if self._pack:
            self._hand_on(f"{PACKS}{self._count}", bytes(self._pack))
            self._pack.clear()
            self._count += 1


class PackedFiles(Mapping[str, bytes]):
    """The files of a zip with those of its packs in their place. Of a file in a pack no more is held than where it is.

    That takes 16 octets a file: where its line begins, and 43 bits of a hash of its name beside its number, sorted.

    Attributes:
        outside: the names of the files that are in no pack.
        counts: how many files in packs there are in each folder under `data/`.
        large: name and octets of each file in packs that may be larger than one of its kind.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        """Look through the packs of a zip.

        Raises:
            BundleError: A pack is missing between two, or is none; a file stands twice, or where it must not.
        """
        self._files = files
        self.outside = {name: None for name in files if not name.startswith(PACKS)}
        for name in self.outside:
            if is_packed(name):
                raise BundleError(f"{name}: stands beside the packs, expected in one")
        self._places = array("Q")
        self._recent: dict[str, _Found] = {}
        self.counts: Counter[str] = Counter()
        self.large: list[tuple[str, int]] = []
        keys = array("Q")
        for pack in self._packs():
            for line in _lines(pack, files[pack]):
                if not is_packed(line.name):
                    raise _misplaced(pack, line.name)
                if len(keys) == MAX_PACKED:
                    raise BundleError(f"more than {MAX_PACKED} files, which a bundle may have")
                keys.append(_key(line.name) | len(keys))
                self.counts[line.name.split("/", 2)[1]] += 1
                if line.length > (_SMALL if line.name.endswith((".salt", ".hole")) else _RECORD):
                    self.large.append((line.name, line.length))
                self._places.append(int(pack.removeprefix(PACKS)) * _PACK_SIZE + line.at)
        self._keys = array("Q", sorted(keys))
        for one, other in pairwise(self._keys):
            if one >> _NUMBER_BITS == other >> _NUMBER_BITS:
                self._check_differ(one & _NUMBER, other & _NUMBER)

    @property
    def count(self) -> int:
        """Return how many files there are in packs."""
        return len(self._places)

    def number(self, name: str) -> int | None:
        """Return which of the files in packs this is, counted from 0; None: none of them."""
        found = self._find(name)
        return None if found is None else found.number

    def names(self) -> Iterator[str]:
        """Yield the name of each file in packs, in the order in which they are numbered."""
        for pack in self._packs():
            for line in _lines(pack, self._files[pack]):
                yield line.name

    def __getitem__(self, name: str) -> bytes:
        if name in self.outside:
            return self._files[name]
        found = self._find(name)
        if found is None:
            raise KeyError(name)
        return self._pack(found.number)[found.start : found.end]

    def __contains__(self, name: object) -> bool:
        return name in self.outside or (isinstance(name, str) and self._find(name) is not None)

    def __iter__(self) -> Iterator[str]:
        yield from self.outside
        yield from self.names()

    def __len__(self) -> int:
        return len(self.outside) + len(self._places)

    def _packs(self) -> Iterator[str]:
        """Yield the names of the packs in their order."""
        for number in range(len(self._files) - len(self.outside)):
            if f"{PACKS}{number}" not in self._files:
                raise BundleError(f"{PACKS}{number} is missing: packs are numbered from 0 without a gap")
            yield f"{PACKS}{number}"

    def _find(self, name: str) -> _Found | None:
        """Return where a file is. What was found last is looked up several times in a row."""
        found = self._recent.get(name)
        if found is None:
            wanted, key = name.encode("ascii", "replace"), _key(name) >> _NUMBER_BITS
            at = bisect_left(self._keys, key << _NUMBER_BITS)
            while at < len(self._keys) and self._keys[at] >> _NUMBER_BITS == key:
                number = self._keys[at] & _NUMBER
                head = self._head(number)
                if head[2] == wanted:
                    found = _Found(number, head.end(), head.end() + int(head[1]))
                    if len(self._recent) == _RECENT:
                        self._recent.clear()
                    self._recent[name] = found
                    break
                at += 1
        return found

    def _pack(self, number: int) -> bytes:
        """Return the pack that a file stands in."""
        return self._files[f"{PACKS}{self._places[number] // _PACK_SIZE}"]

    def _head(self, number: int) -> re.Match[bytes]:
        """Return the line in front of a file, which was read before."""
        at = self._places[number] % _PACK_SIZE
        return cast("re.Match[bytes]", _HEAD.match(self._pack(number), at, at + _LONGEST_HEAD))

    def _check_differ(self, one: int, other: int) -> None:
        if (name := self._head(one)[2]) == self._head(other)[2]:
            raise _misplaced(f"{PACKS}{self._places[other] // _PACK_SIZE}", name.decode())


class _Found(NamedTuple):
    """A file in packs: its number, and where it begins and ends in its pack."""

    number: int
    start: int
    end: int


class _Line(NamedTuple):
    """The line in front of a file in a pack: where it begins, the file's name and length."""

    at: int
    name: str
    length: int


def _lines(pack: str, data: bytes) -> Iterator[_Line]:
    """Yield the line of each file of a pack."""
    at = 0
    while at < len(data):
        head = _HEAD.match(data, at, at + _LONGEST_HEAD)
        if head is None:
            raise BundleError(f"{pack}: at byte {at} expected '<length> <name>' and a line feed")
        length, name = int(head[1]), head[2].decode("ascii")
        end = head.end() + length
        if end > len(data):
            raise BundleError(f"{pack}: {name} breaks off")
        yield _Line(at, name, length)
        at = end


def _key(name: str) -> int:
    """Return 43 bits of a hash of a name, above the bits of a number."""
    return (hash(name) & _HASH) << _NUMBER_BITS


def _misplaced(pack: str, name: str) -> BundleError:
    return BundleError(f"{pack}: {name} stands there twice, or is no file that a pack has")
