"""Where a verb listens: HOST:PORT as typed, and the socket."""

from __future__ import annotations

import socket

from a2a_ledger.errors import UsageError

_BACKLOG = 256
_LAST_PORT = 65535


def address(option: str, text: str) -> tuple[str, int]:
    """Read HOST:PORT; a host in brackets is one of IPv6.

    Args:
        option: that has it, for messages.
        text: as typed.

    Raises:
        UsageError: it is not of that form.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > _LAST_PORT:
        raise UsageError(f"{option}: expected HOST:PORT such as 127.0.0.1:9000, found {text!r}")
    return host, int(port)


def bound(option: str, text: str) -> socket.socket:
    """Listen at HOST:PORT.

    Raises:
        UsageError: it is not of that form, or it cannot be listened there.
    """
    host, port = address(option, text)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as e:
        raise UsageError(f"{option} {text}: cannot listen there: {e.strerror or e}") from e
    # asyncio does not switch Nagle's algorithm off for such a socket: the second piece of each answer, and each event
    # of a stream, would wait 40 ms for the client's delayed acknowledgement. What it accepts inherits the option.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def url_of(host: str, listening: socket.socket) -> str:
    """Return the http url of a socket that listens on a host."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
