"""The newest signed head, as far as its signature verifies: what a row says by itself is not shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.checkpoint import open_checkpoint
from a2a_ledger.errors import LedgerError, PolicyError
from a2a_ledger.store.log_keys import log_keys

if TYPE_CHECKING:
    from a2a_ledger.checkpoint import Checkpoint
    from a2a_ledger.store import Store


def newest_head(store: Store) -> Checkpoint | None:
    """Return the newest kept head, None if no head was signed yet.

    Raises:
        PolicyError: it is not signed by a key that the log names, or not over these events.
    """
    newest = store.latest_checkpoint()
    if newest is None:
        return None
    size, note = newest
    hint = "run `a2a-ledger audit`"
    try:
        head = open_checkpoint(note, log_keys(store).speaking("log", size)).checkpoint
        root = store.root(head.size)
    except (LedgerError, TypeError, AttributeError) as problem:
        raise PolicyError(f"the head kept for size {size!a} proves nothing: {problem}", hint=hint) from problem
    if (head.origin, head.size, head.root) != (store.origin, size, root):
        raise PolicyError(f"the head kept for size {size} is over other events than these", hint=hint)
    return head
