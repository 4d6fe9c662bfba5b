"""The library's datastore over our connections, so that both see one set of locks."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, cast

from eventsourcing.sqlite import SQLiteCursor, SQLiteDatastore

if TYPE_CHECKING:
    from collections.abc import Generator

    from a2a_ledger.store.connections import Connections


class LedgerDatastore(SQLiteDatastore):
    """Lends cursors of our connections to the library's own methods."""

    def __init__(self, connections: Connections, *, text_ids: bool) -> None:
        super().__init__(connections.name, originator_id_type="text" if text_ids else "uuid")
        self.connections = connections

    @contextmanager
    def transaction(self, *, commit: bool) -> Generator[SQLiteCursor]:
        """Lend a cursor: in a write transaction, or for reading."""
        source = self.connections.writing() if commit else self.connections.reading()
        with source as connection:
            cursor = connection.cursor()
            cursor.row_factory = cast("Any", sqlite3.Row)  # the library's queries name columns; typeshed wants a tuple
            lent = SQLiteCursor(cursor)
            with lent:
                yield lent

    def get_connection(self, *, commit: bool) -> NoReturn:
        """Refuse: every access goes through `transaction`."""
        raise NotImplementedError(f"a ledger's datastore lends cursors, not connections (commit={commit})")

    def close(self) -> None:
        """Close all connections."""
        self.connections.close()

    def __del__(self) -> None:
        """Do nothing: the owner of the connections closes them."""
