"""What an audit finds: a value, never an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.errors import LedgerError

if TYPE_CHECKING:
    from a2a_ledger.events import Json


def said(problem: Exception) -> str:
    """Return what an exception says, with its name where it is none of ours."""
    return str(problem) if isinstance(problem, LedgerError) else f"{type(problem).__name__}: {problem}"


class Fault(NamedTuple):
    """One thing that is not as it must be; `position` is a log index, None where there is none."""

    kind: str
    position: int | None
    detail: str

    def to_json(self) -> dict[str, Json]:
        """Return {"kind", "position", "detail"}."""
        return {"kind": self.kind, "position": self.position, "detail": self.detail}
