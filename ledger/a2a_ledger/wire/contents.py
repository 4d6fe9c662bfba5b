"""What messages and artifacts say, in a form in which two spellings of one content are equal. Pure.

A2A spells one content in several ways: parts of 0.1 to 1.0 and of the 0.3 proto, ids that a server fills
in, numbers that a protobuf Struct makes doubles, urls that a store signs anew. Only what was said is compared, who said
it and the text, data and files of its parts; ids, names, media types and metadata are what servers fill in.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeGuard, cast

from a2a_ledger.wire.answer import unwrap
from a2a_ledger.wire.cut_texts import Cut, both, is_merged, lacks
from a2a_ledger.wire.jsontext import lift, member, objects
from a2a_ledger.wire.pieces import TEXT, Content, Piece, Running
from a2a_ledger.wire.signed_urls import unsigned
from a2a_ledger.wire.sse import data_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.events import Json, JsonObject

MOST_MESSAGES = 256
"""Messages of a history that are looked at, the newest."""
MOST_ARTIFACTS = 256
"""Artifacts of a Task that are looked at, the first."""
_DEEPEST = 64

_UNKNOWN = "?"
"""Kind of a part that cannot be compared: nobody knows what its peer keeps of it."""


class MessageContent(NamedTuple):
    """One message: its id, and who said what; None: nothing that could be compared."""

    id: str | None
    content: Content | None
    is_empty: bool = False
    """It says nothing at all, so that it has no content; that can be held against what it said before."""

    @property
    def digest(self) -> str | None:
        """Digest of all that it says."""
        return None if self.content is None else self.content.digest


class ArtifactContent(NamedTuple):
    """One artifact of a Task, or one chunk of it; `pieces` empty: it says nothing; None: it cannot be compared."""

    id: str
    pieces: tuple[Piece, ...] | None
    append: bool = False
    last: bool = False


class Contents(NamedTuple):
    """What one body says: the message itself, the status message, a Task's history and artifacts, a chunk."""

    kind: str | None = None
    """As of a leg: task, message, status-update or artifact-update; request for one of ours; None: nothing of these."""
    message: MessageContent | None = None
    status: MessageContent | None = None
    history: tuple[MessageContent, ...] = ()
    history_length: int = 0
    """Messages in the history; more than `history` has when it is a long one. Of a request: unused."""
    artifacts: tuple[ArtifactContent, ...] = ()
    chunk: ArtifactContent | None = None
    final: bool = False
    extensions: tuple[str, ...] = ()
    """Of a request: what its message says that it uses."""
    asked_history: int | None = None
    """Of a request: the `historyLength` that its body asks for; 0 is not the same as not stated."""


SILENCE = Contents()
"""What a body says in which nothing stands that could be compared."""

_SPEAKS = re.compile(rb'"history"|"artifact|essage_?[Ii]d"|"final"|\\u')
"""Members without which an answer holds nothing to compare; an escape may spell any of them."""


def answer_contents(
    body: bytes, status: int | None, *, framed: bool = False, other: bytes | None = None, whole: bool = False
) -> Contents:
    """Return what an answer, a stream event or a push says.

    Args:
        body: as recorded.
        status: HTTP status, if there is one.
        framed: it is the block of a stream event, with its framing.
        other: the same with another sign in its holes, where something was cut out of it: a text that was cut may be
            another one and is not compared.
        whole: tell the kind also of what holds nothing to compare.
    """
    if not whole and _SPEAKS.search(body) is None:
        return SILENCE
    bodies = [data_of(one) if framed else one for one in (body, other) if one is not None]
    kind, inner, _ = unwrap(_result(_read_both(*bodies), status))
    if kind is None or not isinstance(inner, dict):
        return SILENCE
    if kind == "message":
        return Contents(kind, message=_message(inner))
    if kind == "artifact-update":
        return Contents(kind, chunk=_artifact(member(inner, "artifact"), inner))
    said = member(member(inner, "status"), "message", "update")
    spoken = _message(said) if isinstance(said, dict) else None
    if kind != "task":
        return Contents(kind, status=spoken, final=inner.get("final") is True)
    listed = objects(member(inner, "history"))
    found = (_artifact(one, {}) for one in objects(member(inner, "artifacts"))[:MOST_ARTIFACTS])
    return Contents(
        kind,
        status=spoken,
        history=tuple(_message(one) for one in listed[-MOST_MESSAGES:]),
        history_length=len(listed),
        artifacts=tuple(one for one in found if one is not None),
    )


