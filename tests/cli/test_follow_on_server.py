"""`follow` in several processes on one server: one works, and another takes over when it dies or hangs."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

import psycopg
import pytest

from a2a_ledger.cli.unfinished import VERIFIER
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.store import Server
from tests.chaos.processes import tree
from tests.cli.test_errors import COMMAND
from tests.projections.logbook import Logbook

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.postgres_server import PostgresServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WAIT = 120.0  # seconds: a process starts slowly on a machine that is busy
HOLDER = (
    "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
    " WHERE l.locktype = 'advisory' AND l.classid = 1093815370 AND l.granted"
)


@pytest.fixture
def ledger(tmp_path: Path, postgres: PostgresServer) -> Generator[ContractLedger]:
    """Open a ledger that this process writes to, and does not follow."""
    server = Server(postgres.url, f"t_{secrets.token_hex(8)}")
    with ContractLedger.open(tmp_path / "audit", follow=False, server=server) as opened:
        yield opened


@contextmanager
def following(ledger: ContractLedger, name: str) -> Generator[subprocess.Popen[str]]:
    """Run the verb in a process whose connections have a name."""
    assert ledger.home is not None
    command = [*COMMAND, "--ledger", str(ledger.home.root), "follow"]
    with subprocess.Popen(command, env={**os.environ, "PGAPPNAME": name}, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def until_holder(server: PostgresServer, names: set[str]) -> str:
    """Wait until one of these is inside the fence; return which."""
    deadline = time.monotonic() + WAIT
    with psycopg.connect(server.url, autocommit=True) as owner:
        while True:
            found = owner.execute(HOLDER).fetchall()
            assert len(found) <= 1
            if found and found[0][0] in names:
                return str(found[0][0])
            assert time.monotonic() < deadline, found
            time.sleep(0.05)


def judged(ledger: ContractLedger, tasks: int) -> None:
    """Wait until all of the log is judged, and under a head; see that each task has its findings once."""
    deadline = time.monotonic() + WAIT
    while not ledger.store.position(VERIFIER) == ledger.store.size() == (ledger.store.latest_checkpoint() or (0,))[0]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    found = [record for record in ledger.store.read(0, 10_000) if record.type == "violation.detected.v1"]
    one_each = {(record.stream, record.data["rule"], str(record.data["trigger"])) for record in found}
    assert len(found) == len(one_each) == 2 * tasks


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
def test_another_process_takes_over(ledger: ContractLedger, postgres: PostgresServer, fault: int) -> None:
    log = Logbook(store=ledger.store)
    with ExitStack() as stack:
        running = {name: stack.enter_context(following(ledger, name)) for name in ("one", "two")}
        first = until_holder(postgres, {"one", "two"})
        log.stuck()
        judged(ledger, 1)
        (other,) = {"one", "two"} - {first}
        standing_by = running[other].stderr
        assert standing_by is not None
        assert standing_by.readline() == "Another process follows this ledger; this one stands by.\n"
        running[first].send_signal(fault)
        assert until_holder(postgres, {other}) == other
        log.stuck()
        judged(ledger, 2)
        running[first].send_signal(signal.SIGCONT)  # who comes back from a pause emits nothing, and stands by
        log.stuck()
        judged(ledger, 3)
        assert until_holder(postgres, {other}) == other


def test_the_verb_rides_through_the_loss_of_every_connection(ledger: ContractLedger, postgres: PostgresServer) -> None:
    log = Logbook(store=ledger.store)
    theirs = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'only'"
    with following(ledger, "only") as process:
        until_holder(postgres, {"only"})
        log.stuck()
        judged(ledger, 1)
        with psycopg.connect(postgres.url, autocommit=True) as owner:
            assert owner.execute(theirs).fetchall()
        log.stuck()
        judged(ledger, 2)
        until_holder(postgres, {"only"})
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=WAIT)
    assert (process.returncode, said.splitlines()[-1]) == (130, "Interrupted.")


ENDS = 10.0
"""Seconds for a process to end: two, and what a busy machine adds; it would wait for a server for 30."""

SIGNALS = [(signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGINT, 130)]


def ended(process: subprocess.Popen[str], number: int) -> tuple[int, str]:
    """Send a signal; return what the process ended with, in time, and what it said."""
    begun = time.monotonic()
    process.send_signal(number)
    _, said = process.communicate(timeout=WAIT)
    assert time.monotonic() - begun < ENDS
    assert "Traceback" not in said
    return process.returncode, said


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_ends_it_and_another_process_takes_over_at_once(
    ledger: ContractLedger, postgres: PostgresServer, number: int, code: int
) -> None:
    log = Logbook(store=ledger.store)
    with following(ledger, "one") as one, following(ledger, "two") as two:
        first = until_holder(postgres, {"one", "two"})
        log.stuck()
        judged(ledger, 1)
        (other,) = {"one", "two"} - {first}
        running = {"one": one, "two": two}
        standing_by = running[other].stderr
        assert standing_by is not None
        standing_by.readline()
        begun = time.monotonic()
        assert ended(running[first], number)[0] == code
        until_holder(postgres, {other})
        assert time.monotonic() - begun < ENDS
        assert ended(running[other], number)[0] == code


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_ends_one_that_stands_by(
    ledger: ContractLedger, postgres: PostgresServer, number: int, code: int
) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as owner:
        schema = ledger.store.recorder.fence and ledger.settings.store.schema
        owner.execute(f"SELECT pg_advisory_lock(1093815370, '{schema}.ledger_events'::regclass::oid::integer)".encode())
        with following(ledger, "one") as one:
            assert one.stderr is not None
            assert one.stderr.readline() == "Another process follows this ledger; this one stands by.\n"
            assert ended(one, number)[0] == code


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_ends_one_that_waits_for_a_lock_and_its_fence_is_free(
    ledger: ContractLedger, postgres: PostgresServer, number: int, code: int
) -> None:
    waits = (
        "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
        " WHERE NOT l.granted AND a.application_name = 'one'"
    )
    with following(ledger, "one") as one, psycopg.connect(postgres.url, autocommit=True) as owner:
        until_holder(postgres, {"one"})
        Logbook(store=ledger.store).stuck()
        judged(ledger, 1)
        with psycopg.connect(postgres.url) as greedy:
            greedy.execute(f"LOCK TABLE {ledger.settings.store.schema}.ledger_tracking".encode())
            deadline = time.monotonic() + WAIT
            ledger.new_task()
            Logbook(store=ledger.store).stuck()
            while owner.execute(waits).fetchall() == [(0,)]:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert ended(one, number)[0] == code
            while owner.execute(HOLDER).fetchall():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert time.monotonic() < deadline


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_ends_one_whose_server_does_not_answer(
    ledger: ContractLedger, postgres: PostgresServer, number: int, code: int
) -> None:
    with following(ledger, "one") as one:
        until_holder(postgres, {"one"})
        server = int((postgres.folder / "data" / "postmaster.pid").read_text().split()[0])
        stopped = [server]
        os.kill(server, signal.SIGSTOP)  # first, so that no process of it comes or goes meanwhile
        try:
            for pid in tree(server):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
                    stopped.append(pid)
            time.sleep(1)  # it asks the server four times a second, so it waits for an answer now
            assert ended(one, number)[0] == code
        finally:
            for pid in stopped:
                with suppress(ProcessLookupError):  # one that had ended, and that the server now lets go
                    os.kill(pid, signal.SIGCONT)
