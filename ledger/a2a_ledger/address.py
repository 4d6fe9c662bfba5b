"""Addresses of agents: one spelling of a url, and the id of a peer. Pure.

docs/format.md sections 4 (peer id) and 7 (url in a contract). Only what RFC 3986 section 6.2.2.1 and
6.2.3 call equal is made equal: case of scheme and host, the default port, and an empty path. The case
of a path, a trailing slash of a longer path and percent-encoding stay as they were sent, for servers
may tell them apart. Text that is no url (a gRPC `host:port`) is kept verbatim.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import re
import string
import unicodedata
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

CARD_PATH = "/.well-known/agent-card.json"
"""Where A2A 0.3 and later serve the public card (A2A 1.0 section 8.2)."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#\\]+)([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_DEFAULT_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}
# Only ASCII letters: str.lower() would also fold characters that are different hosts.
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_PEER_ID_DIGITS = 32
_HOST = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:[0-9]*)?")
_TARGET = re.compile(r"(?:dns:(?://[^/]*/)?/*)?(\[[^\]/]*\]|[^:/?#@\[\]\s]+)(:[0-9]+)", re.IGNORECASE)
_DOTS = re.compile("[.\u3002\uff0e\uff61]")  # what IDNA takes for a dot (RFC 3490 section 3.1)
_ACE = "xn--"
_UNRESERVED = string.ascii_letters + string.digits + "-._~"
_AS_IT_IS = frozenset(_UNRESERVED + "%/:@!$&'()*+,;=?")  # RFC 3986 section 3.3 and 3.4
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
# Without the dot: what servers make of an escaped dot segment differs.
_ESCAPED_UNRESERVED = re.compile(r"%(2[Dd]|3[0-9]|4[1-9A-Fa-f]|5[0-9AaFf]|6[1-9A-Fa-f]|7[0-9AaEe])")


_REMEMBERED = 1024
"""Urls whose spelling is not worked out again: the same few are compared for every message."""


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


@lru_cache(maxsize=_REMEMBERED)
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


@lru_cache(maxsize=_REMEMBERED)
def wire_url(url: str) -> str:
    """Return what a client puts on the wire for a url, in one spelling: two urls of one spelling are one place.

    Beyond `normal_url`: no user info and no fragment (neither is sent as part of a url), a host of one spelling
    (unicode for IDNA, RFC 5952 for IPv6), dot segments removed, percent-encoding only where it is needed and in
    capitals (RFC 3986 sections 6.2.2.1 to 6.2.2.3). A gRPC target (`host:port`, `dns:///host:port`) becomes
    `//host:port`. Text that is neither comes back as it is.
    """
    parts = _split(url)
    if parts is None:
        target = _TARGET.fullmatch(url)
        return url if target is None else f"//{_host(target[1])}{target[2]}"
    host = _HOST.fullmatch(parts.host)
    name, port = (parts.host, "") if host is None else (host[1], (host[2] or "")[1:])
    number = port.lstrip("0") or port[:1]
    shown = f":{number}" if number and number != _DEFAULT_PORTS.get(parts.scheme) else ""
    return f"{parts.scheme}://{_host(name)}{shown}{_path(parts.path)}{_encoded(parts.query)}"


def host_spellings(url: str) -> list[str]:
    """Return a url in the spellings of its host: on the wire (A-labels, RFC 5952), as it is, for people (unicode).

    A card may have one and a client another. Of a host that has only one spelling that one is returned.
    """
    parts = _split(url)
    found = _HOST.fullmatch(parts.host) if parts is not None else None
    if parts is None or found is None:
        return [normal_url(url)]
    if parts.host.isascii() and _ACE not in parts.host and not parts.host.startswith("["):
        return [normal_url(url)]
    shown = _host(found[1])
    labels = (label if label.isascii() else _ACE + label.encode("punycode").decode() for label in shown.split("."))
    hosts = dict.fromkeys(f"{name}{found[2] or ''}" for name in (".".join(labels), found[1], shown))
    return [at_origin(url, f"{parts.scheme}://{host}") for host in hosts]


