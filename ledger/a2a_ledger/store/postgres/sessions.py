"""Connections to one PostgreSQL server: some that read, some that write, all set up alike.

The driver opens them by the usual libpq parameters, so several hosts, TLS, service and password files
work as everywhere. A password is never taken from the url: it would stand in a file or a process list.
"""

from __future__ import annotations

import logging
import math
import re
import select
import threading
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from a2a_ledger.errors import StoreError, UnreachableError, UsageError
from a2a_ledger.store.forks import forget_in_child
from a2a_ledger.store.postgres.faults import ONLY_HERE, as_ledger_error, not_replicated, translated
from a2a_ledger.store.postgres.form import VIEW_COLUMNS
from a2a_ledger.store.postgres.patience import PatientConnection, Pauses
from a2a_ledger.store.postgres.raw import raw_tables
from a2a_ledger.store.postgres.statements import adapted
from a2a_ledger.store.postgres.tags import tag_cell

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from contextlib import AbstractContextManager

    from a2a_ledger.store.database import Result, Server, Session, Values
    from a2a_ledger.store.raw import RawTables

_log = logging.getLogger(__name__)

_NAME = re.compile("[a-z_][a-z0-9_]{0,62}")
_VIEWS_LOCK = "SELECT pg_advisory_xact_lock(1093815368, 'ledger_events'::regclass::oid::integer)"
"""Who writes rows of read models: one at a time, and never in the way of an append."""

_SET_UP = (
    "SELECT set_config('search_path', %s, false), set_config('lock_timeout', %s, false),"
    " set_config('default_transaction_isolation', 'read committed', false),"
    " set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'"
    " ELSE current_setting('synchronous_commit') END, false), current_setting('fsync'),"
    " current_setting('server_encoding')"
)
_DEFAULTS = {"fallback_application_name": "a2a-ledger", "connect_timeout": "5", "tcp_user_timeout": "30000"}
_FOR_LOCKS = 0.9  # of the time-out: who waits for a lock is told that nothing was written before the time is up


_inherited: list[Line] = []


class Line:
    """One connection, as a `Session`: statements of both databases, and whether the server warned of a commit."""

    def __init__(self, connection: PatientConnection) -> None:
        self.connection = connection
        self.warned = False
        connection.add_notice_handler(self._hear)

    def execute(self, statement: str, values: Values = ()) -> Result:
        """Run one statement."""
        return self.connection.execute(adapted(statement), values)

    def executemany(self, statement: str, rows: Iterable[Values]) -> None:
        """Run one statement for each row of values."""
        with self.connection.cursor() as cursor:
            cursor.executemany(adapted(statement), rows)

    def _hear(self, notice: psycopg.errors.Diagnostic) -> None:
        self.warned = self.warned or notice.sqlstate == ONLY_HERE


