"""A record as read back: one event with its place, its salt, its exact bytes and its blobs.

Reading is strict: R must be the canonical spelling of exactly ten members of the right kinds, so
that a reader who does not know an event's type still checks all of it (docs/format.md section 3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypedDict, cast

from a2a_ledger.codec.canonical import MAX_SAFE, parse_canonical, parse_trusted
from a2a_ledger.codec.commitments import SECRET, Hole, Kept, Part, commitment
from a2a_ledger.codec.fields import event_of
from a2a_ledger.errors import FormatError

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
_BLOB_MEMBERS = frozenset({"id", "kept", "size"})
_PAIR = 2


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


class _Members(TypedDict):
    """The ten members of R."""

    at: str
    blobs: dict[str, _Blob]
    data: JsonObject
    how: str
    log: str
    prev: str | None
    stream: str
    type: str
    v: int
    ver: int


class StoredParts(Mapping[bytes, "tuple[Part, ...]"]):
    """The parts in one container by blob id, checked when they are looked up."""

    __slots__ = ("_stored",)

    def __init__(self, stored: Mapping[object, object]) -> None:
        self._stored = stored

    def __getitem__(self, blob: bytes) -> tuple[Part, ...]:
        return read_parts(self._stored[blob])

    def __iter__(self) -> Iterator[bytes]:
        """Yield blob ids; a key that cannot be one is a FormatError."""
        for key in self._stored:
            if not isinstance(key, bytes) or len(key) != SECRET:
                raise FormatError(f"expected a blob id of {SECRET} octets in the container, found something else")
            yield key

    def __len__(self) -> int:
        return len(self._stored)


class Parts(Mapping[str, "tuple[Part, ...]"]):
    """The stored parts of a record's blobs, by id in hex; a large blob is fetched when it is asked for."""

    __slots__ = ("_fetch", "_inline")

    def __init__(self, inline: Mapping[bytes, tuple[Part, ...]], fetch: Fetch | None = None) -> None:
        self._inline = inline
        self._fetch = fetch

    def check(self) -> None:
        """Open the box of the parts that lie in the row, if they are sealed.

        Raises:
            FormatError: It does not open.
        """
        len(self._inline)

    def __getitem__(self, blob: str) -> tuple[Part, ...]:
        key = bytes.fromhex(blob)
        try:
            return self._inline[key]
        except KeyError:
            found = None if self._fetch is None else self._fetch(key)
        if found is None:
            raise KeyError(blob)
        return found

    def __iter__(self) -> Iterator[str]:
        """Yield the ids of the blobs that lie in the event's own row."""
        return (key.hex() for key in self._inline)

    def __len__(self) -> int:
        return len(self._inline)


def read_parts(stored: object) -> tuple[Part, ...]:
    """Read the stored form of a blob's parts: `[[salt, bytes] | [length, hash], …]`.

    Raises:
        FormatError: It has another shape.
    """
    if not isinstance(stored, list):
        raise FormatError("expected a list of parts, found something else")
    return tuple(map(_part, cast("list[object]", stored)))


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

    def content(self, role: str, sign: bytes = b"*") -> bytes | None:
        """Return a blob's octets, holes filled with `*`, or another sign; None: no such blob, or it was erased.

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
        return b"".join(_filled(part, sign) for part in parts)


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
    value = parse_trusted(raw) if trusted else parse_canonical(raw)
    if not isinstance(value, dict):
        raise FormatError(f"expected a record to be a JSON object, found {type(value).__name__}")
    if not trusted:
        _check_members(value)
    members = cast("_Members", value)
    try:
        return Record(
            n,
            commitment(salt, raw).hex(),
            t,
            members["log"],
            members["stream"],
            members["ver"],
            members["type"],
            members["at"],
            members["how"],
            members["prev"],
            members["data"],
            {role: BlobRef(b["id"], b["kept"], b["size"]) for role, b in members["blobs"].items()},
            salt,
            raw,
            {} if parts is None else parts,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"expected a record of ten members, found another shape: {error!r}") from None


def _part(part: object) -> Part:
    if isinstance(part, list) and len(pair := cast("list[object]", part)) == _PAIR:
        first, second = pair
        if isinstance(second, bytes):
            if isinstance(first, bytes) and len(first) == SECRET:
                return Kept(first, second)
            if type(first) is int and 0 <= first <= MAX_SAFE and len(second) == SECRET:
                return Hole(first, second)
    raise FormatError("expected a part [salt, bytes] or [length, hash], found another shape")


def _filled(part: Part, sign: bytes) -> bytes:
    if not isinstance(part, Hole):
        return part.content
    if part.length > _MAX_HOLE:
        raise FormatError(f"expected a left-out part of at most {_MAX_HOLE} octets, found one of {part.length}")
    return sign * part.length


def _check_members(value: JsonObject) -> None:
    """Check that exactly the ten members of R are there, each of its kind."""
    if value.keys() != _KINDS.keys():
        raise FormatError(f"expected exactly the members {sorted(_KINDS)}, found {sorted(value)}")
    for name, fits in _KINDS.items():
        if not fits(value[name]):
            found = ascii(value[name])[:120]
            raise FormatError(f"the record's member {name} is not as docs/format.md section 3 has it: {found}")
    if (value["ver"] == 0) != (value["prev"] is None):
        raise FormatError("expected prev to be null in version 0 and only there")


def _are_blobs(blobs: Json) -> bool:
    return isinstance(blobs, dict) and all(map(_is_blob, blobs.values()))


def _is_blob(blob: Json) -> bool:
    return (
        isinstance(blob, dict)
        and blob.keys() == _BLOB_MEMBERS
        and _is_digest(blob["id"])
        and isinstance(blob["kept"], str)
        and blob["kept"] in KEPT
        and _is_count(blob["size"])
    )


def _is_count(value: Json) -> bool:
    return type(value) is int and value >= 0  # the upper end is that of every integer of the profile


def _is_digest(value: Json) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


_KINDS: dict[str, Callable[[Json], bool]] = {
    "at": lambda value: isinstance(value, str) and _AT.fullmatch(value) is not None,
    "blobs": _are_blobs,
    "data": lambda value: isinstance(value, dict),
    "how": lambda value: isinstance(value, str) and value in HOWS,
    "log": lambda value: isinstance(value, str) and _ORIGIN.fullmatch(value) is not None,
    "prev": lambda value: value is None or _is_digest(value),
    "stream": lambda value: isinstance(value, str) and value != "",
    "type": lambda value: isinstance(value, str) and value != "",
    "v": lambda value: type(value) is int and value == 1,
    "ver": _is_count,
}
"""The members of R and how each must be."""
