"""A record as read back: one event with its place, its salt, its exact bytes and its blobs.

Reading is strict: R must be the canonical spelling of exactly ten members of the right kinds, so
that a reader who does not know an event's type still checks all of it (docs/format.md section 3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypedDict, cast

from a2a_ledger.canonical import MAX_SAFE, parse_canonical
from a2a_ledger.commitments import Hole, Part, commitment
from a2a_ledger.errors import FormatError
from a2a_ledger.fields import event_of

if TYPE_CHECKING:
    from a2a_ledger.events import Event, Json, JsonObject, Ref

MAX_RECORD = 64 * 1024
"""Octets of R at most."""

HOWS = frozenset({"live", "import", "derived"})
KEPT = frozenset({"all", "head", "none"})

Fetch: TypeAlias = Callable[[bytes], "tuple[Part, ...] | None"]

_MAX_HOLE = 1024 * 1024  # a hole is filled up to this: a hostile length must not cost memory
_AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}")
_ORIGIN = re.compile(r"[a-z0-9][a-z0-9._/-]{0,127}")
_MEMBERS = frozenset({"at", "blobs", "data", "how", "log", "prev", "stream", "type", "v", "ver"})
_BLOB_MEMBERS = frozenset({"id", "kept", "size"})


class BlobRef(NamedTuple):
    """How a record refers to a blob: id in hex, what the size limit kept, size in octets."""

    id: str
    kept: str
    size: int


class _Blob(TypedDict):
    """A member of `blobs` in R."""

    id: str
    kept: str
    size: int


class Parts(Mapping[str, "tuple[Part, ...]"]):
    """The stored parts of a record's blobs, by id in hex; a large blob is fetched when it is asked for."""

    __slots__ = ("_fetch", "_inline")

    def __init__(self, inline: Mapping[bytes, tuple[Part, ...]], fetch: Fetch | None = None) -> None:
        self._inline = inline
        self._fetch = fetch

    def __getitem__(self, blob: str) -> tuple[Part, ...]:
        key = bytes.fromhex(blob)
        found = self._inline.get(key)
        if found is None and self._fetch is not None:
            found = self._fetch(key)
        if found is None:
            raise KeyError(blob)
        return found

    def __iter__(self) -> Iterator[str]:
        """Yield the ids of the blobs that lie in the event's own row."""
        return (key.hex() for key in self._inline)

    def __len__(self) -> int:
        return len(self._inline)


class Record(NamedTuple):
    """One event as read back: all that an auditor, a projection or a verifier needs.

    `n` is the log index, -1 where the caller has none. `c` is computed from salt and R, never
    taken over. `raw` is R.
    """

    n: int
    c: str
    t: str
    log: str
    stream: str
    ver: int
    type: str
    at: str
    how: str
    prev: str | None
    data: JsonObject
    blobs: Mapping[str, BlobRef]
    salt: bytes
    raw: bytes
    parts: Mapping[str, tuple[Part, ...]]

    @property
    def ref(self) -> Ref:
        """How another event refers to this one."""
        return {"c": self.c, "stream": self.stream, "ver": self.ver}

    def event(self) -> Event | None:
        """Return the event, or None for a name that this version does not know.

        Raises:
            FormatError: The name is known and the data does not have its shape.
        """
        return event_of(self.type, self.data)

    def stored_parts(self, role: str) -> tuple[Part, ...] | None:
        """Return the stored parts of a blob; None: the record has no such blob, or it was erased."""
        blob = self.blobs.get(role)
        return None if blob is None else self.parts.get(blob.id)

    def content(self, role: str) -> bytes | None:
        """Return a blob's octets, holes filled with `*`; None: no such blob, or it was erased.

        What the size limit cut off is not filled in: of `kept` "head" the last hole is missing, of
        "none" all are.

        Raises:
            FormatError: A hole is longer than any credential can be.
        """
        parts = self.stored_parts(role)
        if parts is None:
            return None
        kept = self.blobs[role].kept
        if kept == "none":
            parts = tuple(part for part in parts if not isinstance(part, Hole))
        elif kept == "head" and parts and isinstance(parts[-1], Hole):
            parts = parts[:-1]
        return b"".join(_filled(part) for part in parts)


