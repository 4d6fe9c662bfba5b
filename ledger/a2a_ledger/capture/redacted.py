"""Legs as they may be recorded: credentials cut, texts short enough for a record (docs/format.md section 3)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from a2a_ledger.capture.charsets import shows_in_charset
from a2a_ledger.capture.credentials import find_mentioned, find_push_secrets, find_secrets
from a2a_ledger.capture.push_objects import may_hold_push
from a2a_ledger.capture.redact import (
    Redactor,
    Secret,
    cut,
    cut_apart,
    cut_url,
    filled,
    filled_octets,
    kept_headers,
    mark_credentials,
    starred,
    wanted_of,
    withhold,
)
from a2a_ledger.codec import Content
from a2a_ledger.wire import header
from a2a_ledger.wire.jsontext import is_scalar_text
from a2a_ledger.wire.string_places import string_places
from a2a_ledger.wire.wide import as_utf8

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from a2a_ledger.capture.credentials import ApiKeyPlace
    from a2a_ledger.capture.search import Span
    from a2a_ledger.codec import Hole
    from a2a_ledger.events import Credential
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.wire import Headers, Leg

MAX_CREDENTIALS = 8
MAX_SCHEME = 128
_MAX_URL = 1024
_TYPED_USER = re.compile(r"^(\s*+(?:https?:[/\\]*+|[/\\]{2,}+)?+)[^/\\]*@", re.IGNORECASE)
"""User info where the `//` before it was left out or written otherwise."""
_LIFTED = ("method_spelled", "rpc_id", "message_id", "task_id", "context_id", "tenant", "state", "redirect")
"""The texts of a leg that come from the wire as they are."""


class Seen(NamedTuple):
    """One leg as it came: headers, body, the credentials found in it, and where some stand in the body.

    `wire` holds the octets of a gRPC message, whose ProtoJSON is the body.
    """

    headers: Headers
    body: bytes
    secrets: tuple[Secret, ...]
    places: tuple[Span, ...] = ()
    tail: Hole | None = None
    """What followed the body and was too long to be held."""
    wire: bytes = b""

    def unread(self, octets: bytes) -> Seen:
        """Return it with a body that nobody here can read: nothing can be cut out of it, so all of it is withheld."""
        return self._replace(body=octets, places=((0, len(octets)),))


def see(
    headers: Headers,
    body: bytes,
    *,
    url: str = "",
    schemes: Mapping[str, object] | None = None,
    places: Iterable[ApiKeyPlace] = (),
) -> Seen:
    """Find the credentials in one leg, before anything of it is recorded.

    Args:
        headers: as on the wire.
        body: after content decoding; of a stream event the block as it came. A card is not looked through: b"".
        url: of a request, which may hold a key in its query.
        schemes: the contract's scheme table, which says where API keys stand.
        places: where else some card of the peer puts an API key.
    """
    secrets = [*find_secrets(headers, url, schemes or {}, places), *find_mentioned(headers)]
    text, source = as_utf8(body)
    if not may_hold_push(text):
        return Seen(headers, body, tuple(secrets))
    found, spans = find_push_secrets(text)
    return Seen(headers, body, (*secrets, *found), tuple(map(source, spans)))


def seen_as(seen: Seen, leg: Leg) -> Seen:
    """Return what was seen, with what the leg's method tells: all of a push configuration's body is one."""
    if (
        not seen.body
        or leg.method is None
        or not leg.method.endswith(("PushNotificationConfig", "NotificationConfigs"))
    ):
        return seen
    text, source = as_utf8(seen.body)
    found, spans = find_push_secrets(text, is_push=True)
    new = [secret for secret in found if secret not in seen.secrets]
    return seen._replace(secrets=(*seen.secrets, *new), places=tuple(map(source, spans)))


def without_secrets(leg: Leg, secrets: Sequence[Secret], *, with_url: bool = False) -> Leg:
    """Return a leg whose texts, which go into records, have `*` for each octet of a known secret.

    A peer may have a token in a path, or answer with it where an id is expected.

    Args:
        leg: as read.
        secrets: of its exchange.
        with_url: its url too; without, the url stays as it is, for a blob that has holes in it.
    """
    wanted = wanted_of(secrets)
    extensions = tuple(recorded_uri(uri, secrets) for uri in leg.extensions)
    if not wanted and extensions == leg.extensions:
        return leg

    texts = {name: value for name in _LIFTED if (value := cast("str | None", getattr(leg, name)))}
    if with_url:
        texts["url"] = leg.url
    clean: dict[str, Any] = {name: starry for name, text in texts.items() if (starry := starred(text, wanted)) != text}
    pin = {name: starred(value, wanted) for name, value in (leg.pin or {}).items()}
    if pin != (leg.pin or {}):
        clean["pin"] = pin
    if extensions != leg.extensions:
        clean["extensions"] = extensions
    return leg._replace(**clean) if clean else leg


def blobs_of(  # noqa: PLR0913 - a leg, and all that decides about its holes
    url: RecordedUrl,
    seen: Seen,
    secrets: Sequence[Secret],
    at: ContractLedger,
    redactor: Redactor | None = None,
    *,
    is_error: bool = False,
) -> dict[str, Content]:
    """Return the blobs of one leg: kept headers, body, and the url if a record cannot hold all of it.

    What the profile names as withholdable is a part of its own in the body, so that it can be left out of a bundle.

    The octets of a gRPC message are kept where nothing of its body is cut, and else withheld whole: what a
    place or a redactor says of the one tells nothing of the other.

    Args:
        url: as asked, and as it is recorded.
        seen: the leg.
        secrets: of its exchange.
        at: the ledger that it is for.
        redactor: the user's own redaction.
        is_error: what it says is that something went wrong.
    """
    blobs = header_blobs(seen.headers, secrets, redactor)
    if seen.body:
        keep = at.settings.keep_body
        body = cut("body", seen.body, secrets, places=seen.places, redactor=redactor, keep=keep, is_error=is_error)
        if shows_in_charset(header(seen.headers, "content-type") or "", filled_octets(body), wanted_of(secrets)):
            body = Content(tuple(withhold(seen.body)))
        body = cut_apart(body, string_places(seen.body, at.profile.withhold))
        blobs["body"] = body if seen.tail is None else Content((*body.parts, seen.tail), kept="head")
    if seen.wire:
        whole = all(isinstance(part, bytes) for part in blobs["body"].parts) if seen.body else True
        blobs["wire"] = Content(parts=(seen.wire,) if whole else tuple(withhold(seen.wire)))
    if url.blob is not None:
        blobs["url"] = url.blob
    return blobs


def header_blobs(headers: Headers, secrets: Sequence[Secret], redactor: Redactor | None = None) -> dict[str, Content]:
    """Return the headers that are kept, each as a blob of its own."""
    return {f"header.{i:02}": content for i, content in enumerate(kept_headers(headers, secrets, redactor))}


def text_blob(text: str, secrets: Sequence[Secret], at: ContractLedger, redactor: Redactor | None = None) -> Content:
    """Return free text, such as an error's, as a blob."""
    octets = text.encode("utf-8", "replace")
    return cut("error", octets, secrets, redactor=redactor, keep=at.settings.keep_body, is_error=True)


