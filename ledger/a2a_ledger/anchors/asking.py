"""One question over HTTP to somebody who anchors heads, with a deadline and limits on what comes back.

Standard library only: whoever anchors needs none of the extras. Redirects are not followed, since a
submission goes where the settings say or nowhere, and what is answered is bytes that the caller judges.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, NamedTuple, cast
from urllib.parse import SplitResult, urlsplit

from a2a_ledger.errors import AnchorError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from _typeshed import WriteableBuffer

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


class _Received(io.RawIOBase):
    """What a connection brings; each single read of it ends when the time for all of it is over."""

    def __init__(self, connected: socket.socket, left: Callable[[], float]) -> None:
        self._connected = connected
        self._left = left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        self._connected.settimeout(self._left())
        return self._connected.recv_into(buffer)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Be read as `http.client` reads a socket: header, chunk sizes and body come through here alike."""
        return io.BufferedReader(self)


def ask(  # noqa: PLR0913 - the parts of a request
    method: str,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    timeout: float = TIMEOUT,
    plain: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> Answer:
    """Send one request and return what is answered, whatever its status.

    Args:
        method: `GET` or `POST`.
        url: see `check_url`.
        body: of the request.
        headers: of the request.
        timeout: seconds for all of it, but for the look-up of the host's name: that has the resolver's own limit.
        plain: see `check_url`.
        clock: seconds of a clock that never goes back.

    Raises:
        AnchorError: no whole answer within the time, or one that is too long.
        UsageError: the url may not be asked.
    """
    parts = check_url(url, plain=plain)
    deadline = clock() + timeout

    def left() -> float:
        if (rest := deadline - clock()) <= 0:
            raise TimeoutError
        return rest

    connection = _connection(parts)
    try:
        connected = connection.sock = _connect(parts, connection.port, left)
        connection.request(method, parts.path or "/", body or None, dict(headers))
        answer = http.client.HTTPResponse(cast("socket.socket", _Received(connected, left)), method=method)
        answer.begin()
        received = bytearray()
        while chunk := answer.read1(_CHUNK):
            received += chunk
            if len(received) > MAX_ANSWER:
                raise AnchorError(f"{url}: expected an answer of at most {MAX_ANSWER} bytes, found a longer one")
            left()
        if answer.length:  # `read1` ends like this where the connection does
            whole = len(received) + answer.length
            raise AnchorError(f"{url}: expected an answer of {whole} bytes, found one cut after {len(received)}")
    except TimeoutError:
        raise AnchorError(f"{url}: no whole answer within {timeout:g} s") from None
    except (OSError, http.client.HTTPException) as problem:
        raise AnchorError(f"{url}: no answer ({type(problem).__name__}: {problem})") from problem
    finally:
        connection.close()
    media_type = answer.headers.get_content_type() if answer.headers.get("Content-Type") else ""
    return Answer(answer.status, media_type, bytes(received))


def _connection(parts: SplitResult) -> http.client.HTTPConnection:
    """Return what writes the request; it is given its socket."""
    kind = http.client.HTTPConnection if parts.scheme == "http" else http.client.HTTPSConnection
    return kind(parts.hostname or "", parts.port)


def _connect(parts: SplitResult, port: int, left: Callable[[], float]) -> socket.socket:
    """Reach one of a host's addresses, all of them within the time that is left.

    Raises:
        TimeoutError: none was reached in time.
        OSError: none could be reached, or its certificate does not hold.
    """
    host = parts.hostname or ""
    problem = OSError("the name of the host has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        connected = socket.socket(family, kind, protocol)
        try:
            connected.settimeout(left())
            connected.connect(address)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if parts.scheme == "http":
                return connected
            connected.settimeout(left())
            return ssl.create_default_context().wrap_socket(connected, server_hostname=host)
        except OSError as failed:
            connected.close()
            left()
            problem = failed
    raise problem


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
