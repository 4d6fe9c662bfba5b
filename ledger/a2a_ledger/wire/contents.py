"""What messages and artifacts say, in a form in which two spellings of one content are equal. Pure.

A2A spells one content in several ways: parts of 0.1 to 1.0 and of the 0.3 proto, ids that a server fills
in, numbers that a protobuf Struct makes doubles. Only what was said is compared, who said it and the text,
data and files of its parts; ids, names, media types and metadata are what servers fill in.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.wire.jsontext import Token, lift, member, objects

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.wire.leg import Leg

MOST_MESSAGES = 256
"""Messages of a history that are looked at, the newest."""
MOST_ARTIFACTS = 64
"""Artifacts of a Task that are looked at, the first."""
_DEEPEST = 64

TEXT = "text"
_UNKNOWN = "?"
"""Kind of a part that cannot be compared: nobody knows what its peer keeps of it."""


class Piece(NamedTuple):
    """One part's content: `text` as it is, of data and files a canonical text."""

    kind: str
    value: str


class MessageContent(NamedTuple):
    """One message: its id, and a digest of who said what; None: nothing that could be compared."""

    id: str | None
    digest: str | None


class ArtifactContent(NamedTuple):
    """One artifact of a Task, or one chunk of it; `pieces` None: it cannot be compared."""

    id: str
    pieces: tuple[Piece, ...] | None
    append: bool = False
    last: bool = False


class Contents(NamedTuple):
    """What one leg says: the message itself, the status message, a Task's history and artifacts, a chunk."""

    message: MessageContent | None = None
    status: MessageContent | None = None
    history: tuple[MessageContent, ...] = ()
    history_length: int = 0
    """Messages in the history; more than `history` has when it is a long one."""
    artifacts: tuple[ArtifactContent, ...] = ()
    chunk: ArtifactContent | None = None


def contents_of(leg: Leg, *, starred: bool = False) -> Contents:
    """Return what a leg says.

    Args:
        leg: as read; of a request its message counts.
        starred: the body was recorded with `*` in the place of secrets, so that a text with `*` in it
            may be another one and is not compared.
    """
    value = leg.payload
    if value is None:
        return Contents()
    if leg.leg == "request" or leg.kind == "message":
        return Contents(message=_message(value, starred=starred))
    if leg.kind == "artifact-update":
        artifact = member(value, "artifact")
        return Contents(chunk=_artifact(artifact, value, starred=starred))
    said = member(member(value, "status"), "message", "update")
    status = _message(said, starred=starred) if isinstance(said, dict) else None
    if leg.kind != "task":
        return Contents(status=status)
    listed = objects(member(value, "history"))
    found = (_artifact(one, {}, starred=starred) for one in objects(member(value, "artifacts"))[:MOST_ARTIFACTS])
    return Contents(
        status=status,
        history=tuple(_message(one, starred=starred) for one in listed[-MOST_MESSAGES:]),
        history_length=len(listed),
        artifacts=tuple(one for one in found if one is not None),
    )


class Running:
    """The content of an artifact as its chunks come in: adjacent texts are one text, however they were cut.

    It holds hash states alone, so it is as large for a long artifact as for a short one.
    """

    __slots__ = ("_is_text", "_text", "_whole")

    def __init__(self, pieces: Iterable[Piece] = ()) -> None:
        self._whole = hashlib.sha256()
        self._text = hashlib.sha256()
        self._is_text = False
        self.add(pieces)

    def add(self, pieces: Iterable[Piece]) -> None:
        """Append the pieces of the next chunk."""
        for piece in pieces:
            octets = piece.value.encode("utf-8", "surrogatepass")
            if piece.kind == TEXT:
                self._text.update(octets)
                self._is_text = True
                continue
            if self._is_text:
                self._whole.update(b"text\0" + self._text.digest())
                self._text, self._is_text = hashlib.sha256(), False
            self._whole.update(piece.kind.encode() + b"\0" + hashlib.sha256(octets).digest())

    def digest(self) -> str:
        """Return the digest of the content so far."""
        whole = self._whole.copy()
        if self._is_text:
            whole.update(b"text\0" + self._text.digest())
        return whole.hexdigest()


