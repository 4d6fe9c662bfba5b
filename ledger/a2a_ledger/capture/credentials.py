"""Which credentials one request or answer carries: in its headers, its url, and a push configuration. Pure.

docs/format.md section 3.3. What the card names as an API key, the headers and the user info that HTTP has for
credentials, and the tokens of push configurations leave a mark; a value that only its name tells (`access_token`)
is cut without one.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import quote, unquote, unquote_to_bytes

from a2a_ledger.capture.push_objects import read_push, string_octets
from a2a_ledger.capture.redact import CREDENTIAL_HEADERS, Headers, Secret
from a2a_ledger.capture.url_secrets import query_values, secrets_in_header, tells, user_info

if TYPE_CHECKING:
    from a2a_ledger.capture.search import Span


class ApiKeyPlace(NamedTuple):
    """Where a card's apiKey scheme puts its key: (scheme name, header | query | cookie, member name).

    Without a scheme's name a key is cut there and leaves no mark.
    """

    scheme: str
    location: str
    name: str


ANYWHERE = ApiKeyPlace("", "query", "*")
"""Every query value may be a key: a card names more places than a record has room for."""

UNREAD = ApiKeyPlace("", "query", "")
"""No card of the peer is known: every query value may be a key that has no name in A2A itself."""

_NEW_IN_EACH = frozenset({"dpop", "x-csrf-token", "x-xsrf-token", "csrf-token"})
"""Headers with a proof (RFC 9449) or a token that is another one in each request."""

_PARAMETER = re.compile(rb"(?<![A-Za-z_*-])([A-Za-z_*-]++)\s*+=\s*+(?:\"([^\"]*+)\"|([^\s,\"]++))")
_SECRET_PARAMETERS = frozenset(
    {
        *(b"response", b"nonce", b"cnonce", b"opaque", b"mac", b"hash", b"signature", b"sig", b"token", b"key"),
        *(b"oauth_token", b"oauth_signature", b"oauth_nonce", b"oauth_consumer_key", b"apikey", b"api_key"),
    }
)
"""Parameters of Digest, OAuth 1.0, AWS4-HMAC-SHA256 and their like that are of use to somebody else."""

_IN_QUERIES = frozenset(
    {
        *("a2aversion", "tenant", "contextid", "status", "state", "historylength", "pagesize", "pagetoken"),
        *("includeartifacts", "statustimestampafter", "lastupdatedafter"),
    }
)
"""Query parameters of A2A's HTTP+JSON binding, in lower case, without their signs."""


def place_text(place: ApiKeyPlace) -> str:
    """Return a place as a record holds it: `in:name:scheme`, each percent-encoded."""
    return ":".join(quote(part, safe="*", errors="replace") for part in (place.location, place.name, place.scheme))


def read_place(text: str) -> ApiKeyPlace:
    """Read what `place_text` wrote."""
    location, _, rest = text.partition(":")
    name, _, scheme = rest.partition(":")
    return ApiKeyPlace(unquote(scheme), unquote(location), unquote(name))


def api_key_places(schemes: Mapping[str, object]) -> list[ApiKeyPlace]:
    """Return the places that a scheme table (docs/format.md section 7) names for API keys."""
    places: list[ApiKeyPlace] = []
    for name, scheme in schemes.items():
        if isinstance(scheme, Mapping):
            entry = cast("Mapping[str, object]", scheme)
            if entry.get("kind") == "apiKey":
                places.append(ApiKeyPlace(name, str(entry.get("in", "")).lower(), str(entry.get("name", "")).lower()))
    return places


def find_secrets(
    headers: Headers, url: str, schemes: Mapping[str, object], more: Iterable[ApiKeyPlace] = ()
) -> list[Secret]:
    """Find the credentials in the headers and the url of one request or answer.

    Args:
        headers: names and values as on the wire.
        url: the url asked, "" of an answer.
        schemes: the scheme table of the contract in force, which names API keys and bearer schemes.
        more: other places in which some card of this peer puts an API key.
    """
    places = [*api_key_places(schemes), *more]
    by_header = {place.name: place.scheme for place in reversed(places) if place.location == "header"}
    secrets: list[Secret] = []
    for name, value in headers:
        lower = name.lower()
        if lower in CREDENTIAL_HEADERS:
            secrets.append(_from_credential_header(lower, value, schemes, places))
        elif lower in by_header or tells(lower):
            secrets.append(Secret(by_header.get(lower, ""), _octets(value)))
    if any(sign in url for sign in "?#@;"):
        secrets += _from_url(url.encode("utf-8", "replace"), schemes, places)
    return [secret for secret in secrets if secret.value]


def find_mentioned(headers: Headers) -> list[Secret]:
    """Find what a message's headers have that is secret and tells nothing about who asks: it is cut, without a mark.

    These are proofs and tokens that are new in each request, and what is secret in urls (a `Referer`, a `Location`).
    """
    secrets: list[Secret] = []
    for name, value in headers:
        lower, octets = name.lower(), _octets(value)
        if lower in _NEW_IN_EACH:
            secrets.append(Secret("", octets))
        elif lower not in CREDENTIAL_HEADERS and any(sign in value for sign in "?#@;"):
            secrets += [_in_url(octets[slice(*span)]) for span in secrets_in_header(lower, octets)]
    return secrets


