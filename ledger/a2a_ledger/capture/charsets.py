"""Declared charsets in which ASCII signs are spelled otherwise: what is left of a body must show no secret there. Pure.

In all others what is looked for as it is in UTF-8 is found, and UTF-16 and UTF-32 are read whatever is declared.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from a2a_ledger.capture.spelled import find_spelled

if TYPE_CHECKING:
    from collections.abc import Sequence

_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)", re.IGNORECASE)
_OF_EBCDIC = ("037", "273", "424", "500", "875", "1026", "1140")
_CODECS = {
    **{f"{prefix}{page}": f"cp{page}" for page in _OF_EBCDIC for prefix in ("cp", "ibm", "ebcdiccp", "ccsid")},
    "utf7": "utf-7",
    "unicode11utf7": "utf-7",
    "csutf7": "utf-7",
    "hz": "hz",
    "hzgb2312": "hz",
}
"""Charsets by their names, letters and digits only. A name out of an answer is never looked up anywhere else."""


def shows_in_charset(content_type: str, octets: bytes, wanted: Sequence[bytes]) -> bool:
    """Say whether octets show something wanted to who reads them in their declared charset.

    Args:
        content_type: the header.
        octets: what would be recorded, with `*` for what is cut.
        wanted: octet strings.
    """
    declared = _CHARSET.search(content_type)
    codec = _CODECS.get(re.sub(r"[^a-z0-9]", "", declared[1].lower())) if declared and wanted else None
    return codec is not None and bool(find_spelled(octets.decode(codec, "replace").encode("utf-8", "replace"), wanted))
