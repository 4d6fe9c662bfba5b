"""What redaction cut out of a text that a rule would compare: of it nothing is known but its length. Pure.

A credential, and whatever the deployment's own redaction names, is a hole in a blob and `*` for each octet in a field
(docs/format.md section 3). Two texts of which one was cut may be the same, so none of them contradicts the other.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from a2a_ledger.address import authority_of, host_spellings, origin_of, wire_url
from a2a_ledger.codec import Hole
from a2a_ledger.divergence.reading import (
    STAR,
    TILDE,
    content,
    is_inbound,
    json_object,
    leg_of,
    message_body,
    request_leg_of,
    text,
    texts_of_header,
)

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from a2a_ledger.codec import Part, Record

HIDDEN = "\ud800"
"""Stands for one octet that was cut: no text that was decoded has it."""
_STAR = ord("*")
_HALF_ESCAPE = re.compile("%[0-9A-Fa-f]?$")


def has_holes(record: Record, role: str) -> bool:
    """Say whether something is missing out of a blob."""
    return any(isinstance(part, Hole) for part in record.stored_parts(role) or ())


def cut_url(record: Record) -> str | None:
    """Return a request's url that something is missing out of in front of its query, `HIDDEN` for each octet of it.

    None: nothing is missing there. User info is left out.
    """
    if not has_holes(record, "url"):
        return None
    stars, tildes = (content(record, "url", sign) or b"" for sign in (STAR, TILDE))
    return _cut_place(stars.decode("utf-8", "replace"), tildes.decode("utf-8", "replace"))


def cut_location(record: Record) -> str | None:
    """Return in the same way where an answer sends its client."""
    stars, tildes = leg_of(record).redirect, leg_of(record, TILDE).redirect
    return None if stars is None else _cut_place(stars, tildes or "")


def may_be_at(url: str, base: str, binding: str) -> bool:
    """Say whether a url that something was cut out of may be at an interface, or below it.

    Scheme, authority and path are compared as far as they stand in front of the first hole. An authority with a hole
    in it may be any of its length that has what is left of it.

    Args:
        url: as of `cut_url`.
        base: the interface's, as it goes over the wire, without slashes at the end.
        binding: of the interface, in capitals; one of JSON-RPC has nothing below it.
    """
    scheme, slashes, rest = base.partition("://")
    if not slashes:
        return True  # a gRPC target: no answer leads on from one
    head = url.partition(HIDDEN)[0]
    if "/" not in head.partition("://")[2]:
        origins = {f"{scheme}://{rest.partition('/')[0]}", *(origin_of(one) for one in host_spellings(base))}
        return any(_fits(url, origin) for origin in origins)
    if binding == "GRPC":
        return authority_of(head) == authority_of(base)
    place = wire_url(_HALF_ESCAPE.sub("", head)).partition("?")[0]
    if f"{base}/".startswith(place):
        return True
    below = place.removeprefix(base)
    if below == place:
        return False
    return not below.strip("/") if binding == "JSONRPC" else below.startswith(("/", ":"))


def _fits(url: str, origin: str) -> bool:
    """Say whether a url may begin with an origin, and the origin end there."""
    pairs = zip(url, origin, strict=False)
    same = len(url) >= len(origin) and all(x == HIDDEN or x.lower() == y.lower() for x, y in pairs)
    return same and url[len(origin) :][:1] in {"", "/", ":", HIDDEN}


def _cut_place(stars: str, tildes: str) -> str | None:
    if len(stars) != len(tildes):
        return HIDDEN * len(stars)
    url = "".join(HIDDEN if x != y else x for x, y in zip(stars, tildes, strict=True))
    place = re.split(r"[?#]", url, maxsplit=1)[0]
    scheme, slashes, rest = place.partition("://")
    authority, slash, path = rest.partition("/")
    place = f"{scheme}{slashes}{authority.rpartition('@')[2]}{slash}{path}"
    return place if HIDDEN in place else None


def url_is_cut(record: Record) -> bool:
    """Say whether something is missing out of a record's url in front of its query, user info apart."""
    return _place_is_cut(record.stored_parts("url") or ())


def location_is_cut(record: Record) -> bool:
    """Say whether something is missing out of where an answer sends its client, in front of the query."""
    return cut_location(record) is not None


def header_is_cut(record: Record, name: str) -> bool:
    """Say whether something is missing out of a header's value; `name` in lower case."""
    return any(has_holes(record, role) for role in _roles(record, name))


def hides_history_length(record: Record) -> bool:
    """Say whether a request that shows no `historyLength` may have asked for one: its name or its value was cut."""
    if has_holes(record, "body"):
        body = message_body(record) or b""
        return b"istoryLength" in body or json_object(body) is None
    if not has_holes(record, "url"):
        return False
    query = (content(record, "url") or b"").partition(b"?")[2]
    names = [pair.partition(b"=")[0] for pair in query.split(b"&")]
    return url_is_cut(record) or any(b"*" in name or b"istoryLength" in name for name in names)


def cut_ids(record: Record) -> tuple[str, ...]:
    """Return which of a message's ids something was cut out of; in another one a star is the peer's own."""
    named = [text(record.data, name) or "" for name in ("task_id", "context_id")]
    if "*" not in "".join(named) or not (has_holes(record, "body") or has_holes(record, "url")):
        return ()
    read = leg_of if is_inbound(record) else request_leg_of
    first, second = read(record), read(record, TILDE)
    read_twice = ((first.task_id, second.task_id), (first.context_id, second.context_id))
    return tuple(one for one, twice in zip(named, read_twice, strict=True) if "*" in one and set(twice) != {one})


def may_be_same(one: str, other: str, cut: Container[str]) -> bool:
    """Say whether two texts are one, for all that is left of those that were `cut`."""
    if one == other:
        return True
    a, b = one.encode("utf-8", "replace"), other.encode("utf-8", "replace")
    wild = (_STAR if one in cut else -1, _STAR if other in cut else -1)
    return len(a) == len(b) and all(x == y or x == wild[0] or y == wild[1] for x, y in zip(a, b, strict=True))


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
