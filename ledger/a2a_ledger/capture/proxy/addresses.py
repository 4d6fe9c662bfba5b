"""Where the proxy stands: the agent's base url on one side, its own on the other. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

from a2a_ledger.address import is_http_url, normal_url, origin_of
from a2a_ledger.capture.server.incoming import WHOLE_SERVER
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

_REMEMBERED = 1024
_LONGEST = 65_536
"""Characters of the longest url that httpx takes."""


class Addresses:
    """Two base urls, and the way from one to the other."""

    def __init__(self, upstream: str, public: str) -> None:
        """Take the two urls.

        Args:
            upstream: of the agent.
            public: by which clients reach the proxy.

        Raises:
            UsageError: one of them is no http(s) url, or they are the same.
        """
        self.upstream = _base(upstream, "--upstream")
        self.public = _base(public, "--public")
        if origin_of(self.upstream) == origin_of(self.public):
            raise UsageError(f"{upstream}: expected the agent's own address, found the proxy's")
        self._urls: dict[bytes, httpx.URL] = {}

    def upstream_url(self, target: bytes) -> httpx.URL:
        """Return where a request goes.

        Args:
            target: path and query as asked; of a question about the server as such one asterisk.
        """
        url = self._urls.get(target)
        if url is None:
            if len(self._urls) >= _REMEMBERED:
                self._urls.clear()
            url = self._urls[target] = httpx.URL(f"{self.upstream}{_path(target)}")
        return url

    def is_too_long(self, target: bytes) -> bool:
        """Say whether a target makes a longer url, on one of the two sides, than can be sent on."""
        return max(len(self.upstream), len(self.public)) + len(target) > _LONGEST

    def upstream_target(self, target: bytes) -> bytes:
        """Return path and query as the agent is to see them, octet for octet."""
        return target if target == WHOLE_SERVER else urlsplit(self.upstream).path.encode() + target

    def public_url(self, target: bytes) -> str:
        """Return a url as clients see it."""
        return f"{self.public}{_path(target)}"

    def to_public(self, url: str) -> str | None:
        """Return the proxy's url in the place of one of the agent's; None: it is not under the agent's base url."""
        rest = _below(self.upstream, url)
        return None if rest is None else f"{self.public}{rest}"

    def is_upstream(self, url: str) -> bool:
        """Say whether a url lies under the agent's base url."""
        return _below(self.upstream, url) is not None

    def leads_here(self, url: str) -> bool:
        """Say whether a url lies under one of the two base urls: who goes there may go through the proxy."""
        return _below(self.upstream, url) is not None or _below(self.public, url) is not None


def not_covered(addresses: Addresses, urls: Iterable[str]) -> list[str]:
    """Return the urls that lie elsewhere than the agent's base url: clients go there past the proxy."""
    return [url for url in urls if addresses.to_public(url) is None]


def _below(base: str, url: str) -> str | None:
    """Return what of a url comes after a base url; None: it is not under it."""
    base, whole = normal_url(base), normal_url(url)
    bare = base.removesuffix("/")
    is_under = whole in {base, bare} or whole.startswith((f"{bare}/", f"{bare}?"))
    return whole.removeprefix(bare) if is_under else None


def _path(target: bytes) -> str:
    return "" if target == WHOLE_SERVER else target.decode("latin-1")


def _base(url: str, option: str) -> str:
    parts = urlsplit(url) if is_http_url(url) else None
    if parts is None or parts.query or parts.fragment or parts.username is not None:
        found = "more than that" if any(sign in url for sign in "@?#") else repr(url)  # it may be a credential
        raise UsageError(f"{option}: expected a base url such as https://agent.example, found {found}")
    return url.rstrip("/")
