"""Runs everything that runs in life for a long time, at a constant rate, and watches its memory: `make soak`.

    python -m tests.scale.soak --minutes 30

A guarded client of a2a-sdk with read models, verifier and head signer in this process; `a2a-ledger proxy` in a
process of its own, with a ledger of its own; a real a2a-sdk agent whose card rotates every 20 s, every third time its
contract too. Exit 0: the memory of both was flat after the warm-up, both audits are clean, and nobody failed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.helpers import new_text_message
from a2a.types import Role, SendMessageRequest

from a2a_ledger import ContractLedger, guard
from a2a_ledger.audit import audit_ledger
from a2a_ledger.cli.bench.started import started
from a2a_ledger.errors import SendRefusedError
from tests.scale import rotating_agent
from tests.scale.memory import Memory, resident

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from a2a.client import Client

    from a2a_ledger.capture.guard import Guard

_ROTATION = 20.0  # seconds between two cards
_RENEWED = 45  # seconds after which the client of the proxy is made anew, as nothing tells it of a new card
_PATIENCE = 60.0  # seconds: a machine that does other things too is slow and has not failed
_LONG = 600.0  # seconds from which on memory is judged
_WARM = 1 / 6  # of the time
_MOST = 8.0  # MB that the last quarter may lie above the first: caches of fixed length fill for longer than we run
_ENTRY = "from a2a_ledger.cli import main; main()"
_TEXT = "report " * 140  # about 1 KB


class Soak:
    """One run.

    Args:
        folder: where both ledgers lie.
        seconds: how long.
        rate: guarded sends a second; half as many go through the proxy.
    """

    def __init__(self, folder: Path, seconds: float, rate: float) -> None:
        self._folder = folder
        self._seconds = seconds
        self._rate = rate
        self.counts: Counter[str] = Counter()
        self.memories: dict[int, Memory] = {}
        self.audits: dict[str, str] = {}

    @property
    def is_long(self) -> bool:
        """Say whether the run is long enough to judge memory by."""
        return self._seconds >= _LONG

    @property
    def warm(self) -> float:
        """Seconds after which memory has to be flat."""
        return self._seconds * _WARM

    def run(self) -> bool:
        """Run, and return whether all was as it should be."""
        ours, passing = self._folder / "guard", self._folder / "proxy"
        with started(rotating_agent.__name__, str(_ROTATION)) as agent, _proxy(passing, agent.said) as (proxy, pid):
            self.memories = {
                os.getpid(): Memory("client: guard, read models, verifier, head signer"),
                pid: Memory("a2a-ledger proxy"),
                agent.pid: Memory("agent (keeps every task)"),
            }
            with ContractLedger.open(ours, mark_dir=str(self._folder / "guard-mark")) as ledger:
                asyncio.run(self._send(ledger, agent.said, proxy))
            watched = [self.memories[os.getpid()], self.memories[pid]]
        clean = all([self._is_clean(ours), self._is_clean(passing)])
        flat = not self.is_long or all(memory.is_flat(self.warm, _MOST) for memory in watched)
        return clean and flat and not self.counts["failed"]

    async def _send(self, ledger: ContractLedger, agent: str, proxy: str) -> None:
        begun = time.monotonic()
        async with (
            _guarded(ledger) as own,
            own.httpx_client(timeout=_PATIENCE) as http,
            httpx.AsyncClient(timeout=_PATIENCE) as bare,
        ):
            await self._rounds(begun, Sender(agent, http, own), Sender(proxy, bare))

    async def _rounds(self, begun: float, guarded: Sender, passed: Sender) -> None:
        watching = asyncio.create_task(self._watch(begun))
        number = 0
        while (elapsed := time.monotonic() - begun) < self._seconds:
            due = number / self._rate
            await asyncio.sleep(max(0.0, due - elapsed))
            await self._count("guarded", guarded, number)
            if number % 2:
                await self._count("through the proxy", passed, number)
            number += 1
            if number % round(_RENEWED * self._rate) == 0:
                passed.renew()
        watching.cancel()

    async def _count(self, name: str, sender: Sender, number: int) -> None:
        try:
            await sender.send(streaming=number % 4 < 2)
            self.counts[name] += 1
        except SendRefusedError as refused:
            self.counts[f"stopped: {type(refused).__name__}"] += 1
            sender.renew()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is counted and said, and the run goes on
            self.counts["failed"] += 1
            sys.stderr.write(f"{name}: {error!r:.300}\n")
            sender.renew()

    async def _watch(self, begun: float) -> None:
        while True:
            for pid, memory in self.memories.items():
                memory.samples.append((time.monotonic() - begun, resident(pid)))
            await asyncio.sleep(min(10.0, self._seconds / 20))

    def _is_clean(self, place: Path) -> bool:
        with ContractLedger.open(place, read_only=True, mark_dir=f"{place}-mark") as ledger:
            found = audit_ledger(ledger)
            self.audits[place.name] = f"{ledger.store.size():,} events, {len(found.faults)} faults"
        return not found.faults


class Sender:
    """Sends tasks to one agent, with an SDK client that is made anew when its card no longer holds.

    Args:
        url: base url of the agent.
        http: one httpx client for all SDK clients, which a guard else makes for each of them and keeps to its end.
        guarded: the guard, if it is one of its own.
    """

    def __init__(self, url: str, http: httpx.AsyncClient, guarded: Guard | None = None) -> None:
        self._url = url
        self._http = http
        self._guard = guarded
        self._clients: dict[bool, Client] = {}

    async def send(self, *, streaming: bool) -> None:
        """Send one task, and read the answer to its end."""
        client = self._clients.get(streaming) or await self._make(streaming=streaming)
        async for _ in client.send_message(SendMessageRequest(message=new_text_message(_TEXT, role=Role.ROLE_USER))):
            pass

    def renew(self) -> None:
        """Forget the clients, and with them the cards that they were made from."""
        self._clients.clear()

    async def _make(self, *, streaming: bool) -> Client:
        config = ClientConfig(httpx_client=self._http, streaming=streaming, supported_protocol_bindings=["JSONRPC"])
        make = self._guard.create_client if self._guard is not None else _plainly
        made = await make(self._url, config=config)
        self._clients[streaming] = made
        return made


async def _plainly(url: str, *, config: ClientConfig) -> Client:
    return await ClientFactory(config).create_from_url(url)


@asynccontextmanager
async def _guarded(ledger: ContractLedger) -> AsyncGenerator[Guard]:
    guarded = guard(ledger)
    try:
        yield guarded
    finally:
        await guarded.aclose()


@contextmanager
def _proxy(place: Path, upstream: str) -> Generator[tuple[str, int]]:
    """Run the proxy as anybody does; gives where it listens, and its process id."""
    base = [sys.executable, "-c", _ENTRY, "--ledger", str(place), "--format", "json"]
    subprocess.run([*base, "init"], check=True, capture_output=True)
    words = [*base, "proxy", "--upstream", upstream, "--rewrite-card"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            said = process.stdout.readline() if process.stdout else ""
            yield str(json.loads(said)["listening"]), process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


def main() -> int:
    """Run it, and print what it found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long")
    parser.add_argument("--rate", type=float, default=2.0, help="guarded sends a second")
    parser.add_argument("--samples", type=Path, help="file for every sample: process, seconds, MB")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="a2a-ledger-soak-") as folder:
        os.environ["XDG_STATE_HOME"] = folder
        soak = Soak(Path(folder), chosen.minutes * 60, chosen.rate)
        well = soak.run()
    if chosen.samples is not None:
        lines = (f"{one.name}\t{at:.0f}\t{held:.2f}\n" for one in soak.memories.values() for at, held in one.samples)
        chosen.samples.write_text("".join(lines), encoding="utf-8")
    said = [
        f"{chosen.minutes:g} minutes; " + "; ".join(f"{count:,} {what}" for what, count in soak.counts.items()),
        *(f"ledger of the {name}: {audit}" for name, audit in soak.audits.items()),
        f"| MB in memory | at the start | after {soak.warm:.0f} s | last quarter | highest |",
        "|---|---|---|---|---|",
        *(memory.to_line(soak.warm) for memory in soak.memories.values()),
        f"{'flat, ' if soak.is_long else 'too short to judge memory; '}whole and clean"
        if well
        else "NOT as it should be",
    ]
    sys.stdout.write("".join(f"{line}\n" for line in said))
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
