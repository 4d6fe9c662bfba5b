"""What the store asks of a database: statements in the part of SQL that SQLite and PostgreSQL share.

Everything that reads events, tiles, tags, heads and positions is written once, against these
protocols. An `sqlite3.Connection` is a `Session` as it is; `postgres/sessions.py` makes one of a
connection to a server. Placeholders are `?`, or `:name` with a mapping. What the two databases do
differently (locks, how a group of appends is written, the form of the tables) is each back end's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from eventsourcing.persistence import StoredEvent, Tracking

    from a2a_ledger.store.fence import Fence
    from a2a_ledger.store.group import GroupCommit
    from a2a_ledger.store.placing import Appended, Item
    from a2a_ledger.store.raw import RawTables

    Values: TypeAlias = Sequence[Any] | Mapping[str, Any]

ALL_ROWS = 1 << 62
"""A limit that no table reaches; SQLite's -1 is an error to PostgreSQL."""


class Server(NamedTuple):
    """A PostgreSQL server and where on it a ledger lies.

    Attributes:
        url: `postgresql://…` or another form that libpq takes; it holds no password.
        schema: of the ledger's tables; one schema holds one ledger.
        timeout: seconds that a caller waits at most: for a lock, for a standby, for a server that takes writes.
    """

    url: str
    schema: str = "a2a_ledger"
    timeout: float = 30.0


class Result(Protocol):
    """The rows that a statement gave."""

    def fetchone(self) -> Any:  # noqa: ANN401 - cells have the types that the statement asks for
        """Return the next row, None behind the last."""
        ...

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        ...

    def close(self) -> None:
        """Let go of the rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Session(Protocol):
    """A connection that somebody has for a while."""

    def execute(self, statement: str, values: Values = ..., /) -> Result:
        """Run one statement."""
        ...

    def executemany(self, statement: str, rows: Iterable[Values], /) -> object:
        """Run one statement for each row of values."""
        ...


class Database(Protocol):
    """All connections of this process to one database."""

    @property
    def name(self) -> str:
        """Return what messages call it; no secret is in it."""
        ...

    @property
    def read_only(self) -> bool:
        """Return whether nothing may be written."""
        ...

    def must_be_files(self, what: str) -> None:
        """See that the events lie in files of this ledger's own, where older octets can be removed.

        Args:
            what: that needs it.

        Raises:
            UsageError: They lie on a server.
        """
        ...

    def reading(self) -> AbstractContextManager[Session]:
        """Lend a session; each statement sees one state of the database."""
        ...

    def snapshot(self) -> AbstractContextManager[Session]:
        """Lend a session in which all statements see one state of the database."""
        ...

    def writing(self) -> AbstractContextManager[Session]:
        """Open a write transaction; commit at the end, roll back on any error."""
        ...

    def raw(self) -> AbstractContextManager[RawTables]:
        """Open the raw rows of the ledger's tables as of one moment, for an audit."""
        ...

    def has_table(self, session: Session, table: str) -> bool:
        """Tell whether there is a table of this name."""
        ...

    def empty_table(self, session: Session, table: str) -> None:
        """See that there is a table for the rows of a read model under this name, and that it is empty."""
        ...

    def tag_cell(self, tag: str) -> str:
        """Return how a lookup tag stands in its cell: two different tags never in one way."""
        ...

    def compact(self, *, rewrite: bool, patience: float) -> None:
        """Leave no older octets where this process can reach them."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...


class Recorder(Protocol):
    """What a back end appends with, behind the face that it shows to the library."""

    origin: str
    group: GroupCommit

    @property
    def fence(self) -> Fence | None:
        """Return the database's own fence around followers; None: it has none, files have to do."""
        ...

    def append(self, items: Sequence[Item], tracking: Tracking | None = None) -> list[Appended]:
        """Append all of it in one transaction."""
        ...

    async def append_async(self, items: Sequence[Item], tracking: Tracking | None = None) -> list[Appended]:
        """Append without blocking the event loop."""
        ...

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:  # noqa: ANN401 - the library's signature
        """Insert events of given versions, by the library's own interface."""
        ...

    def max_notification_id(self) -> int | None:
        """Return the newest row id, None for an empty log."""
        ...

    def settled(self) -> AbstractContextManager[tuple[int, Session]]:
        """Lend how many events the loss of one machine does not take away, and a session in which they are read."""
        ...

    def close(self) -> None:
        """Serve the callers that wait, then stop."""
        ...
