"""One question over HTTP to somebody who anchors heads, with a deadline and limits on what comes back.

Standard library only: whoever anchors needs none of the extras. Redirects are not followed, since a
submission goes where the settings say or nowhere, and what is answered is bytes that the caller judges.
"""

from __future__ import annotations

import http.client
import ssl
import time
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from a2a_ledger.errors import AnchorError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_ANSWER: Final = 256 * 1024  # bytes; the longest answer of use is a time token with its certificates
TIMEOUT: Final = 10.0  # seconds for one answer
_CHUNK = 16 * 1024


class Answer(NamedTuple):
    """What came back: the HTTP status, the media type without parameters in lower case, and the body."""

    status: int
    media_type: str
    body: bytes


def check_url(url: str, *, plain: bool = False) -> SplitResult:
    """Check where a question may go: https, or http to this machine itself; no user, query or fragment.

    Args:
        url: where.
        plain: http may go anywhere, as to those whose answers are signed and who are told nothing but a hash.

    Raises:
        UsageError: it may not go there.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as e:
        raise UsageError(f"expected an https url, found {url[:200]!a}: {e}") from None
    open_way = parts.scheme == "http" and (plain or _is_here(host))
    odd = parts.username is not None or parts.query or parts.fragment or port == 0
    if odd or not host or not (parts.scheme == "https" or open_way) or not url.isascii() or any(c <= " " for c in url):
        kinds = "an http or https url" if plain else "an https url (http only to this machine)"
        raise UsageError(f"expected {kinds} without user, query and fragment, found {url[:200]!a}")
    return parts


def ask(  # noqa: PLR0913 - the parts of a request
    method: str, url: str, body: bytes, headers: Mapping[str, str], *, timeout: float = TIMEOUT, plain: bool = False
) -> Answer:
    """Send one request and return what is answered, whatever its status.

    Args:
        method: `GET` or `POST`.
        url: see `check_url`.
        body: of the request.
        headers: of the request.
        timeout: seconds for all of it.
        plain: see `check_url`.

    Raises:
        AnchorError: no whole answer within the time, or one that is too long.
        UsageError: the url may not be asked.
    """
    parts = check_url(url, plain=plain)
    deadline = time.monotonic() + timeout
    connection = _connect(parts, timeout)
    try:
        connection.request(method, parts.path or "/", body or None, dict(headers))
        answer = connection.getresponse()
        received = bytearray()
        while chunk := answer.read1(_CHUNK):
            received += chunk
            if len(received) > MAX_ANSWER:
                raise AnchorError(f"{url}: expected an answer of at most {MAX_ANSWER} bytes, found a longer one")
            if time.monotonic() > deadline:
                raise AnchorError(f"{url}: no whole answer within {timeout:g} s")
    except TimeoutError:
        raise AnchorError(f"{url}: no whole answer within {timeout:g} s") from None
    except (OSError, http.client.HTTPException) as problem:
        raise AnchorError(f"{url}: no answer ({type(problem).__name__}: {problem})") from problem
    finally:
        connection.close()
    media_type = answer.headers.get_content_type() if answer.headers.get("Content-Type") else ""
    return Answer(answer.status, media_type, bytes(received))


def _connect(parts: SplitResult, timeout: float) -> http.client.HTTPConnection:
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=timeout)
    return http.client.HTTPSConnection(host, port, timeout=timeout, context=ssl.create_default_context())


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