def _in_url(octets: bytes) -> Secret:
    """Return what is secret in a url: a value, or user info with a password as a part of it."""
    return Secret("", octets, tuple(part for part in octets.split(b":") if part != octets))


def find_push_secrets(body: bytes, *, is_push: bool = False) -> tuple[list[Secret], list[Span]]:
    """Find the credentials of push configurations in a body, and where they stand.

    Args:
        body: JSON, or a block of an event stream.
        is_push: the method says that the body is a push configuration.
    """
    push = read_push(body, is_push=is_push)
    secrets = [Secret("push-token", string_octets(body[slice(*span)])) for span in push.values]
    secrets += [_in_url(string_octets(body[slice(*span)])) for span in push.in_urls]
    return [secret for secret in secrets if secret.value], [*push.values, *push.in_urls]


def _from_credential_header(
    name: str, value: str, schemes: Mapping[str, object], places: Sequence[ApiKeyPlace]
) -> Secret:
    if name in {"authorization", "proxy-authorization"}:
        kind, _, token = value.partition(" ")
        if not token:
            kind, token = "", value
        octets = _octets(token.strip())
        parts = _basic_parts(octets) if kind.lower() == "basic" else _parameters(octets)
        return Secret(_scheme_for(kind.lower(), schemes, places), octets, parts)
    if name in {"cookie", "set-cookie"}:
        pairs = value.split(";") if name == "cookie" else value.split(";")[:1]  # what follows there is no secret
        cookies = {part.partition("=")[0].strip().lower(): part.partition("=")[2].strip() for part in pairs}
        named = [one.scheme for one in places if one.scheme and one.location == "cookie" and one.name in cookies]
        parts = tuple(_octets(single.strip('"')) for single in cookies.values() if single)
        return Secret(named[0] if named else name, _octets(value), parts)
    return Secret("push-token", _octets(value))


def _from_url(url: bytes, schemes: Mapping[str, object], places: Sequence[ApiKeyPlace]) -> list[Secret]:
    """Find user info, which HTTP clients send as Basic credentials, and secret query values."""
    secrets: list[Secret] = []
    info = user_info(url)
    if info is not None:
        user, _, password = url[slice(*info)].partition(b":")
        pair = unquote_to_bytes(user) + b":" + unquote_to_bytes(password)
        basic = base64.b64encode(pair)
        secrets.append(Secret(_scheme_for("basic", schemes, places), basic, (url[slice(*info)], *_basic_parts(basic))))
    by_query = {place.name: place.scheme for place in reversed(places) if place.location == "query"}
    for value in query_values(url):
        named = [by_query[name] for name in value.names if name in by_query]
        plain = value.names[0]
        is_secret = (
            named or ANYWHERE.name in by_query or (UNREAD.name in by_query and not _is_of_a2a(plain)) or tells(plain)
        )
        if is_secret:
            secrets += [Secret(scheme, url[slice(*value.span)]) for scheme in named or [""]]
    return secrets


def _is_of_a2a(name: str) -> bool:
    return name.replace("_", "").replace("-", "") in _IN_QUERIES


def _parameters(credentials: bytes) -> tuple[bytes, ...]:
    """Return the secret parameters of credentials that have some, as those of Digest have (RFC 9110 section 11.4)."""
    found = _PARAMETER.finditer(credentials) if b"=" in credentials else ()
    return tuple(value for one in found if one[1].lower() in _SECRET_PARAMETERS and (value := one[2] or one[3]))


def _basic_parts(token: bytes) -> tuple[bytes, ...]:
    """Return user:password of Basic credentials (RFC 7617), and each half; nothing when it is no base64."""
    try:
        pair = base64.b64decode(token, validate=True)
    except binascii.Error:
        return ()
    user, _, password = pair.partition(b":")
    return tuple(part for part in (pair, user, password) if part)


def _scheme_for(kind: str, schemes: Mapping[str, object], places: Sequence[ApiKeyPlace]) -> str:
    """Name the card's scheme that an Authorization header of this kind serves; else say what it is."""
    for place in places:
        if place.scheme and place.location == "header" and place.name == "authorization":
            return place.scheme
    for name, scheme in schemes.items():
        if not isinstance(scheme, Mapping):
            continue
        entry = cast("Mapping[str, object]", scheme)
        of_kind = entry.get("kind") == "http" and entry.get("scheme") == kind
        bearer = kind == "bearer" and entry.get("kind") in {"oauth2", "openIdConnect"}
        if of_kind or bearer:
            return name
    return f"authorization:{kind}" if kind else "authorization"


def _octets(value: str) -> bytes:
    """Return a header's octets; of an imported one, whose text may hold any character, its UTF-8."""
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode("utf-8", "replace")
