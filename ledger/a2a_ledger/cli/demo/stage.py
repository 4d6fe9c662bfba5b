"""What the demo's cases stand on: agents in their own processes, and the naive client that meets them."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
import trustme
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers import new_text_message
from a2a.types import CancelTaskRequest, Role, SendMessageRequest

from a2a_ledger.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from a2a.client import Client
    from a2a.types import StreamResponse

TOKEN = "demo-token-7f3a91"  # noqa: S105 - made up, for agents on loopback
_SKILL = "report"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


class Certificates:
    """A certificate authority for one run of the demo."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        authority = trustme.CA()
        server = authority.issue_cert("127.0.0.1")
        server.private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
        authority.cert_pem.write_to_path(folder / "ca.pem")
        self.client_context = ssl.create_default_context()
        self.client_context.load_verify_locations(cadata=authority.cert_pem.bytes().decode())


@dataclass(frozen=True, slots=True)
class Peer:
    """One running agent."""

    url: str
    control: str

    async def step(self, name: str) -> None:
        """Move the agent's story on: `rotate`, `end-grace`, `finish`."""
        async with httpx.AsyncClient() as http:
            (await http.post(f"{self.control}/{name}")).raise_for_status()


class Agents:
    """Some agents of one kind in a process of their own; starting takes a moment, so begin early."""

    def __init__(self, kind: str, count: int, folder: Path) -> None:
        self._kind = kind
        self._count = count
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "a2a_ledger.cli.demo.agents", kind, str(count), str(folder)],
            stdout=subprocess.PIPE,
            text=True,
        )

    def peers(self) -> list[Peer]:
        """Wait until all agents serve, and return them."""
        found: list[Peer] = []
        while len(found) < self._count:
            line = self._process.stdout.readline() if self._process.stdout else ""
            if not line:
                raise LedgerError(f"the demo's agents {self._kind!r} did not start")
            where = json.loads(line)
            found.append(Peer(where["url"], where["control"]))
        return found

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


async def plain_client(peer: Peer, http: httpx.AsyncClient) -> Client:
    """Return an SDK client as anybody makes it, without the guard."""
    return await ClientFactory(ClientConfig(httpx_client=http)).create_from_url(peer.url)


def send(client: Client, text: str = "the quarterly report") -> AsyncIterator[StreamResponse]:
    """Send one task; yields what comes back."""
    return client.send_message(SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER)))


def state_of(event: StreamResponse) -> str:
    """Return the state that an event tells, "" when it tells none."""
    from a2a.types import TaskState  # noqa: PLC0415 - an enum of the generated module

    if event.HasField("task"):
        return TaskState.Name(event.task.status.state).removeprefix("TASK_STATE_").lower()
    if event.HasField("status_update"):
        return TaskState.Name(event.status_update.status.state).removeprefix("TASK_STATE_").lower()
    return ""


@dataclass(slots=True)
class Run:
    """How one task went for a client."""

    state: str = ""
    task_id: str = ""
    parts: int = 0
    cancel: str = ""


async def work(client: Client, *, until: str = "") -> Run:
    """Send one task and follow it to its end, or to a state."""
    run = Run()
    async for event in send(client):
        run.task_id = run.task_id or event.task.id
        run.state = state_of(event) or run.state
        run.parts += event.HasField("artifact_update")
        if until and run.state == until:
            break
    return run


async def work_naively(client: Client, http: httpx.AsyncClient, peer: Peer, *, rotate_at: int) -> Run:
    """Follow a task as a naive client does: fetch the card on every event, cancel when the skill is gone from it.

    The agent rotates its card at part `rotate_at` of five.
    """
    run = Run()
    resolver = A2ACardResolver(http, peer.url)
    async for event in send(client):
        run.task_id = run.task_id or event.task.id
        run.state = state_of(event) or run.state
        run.parts += event.HasField("artifact_update")
        if run.parts == rotate_at and event.HasField("artifact_update"):
            await peer.step("rotate")
        if run.cancel or run.state in {"completed", "canceled"}:
            continue
        card = await resolver.get_agent_card(http_kwargs={"headers": {"Cache-Control": "no-cache"}})
        if _SKILL not in [entry.id for entry in card.skills]:
            run.cancel = f"after part {run.parts} of 5"
            await client.cancel_task(CancelTaskRequest(id=run.task_id))
        elif run.parts == rotate_at:
            await peer.step("finish")
    return run
