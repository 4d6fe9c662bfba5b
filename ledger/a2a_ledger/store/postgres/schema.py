"""Making the tables of a ledger in a schema, once, and telling whether they are there.

Processes that record never run a statement of this kind: they need no right to make anything, and any
number of them start at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.errors import StoreError
from a2a_ledger.store.postgres.faults import translated
from a2a_ledger.store.postgres.form import VIEW_COLUMNS, tables
from a2a_ledger.store.postgres.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.store.database import Server, Session

FORMAT_VERSION = 1
"""Of `ledger_log`: the form of the tables and functions."""

_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(1093815369, 0)"


def migrate(sessions: Sessions, views: Iterable[str] = ()) -> bool:
    """Make the schema with its tables and functions, and tables for read models; what is there stays as it is.

    Args:
        sessions: As the role that is to own them.
        views: Names of the tables of read models.

    Returns:
        Whether the ledger's own tables were made now.

    Raises:
        ReadOnlyError: The role may not make them.
        StoreError: They are of another release.
    """
    with translated(sessions.name), sessions.lent() as line:
        line.execute("BEGIN")
        try:
            line.execute(_ONE_AT_A_TIME)
            found = line.execute("SELECT to_regnamespace(?) IS NOT NULL", (sessions.schema,)).fetchone()
            if not found[0]:
                line.execute(f"CREATE SCHEMA {sessions.schema}")
            new = not is_there(line)
            if new:
                line.connection.execute(tables())
            else:
                check(line, sessions.name)
            for view in views:
                line.execute(f"CREATE TABLE IF NOT EXISTS {view} {VIEW_COLUMNS}")
            line.execute("COMMIT")
        except BaseException:
            if not line.connection.broken:
                line.execute("ROLLBACK")
            raise
    return new


def migrate_server(server: Server, views: Iterable[str] = ()) -> bool:
    """Do `migrate` for a server, over a connection of its own."""
    sessions = Sessions(server)
    try:
        return migrate(sessions, views)
    finally:
        sessions.close()


def is_there(session: Session) -> bool:
    """Tell whether the schema holds a ledger's tables."""
    found: tuple[bool] = session.execute("SELECT to_regclass('ledger_log') IS NOT NULL").fetchone()
    return found[0]


def check(session: Session, place: str) -> str | None:
    """Return the name of the log that lies here, None where there is no event yet.

    Raises:
        StoreError: There are no tables, or they are of another release.
    """
    if not is_there(session):
        raise StoreError(
            f"expected the tables of a ledger in {place}, found none",
            hint="run `a2a-ledger db migrate` once, as the role that is to own them; see docs/postgresql.md",
        )
    version, origin = session.execute("SELECT format, origin FROM ledger_log").fetchone()
    if version != FORMAT_VERSION:
        raise StoreError(
            f"expected tables of format {FORMAT_VERSION} in {place}, found format {version}",
            hint="install the release that made them",
        )
    return None if origin is None else str(origin)
