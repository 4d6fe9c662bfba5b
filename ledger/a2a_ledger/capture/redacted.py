"""Legs as they may be recorded: credentials cut, texts short enough for a record (docs/format.md section 3)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.capture.redact import Redactor, Secret, cut, cut_url, find_secrets, kept_headers, mark_credentials
from a2a_ledger.jsontext import is_scalar_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from a2a_ledger.codec import Content
    from a2a_ledger.events import Credential
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.wire import Headers

MAX_CREDENTIALS = 8
MAX_SCHEME = 128
_MAX_URL = 1024


class Seen(NamedTuple):
    """One leg as it came: headers, body, and the credentials found in it."""

    headers: Headers
    body: bytes
    secrets: tuple[Secret, ...]


def see(headers: Headers, body: bytes, *, url: str = "", schemes: Mapping[str, object] | None = None) -> Seen:
    """Find the credentials in one leg, before anything of it is recorded.

    Args:
        headers: as on the wire.
        body: after content decoding.
        url: of a request, which may hold a key in its query.
        schemes: the contract's scheme table, which says where API keys stand.
    """
    return Seen(headers, body, tuple(find_secrets(headers, url, body, dict(schemes or {}))))


def blobs_of(
    url: str, seen: Seen, secrets: Sequence[Secret], at: ContractLedger, redactor: Redactor | None = None
) -> dict[str, Content]:
    """Return the blobs of one leg: kept headers, body, and the url if a record cannot hold all of it."""
    blobs = {f"header.{i:02}": content for i, content in enumerate(kept_headers(seen.headers, secrets))}
    if seen.body:
        blobs["body"] = cut("body", seen.body, secrets, redactor=redactor, keep=at.settings.keep_body)
    if "?" in url or bare_url(url) != url:
        blobs["url"] = cut_url(url, secrets)
    return blobs


def text_blob(text: str, secrets: Sequence[Secret], at: ContractLedger) -> Content:
    """Return free text, such as an error's, as a blob."""
    return cut("error", text.encode("utf-8", "replace"), secrets, keep=at.settings.keep_body)


def credentials_of(secrets: Sequence[Secret], peer: str, at: ContractLedger) -> list[Credential] | None:
    """Return the marks of the credentials that a leg carried; None: it carried none that can be seen."""
    if not secrets:
        return None
    key_id, key = at.store.keys.redaction_key(peer)
    named = [Secret(cut_text(secret.scheme, MAX_SCHEME), secret.value) for secret in secrets]
    return mark_credentials(named, key_id, key)[:MAX_CREDENTIALS]


def bare_url(url: str) -> str:
    """Return a url without user info, query and fragment, short enough for a record."""
    bare = re.split(r"[?#]", url, maxsplit=1)[0]
    bare = re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/@]*@", r"\1", bare)
    return cut_text(bare, _MAX_URL)


def cut_text(text: str, most: int) -> str:
    """Return text that a record can hold: Unicode scalar values, and so many characters at most."""
    text = text if is_scalar_text(text) else text.encode("utf-8", "replace").decode()
    return text[:most]
