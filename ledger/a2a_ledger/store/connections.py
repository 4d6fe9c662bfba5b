"""Connections to one SQLite database: one that writes, some that read, and what a fork may not share.

The write lock is taken first and by ourselves (`BEGIN IMMEDIATE`): a deferred transaction that
reads before it writes fails at once when another process commits in between. Waiting for it is
done here too, in short random naps: SQLite's own busy handler sleeps up to 100 ms at a time, which
lets one of four writing processes starve for most of a second.
"""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from a2a_ledger.errors import BusyError, StoreError, UsageError
from a2a_ledger.store.faults import as_ledger_error, is_busy, translated
from a2a_ledger.store.forks import pause_for_fork
from a2a_ledger.store.raw import LEDGER_TABLES, raw_tables
from a2a_ledger.store.schema import VIEW_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager

    from a2a_ledger.store.database import Session
    from a2a_ledger.store.raw import RawTables

BUSY_TIMEOUT = 30.0
"""Seconds that a writer waits for the lock before it gives up."""

_FORK_PATIENCE = 2.0  # seconds that a fork waits for reads of this process to end
_NAP = 0.0002  # seconds; the longest nap grows from here with every failed attempt, up to
_LONGEST_NAP = 0.002

_inherited: list[sqlite3.Connection] = []
"""Connections of the parent process: neither used nor closed in a child, since either would harm the file."""


