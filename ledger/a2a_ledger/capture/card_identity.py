"""Which card is it? What tells one kept card from another, so that no two are ever taken for each other.

Two answers are about one card when the same url was asked, query included, as the same caller, with the
same credential, the same version and the same other headers that may select a card (docs/format.md sections
2, `card.fetched.v1`: `variant`, `credential` and `asked_version`, and 7.8).
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.address import normal_url
from a2a_ledger.capture.redact import Secret, cut_url
from a2a_ledger.codec import canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.events import Credential, Json, JsonObject
    from a2a_ledger.wire import Headers

HEADERS = "headers"
"""The scheme name of the mark over the headers that may select a card."""

CREDENTIAL_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie"})
CONDITIONS = frozenset({"if-none-match", "if-modified-since"})
_SAME_FOR_ALL = CREDENTIAL_HEADERS | {
    "host",
    "connection",
    "accept",
    "accept-encoding",
    "user-agent",
    "cache-control",
    "pragma",
    "content-length",
    "content-type",
    "transfer-encoding",
    "te",
    "a2a-version",
    "a2a-extensions",
    "x-a2a-extensions",
    "traceparent",
    "tracestate",
    "baggage",
    "b3",
    "via",  # a proxy may name itself anew with each start
    "x-request-id",
    "x-correlation-id",
    "request-id",
}
"""Headers by which a server does not choose which card it serves, that are new in every request, or that have a
place of their own in the record."""

_FRAGMENT = re.compile(r"#.*", re.DOTALL)
_USER_INFO = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/?#@]*@")
_DIGITS = 16
_ID_DIGITS = 32
_LONGEST = 1024
"""A longer url does not stand whole in the record, so that it needs a `variant` as well."""


class CardIdentity(NamedTuple):
    """What one kept card is known by."""

    source: str
    url: str  # normal, without query
    variant: str
    caller: str
    credential: tuple[tuple[str, str], ...]  # (scheme, mac)
    version: str  # A2A-Version of the request

    @property
    def place(self) -> tuple[str, str, str]:
        """Where the card lies, whoever asks, in whatever version: what a contract in force belongs to."""
        return self.source, self.url, self.variant

    @property
    def agreed_as(self) -> list[str]:
        """Return the ids that what was agreed to of this card is looked up by, the nearest first.

        See the lookup tag `agreed` in docs/format.md section 4. Whoever asks is held to what was agreed to at one
        place. But an extended card may differ by caller: it is held to what was agreed to with the same credential,
        else by the same caller class, for a token may be new.
        """
        if self.source != "extended":
            return [_id_of([*self.place])]
        marks: list[Json] = [[scheme, mac] for scheme, mac in self.credential]
        return [_id_of([*self.place, self.caller, marks]), _id_of([*self.place, self.caller])]


def _id_of(parts: list[Json]) -> str:
    return hashlib.sha256(canonical(parts)).hexdigest()[:_ID_DIGITS]


def key_of(data: JsonObject) -> CardIdentity:
    """Return the key of the card that a `card.fetched.v1` or `card.fetch_failed.v1` is about."""
    marks = cast("list[Credential]", data.get("credential") or [])
    return CardIdentity(
        source=str(data.get("source", "")),
        url=normal_url(str(data.get("url", ""))),
        variant=str(data.get("variant") or ""),
        caller=str(data.get("caller", "")),
        credential=tuple(sorted((mark["scheme"], mark["mac"]) for mark in marks)),
        version=str(data.get("asked_version") or ""),
    )


def variant_of(url: str, secrets: Sequence[Secret], method: str = "") -> str | None:
    """Return what tells urls with one path apart: 16 hex digits of SHA-256 of the redacted url; None: no query.

    A secret counts as one `*`, whatever its length, so that a new key does not make another card.

    Args:
        url: as asked.
        secrets: what the request carried.
        method: the method called there, and its tenant; it stands where a fragment would.
    """
    if "?" not in url and len(url) <= _LONGEST and not method:
        return None
    bare = _USER_INFO.sub(r"\1", _FRAGMENT.sub("", url))
    parts = cut_url(normal_url(f"{bare}#{method}" if method else bare), secrets).parts
    text = b"".join(part if isinstance(part, bytes) else b"*" for part in parts)
    return hashlib.sha256(text).hexdigest()[:_DIGITS]


def selects(name: str) -> bool:
    """Say whether a request header may select which card is served: a tenant, a language, a version, a key."""
    lower = name.lower()
    return lower not in _SAME_FOR_ALL and not lower.startswith(("if-", "x-b3-", "sec-"))


def selecting(headers: Headers) -> Secret | None:
    """Return the headers that may select the card, as one value to be marked; None when there are none.

    They are marked as a credential is, for one of them may be a key that no card has named yet.
    """
    lines = sorted(f"{name.lower()}: {value}" for name, value in headers if selects(name))
    return Secret(HEADERS, "\n".join(lines).encode("latin-1", "replace")) if lines else None
