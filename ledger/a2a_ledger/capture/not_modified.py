"""What a 304 says: that one answer's bytes still stand, named by the validator that was asked with. Pure.

RFC 9110 sections 8.8.3, 13.1.2, 13.1.3 and 15.4.5, RFC 9111 section 4.3.4. A 304 that names another validator than
was asked with confirms nothing: taken at its word it would put the tag of new bytes on old ones, and every later
question would be answered for the new.
"""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from a2a_ledger.wire import header

if TYPE_CHECKING:
    from datetime import datetime

    from a2a_ledger.wire import Headers

_TAG = re.compile(r'(?:W/)?"[^"]*"')


def validator_confirmed(
    etag: str | None, modified_since: str | None, headers: Headers
) -> tuple[str | None, str | None] | None:
    """Return the one validator that a 304 says to stand, tag or date; None: none was asked, or it names another.

    Args:
        etag: `If-None-Match` of the question, maybe a list.
        modified_since: `If-Modified-Since` of the question; it counts only where there is no tag.
        headers: of the 304.
    """
    answered = header(headers, "etag")
    if etag is not None:
        asked = _TAG.findall(etag) or [etag]
        named = [tag for tag in asked if answered is None or _same(tag, answered)]
        return (named[0], None) if len(named) == 1 else None
    if modified_since is None or _later(header(headers, "last-modified"), modified_since):
        return None
    return None, modified_since


def _same(one: str, other: str) -> bool:
    """Compare two entity tags weakly, as RFC 9110 section 13.1.2 has it for `If-None-Match`."""
    return one.removeprefix("W/") == other.removeprefix("W/")


def _later(stated: str | None, asked: str) -> bool:
    then, now = _date(stated), _date(asked)
    return then is not None and now is not None and then > now


def _date(text: str | None) -> datetime | None:
    try:
        found = parsedate_to_datetime(text) if text else None
    except (ValueError, TypeError):
        return None
    return found if found is not None and found.tzinfo is not None else None
