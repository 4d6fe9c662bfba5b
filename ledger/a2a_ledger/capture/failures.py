"""What stopped an exchange, in the few words that a record may hold.

A TLS alert matters: a server that demands a client certificate says so in one, and an httpx error
hides it in its cause (docs/format.md section 10, `auth-demand`). A failure without a readable
alert is recorded all the same and proves nothing.

What an error says is recorded only where it speaks of the connection. Others speak of what was sent or came (a
validator shows the value that it refused, cut in the middle), and of those only the class is told.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from typing import NamedTuple

import httpx

from a2a_ledger.errors import LedgerError

_OF_PYTHON = frozenset({"builtins", "ssl", "socket", "asyncio.exceptions"})
_OPENING = re.compile(r"""(?<![A-Za-z0-9])b?['"]""")
_CLOSING = re.compile(r"""['"](?![A-Za-z0-9])""")
_ALERT = re.compile(r"(?:SSL|TLS)V?\d*_ALERT_([A-Z0-9_]+)|ALERT_([A-Z0-9_]+)")


class Failure(NamedTuple):
    """Why there was no (whole) answer."""

    kind: str  # timeout connect tls closed cancelled other
    tls_alert: str | None  # certificate_required and so on, in lower case
    text: str  # the error's class, and what it says of the connection; goes into a blob

    @property
    def outcome(self) -> str:
        """Return the same as an outcome of a card fetch: no-answer, timeout or tls-error."""
        return {"timeout": "timeout", "tls": "tls-error"}.get(self.kind, "no-answer")


def describe_failure(error: BaseException) -> Failure:
    """Return what kind of failure this is, and the TLS alert that it holds if any."""
    text = _said(error)
    chain = list(_causes(error))
    for cause in chain:
        if isinstance(cause, ssl.SSLError):
            return Failure("tls", alert_of(cause), text)
    if isinstance(error, asyncio.CancelledError):
        return Failure("cancelled", None, text)
    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return Failure("timeout", None, text)
    if isinstance(error, httpx.ConnectError):
        return Failure("connect", None, text)
    if isinstance(error, httpx.ReadError | httpx.RemoteProtocolError | httpx.WriteError | httpx.CloseError):
        return Failure("closed", None, text)
    return Failure("other", None, text)


def _said(error: BaseException) -> str:
    """Return an error's class, and of one that speaks of the connection its text without what it quotes.

    HTTP parsers quote the octets that they could not read. An error of another library may be an `OSError` too.
    """
    of_python = isinstance(error, OSError | asyncio.CancelledError) and type(error).__module__ in _OF_PYTHON
    if of_python or isinstance(error, httpx.RequestError | LedgerError):
        return f"{type(error).__name__}: {_without_quoted(str(error))}"
    return type(error).__name__


def _without_quoted(text: str) -> str:
    """Return a text without what stands from its first opening quote to its last closing one."""
    opening = _OPENING.search(text)
    if opening is None:
        return text
    closing = [found.end() for found in _CLOSING.finditer(text, opening.end())]
    return f"{text[: opening.start()]}…{text[closing[-1] :]}" if closing else text


def alert_of(error: ssl.SSLError) -> str | None:
    """Return the alert's name of RFC 8446 section 6 in lower case, None when the error holds none."""
    reason = getattr(error, "reason", None)  # one that a library has made itself has none
    return alert_in(reason or "") or alert_in(str(error))


def alert_in(text: str) -> str | None:
    """Return the alert that a text of a TLS library names, None when it names none."""
    found = _ALERT.search(text.upper().replace(" ", "_"))
    return (found[1] or found[2]).lower() if found else None


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
