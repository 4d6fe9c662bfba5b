"""The tables of ledger.db, how one is recognised, and the check column of rows that nothing else covers.

docs/format.md section 13. Everything but `ledger_tracking` follows from the events and can be
recomputed by an audit; a row of tracking carries a SHA-256 over its other columns instead, so that
a flipped byte is found there too.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from a2a_ledger.errors import StoreError

if TYPE_CHECKING:
    import sqlite3

APPLICATION_ID = 0x41324C47
"""`A2LG` in the file header: this file is a ledger."""

FORMAT_VERSION = 1
"""`user_version` of the file header: the form of the tables."""

EVENTS = "ledger_events"
TRACKING = "ledger_tracking"
TILES = "ledger_tiles"
BLOBS = "ledger_blobs"
TAGS = "ledger_tags"
CHECKPOINTS = "ledger_checkpoints"

# An explicit INTEGER PRIMARY KEY is never renumbered, and it is the log index + 1. c and t stand
# before the state, so that reading leaves never walks a row's overflow pages.
EVENTS_TABLE = (
    "CREATE TABLE IF NOT EXISTS ledger_events (rowid INTEGER PRIMARY KEY, originator_id TEXT NOT NULL,"
    " originator_version INTEGER NOT NULL, topic TEXT NOT NULL, c BLOB NOT NULL, t BLOB NOT NULL,"
    " state BLOB NOT NULL, UNIQUE (originator_id, originator_version))"
)
TRACKING_TABLE = (
    "CREATE TABLE IF NOT EXISTS ledger_tracking (application_name TEXT PRIMARY KEY,"
    " notification_id INTEGER NOT NULL, digest BLOB NOT NULL) WITHOUT ROWID"
)
TILES_TABLE = (
    "CREATE TABLE IF NOT EXISTS ledger_tiles (level INTEGER NOT NULL, idx INTEGER NOT NULL, hashes BLOB NOT NULL,"
    " PRIMARY KEY (level, idx)) WITHOUT ROWID"
)
BLOBS_TABLE = "CREATE TABLE IF NOT EXISTS ledger_blobs (id BLOB PRIMARY KEY NOT NULL, parts BLOB NOT NULL)"
TAGS_TABLE = (
    "CREATE TABLE IF NOT EXISTS ledger_tags (tag TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (tag, n)) WITHOUT ROWID"
)
CHECKPOINTS_TABLE = "CREATE TABLE IF NOT EXISTS ledger_checkpoints (size INTEGER PRIMARY KEY, note TEXT NOT NULL)"
VIEW_COLUMNS = "(key TEXT PRIMARY KEY NOT NULL, first INTEGER NOT NULL, row TEXT NOT NULL) WITHOUT ROWID"
"""Of the table of a read model; which ones there are is no business of the store's."""

ALL_TABLES = (EVENTS_TABLE, TRACKING_TABLE, TILES_TABLE, BLOBS_TABLE, TAGS_TABLE, CHECKPOINTS_TABLE)


def row_digest(table: str, *values: object) -> bytes:
    """Return the check column of a row: SHA-256 over the table's name and the other columns in order.

    Each value is one type letter, its length as eight octets, and its octets (an integer as decimal text).
    We write text, integers and octets alone; what else stands in a changed row gets a digest that no row has.
    """
    digest = hashlib.sha256(b"a2a-ledger/row/v1\0" + table.encode() + b"\0")
    for value in values:
        if isinstance(value, bytes):
            kind, octets = b"b", value
        elif isinstance(value, int):
            kind, octets = b"i", b"%d" % value
        elif isinstance(value, str):
            kind, octets = b"s", value.encode("utf-8", "surrogateescape")
        else:
            kind, octets = b"x", repr(value).encode()
        digest.update(kind + len(octets).to_bytes(8, "big") + octets)
    return digest.digest()


def is_new(connection: sqlite3.Connection) -> bool:
    """Tell whether this is a database without anything in it."""
    found: tuple[int] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return found[0] == 0 and _header(connection) == (0, 0)


def check_header(connection: sqlite3.Connection, place: str) -> None:
    """Check that this file is a ledger of a form that this version reads.

    Raises:
        StoreError: It is another program's database, or one that a newer release wrote.
    """
    application, version = _header(connection)
    if application != APPLICATION_ID:
        raise StoreError(
            f"expected a ledger (application id {APPLICATION_ID:#x}) in {place}, "
            f"found another database ({application:#x})",
            hint="name the directory of a ledger, or make one with `a2a-ledger init`",
        )
    if version != FORMAT_VERSION:
        raise StoreError(
            f"expected a ledger of format {FORMAT_VERSION} in {place}, found format {version}",
            hint="install the release that wrote it",
        )


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables and the marks in the file header, in the transaction that is open."""
    for statement in ALL_TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={FORMAT_VERSION}")


def _header(connection: sqlite3.Connection) -> tuple[int, int]:
    application: tuple[int] = connection.execute("PRAGMA application_id").fetchone()
    version: tuple[int] = connection.execute("PRAGMA user_version").fetchone()
    return application[0], version[0]
