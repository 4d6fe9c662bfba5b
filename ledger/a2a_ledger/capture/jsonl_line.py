"""One line of an exchange file: JSON in, bytes and headers of one exchange out."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from a2a_ledger.errors import FormatError
from a2a_ledger.wire.jsontext import is_scalar_text, lift, read_json

if TYPE_CHECKING:
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.wire import Headers

_ALERT = re.compile(r"(?:ssl|tls)v?[0-9_]*[ _]alert[ _]([a-z0-9_ ]+)|alert[ _]([a-z0-9_]+)", re.IGNORECASE)
_FAILURES = (
    ("time", "timeout"),
    ("reset", "closed"),
    ("disconnect", "closed"),
    ("clos", "closed"),
    ("readerror", "closed"),
    ("connect", "connect"),
)
"""Words that tell the kind of a failure, the more telling first."""
_KINDS = ("card", "push", "exchange")
_HTTP_STATUS = range(100, 1000)

MOST_HEADERS = 10_000
MOST_HEADER_CHARACTERS = 1024 * 1024
"""What the headers of one message may come to, whatever the format: no HTTP stack takes as much."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The request of an exchange, or a push as it was received."""

    method: str
    url: str
    headers: Headers
    body: bytes
    whole: bool = True
    """False: the source does not hold all of the body, or it cannot be read."""
    coded: bool = False
    """The body has a content coding that was not taken off."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer of an exchange; of a stream the whole raw stream."""

    status: int
    headers: Headers
    body: bytes
    whole: bool = True
    """False: the source does not hold all of the body, or it cannot be read."""
    coded: bool = False
    """The body has a content coding that was not taken off."""


@dataclass(frozen=True, slots=True)
class StatedFailure:
    """What the source says went wrong, in the words of `capture.failures`."""

    text: str

    @property
    def tls_alert(self) -> str | None:
        """The TLS alert that the text names, else None."""
        found = _ALERT.search(self.text)
        name = (found[1] or found[2]).strip().lower().replace(" ", "_") if found else ""
        return lift(name, set(), 64)

    @property
    def kind(self) -> str:
        """The kind of failure: timeout connect tls closed other."""
        text = self.text.lower()
        if self.tls_alert or "ssl" in text or "tls" in text:
            return "tls"
        return next((kind for word, kind in _FAILURES if word in text), "other")

    @property
    def outcome(self) -> str:
        """The same as an outcome of a card fetch."""
        return {"timeout": "timeout", "tls": "tls-error"}.get(self.kind, "no-answer")


@dataclass(frozen=True, slots=True)
class ExchangeLine:
    """One exchange, in the order seen by the client."""

    at: str | None
    """The time that the source claims, as it spells it."""
    kind: str
    """card, push or exchange; "" if the line does not say."""
    request: Asked
    response: Answered | None
    failure: StatedFailure | None


class HeaderList:
    """The headers of one message, as they are read."""

    def __init__(self, where: str) -> None:
        """Begin with none; `where` names the member that holds them."""
        self.pairs: list[tuple[str, str]] = []
        self._where = where
        self._characters = 0

    def add(self, name: str, value: str) -> None:
        """Take one in.

        Raises:
            FormatError: there are more of them, or longer ones, than a message can have.
        """
        self.pairs.append((name, value))
        self._characters += len(name) + len(value)
        if len(self.pairs) > MOST_HEADERS or self._characters > MOST_HEADER_CHARACTERS:
            raise FormatError(
                f"{self._where}: expected at most {MOST_HEADERS} headers of {MOST_HEADER_CHARACTERS} characters in "
                "all, found more"
            )


def read_line(raw: bytes) -> ExchangeLine:
    """Read one line (docs/format.md section 4).

    Raises:
        FormatError: it is not JSON, or not an exchange; the message names the member, what was
            expected and what was found.
    """
    read = read_json(raw)
    if not read.ok:
        raise FormatError(f"expected a JSON object, found bytes that are not JSON ({', '.join(sorted(read.flags))})")
    if "duplicate-keys" in read.flags:
        raise FormatError("the same key stands twice in one object, so the line reads in two ways")
    line = _object("the line", read.value)
    request = _object("request", line.get("request"))
    response = line.get("response")
    error = line.get("error")
    kind = line.get("kind", "")
    if kind not in ("", *_KINDS):
        _wrong("kind", f"one of {', '.join(_KINDS)}", kind)
    if error is not None and not isinstance(error, str):
        _wrong("error", "a text or null", error)
    return ExchangeLine(
        at=lift(line.get("at"), set()),
        kind=str(kind),
        request=Asked(
            method=_scalars("request.method", request.get("method")),
            url=_scalars("request.url", request.get("url")),
            headers=_headers("request", request),
            body=_body("request", request),
        ),
        response=None if response is None else _answer(_object("response", response)),
        failure=None if not error else StatedFailure(str(error)),
    )


def _answer(response: JsonObject) -> Answered:
    status = response.get("status")
    if not isinstance(status, int) or isinstance(status, bool) or status not in _HTTP_STATUS:
        _wrong("response.status", "an HTTP status", status)
    return Answered(status, _headers("response", response), _body("response", response))


def _headers(where: str, holder: JsonObject) -> Headers:
    listed = holder.get("headers", [])
    if not isinstance(listed, list):
        _wrong(f"{where}.headers", "a list of [name, value]", listed)
    found = HeaderList(f"{where}.headers")
    for number, item in enumerate(listed):
        place = f"{where}.headers[{number}]"
        match item:
            case [str(name), str(value)]:
                found.add(_scalars(place, name), _scalars(place, value))
            case _:
                _wrong(place, "[name, value]", item)
    return found.pairs


def _body(where: str, holder: JsonObject) -> bytes:
    text, encoded = holder.get("body"), holder.get("body_b64")
    if text is not None and encoded is not None:
        _wrong(where, "body or body_b64", "both")
    if encoded is not None:
        try:
            return base64.b64decode(_text(f"{where}.body_b64", encoded), validate=True)
        except (binascii.Error, ValueError):
            _wrong(f"{where}.body_b64", "base64", "something else")
    return b"" if text is None else _text(f"{where}.body", text).encode("utf-8", "surrogatepass")


def _object(where: str, value: Json) -> JsonObject:
    if not isinstance(value, dict):
        _wrong(where, "an object", value)
    return value


def _text(where: str, value: Json) -> str:
    if not isinstance(value, str):
        _wrong(where, "a text", value)
    return value


def _scalars(where: str, value: Json) -> str:
    """Return a text that can have been on the wire: half a surrogate pair, which JSON can spell, cannot."""
    text = _text(where, value)
    if not is_scalar_text(text):
        raise FormatError(f"{where}: expected a text of Unicode characters, found half a surrogate pair in it")
    return text


def _wrong(where: str, expected: str, found: Json) -> NoReturn:
    kind = "nothing" if found is None else type(found).__name__  # never the value: it may be a credential
    raise FormatError(f"{where}: expected {expected}, found {kind}")
