"""HAR 1.2, the archive of HTTP traffic that browsers and proxies write: its entries as exchanges.

A HAR says what its recorder saw, with what it left out: bodies that are missing or cut (an event stream, as
most browsers write it) are marked `truncated`. Entries are taken in the order of `startedDateTime`, as HAR 1.2
asks of a reader; entries of one time, or without one that can be read, in the order of the file. Of exchanges
that overlap, by their `time`, each is taken in two parts: a poll during a stream was answered before its end.
"""

from __future__ import annotations

import base64
import binascii
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from a2a_ledger.capture.formats.fields import HTTP_STATUS, a_number, a_text, an_object, pairs_of, wrong
from a2a_ledger.capture.formats.kind import kind_of
from a2a_ledger.capture.formats.order import entries_in_order, instant
from a2a_ledger.capture.formats.scan import member, spans, start_of_value
from a2a_ledger.capture.jsonl_line import Answered, Asked, ExchangeLine, HeaderList, StatedFailure
from a2a_ledger.capture.recorder import is_stream
from a2a_ledger.errors import FormatError
from a2a_ledger.wire.jsontext import lift, read_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from a2a_ledger.capture.formats.entry import Entry
    from a2a_ledger.capture.formats.scan import Span, Text
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.wire import Headers

_LONGEST = 86_400_000.0  # ms


def entries(text: Text) -> Iterator[Entry] | None:
    """Return the entries of a HAR in the order of their times; None if it is none.

    Memory: a few numbers an entry, and one entry at a time.
    """
    log = member(text, start_of_value(text), "log")
    listed = member(text, log, "entries") if log is not None else None
    return _in_order(text, listed) if listed is not None and text[listed : listed + 1] == b"[" else None


def _in_order(text: Text, start: int) -> Iterator[Entry]:
    found = ((number, span.start, span.end, *_times(text, span)) for number, span in enumerate(spans(text, start), 1))
    return entries_in_order(text, found, read_entry)


def _times(text: Text, span: Span) -> tuple[datetime | None, datetime | None]:
    """Return when an entry began and ended, as far as it says so."""
    stated = {
        one.name: text[one.start : one.end]
        for one in spans(text, span.start)
        if one.name in {"startedDateTime", "time"}
    }
    begun = instant(stated.get("startedDateTime", b""))
    try:
        return begun, begun + timedelta(milliseconds=_milliseconds(stated.get("time", b"0"))) if begun else None
    except OverflowError:
        return begun, None


def _milliseconds(octets: bytes) -> float:
    try:
        stated = float(octets)
    except ValueError:
        return 0.0
    return min(stated, _LONGEST) if stated > 0 else 0.0  # NaN, which Python writes into JSON, is greater than nothing


def read_entry(raw: bytes) -> ExchangeLine:
    """Read one entry.

    Raises:
        FormatError: it is not JSON, or no entry; the message names the member, what was expected and what was found.
    """
    read = read_json(raw)
    if not read.ok:
        raise FormatError(f"expected a HAR entry, found bytes that are not JSON ({', '.join(sorted(read.flags))})")
    if "duplicate-keys" in read.flags:
        raise FormatError("the same key stands twice in one object, so the entry reads in two ways")
    entry = an_object("the entry", read.value)
    request = an_object("request", entry.get("request"))
    asked = Asked(
        method=a_text("request.method", request.get("method")),
        url=a_text("request.url", request.get("url")),
        headers=_headers("request", request),
        body=_posted(request),
        whole=not _left_out(request, "postData"),
    )
    response = an_object("response", entry.get("response"))
    status = a_number("response.status", response.get("status"))
    answer = _answer(response, status) if status in HTTP_STATUS else None
    return ExchangeLine(
        at=lift(entry.get("startedDateTime"), set()),
        kind=kind_of(asked),
        request=asked,
        response=answer,
        failure=_failure(entry, response, status),
    )


def _answer(response: JsonObject, status: int) -> Answered:
    stated = response.get("content")
    content = an_object("response.content", {} if stated is None else stated)
    body = _decoded("response.content", content)
    headers = _typed(_headers("response", response), content.get("mimeType"))
    whole = not _is_cut(content, body) and not (content.get("text") is None and _left_out(response, "text"))
    whole &= bool(body) or not is_stream(status, headers)  # most browsers keep nothing of a stream, size 0 or -1
    return Answered(status, headers, body, whole=whole)


def _is_cut(content: JsonObject, body: bytes) -> bool:
    """Say whether a file states more octets than it holds.

    mitmproxy states in `size` what came over the wire, and by how much less that was in `compression`: a short body
    that grew when it was packed has a negative one.
    """
    size, saved = content.get("size"), content.get("compression")
    less = saved if isinstance(saved, int) and saved < 0 else 0
    return isinstance(size, int) and size > len(body) and size + less != len(body)


def _failure(entry: JsonObject, response: JsonObject, status: int) -> StatedFailure | None:
    """Return what went wrong, as the recorders spell it; HAR 1.2 has no member for that, and status 0 no answer."""
    for value in (response.get("_error"), response.get("_failureText"), entry.get("_error")):
        if isinstance(value, str) and value:
            return StatedFailure(value.replace("_", " "))
    return None if status in HTTP_STATUS else StatedFailure("no answer is recorded")


def _left_out(holder: JsonObject, name: str) -> bool:
    """Say whether octets were counted on the wire that the file does not hold."""
    size = holder.get("bodySize")
    return name not in holder and isinstance(size, int) and size > 0


def _posted(request: JsonObject) -> bytes:
    posted = request.get("postData")
    if posted is None:
        return b""
    posted = an_object("request.postData", posted)
    listed = posted.get("params")
    if posted.get("text") in (None, "") and isinstance(listed, list) and listed:
        return urlencode(pairs_of("request.postData.params", listed)).encode()
    return _decoded("request.postData", posted)


def _decoded(where: str, holder: JsonObject) -> bytes:
    text = holder.get("text")
    if text is None:
        return b""
    if not isinstance(text, str):
        wrong(f"{where}.text", "a text", text)
    if holder.get("encoding", holder.get("_encoding")) != "base64":
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        wrong(f"{where}.text", "base64", "something else")


def _headers(where: str, holder: JsonObject) -> Headers:
    """Return the headers without the pseudo headers of HTTP/2 and 3, which say again what the url says."""
    found = HeaderList(f"{where}.headers")
    for name, value in pairs_of(f"{where}.headers", holder.get("headers")):
        if not name.startswith(":"):
            found.add(name, value)
    return found.pairs


def _typed(headers: Headers, stated: Json) -> Headers:
    """Return headers with a content type: some recorders state it beside the body only."""
    if any(name.lower() == "content-type" for name, _ in headers) or not isinstance(stated, str):
        return headers
    typed = lift(stated, set())
    return [*headers, ("content-type", typed)] if typed else headers
