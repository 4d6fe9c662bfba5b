"""The floor on a PostgreSQL server: bare rows, each committed by itself.

They lie in a schema beside that of the ledger, whose audit takes a foreign table in its own for a fault. Both are gone
at the end.
"""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

import psycopg
from psycopg import sql

from a2a_ledger.errors import UnreachableError
from a2a_ledger.store import Server, prepare_server

if TYPE_CHECKING:
    from collections.abc import Generator

_DURABLE = (
    "SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'"
    " ELSE current_setting('synchronous_commit') END, false)"
)


@contextmanager
def scratch_schema(url: str) -> Generator[Server]:
    """Give a ledger a schema of this run alone; drop it, and that of the floor, at the end.

    Raises:
        StoreError: the tables cannot be made.
        UnreachableError: no server answers, or it stopped to.
        UsageError: the url cannot be used.
    """
    server = Server(url, f"a2a_ledger_bench_{secrets.token_hex(8)}")
    prepare_server(server)
    try:
        try:
            yield server
        finally:
            with psycopg.connect(url, autocommit=True) as connection:
                for schema in (server.schema, _beside(server)):
                    connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))
    except psycopg.Error as error:
        raise UnreachableError(
            f"expected the server to answer the benchmark to its end, found: {error}",
            hint=f"drop what is left on it: schemas {server.schema} and {_beside(server)}",
        ) from error


def make_floor(server: Server) -> None:
    """Make the bare table."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(_beside(server))))
        connection.execute(
            sql.SQL("CREATE TABLE {} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, b bytea)").format(
                sql.Identifier(_beside(server), "floor")
            )
        )


def _beside(server: Server) -> str:
    return f"{server.schema}_floor"


class ServerFloor:
    """A connection that inserts into the bare table, as durably as a ledger does.

    Args:
        server: where the table was made.
        size: octets of a row.
    """

    def __init__(self, server: Server, size: int) -> None:
        self._connection = psycopg.connect(server.url, autocommit=True)
        self._connection.execute(_DURABLE)
        self._insert = sql.SQL("INSERT INTO {} (b) VALUES (%s)").format(sql.Identifier(_beside(server), "floor"))
        self._octets = os.urandom(size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def insert(self, times: int) -> None:
        """Insert rows, each committed by itself."""
        for _ in range(times):
            self._connection.execute(self._insert, (self._octets,))