def _message(value: JsonObject, *, starred: bool) -> MessageContent:
    pieces = _pieces(member(value, "parts", "content"), starred=starred)
    if not pieces:
        return MessageContent(lift(member(value, "messageId"), set()), None)
    running = Running([Piece("role", _role(value.get("role"))), *pieces])
    return MessageContent(lift(member(value, "messageId"), set()), running.digest())


def _role(value: Json) -> str:
    spelled = str(value).lower().removeprefix("role_")
    return {"1": "user", "2": "agent"}.get(spelled, spelled)  # ProtoJSON also accepts enum numbers


def _artifact(value: Json, update: JsonObject, *, starred: bool) -> ArtifactContent | None:
    name = lift(member(value, "artifactId"), set())
    if name is None:  # A2A 0.1 numbers its artifacts, and a number is no identity
        return None
    return ArtifactContent(
        name,
        _pieces(member(value, "parts"), starred=starred),
        append=update.get("append") is True,
        last=member(update, "lastChunk") is True,
    )


def _pieces(parts: Json, *, starred: bool) -> tuple[Piece, ...] | None:
    """Return the pieces of a list of parts; None if one of them cannot be compared."""
    found: list[Piece] = []
    for part in objects(parts):
        piece = _piece(part)
        if piece.kind == _UNKNOWN or (starred and "*" in piece.value):
            return None
        if piece.value:
            found.append(piece)
    return tuple(found)


def _piece(part: JsonObject) -> Piece:
    """Read one part in any spelling: 0.1 (`type`), 0.2 and 0.3 (`kind`), the 0.3 proto, 1.0."""
    if isinstance(text := part.get("text"), str) and not isinstance(text, Token):
        return Piece(TEXT, text)
    if "data" in part:
        inner = part["data"]
        wrapped = isinstance(inner, dict) and set(inner) == {"data"}  # the 0.3 proto wraps it once more
        plain = _plain(member(inner, "data") if wrapped else inner, 0)
        return Piece(_UNKNOWN, "") if plain is None else Piece("data", plain)
    file = part.get("file")
    source = file if isinstance(file, dict) else part
    octets = member(source, "bytes", "fileWithBytes", "raw")
    if isinstance(octets, str):
        return Piece("bytes", octets.translate(_STANDARD).rstrip("="))
    place = member(source, "uri", "fileWithUri", "url")
    return Piece("uri", place) if isinstance(place, str) else Piece(_UNKNOWN, "")


_STANDARD = str.maketrans("-_", "+/")
"""Both alphabets of base64 are read in ProtoJSON, and the standard one is written."""


def _plain(value: Json, depth: int) -> str | None:
    """Return a value as one text, numbers as the doubles that a protobuf Struct keeps; None: it is too deep."""
    if depth > _DEEPEST:
        return None
    if isinstance(value, dict):
        members: list[str] = []
        for name in sorted(value):
            inner = _plain(value[name], depth + 1)
            if inner is None:
                return None
            members.append(f"{json.dumps(name)}:{inner}")
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        items = [_plain(item, depth + 1) for item in value]
        return None if None in items else f"[{','.join(item for item in items if item is not None)}]"
    if isinstance(value, Token) or (isinstance(value, int) and not isinstance(value, bool)):
        return repr(float(value) + 0.0)  # -0 and 0 are one number
    return json.dumps(value)


def repeated_members(value: bytes) -> list[str]:
    """Return the names that stand more than once in one object of a JSON text with different values.

    What is said twice in the same way reads in one way only. A text that is no JSON has none.
    """
    found: dict[str, None] = {}

    def pairs(members: list[tuple[str, Json]]) -> JsonObject:
        made: JsonObject = {}
        for name, inner in members:
            if name in made and _plain(made[name], 0) != _plain(inner, 0):
                found[name] = None
            made[name] = inner
        return made

    try:
        json.loads(value.decode("utf-8-sig"), object_pairs_hook=pairs, parse_int=Token, parse_float=Token)
    except (ValueError, RecursionError):
        return []
    return list(found)
