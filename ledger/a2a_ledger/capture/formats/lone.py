"""One message that somebody kept by itself: HTTP as text, a stream of events, or a JSON body without any head.

A request that says where it went is an exchange without an answer. An answer alone stands with no task: nothing
says when it came, so no rule judges it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from a2a_ledger.capture.formats.entry import Entry, Lone
from a2a_ledger.capture.formats.fields import a_text
from a2a_ledger.capture.formats.kind import kind_of
from a2a_ledger.capture.jsonl_line import Asked, ExchangeLine, HeaderList
from a2a_ledger.errors import FormatError
from a2a_ledger.wire import Leg, header, parse_push, parse_response
from a2a_ledger.wire.jsontext import member, read_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.wire import Headers

MOST_OCTETS = 64 * 1024 * 1024
"""A longer message is refused: it is held as a whole."""

REQUEST_LINE = re.compile(
    rb"(?P<method>[A-Z]{3,16})[ \t]+(?P<target>(?:https?://|/)[^\s]*)(?:[ \t]+HTTP/[0-9.]{1,8})?[ \t]*(?:\r?\n|\Z)"
)
STATUS_LINE = re.compile(rb"HTTP/[0-9.]{1,8}[ \t]+(?P<status>[1-9][0-9]{2})(?![0-9])[^\r\n]*(?:\r?\n|\Z)")
EVENT_LINE = re.compile(rb"(?:(?:data|event|id|retry)(?::|\r|\n)|:)")

_END_OF_HEAD = re.compile(rb"\r?\n\r?\n|\A\r?\n")
_USER_ROLES = frozenset({"user", "ROLE_USER"})
_LOCAL = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::|\Z)")


def entry(octets: bytes, url: str) -> Entry:
    """Return the one entry of a file.

    Args:
        octets: the file.
        url: where it was sent, "" where nobody says.
    """
    return Entry(1, octets, len(octets), _reading(url))


def _reading(url: str) -> Callable[[bytes], ExchangeLine | Lone]:
    def read(raw: bytes) -> ExchangeLine | Lone:
        return read_message(raw, url)

    return read


def read_message(raw: bytes, url: str = "") -> ExchangeLine | Lone:
    """Read one message.

    Args:
        raw: HTTP as text, a stream of events, or a JSON body.
        url: where it was sent, for a message that does not say.

    Raises:
        FormatError: it is nothing of these, or JSON that is no message of A2A.
    """
    text = raw.removeprefix(b"\xef\xbb\xbf").lstrip()
    if found := STATUS_LINE.match(text):
        headers, body = _head_and_body(text[found.end() :])
        is_stream = (header(headers, "content-type") or "").lower().startswith("text/event-stream")
        return Lone(headers, body, status=int(found["status"]), is_stream=is_stream)
    if found := REQUEST_LINE.match(text):
        headers, body = _head_and_body(text[found.end() :])
        return _asked(found["method"].decode(), _address(found["target"], headers, url), headers, body)
    if EVENT_LINE.match(text):
        return Lone((), text, is_stream=True)
    return _body_alone(raw, url)


def _body_alone(raw: bytes, url: str) -> ExchangeLine | Lone:
    read = read_json(raw)
    if not read.ok:
        found = ", ".join(sorted(read.flags)) or "nothing"
        raise FormatError(
            f"expected a message of A2A as HTTP text, as events or as JSON, found none of these ({found})"
        )
    value = read.value
    spoken = member(member(value, "message"), "role") if isinstance(value, dict) else None
    if (isinstance(value, dict) and isinstance(value.get("method"), str)) or spoken in _USER_ROLES:
        return _asked("POST", url, (), raw)
    asked = Leg(leg="request", binding="unknown")
    if parse_response(asked, 200, (), raw).kind is None and parse_push((), raw).kind is None:
        raise FormatError("expected a message of A2A, found JSON that is none")
    return Lone((), raw)


def _asked(method: str, url: str, headers: Headers, body: bytes) -> ExchangeLine | Lone:
    if not url:
        return Lone(headers, body, is_request=True)
    asked = Asked(method, url, headers, body)
    return ExchangeLine(at=None, kind=kind_of(asked), request=asked, response=None, failure=None)


def _address(target: bytes, headers: Headers, url: str) -> str:
    """Return the url of a request: its own if that is whole, else by its Host, with https but on loopback."""
    stated = a_text("the request line", target.decode("utf-8", "surrogateescape"))
    host = header(headers, "host")
    if not stated.startswith("/") or host is None:
        return stated if not stated.startswith("/") else url
    return f"{'http' if _LOCAL.match(host) else 'https'}://{host}{stated}"


def _head_and_body(text: bytes) -> tuple[Headers, bytes]:
    """Return headers and body of HTTP text; a line that is no header, and no continuation of one, ends the reading."""
    end = _END_OF_HEAD.search(text)
    head, body = (text[: end.start()], text[end.end() :]) if end else (text, b"")
    found = HeaderList("the headers")
    for line in head.splitlines():
        name, colon, value = line.partition(b":")
        if not colon:
            raise FormatError("expected headers of an HTTP message, found a line without a colon")
        found.add(name.strip().decode("latin-1"), value.strip().decode("latin-1"))
    return found.pairs, body
