"""The user's own redaction, held to its word: where it fails, nothing of what it was to look through is kept."""

from __future__ import annotations

import logging
from operator import index
from traceback import extract_tb
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_ledger.capture.redact import Redactor
    from a2a_ledger.capture.search import Span

_log = logging.getLogger(__name__)


class OwnRedaction:
    """Calls the user's redaction; whatever it does, the application and the record go on."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._told = False

    def __call__(self, role: str, octets: bytes) -> list[Span]:
        """Return what is to be withheld: all octets, where the user's redaction fails or names what is no span."""
        try:
            return [_span(start, end, len(octets)) for start, end in self._redactor(role, octets)]
        except Exception as error:  # noqa: BLE001 - the user's code may raise anything
            self._tell(role, error)
            return [(0, len(octets))]

    def _tell(self, role: str, error: Exception) -> None:
        """Log the first failure, without the error's text: it may quote what was to be withheld."""
        if self._told:
            return
        self._told = True
        at = extract_tb(error.__traceback__)[-1]
        _log.error(
            "expected (start, end) spans from redact= for the role %s, found %s in line %d of %s; all octets of the "
            "role are withheld, and so they are wherever it fails again, which is not logged",
            role.partition(":")[0],
            type(error).__name__,
            at.lineno or 0,
            at.filename,
        )


def _span(start: int, end: int, size: int) -> Span:
    start, end = index(start), index(end)
    if not 0 <= start <= min(end, size):
        raise ValueError(f"({start}, {end}) is no span of {size} octets")
    return start, end
