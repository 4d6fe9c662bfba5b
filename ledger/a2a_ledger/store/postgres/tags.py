"""Lookup tags as PostgreSQL can hold them: a cell has no NUL, and a key of an index at most some 2,700 octets.

Tags hold ids and urls as the wire had them, of any length and with any character.
"""

from __future__ import annotations

import hashlib

LONGEST = 1000  # octets of a tag that stands in its cell as it is
_KEPT = 200  # characters of a longer one, at most
_CUT = "\x01"


def tag_cell(tag: str) -> str:
    """Return a tag as it is where that is possible, else its beginning, U+0001, and the SHA-256 of all of it, in hex.

    A beginning of at most 200 characters without NUL still finds it. What this returns is its own cell.
    """
    octets = tag.encode()
    if len(octets) <= LONGEST and "\0" not in tag:
        return tag
    beginning = tag[:_KEPT].partition("\0")[0]
    return f"{beginning}{_CUT}{hashlib.sha256(octets).hexdigest()}"