class Reader:
    """Statements that read, each for itself: one that meets the loss of its connection is asked again over another."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def execute(self, statement: str, values: Values = ()) -> Result:
        """Run one statement; its rows are here when this returns.

        Raises:
            UnreachableError: No server answered in time.
        """
        until, pauses = time.monotonic() + self._sessions.timeout, Pauses()
        while True:
            try:
                with translated(self._sessions.name), self._sessions.lent(until) as line:
                    return line.execute(statement, values)
            except UnreachableError:
                if not self._sessions.met or time.monotonic() > until:
                    raise
            pauses.pause()

    def executemany(self, statement: str, rows: Iterable[Values]) -> None:
        """Run one statement for each row of values, once."""
        with translated(self._sessions.name), self._sessions.lent() as line:
            line.executemany(statement, rows)


class Sessions:
    """All connections of this process to the tables of one ledger.

    Args:
        server: Where they are, and how long to wait there.
        read_only: Ask for nothing but reading; a standby will do.

    Raises:
        UsageError: The url cannot be read, holds a password, or the schema has no plain name.
    """

    def __init__(self, server: Server, *, read_only: bool = False) -> None:
        url, schema, timeout = server
        parts = _parts_of(url)
        if not _NAME.fullmatch(schema):
            raise UsageError(f"expected a schema of small letters, digits and _, found {schema!r}")
        if not read_only:
            parts.setdefault("target_session_attrs", "read-write")
        self.schema = schema
        self.read_only = read_only
        self.timeout = timeout
        self.met = False
        """Whether a server was ever reached: where none was, nothing is tried again, since the url may be wrong."""
        self.name = f"schema {schema} of {_shown(parts)}"
        self._hosts = 1 + max(parts.get(name, "").count(",") for name in ("host", "hostaddr"))
        self._conninfo = make_conninfo("", **{**_DEFAULTS, **parts})
        self._closed = False
        self._renew()
        forget_in_child(self)

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Line] = []
        self._writers: set[int] = set()  # threads with an open write transaction

    def forget(self) -> None:
        """Start afresh in the child of a fork: the parent's connections are neither used nor closed there."""
        for line in self._idle:
            self.leave_to_parent(line)
        self._renew()

    def leave_to_parent(self, line: Line) -> None:
        """Keep a connection that a fork has copied from ever being closed here."""
        _inherited.append(line)

    # ---- lending

    @contextmanager
    def lent(self, until: float | None = None) -> Generator[Line]:
        """Lend a connection outside of any transaction; one that broke is not lent again.

        Args:
            until: The moment (`time.monotonic`) after which nothing is waited for. Without it, each wait has its own.
        """
        line = self.take_out(until)
        line.connection.until = math.inf if until is None else until
        try:
            yield line
        finally:
            self.take_back(line)

    def take_out(self, until: float | None = None) -> Line:
        """Return a connection outside of any transaction, for as long as the caller likes.

        Args:
            until: The moment up to which a server is looked for that takes writes; None: for the time-out.
        """
        end, pauses = time.monotonic() + self.timeout if until is None else until, Pauses()
        while (line := self._idle_line()) is None:
            try:
                return Line(self.connect(end))
            except UnreachableError:
                if not self.met or time.monotonic() > end:
                    raise
            pauses.pause()
        return line

    def _idle_line(self) -> Line | None:
        """Return an idle connection; one that the server has sent something to was ended by it, and is dropped."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                line = self._idle.pop()
            news = select.poll()
            news.register(line.connection.fileno(), select.POLLIN)
            if not news.poll(0):
                return line
            line.connection.close()

    def take_back(self, line: Line) -> None:
        """Keep a connection for the next one who asks; close it if it is not outside of any transaction."""
        idle = line.connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._lock:
            if idle and not self._closed:
                self._idle.append(line)
                return
            others = [] if idle else self._idle  # where one is broken the server may be another one by now
            if not idle:
                self._idle = []
        for one in (line, *others):
            one.connection.close()

    def reading(self) -> AbstractContextManager[Session]:
        """Lend a session; each statement sees one state of the database."""
        return nullcontext(Reader(self))

    @contextmanager
    def snapshot(self) -> Generator[Line]:
        """Lend a session in which all statements see one state of the database."""
        with translated(self.name), self.lent() as line:
            line.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                yield line
            finally:
                self._end(line)

    @contextmanager
    def writing(self) -> Generator[Session]:
        """Open a write transaction for read models, heads and positions; one at a time.

        Raises:
            UsageError: This thread has one open already.
            UnreachableError: Whether it was committed is not known.
        """
        self.must_not_be_writing()
        me = threading.get_ident()
        with translated(self.name), self.lent() as line:
            line.warned = False
            line.execute("BEGIN")
            self._writers.add(me)
            try:
                line.execute(_VIEWS_LOCK)
                yield line
                line.execute("COMMIT")
            finally:
                self._writers.discard(me)
                self._end(line)
        if line.warned:
            raise not_replicated(self.name)

    def must_not_be_writing(self) -> None:
        """See that this thread has no write transaction open: it would wait for itself.

        Raises:
            UsageError: It has.
        """
        if threading.get_ident() in self._writers:
            raise UsageError("expected no open write transaction in this thread, found one: end it before appending")

    def _end(self, line: Line) -> None:
        """End a transaction that is still open; a broken connection has none."""
        if line.connection.info.transaction_status in (
            psycopg.pq.TransactionStatus.INTRANS,
            psycopg.pq.TransactionStatus.INERROR,
        ):
            line.execute("ROLLBACK")

    def raw(self) -> AbstractContextManager[RawTables]:
        """Open the raw rows of the ledger's tables as of one moment, for an audit."""
        return raw_tables(self.snapshot(), self.name, self.schema)

    # ---- what is said in another way than to SQLite

    def has_table(self, session: Session, table: str) -> bool:
        """Tell whether there is a table of this name."""
        found: tuple[bool] = session.execute("SELECT to_regclass(?) IS NOT NULL", (table,)).fetchone()
        return found[0]

    def empty_table(self, session: Session, table: str) -> None:
        """See that there is an empty table for a read model; to make one takes more rights than to write in it."""
        if self.has_table(session, table):
            session.execute(f"DELETE FROM {table}")  # noqa: S608 - a name of our own
        else:
            session.execute(f"CREATE TABLE {table} {VIEW_COLUMNS}")

    def tag_cell(self, tag: str) -> str:
        """Return how a lookup tag stands in its cell."""
        return tag_cell(tag)

    def must_be_files(self, what: str) -> None:
        """Refuse.

        Raises:
            UsageError: Always.
        """
        raise UsageError(
            f"{what}: expected the events in files of this ledger's own, found them in {self.name}, whose log, "
            "standbys and backups keep older octets out of this program's reach"
        )

    def compact(self, *, rewrite: bool, patience: float) -> None:
        """Refuse, as `must_be_files`; `rewrite` and `patience` are for files."""
        _ = rewrite, patience
        self.must_be_files("compacting")

    # ---- connections

    def connect(self, until: float | None = None) -> PatientConnection:
        """Open a connection, set up and outside of any transaction.

        Args:
            until: The moment up to which it may take; a host is given two seconds all the same.

        Raises:
            UnreachableError: There is no server, or none that takes writes.
            StoreError: The server does not let this user in, or has no such database.
        """
        if self._closed:
            raise StoreError(f"expected {self.name} to be open, found it closed")
        try:
            connection = PatientConnection.connect(self._in_time(until), autocommit=True)
        except psycopg.OperationalError as error:
            if error.sqlstate:
                raise as_ledger_error(error, self.name) from error
            refused = _refusal(str(error))
            if refused:
                raise StoreError(f"{self.name} did not let this user in: {refused}", hint=_LET_IN) from error
            raise UnreachableError(
                f"expected a server for {self.name}, found none: {' '.join(str(error).split())}",
                hint="see that it runs and that this machine reaches it; nothing was sent",
            ) from error
        connection.patience = self.timeout
        try:
            self._set_up(connection)
        except BaseException:
            connection.close()
            raise
        self.met = True
        return connection

    def _in_time(self, until: float | None) -> str:
        """Return how to connect to one host after the other by a moment."""
        configured = int(conninfo_to_dict(self._conninfo)["connect_timeout"] or 0)
        left = None if until is None else int((until - time.monotonic()) / self._hosts)
        if left is None or 0 < configured <= left:
            return self._conninfo
        return make_conninfo(self._conninfo, connect_timeout=max(2, left))

    def _set_up(self, connection: PatientConnection) -> None:
        wait = str(int(self.timeout * _FOR_LOCKS * 1000))
        with translated(self.name):
            found = connection.execute(_SET_UP, (f"{self.schema}, pg_temp", wait)).fetchone()
        *_, fsync, encoding = found or ("", "")
        if encoding != "UTF8":
            raise StoreError(f"expected a database in UTF8 for {self.name}, found {encoding}")
        if fsync != "on" and not self.read_only:
            _log.warning(
                "%s runs with fsync=%s: what it acknowledges may be lost when its machine stops", self.name, fsync
            )

    def hang_up(self) -> bool:
        """Close every connection that nobody has, so that a server is looked for anew; say if there are several."""
        with self._lock:
            lines, self._idle = self._idle, []
        for line in lines:
            line.connection.close()
        return self._hosts > 1

    def close(self) -> None:
        """Close every connection that nobody has, for good."""
        self._closed = True
        self.hang_up()


_LET_IN = "see pg_hba.conf, .pgpass and the role's password"
_REFUSALS = ("password authentication failed", "no pg_hba.conf entry", "no password supplied", "does not exist")


def _refusal(said: str) -> str:
    """Return the line by which a server refused to let somebody in; "" where it did not."""
    return next((line.strip() for line in said.splitlines() if any(word in line for word in _REFUSALS)), "")


def _parts_of(url: str) -> dict[str, str]:
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.ProgrammingError:
        raise UsageError(
            "expected a url of the form postgresql://HOST/DATABASE, found another text: see docs/postgresql.md"
        ) from None
    if "password" in parts:
        raise UsageError(
            "expected a url without a password, found one: others could read it in a file or a process list",
            hint="put it into ~/.pgpass, a service file, or PGPASSWORD",
        )
    return parts


def _shown(parts: dict[str, str]) -> str:
    """Return who and where in a few words."""
    place = parts.get("service") or parts.get("host") or "the local server"
    return f"{place}/{parts['dbname']}" if "dbname" in parts else place
