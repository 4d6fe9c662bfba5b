"""What the headers of an answer say of how long it may be kept (RFC 9111). Pure."""

from __future__ import annotations

import re

_MAX_AGE = re.compile(r"(?:^|,)\s*max-age\s*=\s*\"?(\d{1,10})\"?\s*(?=,|$)", re.IGNORECASE | re.ASCII)
_NO_CACHE = re.compile(r"(?:^|,)\s*no-(?:cache|store)\s*(?=,|=|$)", re.IGNORECASE)
_MOST_DIGITS = 10  # of seconds: three centuries


def max_age(cache_control: str | None) -> int | None:
    """Return the seconds that `Cache-Control` gives an answer; None: it names none."""
    found = _MAX_AGE.search(cache_control or "")
    return int(found[1]) if found else None


def forbids_keeping(cache_control: str | None) -> bool:
    """Say whether `Cache-Control` has `no-cache` or `no-store`."""
    return _NO_CACHE.search(cache_control or "") is not None


def seconds(age: str | None) -> int | None:
    """Return the seconds of a header `Age`; None: there is none, or it is no number."""
    return int(age) if age and len(age) <= _MOST_DIGITS and age.isascii() and age.isdigit() else None