def at_origin(url: str, origin: str) -> str:
    """Return a url with the scheme and the host of another one; text that is no url as it is."""
    parts, other = _split(url), _split(origin)
    if parts is None or other is None:
        return url
    return f"{other.scheme}://{parts.userinfo}{other.host}{parts.path}{parts.query}{parts.fragment}"


def authority_of(url: str) -> str:
    """Return `host:port` of a url or a gRPC target, in the spelling of `wire_url`; without a port, that of its scheme.

    A gRPC call goes to a host and a port: the scheme before them, and whether there is one, is the client's business.
    """
    scheme, slashes, rest = wire_url(url).partition("//")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0] if slashes else ""
    if not authority or re.search(r":[0-9]+$", authority):
        return authority
    return f"{authority}:{_DEFAULT_PORTS.get(scheme.rstrip(':'), '443')}"


def url_difference(a: str, b: str) -> str:
    """Say what kind of near miss two different urls are; "" when they are not one.

    Returns:
        `url-spelling`: one place, written in two ways. `trailing-slash`, `path-case`, `scheme-only`: two places by
        RFC 3986, told apart by slashes at the end, by letter case of the path, or by http against https alone.
    """
    one, other = _split(a), _split(b)
    if (one and one.userinfo) != (other and other.userinfo) or (one and one.fragment) != (other and other.fragment):
        return ""
    wired, query = _cut_query(wire_url(a))
    against, its_query = _cut_query(wire_url(b))
    if query != its_query:
        return ""
    if wired == against:
        return "url-spelling"
    return _near_miss(wired, against) if one and other else ""


def _near_miss(a: str, b: str) -> str:
    if a.rstrip("/") == b.rstrip("/"):
        return "trailing-slash"
    if a.casefold() == b.casefold():
        return "path-case"
    without = [re.sub("^https?:", "", url) for url in (a, b)]
    return "scheme-only" if without[0] == without[1] else ""


def _cut_query(url: str) -> tuple[str, str]:
    path, _, query = url.partition("?")
    return path, query


def _host(name: str) -> str:
    """Return a host in one spelling; what cannot be read as one stays as it is."""
    if name.startswith("["):
        with contextlib.suppress(ValueError):
            return f"[{ipaddress.IPv6Address(name[1:-1]).compressed}]"
        return name
    return ".".join(map(_label, _DOTS.split(name)))


def _label(label: str) -> str:
    """Return one label of a host name as unicode in lower case, however it was spelled (RFC 5890 section 2.3.2.1).

    What only looks like an A-label stays as it is: one that decodes to nothing, to ASCII, or to what would be
    encoded otherwise is a DNS name of its own.
    """
    text = unicodedata.normalize("NFC", label.lower())
    if not text.startswith(_ACE):
        return text
    with contextlib.suppress(UnicodeError):
        decoded = text[len(_ACE) :].encode("ascii").decode("punycode")
        shown = unicodedata.normalize("NFKC", decoded.lower())
        if shown and not shown.isascii() and _ACE + shown.encode("punycode").decode() == text:
            return shown
    return text


def _path(path: str) -> str:
    """Return a path without dot segments (RFC 3986 section 5.2.4), in one percent-encoding."""
    kept: list[str] = []
    segments = path.removeprefix("/").split("/")  # a backslash ends a host too, and begins a path
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in {".", ".."}:
        kept.append("")
    return _encoded("/" + "/".join(kept))


def _encoded(text: str) -> str:
    """Return a path or query with percent-encoding where it is needed, in capitals, and nowhere else."""
    plain = _ESCAPED_UNRESERVED.sub(lambda found: chr(int(found[1], 16)), text)
    capitals = _ESCAPE.sub(lambda found: found[0].upper(), plain)
    return "".join(
        char if char in _AS_IT_IS else "".join(f"%{octet:02X}" for octet in char.encode("utf-8", "surrogatepass"))
        for char in capitals
    )


def is_http_url(url: str) -> bool:
    """Say whether this is an http or https url with a host, to which something can be sent."""
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


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
