"""Packs: many small files in few large ones, for bundles of more files than a zip of ours may have.

docs/format.md section 11.4. A pack is one file behind the other, each a line `<length> <name>` and then its octets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from a2a_ledger.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PACKS: Final = "data/packs/"
MAX_PACKED: Final = 2_000_000
"""Files in all packs of a bundle."""

_FULL = 4 << 20  # octets from which on a pack takes no more files
_HEAD = re.compile(rb"(0|[1-9][0-9]{0,8}) ([A-Za-z0-9._/-]{1,255})\n")
_LONGEST_HEAD = 9 + 1 + 255 + 1
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


def unpack(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a zip with those of its packs in their place.

    Raises:
        BundleError: A pack is missing between two, or is none; a file stands twice, or where it must not.
    """
    found = {name: data for name, data in files.items() if not name.startswith(PACKS)}
    for name in found:
        if is_packed(name):
            raise BundleError(f"{name}: stands beside the packs, expected in one")
    outside = len(found)
    for number in range(len(files) - outside):
        pack = f"{PACKS}{number}"
        if pack not in files:
            raise BundleError(f"{pack} is missing: packs are numbered from 0 without a gap")
        data, at = files[pack], 0
        while at < len(data):
            head = _HEAD.match(data, at, at + _LONGEST_HEAD)
            if head is None:
                raise BundleError(f"{pack}: at byte {at} expected '<length> <name>' and a line feed")
            length, name = int(head[1]), head[2].decode("ascii")
            at = head.end() + length
            if at > len(data):
                raise BundleError(f"{pack}: {name} breaks off")
            if name in found or not is_packed(name):
                raise BundleError(f"{pack}: {name} stands there twice, or is no file that a pack has")
            found[name] = data[head.end() : at]
            if len(found) - outside > MAX_PACKED:
                raise BundleError(f"more than {MAX_PACKED} files, which a bundle may have")
    return found
