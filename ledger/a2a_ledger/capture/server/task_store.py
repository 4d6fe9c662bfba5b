"""A task store that records what is saved: each state of a task once (docs/format.md section 14).

store = RecordedTaskStore(InMemoryTaskStore(), ledger, "https://me.example/.well-known/agent-card.json")
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING

from a2a.server.tasks import TaskStore
from google.protobuf.json_format import MessageToJson

from a2a_ledger.capture.attribution import peer_at
from a2a_ledger.capture.desk import Desk
from a2a_ledger.capture.formats.entry import Snapshot
from a2a_ledger.capture.import_alone import snapshot_event, snapshot_leg
from a2a_ledger.capture.server.served import stream_of

if TYPE_CHECKING:
    from a2a.server.context import ServerCallContext
    from a2a.types.a2a_pb2 import ListTasksRequest, ListTasksResponse, Task

    from a2a_ledger.ledger import ContractLedger

_REMEMBERED = 4096


class RecordedTaskStore(TaskStore):
    """Records each state that another store has saved."""

    def __init__(self, store: TaskStore, ledger: ContractLedger, card_url: str) -> None:
        """Wrap a task store.

        Args:
            store: keeps the tasks.
            ledger: the agent's own ledger.
            card_url: where the world finds the agent's public card.
        """
        self._store = store
        self._desk = Desk(ledger, client_versions=(), redact=None)
        self._peer = peer_at(card_url).id
        self._saved: OrderedDict[str, bytes] = OrderedDict()

    async def save(self, task: Task, context: ServerCallContext) -> None:
        """Save a task, then record it, unless it is as it was when it was saved last.

        Raises:
            LedgerUnavailableError: it was saved and could not be recorded.
        """
        await self._store.save(task, context)
        digest = hashlib.sha256(task.SerializeToString(deterministic=True)).digest()
        if self._saved.get(task.id) == digest:
            return
        with self._desk.failing_as_chosen():
            await self._record(task)
        self._saved[task.id] = digest
        self._saved.move_to_end(task.id)
        if len(self._saved) > _REMEMBERED:
            self._saved.popitem(last=False)

    async def _record(self, task: Task) -> None:
        ledger = self._desk.ledger
        body = MessageToJson(task).encode()
        snapshot = Snapshot(task=body, body=body)
        event, blobs = snapshot_event(snapshot, snapshot_leg(snapshot), peer=self._peer, at=ledger)
        stream = stream_of(ledger, self._peer, event.task_id)
        await self._desk.write([ledger.draft(event, stream=stream, blobs=blobs)])

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        """Return a task of the store."""
        return await self._store.get(task_id, context)

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """Return tasks of the store."""
        return await self._store.list(params, context)

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Delete a task from the store; what was recorded of it stays."""
        await self._store.delete(task_id, context)
        self._saved.pop(task_id, None)
