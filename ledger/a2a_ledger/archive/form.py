"""The form of a bundle's zip: its headers, its limits, and the names that an entry can have (docs/format.md 11.1)."""

from __future__ import annotations

import re
import struct

from a2a_ledger.errors import BundleError

MAX_FILES = 10_000
MAX_TOTAL = 1 << 30
MAX_FILE = 64 << 20
MAX_RATIO = 200
"""Files, octets of all of them, octets of one, and octets unpacked from one."""

LOCAL = struct.Struct("<4s5H3I2H")
CENTRAL = struct.Struct("<4s6H3I5H2I")
END = struct.Struct("<4s4H2IH")
LOCAL_MAGIC, CENTRAL_MAGIC, END_MAGIC = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
STORED, DEFLATED = 0, 8
_NAME = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*")
_MAX_NAME = 255


def check_names(names: list[str]) -> None:
    """Refuse names that two systems would read as two places, or that meet another name."""
    seen: dict[str, str] = {}
    for name in names:
        segments = name.split("/")
        if not _NAME.fullmatch(name) or len(name) > _MAX_NAME or ".." in segments or "." in segments:
            raise BundleError(f"{name!r} is not a plain relative file name (letters, digits, . _ - and /)")
        folded = name.lower()
        if folded in seen:
            raise BundleError(f"{name!r} and {seen[folded]!r} are one name on some systems")
        seen[folded] = name
    for folded, name in seen.items():
        folder = folded
        while folder := folder.rpartition("/")[0]:
            if folder in seen:
                raise BundleError(f"{seen[folder]!r} is a file and the folder of {name!r} at once")
