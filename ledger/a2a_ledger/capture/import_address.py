"""Urls in a file, in the spelling of their host in which live traffic has them, so that both meet the same peer.

A peer is known by the url of its card, and a host has several spellings: unicode or A-labels, and those of an IPv6
address. Clients put A-labels on the wire; of an IPv6 address the log's own spelling is taken, where it has one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from a2a_ledger.address import at_origin, host_spellings, origin_of, wire_url
from a2a_ledger.capture.redacted import bare_url

if TYPE_CHECKING:
    from a2a_ledger.capture.jsonl_line import ExchangeLine
    from a2a_ledger.store import Store

_MOST_ORIGINS = 100_000
_WITH_HOST = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+://[^/?#\\]")


class Addresses:
    """Spells the urls of one file."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, str] = {}

    def forget(self) -> None:
        """Look at the origins of the log again: a card has been recorded."""
        self._known.clear()

    def of(self, line: ExchangeLine) -> ExchangeLine:
        """Return an exchange with its url as the log spells it; a push comes to an url of our own."""
        url = self.spelled(line.request.url)
        return line if url == line.request.url else replace(line, request=replace(line.request, url=url))

    def spelled(self, url: str) -> str:
        """Return a url in the spelling of its origin that the log has, else that is put on the wire.

        Text that is no url loses what may be a credential in it: nothing else would know where to look.
        """
        if _WITH_HOST.match(url) is None:
            return bare_url(url)
        spellings = host_spellings(url)
        origin = origin_of(url)
        if len(spellings) == 1 and not origin.endswith("]") and "]:" not in origin:
            return url
        if origin not in self._known:
            place = wire_url(origin)
            tags = self._store.tags_under("origin:", _MOST_ORIGINS)
            known = (tag.removeprefix("origin:") for tag in tags)
            self._known[origin] = next((one for one in known if wire_url(one) == place), origin_of(spellings[0]))
        return at_origin(url, self._known[origin])
