"""base64url without padding, in the one spelling that encoding gives (RFC 7515 section 2, RFC 4648 section 5). Pure."""

from __future__ import annotations

import base64
import binascii


def encode(data: bytes) -> str:
    """Return the base64url text of some bytes, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes | None:
    """Return the bytes of a base64url text; None for padding, foreign characters or stray bits."""
    try:
        data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
    # One signature in two spellings would be two texts for one fact.
    return data if encode(data) == text else None