def credentials_of(secrets: Sequence[Secret], peer: str, at: ContractLedger) -> list[Credential] | None:
    """Return the marks of the credentials that a leg carried; None: it carried none that can be seen."""
    if not any(secret.scheme for secret in secrets):
        return None
    key_id, key = at.store.keys.redaction_key(peer)
    named = [Secret(cut_text(secret.scheme, MAX_SCHEME), secret.value) for secret in secrets]
    return mark_credentials(named, key_id, key)[:MAX_CREDENTIALS]


class RecordedUrl(NamedTuple):
    """A url as its event holds it, and what of it only a blob can hold."""

    text: str
    """Bare, and with `*` for what its blob has holes for."""
    blob: Content | None
    """All of it, with its holes; None: the text is all of it."""


def url_of(url: str, secrets: Sequence[Secret] = (), redactor: Redactor | None = None) -> RecordedUrl:
    """Return what is recorded of a url.

    The user's own redaction is asked once: asked twice, it may say two things, and the event and its blob as well.
    """
    wanted = wanted_of(secrets)
    if redactor is None and ";" not in url:
        text = bare_url(starred(url, wanted) if wanted else url)
        return RecordedUrl(text, cut_url(url, secrets) if text != url else None)
    blob = cut_url(url, secrets, redactor=redactor)
    text = bare_url(filled(blob))
    return RecordedUrl(text, blob if text != url else None)


def recorded_url(url: str, secrets: Sequence[Secret] = ()) -> str:
    """Return a url as an event holds it; see `RecordedUrl`."""
    return url_of(url, secrets).text


def recorded_uri(uri: str, secrets: Sequence[Secret] = ()) -> str:
    """Return the whole of a uri that is a name, such as an extension's, with `*` for each octet of a secret in it."""
    return filled(cut_url(uri, secrets)) if secrets or any(sign in uri for sign in "?#@;") else uri


def bare_url(url: str) -> str:
    """Return a url without user info, query and fragment, short enough for a record."""
    bare = re.split(r"[?#]", url, maxsplit=1)[0]
    bare = re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/\\]*@", r"\1", bare)
    bare = _TYPED_USER.sub(r"\1", bare)
    return cut_text(bare, _MAX_URL)


def cut_text(text: str, most: int) -> str:
    """Return text that a record can hold: Unicode scalar values, and so many characters at most."""
    text = text if is_scalar_text(text) else text.encode("utf-8", "replace").decode()
    return text[:most]
