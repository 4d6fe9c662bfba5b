"""The high-water mark of a log on a server: it goes along with whoever signs, and no two signers part."""

# pyright: reportPrivateUsage=false
# The time-out is shortened behind the public face.

from __future__ import annotations

import secrets
import shutil
from typing import TYPE_CHECKING, cast

import psycopg
import pytest

from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.errors import RollbackError, StoreError, UnreachableError
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.store import Server
from tests.store.facts import Where, message, new_stream
from tests.store.test_deadlines import no_standby

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2a_ledger.store.postgres.sessions import Sessions
    from tests.postgres_server import PostgresServer


class Hosts:
    """Machines with a copy of one ledger's directory each, and a second copy of the mark of their own."""

    def __init__(self, place: Path, server: Server) -> None:
        self.place = place
        self.server = server

    def open(self, host: str, *, strict_mark: bool = False) -> ContractLedger:
        return ContractLedger.open(
            self.place / host,
            server=self.server,
            follow=False,
            mark_dir=str(self.place / f"{host}-mark"),
            strict_mark=strict_mark,
        )

    def copy(self, host: str, to: str) -> None:
        """Copy a directory as docs/postgresql.md says: all but the mark."""
        shutil.copytree(self.place / host, self.place / to, ignore=shutil.ignore_patterns("high-water"))

    def marks(self, host: str) -> list[str]:
        """Return both copies of a machine's mark."""
        (apart,) = (self.place / f"{host}-mark").iterdir()
        return [(self.place / host / "high-water").read_text(), apart.read_text()]

    def run(self, *statements: str) -> None:
        """Come in as the superuser, whom no trigger stops."""
        with psycopg.connect(self.server.url, options=f"-c search_path={self.server.schema}") as owner:
            owner.execute("SET session_replication_role = replica")
            for statement in statements:
                owner.execute(statement.encode())


@pytest.fixture
def hosts(tmp_path: Path, postgres: PostgresServer) -> Hosts:
    return Hosts(tmp_path, Server(postgres.url, f"t_{secrets.token_hex(8)}"))


@pytest.fixture
def two(hosts: Hosts) -> Iterator[tuple[ContractLedger, ContractLedger, str]]:
    """Return one ledger on two machines, and a stream that both have the keys of; five events are under a head."""
    with hosts.open("one") as one:
        stream = new_stream(one.store)
        one.append([message(stream)])
        one.sign_checkpoint()
        hosts.copy("one", "two")
        with hosts.open("two") as two:
            yield one, two, stream


def size_of(note: str) -> int:
    return checkpoint_of(note).size


def test_a_machine_without_a_mark_takes_that_of_the_server(
    hosts: Hosts, two: tuple[ContractLedger, ContractLedger, str]
) -> None:
    one, other, stream = two
    newest = one.store.latest_checkpoint()
    assert newest is not None
    assert hosts.marks("two") == [newest[1]] * 2
    other.append([message(stream)])
    assert size_of(other.sign_checkpoint()) == 6
    one.append([message(stream)])
    assert size_of(one.sign_checkpoint()) == 7  # over the other's head, which its own files do not have
    assert [size_of(note) for _, note in one.store.checkpoints()][-2:] == [6, 7]


def test_a_strict_one_refuses_to_take_it(hosts: Hosts) -> None:
    with hosts.open("one") as one:
        one.sign_checkpoint()
    hosts.copy("one", "two")
    with pytest.raises(StoreError, match="strict_mark is set"):
        hosts.open("two", strict_mark=True)


def test_of_two_signers_at_once_the_second_signs_over_the_first(
    two: tuple[ContractLedger, ContractLedger, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other signs after this one has looked at the newest head and before it keeps its own."""
    one, other, stream = two
    one.append([message(stream)])
    real, notes = one.store.settled_root, list[str]()

    def outrun() -> tuple[int, bytes]:
        settled = real()
        if not notes:
            other.append([message(stream)])
            notes.append(other.sign_checkpoint())
        return settled

    monkeypatch.setattr(one.store, "settled_root", outrun)
    assert [size_of(note) for note in (one.sign_checkpoint(), *notes)] == [7, 7]
    assert one.store.latest_checkpoint() == (7, notes[0])


def test_a_head_that_no_standby_has_leaves_no_trace(
    hosts: Hosts, two: tuple[ContractLedger, ContractLedger, str]
) -> None:
    one, _, stream = two
    one.append([message(stream)])
    one.sign_checkpoint()
    marks, kept = hosts.marks("one"), one.store.checkpoints()
    one.append([message(stream)])
    cast("Sessions", one.store._database).timeout = 0.5
    with no_standby(Where(hosts.place / "one", hosts.server)), pytest.raises(UnreachableError):
        one.sign_checkpoint()
    assert (hosts.marks("one"), one.store.checkpoints()) == (marks, kept)
    cast("Sessions", one.store._database).timeout = 30.0
    assert size_of(one.sign_checkpoint()) == 7


@pytest.mark.parametrize("host", ["one", "two"])
def test_a_server_that_came_back_older_is_refused_by_every_machine_that_signed(hosts: Hosts, host: str) -> None:
    with hosts.open("one") as one:
        stream = new_stream(one.store)
        one.append([message(stream)])
        one.sign_checkpoint()
        hosts.copy("one", "two")
        with hosts.open("two") as two:
            two.append([message(stream)])
            two.sign_checkpoint()
        one.sign_checkpoint()
    hosts.run("DELETE FROM ledger_events WHERE rowid = 6", "DELETE FROM ledger_checkpoints WHERE size = 6")
    with pytest.raises(RollbackError, match="the database holds 5 events, but a tree head of 6 was signed"):
        hosts.open(host)


def test_a_head_on_the_server_that_is_no_note_stops_the_signer(
    hosts: Hosts, two: tuple[ContractLedger, ContractLedger, str]
) -> None:
    one, _, stream = two
    one.append([message(stream)])
    hosts.run("UPDATE ledger_checkpoints SET note = 'x' WHERE size = 5")
    with pytest.raises(StoreError, match="the newest head that the server keeps is damaged"):
        one.sign_checkpoint()
