"""The three cases that started this project, each without the guard first and then with it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx
from a2a.client import ClientConfig
from a2a.types import CancelTaskRequest

from a2a_ledger.capture.guard import Guard
from a2a_ledger.cli.demo.stage import HEADERS, plain_client, work, work_naively
from a2a_ledger.errors import ContractChangedError, LedgerError
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.settings import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from a2a_ledger.cli.demo.stage import Certificates, Peer

    Say = Callable[[str], None]

SOON = Limits(contract=1)
"""The demo cannot wait a minute for the contract limit to pass."""

_STALE_AFTER = 1.1
_LAST_PART = 4


@dataclass(slots=True)
class Outcome:
    """How one case ended: each check by its sentence, and the findings that it must leave."""

    name: str
    checks: dict[str, bool] = field(default_factory=dict[str, bool])
    task: str = ""

    def check(self, sentence: str, *, holds: bool) -> None:
        """Note whether something ended as it must."""
        self.checks[sentence] = holds

    @property
    def ok(self) -> bool:
        """Say whether all of it did."""
        return bool(self.checks) and all(self.checks.values())


async def stuck(peers: Sequence[Peer], place: Path, certificates: Certificates, say: Say) -> Outcome:
    """The peer rotates from OAuth2 to mutual TLS; the old token works for a while, and then the task is stuck."""
    outcome = Outcome("stuck")
    tls = certificates.client_context
    plain, before, after = peers
    async with httpx.AsyncClient(verify=tls, headers=HEADERS) as http:
        client = await plain_client(plain, http)
        await plain.step("rotate")
        running = asyncio.create_task(work(client, until="input_required"))
        await asyncio.sleep(0.3)
        await plain.step("end-grace")
        run = await running
        await asyncio.sleep(0.3)
        answer = await _cancel(client, run.task_id)
    say(f"  without the guard: the send went out on the old contract; task {run.state}; cancel: {answer}")
    outcome.check("without the guard the task is stuck", holds=run.state == "input_required" and bool(answer))

    with ContractLedger.open(place, limits=SOON) as ledger:
        guard = Guard(ledger)
        http = guard.httpx_client(verify=tls, headers=HEADERS)
        client = await guard.create_client(before.url, config=ClientConfig(httpx_client=http))
        await before.step("rotate")
        await asyncio.sleep(_STALE_AFTER)
        try:
            await work(client)
            message = ""
        except ContractChangedError as e:
            message = str(e)
        say("  with the guard, rotated before the send: " + message.replace("\n", "\n    "))
        outcome.check("the send is aborted before any byte leaves", holds="Nothing was sent" in message)
        await http.aclose()

    with ContractLedger.open(place) as ledger:
        guard = Guard(ledger)
        http = guard.httpx_client(verify=tls, headers=HEADERS)
        client = await guard.create_client(after.url, config=ClientConfig(httpx_client=http))
        running = asyncio.create_task(work(client, until="input_required"))
        await asyncio.sleep(0.3)
        await after.step("rotate")
        await after.step("end-grace")
        run = await running
        await asyncio.sleep(0.3)
        await _cancel(client, run.task_id)
        await http.aclose()
        ledger.catch_up()
        outcome.task = _local(ledger, run.task_id)
        found = rules(ledger, outcome.task)
        say(f"  with the guard, rotated after the send: signed findings: {', '.join(found)}")
        outcome.check("the demand is a signed finding, certain", holds="auth-demand (certain)" in found)
    return outcome


async def false_cancel(peers: Sequence[Peer], place: Path, _: Certificates, say: Say) -> Outcome:
    """The client re-fetches the card on every event and cancels a task that is 80 % done."""
    outcome = Outcome("false cancel")
    plain, guarded, observed = peers
    async with httpx.AsyncClient() as http:
        client = await plain_client(plain, http)
        run = await work_naively(client, http, plain, rotate_at=_LAST_PART)
    say(f"  without the guard: the client cancelled {run.cancel}; task {run.state}")
    outcome.check("without the guard a healthy task is cancelled", holds=run.state == "canceled")

    with ContractLedger.open(place) as ledger:
        guard = Guard(ledger)
        http = guard.httpx_client()
        client = await guard.create_client(guarded.url, config=ClientConfig(httpx_client=http))
        run = await work_naively(client, http, guarded, rotate_at=_LAST_PART)
        await http.aclose()
        say(f"  with the guard: asked in mid-task, it got the card that the task was sent on; task {run.state}")
        outcome.check("with the guard the task completes", holds=run.state == "completed" and not run.cancel)

    with ContractLedger.open(place, mode="observe") as ledger:
        guard = Guard(ledger)
        http = guard.httpx_client()
        client = await guard.create_client(observed.url, config=ClientConfig(httpx_client=http))
        run = await work_naively(client, http, observed, rotate_at=_LAST_PART)
        await http.aclose()
        ledger.catch_up()
        outcome.task = _local(ledger, run.task_id)
        found = rules(ledger, outcome.task)
        say(f"  observed only: task {run.state}; signed findings, against the client: {', '.join(found)}")
        outcome.check("the cancel is a finding against the client", holds="self-inflicted-cancel (certain)" in found)
    return outcome


async def silent_downgrade(peers: Sequence[Peer], place: Path, _: Certificates, say: Say) -> Outcome:
    """A skill's security goes from optional to required; both sides' caches are stale in the same way."""
    outcome = Outcome("silent downgrade")
    plain, stale, unlucky = peers
    async with httpx.AsyncClient() as http:
        client = await plain_client(plain, http)
        await plain.step("rotate")
        run = await work(client)
    say(f"  without the guard: the task ran unauthenticated and {run.state}, without an error")
    outcome.check("without the guard nobody sees it", holds=run.state == "completed")

    with ContractLedger.open(place, limits=SOON) as ledger:
        guard = Guard(ledger)
        client = await guard.create_client(stale.url)
        await stale.step("rotate")
        await asyncio.sleep(_STALE_AFTER)
        try:
            await work(client)
            message = ""
        except ContractChangedError as e:
            message = str(e)
        say("  with the guard, limit passed: " + message.replace("\n", "\n    "))
        outcome.check("a stale contract blocks the send", holds="Nothing was sent" in message)
        await guard.aclose()

    with ContractLedger.open(place) as ledger:
        guard = Guard(ledger)
        client = await guard.create_client(unlucky.url)
        await unlucky.step("rotate")
        run = await work(client)
        await ledger.diagnose(f"{unlucky.url}/.well-known/agent-card.json")
        await guard.aclose()
        ledger.catch_up()
        outcome.task = _local(ledger, run.task_id)
        found = [rule for rule in rules(ledger) if rule.startswith("weaker-authorization")]
        say(f"  with the guard, found afterwards: task {run.state}; the next card fetch shows {', '.join(found)}")
        outcome.check("the next fetch finds it", holds=bool(found))
    return outcome


CASES = {"stuck": stuck, "false-cancel": false_cancel, "silent-downgrade": silent_downgrade}
"""The cases by the kind of agent that they need."""

AGENTS = 3
"""Agents of its kind that a case needs: for the run without the guard, and two with it."""


def rules(ledger: ContractLedger, task: str | None = None) -> list[str]:
    """Return the rules that were violated, with their certainty: of one task, or of all peers."""
    streams = [f"findings:{task}"] if task else ledger.store.streams("findings:peer:")
    records = [record for stream in streams for record in ledger.store.read_stream(stream)]
    return [f"{record.data['rule']} ({record.data['certainty']})" for record in records]


def _local(ledger: ContractLedger, peer_task: str) -> str:
    for tag, n in ledger.store.tagged_prefix("task:", 1000):
        if tag.endswith(f":{peer_task}"):
            return ledger.store.record(n).stream.removeprefix("task:")
    raise LedgerError(f"the demo's task {peer_task} is not in the ledger")


async def _cancel(client: object, task_id: str) -> str:
    """Try to cancel; return what came of it in a few words."""
    from a2a.client import Client  # noqa: PLC0415 - for the cast alone

    if not isinstance(client, Client):
        return ""
    try:
        await client.cancel_task(CancelTaskRequest(id=task_id))
    except Exception as e:  # noqa: BLE001 - the SDK wraps what TLS says in errors of its own
        cause = e.__cause__ or e
        return f"{type(cause).__name__} {cause}".strip()
    return ""