def payload_digest(body: bytes, *, framed: bool = False) -> str:
    """Return a digest of what an answer, a stream event (`framed`) or a push says beside its envelope.

    Equal are two that differ in framing, in the id of JSON-RPC, in the wrapping of 1.0, or in the order of members.
    """
    _, inner, _ = unwrap(_result(_read(data_of(body) if framed else body), None))
    said = body if inner is None else _ENCODER.encode(inner).encode()
    return hashlib.sha256(said).hexdigest()


def _result(value: Json, status: int | None) -> Json:
    """Return what an answer holds beside its envelope; None: an error, or nothing."""
    if isinstance(value, dict) and "jsonrpc" in value and ("result" in value or "error" in value):
        return value.get("result") if value.get("error") is None else None
    return None if (status or 0) >= _HTTP_ERROR or isinstance(member(value, "error"), dict) else value


def request_contents(body: bytes, *, other: bytes | None = None) -> Contents:
    """Return what a request of ours says, in any binding; `other` as of an answer."""
    value = _read_both(body, other)
    params = member(value, "params") if isinstance(value, dict) and "method" in value else value
    stated = member(member(params, "configuration"), "historyLength")
    asked = cast("object", member(params, "historyLength") if stated is None else stated)
    message = member(params, "message", "request")
    spoken = message if isinstance(message, dict) else {}
    listed = member(spoken, "extensions")
    return Contents(
        "request",
        message=_message(spoken) if spoken else None,
        extensions=tuple(one for one in listed if isinstance(one, str)) if isinstance(listed, list) else (),
        asked_history=int(asked) if isinstance(asked, float) and 0 <= asked < _MANY else None,
    )


def message_digest(body: bytes, *, other: bytes | None = None) -> str | None:
    """Return a digest of what the message of a send says, in any binding; None: nothing that could be compared."""
    said = request_contents(body, other=other).message
    return None if said is None else said.digest


def _read_both(body: bytes, other: bytes | None = None) -> Json:
    """Read JSON, each text and number in it that was cut as a `Cut`; None where a cut may have joined two objects."""
    value = _read(body)
    if other is None:
        return value
    return None if is_merged(body) else both(value, _read(other))


@lru_cache(maxsize=1)  # what one body says is looked at twice: for its contents, and for what is said again
def _read(body: bytes) -> Json:
    """Read JSON with every number as a double, which is all that a content is compared by; None: it is no JSON."""
    if _is_deep(body):
        return None
    try:
        return cast("Json", _DECODER.decode(body.decode("utf-8-sig")))
    except (ValueError, RecursionError):
        return None


def _is_deep(body: bytes) -> bool:
    """Say whether a body is nested too deeply: how deep a parser gets else depends on the stack it is called on."""
    if body.count(b"[") + body.count(b"{") <= _NESTED:
        return False
    depth = 0
    for piece in _outside_strings(body):
        opened = piece.count(b"[") + piece.count(b"{")
        if depth + opened <= _NESTED:
            depth += opened - piece.count(b"]") - piece.count(b"}")
            continue
        for sign in piece.translate(None, _NO_BRACKETS):
            depth += 1 if sign in b"[{" else -1
            if depth > _NESTED:
                return True
    return False


def _outside_strings(body: bytes) -> Iterator[bytes]:
    """Yield what of a JSON text stands outside of its strings.

    Slice by slice, so that other threads go on in between; no octet is looked at twice, wherever a text is cut.
    """
    inside, left = 0, b""
    for start in range(0, len(body), _SLICE):
        piece = (left + body[start : start + _SLICE]).replace(b"\\\\", b"")
        left = b"\\" if piece.endswith(b"\\") else b""  # what it escapes is in the next slice
        pieces = piece.replace(b'\\"', b"").split(b'"')
        yield b"".join(pieces[inside::2])
        inside ^= (len(pieces) - 1) % 2


def _refuse(constant: str) -> NoReturn:
    message = f"{constant} is not JSON"
    raise ValueError(message)


_DECODER = json.JSONDecoder(parse_int=float, parse_float=float, parse_constant=_refuse)
_ENCODER = json.JSONEncoder(sort_keys=True)
_NESTED = 490
_SLICE = 64 * 1024
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_HTTP_ERROR = 400
_MANY = 2**53


def _message(value: JsonObject) -> MessageContent:
    pieces = _pieces(member(value, "parts", "content"))
    name = _id(member(value, "messageId"))
    if isinstance(value.get("role"), Cut) or lacks(value, "role") or lacks(value, "parts", "content"):
        return MessageContent(name, None)
    if not pieces:
        return MessageContent(name, None, pieces is not None)
    running = Running([Piece("role", _role(value.get("role"))), *pieces])
    return MessageContent(name, running.content())