def read_record(  # noqa: PLR0913 - the sides of a stored row
    salt: bytes,
    raw: bytes,
    *,
    n: int = -1,
    t: str = "",
    parts: Mapping[str, tuple[Part, ...]] | None = None,
    trusted: bool = False,
) -> Record:
    """Read R strictly.

    Args:
        salt: The record's 32 salt octets.
        raw: R.
        n: Log index, where known.
        t: Stream tag in hex, where known.
        parts: Stored parts by blob id in hex.
        trusted: R is known to be what this package wrote (its commitment was compared): it is
            parsed without the costly comparison with its own re-serialisation.

    Raises:
        FormatError: R is not a record of the profile; the message says what is wrong.
    """
    if len(raw) > MAX_RECORD:
        raise FormatError(f"expected a record of at most {MAX_RECORD} octets, found {len(raw)}")
    try:
        value = cast("Json", json.loads(raw)) if trusted else parse_canonical(raw)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"expected a record in JSON, found something else: {error}") from None
    if not isinstance(value, dict):
        raise FormatError(f"expected a record to be a JSON object, found {type(value).__name__}")
    if not trusted:
        _check_members(value)
    try:
        return Record(
            n,
            commitment(salt, raw).hex(),
            t,
            cast("str", value["log"]),
            cast("str", value["stream"]),
            cast("int", value["ver"]),
            cast("str", value["type"]),
            cast("str", value["at"]),
            cast("str", value["how"]),
            cast("str | None", value["prev"]),
            cast("JsonObject", value["data"]),
            {
                role: BlobRef(b["id"], b["kept"], b["size"])
                for role, b in cast("dict[str, _Blob]", value["blobs"]).items()
            },
            salt,
            raw,
            {} if parts is None else parts,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"expected a record of ten members, found another shape: {error!r}") from None


def _filled(part: Part) -> bytes:
    if not isinstance(part, Hole):
        return part.content
    if part.length > _MAX_HOLE:
        raise FormatError(f"expected a left-out part of at most {_MAX_HOLE} octets, found one of {part.length}")
    return b"*" * part.length


def _check_members(value: JsonObject) -> None:
    """Check that exactly the ten members of R are there, each of its kind."""
    if value.keys() != _MEMBERS:
        raise FormatError(f"expected exactly the members {sorted(_MEMBERS)}, found {sorted(value)}")
    ver, prev = value["ver"], value["prev"]
    checks = {
        "at": _matches(_AT, value["at"]),
        "blobs": _are_blobs(value["blobs"]),
        "data": isinstance(value["data"], dict),
        "how": value["how"] in HOWS,
        "log": _matches(_ORIGIN, value["log"]),
        "stream": isinstance(value["stream"], str) and value["stream"] != "",
        "type": isinstance(value["type"], str) and value["type"] != "",
        "v": type(value["v"]) is int and value["v"] == 1,
        "ver": type(ver) is int and 0 <= ver <= MAX_SAFE,
        "prev": prev is None if ver == 0 else _matches(_DIGEST, prev),
    }
    wrong = [name for name, fits in checks.items() if not fits]
    if wrong:
        found = ascii(value[wrong[0]])[:120]
        raise FormatError(f"the record's member {wrong[0]} is not as docs/format.md section 3 has it: {found}")


def _are_blobs(blobs: Json) -> bool:
    return isinstance(blobs, dict) and all(map(_is_blob, blobs.values()))


def _is_blob(blob: Json) -> bool:
    return (
        isinstance(blob, dict)
        and blob.keys() == _BLOB_MEMBERS
        and _matches(_DIGEST, blob["id"])
        and blob["kept"] in KEPT
        and type(blob["size"]) is int
        and 0 <= blob["size"] <= MAX_SAFE
    )


def _matches(pattern: re.Pattern[str], value: Json) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
