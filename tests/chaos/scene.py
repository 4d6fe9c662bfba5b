"""What the cluster is tried with: a ledger on it, clients that record, and two processes that follow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from a2a_ledger.cli.unfinished import VERIFIER
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.store import Server
from tests.chaos.cluster import WAIT
from tests.projections.logbook import Logbook

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.chaos.cluster import Cluster

PROCESSES, CLIENTS = 4, 16
COMMAND = [sys.executable, "-c", "from a2a_ledger.cli import main; main()"]
"""The command line."""

_TIMEOUT = 10.0  # seconds that a caller waits; a client asks again then
_HOLDER = (
    "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
    " WHERE l.locktype = 'advisory' AND l.classid = 1093815370 AND l.granted"
)


class Acknowledged(NamedTuple):
    """One event that a client was told of."""

    at: float
    message_id: str
    n: int
    c: str
    asked: int
    refused: int


class Scene:
    """A ledger on a cluster, and who works with it."""

    def __init__(self, cluster: Cluster, place: Path) -> None:
        self.cluster = cluster
        self.place = place
        self.notes: list[str] = []
        """Heads that were signed and let out."""
        self.stories = 0
        self._clients: list[subprocess.Popen[bytes]] = []
        self._followers: dict[str, subprocess.Popen[bytes]] = {}
        server = Server(cluster.url, timeout=_TIMEOUT)
        self.ledger = ContractLedger.open(place / "audit", follow=False, server=server)
        config = place / "audit" / "config.toml"
        config.write_text(config.read_text() + f"timeout = {_TIMEOUT:.0f}\n")

    @contextmanager
    def at_work(self) -> Generator[None]:
        """Run clients and followers."""
        try:
            for number in range(PROCESSES):
                command = [sys.executable, "-m", "tests.chaos.client", str(self.place / "audit")]
                command += [str(self._written(number)), str(CLIENTS // PROCESSES)]
                self._clients.append(subprocess.Popen(command))
            for name in ("follower-1", "follower-2"):
                self._follow(name)
            yield
        finally:
            for process in (*self._clients, *self._followers.values()):
                process.kill()
                process.wait()

    def stop_clients(self) -> None:
        """Have the clients end, each when what it has begun is acknowledged."""
        for process in self._clients:
            process.terminate()
        codes = [process.wait(timeout=WAIT) for process in self._clients]
        assert codes == [0] * PROCESSES, f"clients ended with {codes}"

    def tell(self) -> None:
        """Record a story that breaks its contract, and sign a head."""
        Logbook(store=self.ledger.store).stuck()
        self.stories += 1
        self.notes.append(self.ledger.sign_checkpoint())

    def wait_for_news(self, since: float) -> float:
        """Wait until a client was told of an event after a moment; return when the first one was."""
        deadline = time.monotonic() + WAIT
        while True:
            news = [one.at for one in self.acknowledged() if one.at > since]
            if news:
                return min(news)
            assert all(process.poll() is None for process in self._clients), "a client has ended"
            assert time.monotonic() < deadline, "nothing is acknowledged any more"
            time.sleep(0.2)

    def acknowledged(self) -> list[Acknowledged]:
        """Return what clients were told of so far."""
        found: list[Acknowledged] = []
        for number in range(PROCESSES):
            if self._written(number).exists():
                lines = self._written(number).read_text().split("\n")[:-1]  # the last one may not be whole yet
                found += [Acknowledged(*json.loads(line)) for line in lines]
        return found

    def holder(self) -> str | None:
        """Return which follower is inside the fence."""
        with psycopg.connect(f"{self.cluster.url}&target_session_attrs=read-write", autocommit=True) as owner:
            found = owner.execute(_HOLDER).fetchall()
        assert len(found) <= 1, found
        return str(found[0][0]) if found else None

    def wait_holder(self, *, but: str | None = None) -> str:
        """Wait until a follower is inside the fence."""
        deadline = time.monotonic() + WAIT
        while True:
            found = self.holder()
            if found is not None and found != but:
                return found
            assert time.monotonic() < deadline, "nobody follows"
            time.sleep(0.05)

    def kill_follower(self, name: str) -> None:
        """Kill a follower, and start it again when another one is inside."""
        self._followers[name].kill()
        self._followers[name].wait()
        self.wait_holder(but=name)
        self._follow(name)

    def wait_judged(self) -> None:
        """Wait until all of the log is judged."""
        deadline = time.monotonic() + WAIT
        while self.ledger.store.position(VERIFIER) != self.ledger.store.size():
            assert time.monotonic() < deadline, "the verifier does not come to the end of the log"
            time.sleep(0.2)

    def _follow(self, name: str) -> None:
        command = [*COMMAND, "--ledger", str(self.place / "audit"), "follow"]
        with (self.place / f"{name}.log").open("ab") as log:
            self._followers[name] = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, "PGAPPNAME": name}
            )

    def _written(self, number: int) -> Path:
        return self.place / f"acknowledged-{number}"
