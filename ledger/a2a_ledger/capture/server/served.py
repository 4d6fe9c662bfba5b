"""Whose task an agent saves, or pushes, while it answers a request (docs/format.md section 14)."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_ledger.ledger import ContractLedger


class ServedRequest:
    """The request that is being answered in this context: one task belongs to its stream, and no other."""

    def __init__(self, stream: str, task_id: str | None) -> None:
        """Begin to answer.

        Args:
            stream: of the request.
            task_id: the agent's id of its task, if it named one; else the first that comes up is that.
        """
        self.stream = stream
        self._task_id = task_id

    def is_of(self, task_id: str) -> bool:
        """Say whether this is the id of the request's task; an agent may save other tasks while it answers."""
        self._task_id = self._task_id or task_id
        return self._task_id == task_id


being_served: ContextVar[ServedRequest | None] = ContextVar("a2a_ledger_served", default=None)


def stream_of(ledger: ContractLedger, peer: str, task_id: str | None) -> str:
    """Return the stream of one of our tasks: its own, else the one that is being opened, else that of our card."""
    known = ledger.find_task(peer, task_id) if task_id is not None else None
    if known is not None:
        return f"task:{known}"
    served = being_served.get()
    return served.stream if served is not None and task_id is not None and served.is_of(task_id) else f"peer:{peer}"
