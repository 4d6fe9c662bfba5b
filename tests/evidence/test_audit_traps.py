"""What somebody may put into, or take out of, a ledger's files besides rows: each is a fault in a whole report."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.anchors.held import ANCHORS
from a2a_ledger.audit import audit_ledger
from a2a_ledger.events import CheckpointAnchored, KeyAdded, KeyRevoked, MessageRecorded
from a2a_ledger.keys import COSIGNATURE, Verifier, generate
from a2a_ledger.note import Note, SignatureLine, cosignature_message, parse_note
from a2a_ledger_projections import peers, task_contracts, waits
from a2a_ledger_projections.base import differences
from a2a_ledger_projections.view import create_table
from tests.divergence.story import PEER
from tests.evidence.conftest import reopened
from tests.evidence.recorded import entropy

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.audit import AuditReport
    from tests.evidence.conftest import Case

VIEWS = (task_contracts.VIEW, peers.VIEW, waits.VIEW)
PEERS = peers.VIEW.table
PEERS_SQL = create_table(PEERS).replace("IF NOT EXISTS ", "")


def execute(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def audited(place: Path) -> AuditReport:
    """Audit with all read models, and see that the report is whole whatever was found."""
    with reopened(place) as ledger:
        report = audit_ledger(ledger, views=[differences(ledger.store, view) for view in VIEWS])
        assert report.events == ledger.store.size()
    return report


def found(place: Path) -> list[tuple[str, str]]:
    return [(fault.kind, fault.detail) for fault in audited(place).faults]


# ---- The form of the databases


def test_the_table_that_an_earlier_release_filled_for_a_view_is_no_fault(copy: Path) -> None:
    execute(copy / "ledger.db", PEERS_SQL.replace(PEERS, "ledger_view_peers_1"))
    assert found(copy) == []


@pytest.mark.parametrize(
    ("file", "statement", "kind", "detail"),
    [
        (
            "ledger.db",
            "CREATE TRIGGER quiet BEFORE INSERT ON ledger_events BEGIN SELECT raise(ignore); END",
            "database",
            "trigger 'quiet' was put there",
        ),
        ("ledger.db", "CREATE TABLE evil (a)", "database", "table 'evil' was put there"),
        ("ledger.db", "CREATE INDEX slow ON ledger_tags (n)", "database", "index 'slow' was put there"),
        ("ledger.db", "CREATE VIEW seen AS SELECT 1", "database", "view 'seen' was put there"),
        ("ledger.db", "ALTER TABLE ledger_events ADD COLUMN more", "database", "table ledger_events was changed"),
        (
            "ledger.db",
            f"ALTER TABLE {PEERS} ADD COLUMN more",
            "database",
            f"table {PEERS} was changed",
        ),
        (
            "ledger.db",
            PEERS_SQL.replace(PEERS, "ledger_view_evil_9"),
            "database",
            "table 'ledger_view_evil_9' was put there",
        ),
        (
            "ledger.db",
            PEERS_SQL.replace(PEERS, "ledger_view_peers_0"),
            "database",
            "table 'ledger_view_peers_0' was put there",
        ),
        ("ledger.db", "DROP TABLE ledger_checkpoints", "database", "table ledger_checkpoints is missing"),
        ("ledger.db", "DROP TABLE ledger_blobs", "database", "table ledger_blobs is missing"),
        ("ledger.db", "DROP TABLE ledger_tiles", "database", "table ledger_tiles is missing"),
        ("ledger.db", "DROP TABLE ledger_tracking", "database", "table ledger_tracking is missing"),
        ("keys.db", "ALTER TABLE streams ADD COLUMN more", "key", "keys.db: table streams was changed"),
        ("keys.db", "CREATE TABLE evil (a)", "key", "keys.db: table 'evil' was put there"),
        ("keys.db", "DROP TABLE stream_keys", "key", "keys.db: table stream_keys is missing"),
        ("keys.db", "DROP TABLE streams", "key", "keys.db: table streams is missing"),
        ("keys.db", "DROP TABLE redaction_keys", "key", "keys.db: table redaction_keys is missing"),
        ("keys.db", "DROP TABLE facts", "key", "keys.db: table facts is missing"),
        ("keys.db", "PRAGMA user_version = 7", "key", "keys.db: application id and version in the file header"),
        ("keys.db", "PRAGMA application_id = 5", "key", "keys.db: application id and version in the file header"),
    ],
)
def test_whatever_is_not_ours_or_is_gone_is_a_fault(
    copy: Path, file: str, statement: str, kind: str, detail: str
) -> None:
    execute(copy / file, statement)
    assert any(at == kind and detail in text for at, text in found(copy)), found(copy)


@pytest.mark.parametrize("content", [b"", b"noise, and enough of it to be told from a database\n" * 100])
def test_a_key_store_that_is_none_is_a_fault(copy: Path, content: bytes) -> None:
    (copy / "keys.db").write_bytes(content)
    report = audited(copy)
    assert {fault.kind for fault in report.faults} == {"key", "view"}
    assert any("the key store cannot be read: expected" in fault.detail for fault in report.faults)
    assert report.checkpoint is not None


# ---- Cells of another type


@pytest.mark.parametrize(
    ("table", "statement", "kind"),
    [
        ("events", "UPDATE ledger_events SET originator_id = x'00' WHERE rowid = 9", "envelope"),
        ("events", "UPDATE ledger_events SET originator_version = 1.5 WHERE rowid = 9", "envelope"),
        ("events", "UPDATE ledger_events SET topic = x'ff' WHERE rowid = 9", "envelope"),
        ("tracking", "UPDATE ledger_tracking SET notification_id = 1.5", "tracking"),
        ("tracking", "UPDATE ledger_tracking SET notification_id = 'x'", "tracking"),
        ("view", f"UPDATE {PEERS} SET row = x'00'", "view"),  # noqa: S608 - our own table
        ("tags", "UPDATE ledger_tags SET n = 'x' WHERE n = 9", "lookup"),
        ("heads", "UPDATE ledger_checkpoints SET note = x'00'", "checkpoint"),
    ],
)
def test_no_type_of_a_cell_stops_the_audit(copy: Path, table: str, statement: str, kind: str) -> None:
    _ = table
    execute(copy / "ledger.db", statement)
    assert kind in {at for at, _ in found(copy)}


def test_a_view_that_cannot_be_made_again_is_a_fault(case: Case) -> None:
    def broken() -> list[str]:
        raise ZeroDivisionError("a fold that met what it never expected")

    with reopened(case.place) as ledger:
        (fault,) = audit_ledger(ledger, views=[broken]).faults
    assert (fault.kind, fault.detail[:44]) == ("view", "cannot be made again: ZeroDivisionError: a f")


# ---- Rows of the key store


def test_the_key_store_says_whose_it_is(copy: Path) -> None:
    execute(copy / "keys.db", "DELETE FROM facts")
    ((kind, detail),) = found(copy)
    assert kind == "key"
    assert "does not say that it is that of acme/audit" in detail


def test_a_redaction_key_that_a_record_names_is_missed(copy: Path) -> None:
    peer = "cd" * 16
    with reopened(copy, read_only=False) as ledger:
        k, _ = ledger.store.keys.redaction_key(peer)
        message = MessageRecorded(
            peer=peer,
            direction="out",
            leg="request",
            binding="JSONRPC",
            url="https://vendor.example/a2a",
            credential=[{"k": k, "mac": "00" * 32, "scheme": "bearer"}],
        )
        ledger.append([ledger.draft(message, stream=f"task:{ledger.new_task()}")] * 2)
        first = ledger.store.size() - 2
        ledger.catch_up()
    assert found(copy) == []
    execute(copy / "keys.db", f"DELETE FROM redaction_keys WHERE peer = '{peer}'")  # noqa: S608 - our own text
    (fault,) = audited(copy).faults
    assert (fault.kind, fault.position) == ("key", first)
    assert k in fault.detail


# ---- Heads and marks that are gone


def test_both_copies_of_the_mark_are_missed(copy: Path) -> None:
    (copy / "high-water").unlink()
    shutil.rmtree(copy / "elsewhere")
    (fault,) = audited(copy).faults
    assert fault.kind == "mark"
    assert "both copies of the high-water mark are missing" in fault.detail


def test_without_marks_and_heads_the_audit_says_that_nothing_is_signed(copy: Path) -> None:
    (copy / "high-water").unlink()
    shutil.rmtree(copy / "elsewhere")
    execute(copy / "ledger.db", "DELETE FROM ledger_checkpoints")
    report = audited(copy)
    assert report.checkpoint is None
    assert report.uncovered == report.events
    assert any("either none was signed yet, or all are gone" in note for note in report.notes)


@pytest.mark.parametrize("which", ["", " WHERE size = (SELECT max(size) FROM ledger_checkpoints)"])
def test_a_head_that_the_mark_names_and_the_database_lacks(copy: Path, which: str) -> None:
    execute(copy / "ledger.db", f"DELETE FROM ledger_checkpoints{which}")  # noqa: S608 - our own text
    report = audited(copy)
    (fault,) = report.faults
    assert (fault.kind, fault.position) == ("checkpoint", report.events - 1)
    assert "does not keep that head" in fault.detail
    with reopened(copy, read_only=False):
        pass  # a crash of the signer between mark and database is put right here
    assert found(copy) == []


def test_a_head_that_the_reader_kept_and_the_database_lacks(copy: Path) -> None:
    with reopened(copy) as ledger:
        size, earlier = ledger.store.checkpoints()[0]
    execute(copy / "ledger.db", f"DELETE FROM ledger_checkpoints WHERE size = {size}")  # noqa: S608 - a number
    assert found(copy) == []
    with reopened(copy) as ledger:
        (fault,) = audit_ledger(ledger, earlier={"the head that was kept": earlier}).faults
    assert (fault.kind, fault.position) == ("checkpoint", size - 1)


# ---- Streams


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        ("ledger", "is a message.recorded.v1 and stands in 'ledger', where none belongs"),
        ("peer:self", "is a message.recorded.v1 and stands in 'peer:self', where none belongs"),
        ("anchors", "is a message.recorded.v1 and stands in 'anchors', where none belongs"),
        (f"findings:peer:{PEER}", "where none belongs"),
        ("peer:00", "stands in 'peer:00', which is no name of a stream"),
        (f"peer:{PEER}", ""),
    ],
)
def test_an_event_in_a_stream_where_none_belongs_is_a_fault(copy: Path, stream: str, said: str) -> None:
    with reopened(copy, read_only=False) as ledger:
        message = MessageRecorded(peer=PEER, direction="in", leg="error", binding="unknown", url="")
        # As an operator can who has the database: no writer of ours puts it there.
        (placed,) = ledger.store.recorder.append([ledger.draft(message, stream=stream)], None)
    faults = [fault for fault in audited(copy).faults if fault.kind == "stream"]
    assert [fault.position for fault in faults] == ([placed.n] if said else [])
    assert all(fault.detail.endswith(said) for fault in faults)


# ---- Anchors


def anchored(place: Path, size: int, root: str, note: bytes, kind: str = "cosignature") -> AuditReport:
    with reopened(place, read_only=False) as ledger:
        event = CheckpointAnchored(origin=ledger.origin, size=size, root=root, holder="witness.example/w", kind=kind)
        ledger.append([ledger.draft(event, stream=ANCHORS, blobs={"note": note})])
        ledger.catch_up()
        ledger.sign_checkpoint()
    return audited(place)


def test_an_anchor_beyond_the_log_is_a_fault(copy: Path) -> None:
    report = anchored(copy, 10**9, "00" * 32, b"no note")
    (fault,) = report.faults
    assert report.anchored_size == 0
    assert (fault.kind, fault.position) == ("checkpoint", report.events - 1)
    assert "covers more than the" in fault.detail


def test_an_anchor_with_another_root_than_the_head_is_a_fault(case: Case, copy: Path) -> None:
    size = audited(case.place).events
    report = anchored(copy, size, "00" * 32, b"no note")
    assert report.anchored_size == 0
    assert ["another root" in fault.detail for fault in report.faults] == [True]


def test_an_anchor_of_a_head_that_is_gone_is_a_fault(case: Case, copy: Path) -> None:
    size = audited(case.place).events - 1
    execute(copy / "ledger.db", f"DELETE FROM ledger_checkpoints WHERE size = {size}")  # noqa: S608 - a number
    report = anchored(copy, size, "00" * 32, b"no note")
    assert report.anchored_size == 0
    assert [(fault.kind, fault.position) for fault in report.faults] == [("checkpoint", size - 1)]


@pytest.mark.parametrize("kind", ["cosignature", "rfc3161"])
def test_an_anchor_that_nobody_signed_counts_as_none_and_is_said(case: Case, copy: Path, kind: str) -> None:
    before = audited(case.place)
    assert before.checkpoint is not None
    size, root = before.checkpoint
    with reopened(copy) as ledger:
        ours = ledger.store.checkpoints()[-1][1].encode()
    report = anchored(copy, size, root, ours, kind)
    assert report.faults == ()
    assert report.anchored_size == 0
    assert [note for note in report.notes if "counts as none" in note and "witness.example/w" in note]


@pytest.mark.parametrize(("added", "revoked"), [(True, False), (False, False), (True, True)])
def test_an_anchor_counts_when_a_witness_that_the_log_names_has_cosigned(
    case: Case, copy: Path, *, added: bool, revoked: bool
) -> None:
    before = audited(case.place)
    assert before.checkpoint is not None
    size, root = before.checkpoint
    witness = generate("witness.example/w", entropy())
    key = Verifier(witness.name, witness.verifier.public_key, COSIGNATURE)
    with reopened(copy, read_only=False) as ledger:
        note = parse_note(ledger.store.checkpoints()[-1][1])
        signature = (99).to_bytes(8, "big") + witness.sign(cosignature_message(note.text, 99))
        cosigned = Note(note.text, (*note.signatures, SignatureLine(witness.name, key.key_id, signature)))
        named = KeyAdded(key_id=key.key_id, public_key=key.public_key.hex(), role="witness", vkey=key.vkey)
        ended = KeyRevoked(key_id=key.key_id, role="witness", vkey=key.vkey, size=size)
        events = [*([named] if added else []), *([ended] if revoked else [])]
        if events:
            ledger.append([ledger.draft(event, stream="ledger") for event in events])
    report = anchored(copy, size, root, str(cosigned).encode())
    assert report.faults == ()
    assert report.anchored_size == (size if added and not revoked else 0)
    assert len([note for note in report.notes if "counts as none" in note]) == (0 if report.anchored_size else 1)


# ---- Private keys


def test_private_keys_that_are_not_here_are_worth_a_note(copy: Path) -> None:
    (copy / "keys" / "statement.pem").unlink()
    report = audited(copy)
    assert report.faults == ()
    assert "private keys that are not here: statement.pem; this copy can be read and verified" in report.notes


def test_a_private_key_that_is_not_the_logs_is_a_fault(copy: Path) -> None:
    shutil.copy(copy / "keys" / "export.pem", copy / "keys" / "log.pem")
    (fault,) = audited(copy).faults
    assert fault.kind == "key"
    assert "log.pem: expected the log key that the log names" in fault.detail
