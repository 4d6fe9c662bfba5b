"""Which cookies of a request did a server set? Those say nothing about who asks.

A load balancer sets a new one with each answer: if they told callers apart, every fetch would be of another card.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from http.cookiejar import CookieJar

    from a2a_ledger.capture.credentials import ApiKeyPlace
    from a2a_ledger.wire import Headers

Cookie = tuple[str, str]
"""A cookie's name and value."""

_HELD = 1024
_NEWEST = 256
"""Cookies that are held though they are not in the client's jar: it has not read their answers yet."""


class ServedCookies:
    """The cookies that answers over one transport have set."""

    def __init__(self) -> None:
        self._cookies: dict[Cookie, None] = {}
        self._most = _HELD

    def note(self, answer: Headers, jar: Callable[[], CookieJar | None]) -> None:
        """Take note of what an answer sets.

        Args:
            answer: its headers.
            jar: returns the cookies that the client holds: what is there no more is not sent any more.
        """
        for name, value in answer:
            if name.lower() == "set-cookie":
                self._cookies.update(dict.fromkeys(cookies_of(value.split(";")[:1])))
        if len(self._cookies) > self._most:
            newest = [*self._cookies][-_NEWEST:]
            held = cookies_in(jar())
            self._cookies = dict.fromkeys([*(one for one in self._cookies if one in held), *newest])
            self._most = max(_HELD, 2 * len(self._cookies))

    def __contains__(self, cookie: object) -> bool:
        """Say whether an answer set this cookie."""
        return cookie in self._cookies


def cookies_of(parts: Iterable[str]) -> list[Cookie]:
    """Return the cookies that are spelled `name=value`."""
    cut = (part.partition("=") for part in parts)
    return [(name.strip(), value.strip()) for name, _, value in cut if name.strip()]


def cookies_in(jar: CookieJar | None) -> set[Cookie]:
    """Return the cookies that a client holds; nothing where another thread is changing them."""
    try:
        return {(cookie.name, cookie.value or "") for cookie in jar} if jar is not None else set()
    except RuntimeError:
        return set()


def without_served(
    headers: Headers, served: ServedCookies | None, places: Collection[ApiKeyPlace]
) -> list[tuple[str, str]]:
    """Return a request's headers without the cookies that a server set, but for those that a card names as API keys."""
    if served is None:
        return list(headers)
    named = {place.name for place in places if place.location == "cookie"}
    kept: list[tuple[str, str]] = []
    for name, value in headers:
        if name.lower() != "cookie":
            kept.append((name, value))
            continue
        own = [one for one in cookies_of(value.split(";")) if one not in served or one[0].lower() in named]
        if own:
            kept.append((name, "; ".join(f"{cookie}={text}" for cookie, text in own)))
    return kept
