"""Records: how an event becomes the bytes that are hashed, and the bytes that are stored.

R is the canonical JSON of exactly ten members (docs/format.md section 3):

    {"at":…Z,"blobs":{role:{"id","kept","size"}},"data":{…},"how":…,"log":origin,"prev":hex|null,
     "stream":…,"type":…,"v":1,"ver":n}

What was hashed is what is stored: nothing is ever re-encoded to be verified. The container around
it (module `container`, section 13) is storage, not evidence. This module gathers the names of those
below it (canonical, commitments, container, record, tags), so that others import from one place.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.codec.canonical import MAX_DEPTH, MAX_SAFE, canonical, parse_canonical, timestamp
from a2a_ledger.codec.commitments import (
    SECRET,
    Hole,
    Kept,
    Part,
    Rest,
    SealedBlob,
    blob_id,
    commitment,
    findings_key,
    leaf,
    part_hash,
    stream_commitment,
    stream_tag,
    task_id,
)
from a2a_ledger.codec.container import (
    NONCES,
    SEALED_ROW,
    Boxes,
    FindBoxes,
    Place,
    SealedParts,
    pack_container,
    pack_parts,
    pack_sealed,
    pack_sealed_parts,
    sealed_by,
    unpack_container,
    unpack_parts,
)
from a2a_ledger.codec.fields import data_of
from a2a_ledger.codec.holes import (
    NEVER_CUT,
    LaterHoles,
    changed_holes,
    count_holes,
    erased_versions,
    later_holes,
    recorded_holes,
    says_erased,
    states_holes,
)
from a2a_ledger.codec.placing import PLACES, STREAM_KINDS, STREAM_NAMES, misplaced
from a2a_ledger.codec.record import HOWS, KEPT, MAX_RECORD, BlobRef, Parts, Record, StoredParts, read_parts, read_record
from a2a_ledger.codec.tags import finding_tag, tags_of
from a2a_ledger.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from a2a_ledger.events import Event, JsonObject

__all__ = [
    "MAX_DEPTH",
    "MAX_HEADERS",
    "MAX_INLINE",
    "MAX_RECORD",
    "MAX_SAFE",
    "NEVER_CUT",
    "NONCES",
    "PLACES",
    "SEALED_ROW",
    "SECRET",
    "STREAM_KINDS",
    "STREAM_NAMES",
    "BlobRef",
    "Boxes",
    "Content",
    "Draft",
    "FindBoxes",
    "Hole",
    "Kept",
    "LaterHoles",
    "Part",
    "Parts",
    "Place",
    "Record",
    "Rest",
    "SealedBlob",
    "SealedParts",
    "StoredParts",
    "Withheld",
    "blob_id",
    "canonical",
    "changed_holes",
    "commitment",
    "count_holes",
    "draft",
    "erased_versions",
    "finding_tag",
    "findings_key",
    "later_holes",
    "leaf",
    "misplaced",
    "pack_container",
    "pack_parts",
    "pack_sealed",
    "pack_sealed_parts",
    "parse_canonical",
    "part_hash",
    "read_parts",
    "read_record",
    "recorded_holes",
    "says_erased",
    "seal",
    "sealed_by",
    "stands_at",
    "states_holes",
    "stream_commitment",
    "stream_tag",
    "tags_of",
    "task_id",
    "timestamp",
    "unpack_container",
    "unpack_parts",
]

MAX_INLINE = 64 * 1024
"""Octets of a blob up to which its parts lie in the event's own row."""

MAX_HEADERS = 16
"""Header blobs of one record at most."""

_PLACE = 128 + 66 + 20 + 100  # log, prev, ver and a stream commitment at their longest
_ROLE = re.compile(r"[a-z0-9.-]{1,64}")
_USUAL_ROLES = frozenset({"body", "error", "url", *(f"header.{n:02}" for n in range(MAX_HEADERS))})
_STREAM_NAME = re.compile(r"ledger|anchors|(?:task|peer|findings):[A-Za-z0-9:._-]{1,100}")