class Connections:
    """All connections of this process to one database.

    Args:
        name: A path, `:memory:`, or a `file:` URI.
        read_only: Never write, not even a lock; a file in a directory that cannot be written is
            taken as immutable.
        journal: SQLite's journal mode; a small file that is copied alone wants `DELETE`.
        busy_timeout: Seconds to wait for the write lock.
        naps: Gives a fraction between 0 and 1 for the length of the next nap.
    """

    def __init__(
        self,
        name: str,
        *,
        read_only: bool = False,
        journal: str = "WAL",
        busy_timeout: float = BUSY_TIMEOUT,
        naps: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self.read_only = read_only
        self.in_memory = ":memory:" in name or "mode=memory" in name
        self._journal = journal
        self._busy_timeout = busy_timeout
        self._naps = naps
        self._immutable = False
        self._closed = False
        self._renew()
        pause_for_fork(self)

    def _renew(self) -> None:
        """Start with fresh locks and no connections; in memory the one connection is the database."""
        self._write_lock = threading.RLock()
        self._owner = 0
        self._idle_lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._lent = 0
        if not self.in_memory:
            self._writer: sqlite3.Connection | None = None
        elif not hasattr(self, "_writer"):
            self._writer = self._open_writer()

    def pause(self) -> None:
        """Wait for the write and the reads that are under way, and let no other begin, until `go_on`.

        SQLite's own locks in memory are then free, so that a child can use SQLite at all.
        """
        self._write_lock.acquire()
        self._idle_lock.acquire()
        deadline = time.monotonic() + _FORK_PATIENCE
        while self._lent and time.monotonic() < deadline:  # the thread that forks may itself be reading
            self._idle_lock.release()
            time.sleep(_NAP)
            self._idle_lock.acquire()

    def go_on(self) -> None:
        """Let reads and writes begin again."""
        self._idle_lock.release()
        self._write_lock.release()

    def forget(self) -> None:
        """Drop what came over a fork: the child must not touch the parent's connections."""
        if not self.in_memory:
            _inherited.extend(self._idle)
            if self._writer is not None:
                _inherited.append(self._writer)
        self._renew()

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """Open a write transaction, commit at the end, roll back on any error.

        Raises:
            BusyError: Another process held the lock for longer than the time-out.
            UsageError: This thread has a write transaction open already.
        """
        if self._owner == threading.get_ident():
            raise UsageError("expected no open write transaction in this thread, found one: end it before appending")
        with self._write_lock:
            self._owner = threading.get_ident()
            try:
                with translated(self.name):
                    connection = self._writer = self._writer or self._open_writer()
                    self._begin(connection)
                try:
                    with translated(self.name):
                        yield connection
                        connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            finally:
                self._owner = 0

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """Lend a connection for reading; each statement sees one state of the database."""
        if self.in_memory:
            with self._write_lock, translated(self.name):
                yield self._writer or self._open()
            return
        with self._idle_lock:
            connection = self._idle.pop() if self._idle else None
            self._lent += 1
        try:
            connection = connection or self._open()
            yield connection
        except sqlite3.Error as error:
            raise as_ledger_error(error, self.name) from error
        finally:
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
            with self._idle_lock:
                self._lent -= 1
                if connection is not None:
                    self._idle.append(connection)

    @contextmanager
    def snapshot(self) -> Generator[sqlite3.Connection]:
        """Lend a connection for reading in which all statements see one state of the database."""
        with self.reading() as connection:
            connection.execute("BEGIN")  # deferred: the first read sets the state
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def must_be_files(self, what: str) -> None:
        """Do nothing: here they do."""

    def raw(self) -> AbstractContextManager[RawTables]:
        """Open the raw rows of the ledger's tables as of one moment, for an audit."""
        return raw_tables(self, LEDGER_TABLES)

    def has_table(self, session: Session, table: str) -> bool:
        """Tell whether there is a table of this name."""
        return session.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone() is not None

    def empty_table(self, session: Session, table: str) -> None:
        """Make the table of a read model, anew where there is one."""
        session.execute(f"DROP TABLE IF EXISTS {table}")
        session.execute(f"CREATE TABLE {table} {VIEW_COLUMNS}")

    def tag_cell(self, tag: str) -> str:
        """Return how a lookup tag stands in its cell: as it is."""
        return tag

    def compact(self, *, rewrite: bool, patience: float) -> None:
        """Leave no older octets in the files: empty the write-ahead log, and on demand write the database anew.

        Args:
            rewrite: Write all of it anew, as free pages may hold older octets; costs its size in time and disk.
            patience: Seconds to wait for other processes that read or write.

        Raises:
            BusyError: They did not leave it alone for a moment; the same call can be made again.
        """
        if self.in_memory:
            return
        deadline = time.monotonic() + patience
        with self._write_lock, translated(self.name):
            connection = self._writer = self._writer or self._open_writer()
            while rewrite:
                try:
                    connection.execute("VACUUM")
                except sqlite3.OperationalError as error:
                    if not is_busy(error):
                        raise
                    self._wait(deadline)
                else:
                    rewrite = False
            while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                self._wait(deadline)

    def _wait(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise BusyError(
                f"expected {self.name} to be free for a moment, found other processes in it all the time: "
                "older octets may stay in its files",
                hint="do it again when they are done",
            )
        time.sleep(_LONGEST_NAP)

    def close(self) -> None:
        """Close every connection; an in-memory database is gone after this."""
        with self._write_lock, self._idle_lock:
            for connection in [*self._idle, *([self._writer] if self._writer is not None else [])]:
                connection.close()
            self._idle.clear()
            self._writer = None
            self._closed = True

    def _open(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError(f"expected {self.name} to be open, found it closed")
        with translated(self.name):
            connection = self._connect(self._uri())
            try:
                return self._set_up(connection)
            except BaseException:
                connection.close()
                raise

    def _set_up(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """Return the connection as this ledger uses it; a reader may need another one."""
        if self.read_only and not self.in_memory:
            return self._readable(connection)
        if not self.read_only:
            if not self.in_memory:
                connection.execute(f"PRAGMA journal_mode={self._journal}")
            # We set it ourselves: the library leaves it to how SQLite was built. EXTRA also syncs the
            # directory after a rollback journal is deleted; a write-ahead log has no such step.
            connection.execute(f"PRAGMA synchronous={'FULL' if self._journal == 'WAL' else 'EXTRA'}")
        return connection

    def _open_writer(self) -> sqlite3.Connection:
        connection = self._open()
        if self._journal == "WAL":  # nothing but BEGIN meets a lock, and _begin does that waiting
            connection.execute("PRAGMA busy_timeout=0")
        return connection

    def _connect(self, uri: str) -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None, timeout=self._busy_timeout)

    def _uri(self) -> str:
        if self.name.startswith("file:") or self.in_memory:
            return self.name
        place = f"file:{quote(str(Path(self.name).absolute()))}"
        if not self.read_only:
            return place
        return f"{place}?mode=ro&immutable=1" if self._immutable else f"{place}?mode=ro"

    def _readable(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """Return a connection that can read where not even the index of the write-ahead log may be made."""
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            connection.close()
            if self._immutable or is_busy(error):
                raise
            log = Path(f"{self.name}-wal")
            if log.exists() and log.stat().st_size:
                raise StoreError(
                    f"expected {self.name} without pending changes, found some in {log.name}, which needs a writable "
                    "directory to be read",
                    hint="copy both files into a directory that can be written, and open that",
                ) from error
            self._immutable = True
            return self._readable(self._connect(self._uri()))
        return connection

    def _begin(self, connection: sqlite3.Connection) -> None:
        """Take the write lock, napping between attempts."""
        deadline = time.monotonic() + self._busy_timeout
        longest = _NAP
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise as_ledger_error(error, self.name) from error
            else:
                return
            time.sleep(longest * self._naps())
            longest = min(2 * longest, _LONGEST_NAP)
