"""Cells of the log's own table, held against what this package writes there before anybody computes with them.

SQLite takes any type in any cell. A text where 32 octets belong is a row that was changed from outside, and is
said as such.
"""

from __future__ import annotations

from a2a_ledger.codec import SECRET
from a2a_ledger.errors import StoreError


def octets_of(n: int, column: str, cell: object) -> bytes:
    """Return the 32 octets in the column `c` or `t` of event n; a row that the library's own face wrote has no `t`.

    Raises:
        StoreError: something else stands there.
    """
    if isinstance(cell, bytes) and (len(cell) == SECRET or (column == "t" and not cell)):
        return cell
    raise StoreError(
        f"expected {SECRET} octets in column {column} of event {n}, found {type(cell).__name__} {cell!a:.40}: the row "
        "was changed from outside",
        hint="run `a2a-ledger audit`",
    )
