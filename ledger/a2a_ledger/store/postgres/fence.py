"""The fence around followers on a server: a session lock, held over a connection of its own.

What a follower emits goes over that very connection. So a transaction that commits was the lock holder's:
the server gives the lock to another session only after this one has ended, and with it whatever it had
under way. There is nothing to check in between, and no clock to trust.

A process that dies or is cut off gives way within seconds: the server looks whether its machine is still
there, and ends a session that says nothing for `LEASE`. While the process lives a thread of its own says
something, however long a follower works on a page. Who comes back from a pause finds its connection ended
and emits nothing.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import psycopg

from a2a_ledger.errors import UnreachableError
from a2a_ledger.store.forks import forget_in_child
from a2a_ledger.store.group import Call
from a2a_ledger.store.postgres.writer import LOSSES, Writer

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from eventsourcing.persistence import Tracking

    from a2a_ledger.store.placing import Appended, Item, StreamKeys
    from a2a_ledger.store.postgres.sessions import Line, Sessions

LEASE = 10.0
"""Seconds without a word after which the server takes the lock from whoever holds it (PostgreSQL 14 and later)."""

_OFTEN = 0.25  # of the lease
_TRY = "SELECT pg_try_advisory_lock(1093815370, 'ledger_events'::regclass::oid::integer)"
_WATCH = (
    "SELECT set_config(name, CASE WHEN name IN ('idle_session_timeout', 'idle_in_transaction_session_timeout')"
    " THEN ? WHEN name = 'client_connection_check_interval' THEN '500' WHEN name = 'tcp_keepalives_count' THEN '3'"
    " ELSE '2' END, false) FROM pg_settings"
    " WHERE name IN ('idle_session_timeout', 'idle_in_transaction_session_timeout',"
    " 'tcp_keepalives_idle', 'tcp_keepalives_interval', 'tcp_keepalives_count')"
    " OR name = 'client_connection_check_interval' AND version() LIKE '%linux%'"
)
"""A dead machine is noticed after 2 + 3 times 2 seconds; over a Unix socket the server knows of none.

A holder whose process ended while the server waited for a lock on its behalf is noticed after half a second (500 ms),
where the server's system can tell it: Linux can.
"""


class ServerFence:
    """The right to run the followers of one log on a server; safe to use from several threads.

    Args:
        sessions: Connections to the server.
        origin: Name of the log.
        keys: Gives stream keys.
        lease: Seconds without a word after which the server takes the lock back.
    """

    def __init__(self, sessions: Sessions, origin: str, keys: StreamKeys, *, lease: float = LEASE) -> None:
        self._sessions = sessions
        self._lease = lease
        self._writer = Writer(sessions.name, origin, keys, self._lent)
        self._renew()
        forget_in_child(self)

    def _renew(self) -> None:
        self._lock = threading.RLock()
        self._line: Line | None = None
        self._over = threading.Event()  # set where the log is closed
        self.inside = False
        """Whether this process went inside and has not let go: what it emits has to go over the fence's connection."""

    def forget(self) -> None:
        """Start outside in the child of a fork; the connection stays its parent's."""
        if self._line is not None:
            self._sessions.leave_to_parent(self._line)
        self._renew()

    def take(self) -> bool:
        """Go inside where nobody else is; return whether this process is inside now.

        Raises:
            UnreachableError: There is no server, or none that takes writes.
            StoreError: The server does not let this user in.
        """
        with self._lock:
            if self._line is not None and self.holds():
                return True
            self._drop()
            line = self._sessions.take_out(0)  # once: the caller asks again
            try:
                if not line.execute(_TRY).fetchone()[0]:
                    self._sessions.take_back(line)
                    return False
                line.execute(_WATCH, (str(int(self._lease * 1000)),)).fetchall()
            except psycopg.Error:  # the server went away meanwhile: nobody is inside
                line.connection.close()
                return False
            except BaseException:
                line.connection.close()
                raise
            self._line = line
            self.inside = True
            threading.Thread(target=self._beat, args=(line,), name="a2a-ledger-fence", daemon=True).start()
            return True

    def _beat(self, line: Line) -> None:
        """Say something to the server in time, again and again, until this connection is let go or lost."""
        while not self._over.wait(self._lease * _OFTEN):
            if self._line is not line or not self.holds():
                return

    def holds(self) -> bool:
        """Return whether this process is still inside; it asks the server, which also prolongs the lease."""
        with self._lock:
            if self._line is None:
                return False
            try:
                self._line.connection.until = time.monotonic() + self._lease
                self._line.execute("SELECT 1").fetchone()
            except psycopg.Error:
                self._drop()
                return False
            return True

    def let_go(self) -> None:
        """Go out, so that another process can go inside at once."""
        with self._lock:
            if self._line is not None:
                with suppress(psycopg.Error):  # else the server does it when it meets the end of the connection
                    self._line.connection.until = time.monotonic() + 1
                    self._line.execute("SELECT pg_advisory_unlock_all()")
            self._drop()
            self.inside = False

    def close(self) -> None:
        """Go out for good."""
        self._over.set()
        self.let_go()

    def append(self, items: Sequence[Item], tracking: Tracking) -> list[Appended]:
        """Append what a follower emits, and move its position, over the connection that holds the lock.

        Raises:
            ConflictError: The position was taken already; nothing was written.
            UnreachableError: The lock is lost, or whether this was written is not known: go inside again, and read on
                from the position that is stored.
        """
        call = Call(items, tracking)
        with self._lock:
            losses = 0
            until = call.since + self._sessions.timeout
            while not self._writer.write([call], lock_first=losses >= LOSSES, until=until):
                losses += 1
        return call.result

    @contextmanager
    def _lent(self, until: float) -> Generator[Line]:
        if self._line is None:
            raise UnreachableError(
                f"expected to hold the lock of the followers in {self._sessions.name}, found it lost with the "
                "connection: another process may follow now; nothing was written",
                hint="nothing is lost: whoever has the lock reads on from the stored position",
            )
        self._line.connection.until = until
        try:
            yield self._line
        finally:
            if self._line.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                self._drop()

    def _drop(self) -> None:
        if self._line is not None:
            self._line.connection.close()
            self._line = None
