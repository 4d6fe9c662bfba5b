"""What redaction cut out of a text that a rule would compare: of it nothing is known but its length. Pure.

A credential, and whatever the deployment's own redaction names, is a hole in a blob and `*` for each octet in a field
(docs/format.md section 3). Two texts of which one was cut may be the same, so none of them contradicts the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.codec import Hole
from a2a_ledger.divergence.reading import content, json_object, texts_of_header

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.codec import Part, Record

_STAR = ord("*")


def has_holes(record: Record, role: str) -> bool:
    """Say whether something is missing out of a blob."""
    return any(isinstance(part, Hole) for part in record.stored_parts(role) or ())


def url_is_cut(record: Record) -> bool:
    """Say whether something is missing out of a record's url in front of its query, user info apart."""
    return _place_is_cut(record.stored_parts("url") or ())


def location_is_cut(record: Record) -> bool:
    """Say whether something is missing out of where an answer sends its client, in front of the query."""
    return any(_place_is_cut(record.stored_parts(role) or ()) for role in _roles(record, "location"))


def header_is_cut(record: Record, name: str) -> bool:
    """Say whether something is missing out of a header's value; `name` in lower case."""
    return any(has_holes(record, role) for role in _roles(record, name))


def hides_history_length(record: Record) -> bool:
    """Say whether a request that shows no `historyLength` may have asked for one: its name or its value was cut."""
    if has_holes(record, "body"):
        body = content(record, "body") or b""
        return b"istoryLength" in body or json_object(body) is None
    if not has_holes(record, "url"):
        return False
    query = (content(record, "url") or b"").partition(b"?")[2]
    names = [pair.partition(b"=")[0] for pair in query.split(b"&")]
    return url_is_cut(record) or any(b"*" in name or b"istoryLength" in name for name in names)


def may_be_same(one: str, other: str) -> bool:
    """Say whether two texts are one, for all that is left of them."""
    if one == other:
        return True
    if "*" not in one and "*" not in other:
        return False
    a, b = one.encode("utf-8", "replace"), other.encode("utf-8", "replace")
    return len(a) == len(b) and all(x == y or _STAR in {x, y} for x, y in zip(a, b, strict=True))


def _roles(record: Record, name: str) -> list[str]:
    headers = (role for role in sorted(record.blobs) if role.startswith("header."))
    return [role for role in headers if texts_of_header(content(record, role))[0].lower() == name]


def _place_is_cut(parts: Sequence[Part]) -> bool:
    octets = [None if isinstance(part, Hole) else part.content for part in parts]
    for at, part in enumerate(octets):
        if part is None:
            before, behind = octets[at - 1] if at else None, octets[at + 1] if at + 1 < len(octets) else None
            is_user_info = (before or b"").endswith(b"//") and (behind or b"").startswith(b"@")
            if not is_user_info:
                return True
        elif b"?" in part or b"#" in part:
            return False
    return False