class Withheld(NamedTuple):
    """A part whose octets and salt are never stored: a credential, or the tail over the size limit."""

    content: bytes


@dataclass(frozen=True, slots=True)
class Content:
    """What a caller hands in for one blob: its parts in order, and what the size limit kept."""

    parts: tuple[bytes | Withheld | Hole, ...]
    """A hole as it is: its octets were hashed as they passed, under a salt that nobody has any more."""
    kept: str = "all"  # all head none

    @classmethod
    def of(cls, content: bytes) -> Content:
        """Return a content of one whole part."""
        return cls((content,))


class Draft(NamedTuple):
    """A fact before it has a place in the log: made outside of any lock.

    Its salt is the identity of the append: handing the same draft in again is a retry, never a
    second event.
    """

    stream: str
    type: str
    at: str
    how: str
    data: bytes  # canonical JSON of the event's fields
    salt: bytes
    blobs: Mapping[str, SealedBlob]  # by role
    tags: tuple[str, ...]
    head: bytes  # R up to the value of "log"
    tail: bytes  # R from "stream" up to the value of "ver"


def draft(  # noqa: PLR0913 - a fact has this many independent sides, and all are named at the call
    event: Event,
    *,
    stream: str,
    at: datetime,
    entropy: Callable[[int], bytes],
    blobs: Mapping[str, Content | bytes] | None = None,
    how: str = "live",
) -> Draft:
    """Seal an event's fields and blobs: everything that does not depend on the head of the log.

    Args:
        event: One of the closed table; `stream_commitment` is left to the store, `holes` are counted here (a log's
            first event states an empty one).
        stream: `ledger`, `anchors`, `peer:…`, `task:…` or `findings:…`.
        at: Our clock, with a time zone.
        entropy: Gives that many random octets; read once for all salts of the record.
        blobs: Content by role; at most 16 roles that begin with `header.`.
        how: `live`, `import` or `derived`.

    Raises:
        FormatError: A value outside of the record profile, a record over 64 KiB, too many headers,
            an unknown stream or how.
    """
    if not _STREAM_NAME.fullmatch(stream):
        raise FormatError(
            f"expected a stream named ledger, anchors, peer:…, task:… or findings:…, found {stream[:80]!a}"
        )
    if how not in HOWS:
        raise FormatError(f"expected how to be one of {', '.join(sorted(HOWS))}, found {how!a}")
    if event.stream_commitment is not None:
        raise FormatError("expected no stream_commitment in a draft: the store states it in version 0")
    if event.holes:
        raise FormatError("expected no holes in a draft: they are counted here")
    sealed, salt = _seal_blobs(blobs or {}, entropy)
    data = data_of(event)
    holes: JsonObject = {role: count for role, blob in sealed.items() if (count := count_holes(blob.parts))}
    if holes:
        data["holes"] = holes
    data_bytes = canonical(data, depth=MAX_DEPTH - 1)
    spelled = timestamp(at)
    head = _head(spelled, sealed, data_bytes, how)
    tail = _tail(stream, event.TYPE)
    if len(head) + len(tail) + _PLACE > MAX_RECORD:
        raise FormatError(
            f"expected a record of at most {MAX_RECORD} octets, found about {len(head) + len(tail)} in {event.TYPE}; "
            "long values belong in a blob"
        )
    tags = tags_of(stream, event.TYPE, data)
    return Draft(stream, event.TYPE, spelled, how, data_bytes, salt, sealed, tags, head, tail)


