"""Migration: rows that releases before container version 2 wrote in clear are sealed where they lie.

Storage alone changes (docs/format.md section 13.5): records, leaves, tags and heads stay octet for octet. Page
by page, each in one transaction; a migration that was cut short goes on where it stopped when it is run again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.store.rewrap import clear_rows, seal_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.ledger import ContractLedger

MIGRATING = "migrating"
"""The fact in the key store that stands while octets of before may lie in clear in free pages of the database."""

COMPACT_PATIENCE = 30.0
"""Seconds that other processes have to leave a database alone for a moment."""


class Migration(NamedTuple):
    """What a migration did.

    Attributes:
        sealed: rows that lay in clear and are sealed now.
        unread: log indexes of rows that cannot be read and lie as they did.
    """

    sealed: int
    unread: tuple[int, ...]


def seal_older_rows(ledger: ContractLedger, progress: Callable[[int, int], None] | None = None) -> Migration:
    """Seal every row that lies in clear, and write the database anew, so that no octets of before stay in it.

    Args:
        ledger: open to write.
        progress: told how many rows are done, and of how many, now and then.

    Raises:
        BusyError: another process keeps the database in use: the rows are sealed, and the same call does the rest.
        ReadOnlyError: the ledger may not be written.
        StoreError: the database cannot be written, or has no room to be written anew.
    """
    store, keys = ledger.store, ledger.store.keys
    due = clear_rows(store)
    if not due and keys.fact(MIGRATING) is None:
        return Migration(0, ())
    keys.note(MIGRATING, "begun")
    sealed, unread = 0, list[int]()
    after: int | None = -1
    while after is not None:
        page = seal_page(store, after)
        sealed, after = sealed + page.rows, page.last
        unread += page.unread
        if progress is not None:
            progress(sealed, due)
    store.compact(rewrite=True, patience=COMPACT_PATIENCE)
    keys.drop_fact(MIGRATING)
    return Migration(sealed, tuple(unread))
