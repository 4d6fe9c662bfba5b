"""Addresses of agents: one spelling of a url, and the id of a peer. Pure.

docs/format.md sections 4 (peer id) and 7 (url in a contract). Only what RFC 3986 section 6.2.2.1 and
6.2.3 call equal is made equal: case of scheme and host, the default port, and an empty path. The case
of a path, a trailing slash of a longer path and percent-encoding stay as they were sent, for servers
may tell them apart. Text that is no url (a gRPC `host:port`) is kept verbatim.
"""

from __future__ import annotations

import hashlib
import re
import string
from typing import NamedTuple

CARD_PATH = "/.well-known/agent-card.json"
"""Where A2A 0.3 and later serve the public card (A2A 1.0 section 8.2)."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#\\]+)([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_DEFAULT_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}
# Only ASCII letters: str.lower() would also fold characters that are different hosts.
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_PEER_ID_DIGITS = 32


class _Parts(NamedTuple):
    """A url taken apart, already in its one spelling."""

    scheme: str
    userinfo: str  # with its "@", or ""
    host: str  # with its port, if not the default one
    path: str
    query: str  # with its "?", or ""
    fragment: str  # with its "#", or ""


def _split(url: str) -> _Parts | None:
    """Take a url apart; None when the text is none."""
    found = _URL.fullmatch(url)
    if found is None:
        return None
    scheme = found[1].translate(_LOWER)
    userinfo, at, host = found[2].rpartition("@")
    if not host:
        return None
    name, colon, port = host.rpartition(":")
    # "[::1]" has colons of its own; a port stands only behind the closing bracket.
    if colon and "]" not in port and (port in {"", _DEFAULT_PORTS.get(scheme)}):
        host = name
    return _Parts(scheme, userinfo + at, host.translate(_LOWER), found[3] or "/", found[4] or "", found[5] or "")


def normal_url(url: str) -> str:
    """Return the one spelling of a url: lower-case scheme and host, no default port, empty path as "/".

    Text that is no url, such as a gRPC `host:port`, comes back as it is (docs/format.md section 7).
    """
    parts = _split(url)
    if parts is None:
        return url
    return f"{parts.scheme}://{parts.userinfo}{parts.host}{parts.path}{parts.query}{parts.fragment}"


def same_url(a: str, b: str) -> bool:
    """Say whether two urls name the same place by RFC 3986 section 6.2.2.1 and 6.2.3, and nothing looser."""
    return normal_url(a) == normal_url(b)


def origin_of(url: str) -> str:
    """Return `scheme://host[:port]` of a url, or the text itself when it is none."""
    parts = _split(url)
    return url if parts is None else f"{parts.scheme}://{parts.host}"


def peer_url(url: str) -> str:
    """Return the url that a peer id is made from: no user info, query or fragment (docs/format.md section 4)."""
    parts = _split(url)
    return url if parts is None else f"{parts.scheme}://{parts.host}{parts.path}"


def peer_id(url: str) -> str:
    """Return the peer id of a public card's url: the first 32 hex digits of SHA-256 of its `peer_url`.

    Extended and fallback cards belong to the public card's peer; the caller says so by passing the public url.
    """
    data = peer_url(url).encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:_PEER_ID_DIGITS]


def typed_card_url(text: str) -> str | None:
    """Return the public card's url for what a person typed: a card's url, or the bare origin of an agent.

    The fallback card `agent.json` belongs to the public card beside it. None: the text is no http(s) url.
    """
    parts = _split(text.strip())
    if parts is None or parts.scheme not in {"http", "https"}:
        return None
    path = re.sub(r"/agent\.json\Z", "/agent-card.json", parts.path) if parts.path.strip("/") else CARD_PATH
    return f"{parts.scheme}://{parts.host}{path}"


def agent_card_url(base: str) -> str:
    """Return where the public card of the agent behind `base` is expected: its origin and the well-known path."""
    parts = _split(base)
    if parts is not None:
        return f"{parts.scheme}://{parts.host}{CARD_PATH}"
    host = re.split(r"[/?#\\]", base, maxsplit=1)[0]
    return f"https://{host.translate(_LOWER)}{CARD_PATH}"