def _id(value: Json) -> str | None:
    """Return an id; None: none, or one that something was cut out of, so that two may look like one."""
    name = lift(value, set())
    return None if isinstance(value, Cut) else name


def _role(value: Json) -> str:
    spelled = str(value).lower().removeprefix("role_")
    return {"1.0": "user", "2.0": "agent"}.get(spelled, spelled)  # ProtoJSON also accepts enum numbers


def _artifact(value: Json, update: JsonObject) -> ArtifactContent | None:
    name = _id(member(value, "artifactId"))
    if name is None:  # A2A 0.1 numbers its artifacts, and a number is no identity
        return None
    return ArtifactContent(
        name,
        None if lacks(value, "parts") or lacks(update, "append") else _pieces(member(value, "parts")),
        append=update.get("append") is True,
        last=member(update, "lastChunk") is True,
    )


def _pieces(parts: Json) -> tuple[Piece, ...] | None:
    """Return the pieces of a list of parts; None if one of them cannot be compared.

    ProtoJSON leaves an empty list out, so that no list and one without content are the same.
    """
    listed = objects(parts)
    if parts is not None and not (isinstance(parts, list) and len(listed) == len(parts)):
        return None
    found: list[Piece] = []
    for part in listed:
        piece = _piece(part)
        if piece.kind == _UNKNOWN:
            return None
        if piece.value:
            found.append(piece)
    return tuple(found)


def _piece(part: JsonObject) -> Piece:
    """Read one part in any spelling: 0.1 (`type`), 0.2 and 0.3 (`kind`), the 0.3 proto, 1.0."""
    found = tuple(_members(part))
    if len(found) > 1:  # what is empty or null beside a content is how some write that it is not there
        found = tuple(one for one in found if one.value and one != _NULL) or found[:1]
    if not found:
        return Piece(_UNKNOWN, "")
    return found[0] if len(found) == 1 else Piece("several", json.dumps([one[:2] for one in found]), found)


_NULL = Piece("data", "null")


def _members(part: JsonObject) -> Iterator[Piece]:
    """Read each member of a part that is content, and was not cut."""
    if _is_whole(text := part.get("text")):
        yield Piece(TEXT, text)
    if "data" in part:
        inner = part["data"]
        # The 0.3 proto wraps it once more, and data of anybody may look so: all wraps are taken off on both sides.
        while isinstance(inner, dict) and set(inner) == {"data"}:
            inner = inner["data"]
        plain = _plain(inner, 0)
        if plain is not None:
            yield Piece("data", plain)
    file = part.get("file")
    source = file if isinstance(file, dict) else part
    octets = member(source, "bytes", "fileWithBytes", "raw")
    if _is_whole(octets):
        yield Piece("bytes", _octets(octets))
    place = member(source, "uri", "fileWithUri", "url")
    if _is_whole(place):
        yield Piece("uri", unsigned(place))


def _is_whole(value: Json) -> TypeGuard[str]:
    return isinstance(value, str) and not isinstance(value, Cut)


_STANDARD = str.maketrans("-_", "+/", "\t\n\r =")
"""Readers of ProtoJSON take both alphabets of base64, with or without padding and line ends."""


def _octets(spelled: str) -> str:
    """Return base64 in the one spelling of the octets that it stands for; what is no base64, as it is.

    It takes time and room as the recorded body does, whose size has a limit.
    """
    plain = spelled.translate(_STANDARD)
    try:
        return base64.b64encode(base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)).decode()
    except ValueError:  # binascii's own error is one
        return spelled


def _plain(value: Json | float, depth: int) -> str | None:
    """Return a value as one text, numbers as the doubles that a protobuf Struct keeps; None: too deep, or cut."""
    if depth > _DEEPEST or isinstance(value, Cut):
        return None
    if isinstance(value, dict):
        members: list[str] = []
        for name in sorted(value):
            inner = _plain(value[name], depth + 1)
            if inner is None or isinstance(name, Cut):
                return None
            members.append(f"{json.dumps(name)}:{inner}")
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        items = [_plain(item, depth + 1) for item in value]
        return None if None in items else f"[{','.join(item for item in items if item is not None)}]"
    if isinstance(value, float):
        return repr(value + 0.0)  # -0 and 0 are one number
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

    if _is_deep(value):
        return []
    try:
        json.loads(value.decode("utf-8-sig"), object_pairs_hook=pairs, parse_int=float, parse_float=float)
    except (ValueError, RecursionError):
        return []
    return list(found)
