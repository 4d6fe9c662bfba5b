"""A ledger whose first task carries a marker wherever content can stand, and where octets of it are found."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.codec import (
    Content,
    Place,
    SealedBlob,
    Withheld,
    pack_container,
    pack_parts,
    read_record,
    unpack_container,
    unpack_parts,
)
from a2a_ledger.events import MessageRecorded
from a2a_ledger.export import export_task
from a2a_ledger.store import KeyStore
from tests.divergence.story import PEER
from tests.evidence.recorded import dispute, opened

if TYPE_CHECKING:
    from pathlib import Path

MARKER = b"Ada Lovelace, 12 St James's Square"
LARGE = MARKER * 3000  # lies in a table of its own
SHARED = b'["date","a header that both tasks hold"]'
MARKED_ROLES = ("body", "error", "header.00", "url")
OTHERS_TEXT = b"what the other task holds"


class Marked(NamedTuple):
    """The ledger's directory, its marked task and another one, a bundle of each, and the log's key."""

    place: Path
    task: str
    other: str
    log_key: str
    bundles: tuple[bytes, bytes]


def marked_ledger(place: Path) -> Marked:
    """Make it; both tasks hold one header with the same octets, and one body."""
    with opened(place) as ledger:
        story = dispute(ledger)
        second = dispute(ledger, name="t2", polls=3)
        for name, body in (("t1", MARKER), ("t2", OTHERS_TEXT)):
            story.tasks[name] = {**second.tasks, **story.tasks}[name]
            story.add(said(), f"task:{story.tasks[name]}", {"body": body, "header.00": SHARED})
        stream = f"task:{story.tasks['t1']}"
        story.add(said(), stream, {role: MARKER + role.encode() for role in MARKED_ROLES})
        story.add(said(), stream, {"body": LARGE, "header.00": SHARED})
        story.add(said(), stream, {"body": Content((b'{"token":"', Withheld(b"never stored"), b'","who":"', MARKER))})
        ledger.catch_up()
        ledger.sign_checkpoint()
        one, other = story.tasks["t1"], story.tasks["t2"]
        bundles = export_task(ledger, one).data, export_task(ledger, other).data
        return Marked(place, one, other, ledger.signers["log"].vkey, bundles)


def said() -> MessageRecorded:
    """Return a push that nothing refers to."""
    return MessageRecorded(peer=PEER, direction="in", leg="push", binding="JSONRPC", url="https://a.example/")


def files_with(place: Path, octets: bytes) -> set[str]:
    """Return the names of the files, at whatever depth, that hold these octets."""
    found = (path for path in place.rglob("*") if path.is_file())
    return {path.name for path in found if octets in path.read_bytes()}


def box_keys(place: Path, task: str) -> list[bytes]:
    """Return the record keys and blob keys that the key store has for a task."""
    with closing(sqlite3.connect(place / "keys.db")) as connection:
        rows = connection.execute("SELECT record, blob FROM box_keys WHERE stream = ?", (f"task:{task}",)).fetchall()
    return [key for row in rows for key in row]


def as_first_release(place: Path) -> None:
    """Give a closed ledger the shape in which 0.1.0 wrote it: every row in clear, a key store without keys of boxes."""
    with (
        closing(KeyStore(place / "keys.db", read_only=True)) as keys,
        closing(sqlite3.connect(place / "ledger.db")) as connection,
    ):
        rows = connection.execute(
            "SELECT rowid, originator_id, originator_version, state FROM ledger_events"
        ).fetchall()
        for rowid, stream, ver, state in rows:
            at = Place(keys.fact("origin") or "", stream, ver)
            salt, raw, inline = unpack_container(state, at, keys.boxes.named)
            for ref in read_record(salt, raw, n=rowid - 1).blobs.values():
                identity = bytes.fromhex(ref.id)
                if identity not in inline:
                    (stored,) = connection.execute(
                        "SELECT parts FROM ledger_blobs WHERE id = ?", (identity,)
                    ).fetchone()
                    clear = pack_parts(unpack_parts(stored, identity, at, keys.boxes.named))
                    connection.execute("UPDATE ledger_blobs SET parts = ? WHERE id = ?", (clear, identity))
            blobs = [SealedBlob(identity, "all", 0, parts) for identity, parts in inline.items()]
            changed = (pack_container(salt, raw, blobs), rowid)
            connection.execute("UPDATE ledger_events SET state = ? WHERE rowid = ?", changed)
        connection.commit()
    with closing(sqlite3.connect(place / "keys.db")) as connection:
        connection.executescript("DROP TABLE box_keys; PRAGMA user_version = 0; VACUUM;")
