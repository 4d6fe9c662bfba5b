"""A task store that records what is saved, but no state again that it recorded last (docs/format.md section 14).

store = RecordedTaskStore(InMemoryTaskStore(), ledger, "https://me.example/.well-known/agent-card.json")
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING

from a2a.server.tasks import TaskStore
from a2a.types.a2a_pb2 import Task
from google.protobuf.json_format import MessageToJson

from a2a_ledger.capture.attribution import peer_at
from a2a_ledger.capture.desk import Desk
from a2a_ledger.capture.formats.entry import Snapshot
from a2a_ledger.capture.import_alone import snapshot_event, snapshot_leg
from a2a_ledger.capture.server.served import stream_of

if TYPE_CHECKING:
    from a2a.server.context import ServerCallContext
    from a2a.types.a2a_pb2 import ListTasksRequest, ListTasksResponse

    from a2a_ledger.ledger import ContractLedger

_REMEMBERED = 4096
_SAVING = "saving"


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
        self._recorded: OrderedDict[str, bytes] = OrderedDict()
        """Digest of the state that was recorded last, of the tasks that were recorded last."""

    async def save(self, task: Task, context: ServerCallContext) -> None:
        """Save a task, then record it, unless it is as it was when this store recorded it last.

        What an earlier process, or another one, recorded is not looked up: the first save of a task is recorded, since
        a record too many harms no evidence, and one too few would.

        What is saved and recorded is the task as it is now, whatever its owner makes of it meanwhile. Saves of one
        task are done one after the other. Of one that fails, or is cancelled, in the other store nothing is recorded;
        one that is cancelled behind that is recorded to its end.

        Raises:
            LedgerUnavailableError: it was saved and could not be recorded.
        """
        now = Task()
        now.CopyFrom(task)
        digest = hashlib.sha256(now.SerializeToString(deterministic=True)).digest()
        async with self._desk.claims.opening((_SAVING, now.id)):
            await self._store.save(now, context)
            if self._recorded.get(now.id) != digest:
                await _to_its_end(self._desk.underway.begin(self._record(now, digest)))

    async def _record(self, task: Task, digest: bytes) -> None:
        with self._desk.failing_as_chosen():
            ledger = self._desk.ledger
            body = MessageToJson(task).encode()
            snapshot = Snapshot(task=body, body=body)
            event, blobs = snapshot_event(snapshot, snapshot_leg(snapshot), peer=self._peer, at=ledger)
            stream = stream_of(ledger, self._peer, event.task_id)
            if await self._desk.write([ledger.draft(event, stream=stream, blobs=blobs)]):
                self._remember(task.id, digest)

    def _remember(self, task_id: str, digest: bytes) -> None:
        self._recorded[task_id] = digest
        self._recorded.move_to_end(task_id)
        if len(self._recorded) > _REMEMBERED:
            self._recorded.popitem(last=False)

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        """Return a task of the store."""
        return await self._store.get(task_id, context)

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """Return tasks of the store."""
        return await self._store.list(params, context)

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Delete a task from the store; what was recorded of it stays."""
        async with self._desk.claims.opening((_SAVING, task_id)):
            await self._store.delete(task_id, context)
            self._recorded.pop(task_id, None)


async def _to_its_end(recording: asyncio.Task[None]) -> None:
    """Wait for a record; who is cancelled meanwhile leaves when it is done, so that the next save finds it."""
    try:
        await asyncio.shield(recording)
    except asyncio.CancelledError:
        await asyncio.wait([recording])
        raise