def seal(
    draft: Draft, *, log: str, ver: int, prev: str | None, stream_commitment: str | None = None
) -> tuple[bytes, bytes]:
    """Give a draft its place: return R and c (32 octets).

    `stream_commitment` is stated in version 0 of every stream that is not a task's.
    """
    head = draft.head
    if stream_commitment is not None:
        data = cast("JsonObject", json.loads(draft.data))
        data["stream_commitment"] = stream_commitment
        head = _head(draft.at, draft.blobs, canonical(data, depth=MAX_DEPTH - 1), draft.how)
    spelled = b"null" if prev is None else b'"%s"' % prev.encode()
    raw = b'%s%s","prev":%s%s%d}' % (head, log.encode(), spelled, draft.tail, ver)
    return raw, commitment(draft.salt, raw)


def stands_at(raw: bytes, stream: str, event_type: str, ver: int) -> bool:
    """Say whether R, known to be what this package wrote, is of this stream, type and version; nothing is parsed."""
    return raw.endswith(b"%s%d}" % (_tail(stream, event_type), ver))


def _tail(stream: str, event_type: str) -> bytes:
    """Return R from `stream` up to the value of `ver`, its last member."""
    return b',"stream":"%s","type":"%s","v":1,"ver":' % (stream.encode(), event_type.encode())


def _head(at: str, blobs: Mapping[str, SealedBlob], data: bytes, how: str) -> bytes:
    """Return R up to the opening quote of the value of `log`."""
    refs = ",".join(
        f'"{role}":{{"id":"{blob.id.hex()}","kept":"{blob.kept}","size":{blob.size}}}' for role, blob in blobs.items()
    )
    return b'{"at":"%s","blobs":{%s},"data":%s,"how":"%s","log":"' % (at.encode(), refs.encode(), data, how.encode())


def _seal_blobs(
    blobs: Mapping[str, Content | bytes], entropy: Callable[[int], bytes]
) -> tuple[dict[str, SealedBlob], bytes]:
    """Return the sealed blobs, sorted by role, and the record's own salt, all salts from one read of entropy."""
    counts = [len(content.parts) if isinstance(content, Content) else 1 for content in blobs.values()]
    wanted = SECRET * (1 + sum(counts))
    salts = entropy(wanted)
    if len(salts) != wanted:
        raise FormatError(f"expected {wanted} octets of entropy, found {len(salts)}")
    at = SECRET
    headers = 0
    sealed: dict[str, SealedBlob] = {}
    for role in sorted(blobs):
        if role not in _USUAL_ROLES and not _ROLE.fullmatch(role):
            raise FormatError(f"expected a blob's role of lower-case letters, digits, dots and hyphens, found {role!a}")
        headers += role.startswith("header.")
        content = blobs[role]
        if isinstance(content, Content):
            end = at + SECRET * len(content.parts)
            sealed[role] = _sealed(role, content, salts[at:end])
        else:  # the usual case: one whole part
            end = at + SECRET
            part = Kept(salts[at:end], content)
            sealed[role] = SealedBlob(blob_id((part,)), "all", len(content), (part,))
        at = end
    if headers > MAX_HEADERS:
        raise FormatError(f"expected at most {MAX_HEADERS} kept headers, found {headers}")
    return sealed, salts[:SECRET]


def _sealed(role: str, content: Content, salts: bytes) -> SealedBlob:
    if content.kept not in KEPT:
        raise FormatError(f"expected kept to be one of {', '.join(sorted(KEPT))}, found {content.kept!a}")
    if not content.parts:
        raise FormatError(f"expected at least one part in blob {role}, found none; an empty blob is one empty part")
    parts: list[Part] = []
    size = 0
    for index, item in enumerate(content.parts):
        salt = salts[SECRET * index : SECRET * (index + 1)]
        if isinstance(item, Withheld):
            parts.append(Hole(len(item.content), part_hash(salt, item.content)))
            size += len(item.content)
        elif isinstance(item, Hole):
            parts.append(item)
            size += item.length
        else:
            parts.append(Kept(salt, item))
            size += len(item)
    return SealedBlob(blob_id(parts), content.kept, size, tuple(parts))
