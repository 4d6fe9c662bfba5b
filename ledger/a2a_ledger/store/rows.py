"""Rows of the log's own table, opened: as records, or only to see that they open.

Both raise StoreError: DamagedError for a row that was changed, MissingKeysError where its keys are not here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from a2a_ledger.codec import Parts, Place, commitment, read_record, stands_at, unpack_container
from a2a_ledger.errors import DamagedError, FormatError, MissingKeysError
from a2a_ledger.store.cells import octets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_ledger.codec import FindBoxes, Part, Record

Row = tuple[int, object, object, object, object, object, object]
"""Log index, stream, version, topic, c, t and state as SQLite has them: any type in any cell."""


class RowReader:
    """Opens the rows of one log.

    Args:
        origin: name of the log.
        find: gives the keys of boxes.
        large_blob: gives the parts of a blob that lies in a table of its own.
    """

    def __init__(
        self, origin: str, find: FindBoxes, large_blob: Callable[[Place | None, bytes], tuple[Part, ...] | None]
    ) -> None:
        self._origin = origin
        self._find = find
        self._large_blob = large_blob

    def record(self, row: Row) -> Record:
        """Return the record of a row."""
        n, stream, ver, topic, *secrets, _ = row
        c, t = (octets_of(n, column, cell) for column, cell in zip("ct", secrets, strict=True))
        place, salt, raw, inline = self._opened(row)
        parts = Parts(inline, partial(self._large_blob, place))
        try:
            record = read_record(salt, raw, n=n, t=t.hex(), parts=parts, trusted=True)
        except FormatError as error:
            raise DamagedError(f"event {n} cannot be read: {error}") from error
        if (record.c, record.stream, record.ver, record.type) != (c.hex(), stream, ver, topic):
            raise _another(n)
        return record

    def check(self, row: Row) -> None:
        """See that a row opens and is the record that it names; R is not parsed: every row that is written passes."""
        n, stream, ver, topic, c, _, _ = row
        _, salt, raw, inline = self._opened(row)
        Parts(inline).check()
        if (
            not (isinstance(stream, str) and isinstance(ver, int) and isinstance(topic, str))
            or not stands_at(raw, stream, topic, ver)
            or commitment(salt, raw) != octets_of(n, "c", c)
        ):
            raise _another(n)

    def _opened(self, row: Row) -> tuple[Place | None, bytes, bytes, Mapping[bytes, tuple[Part, ...]]]:
        """Return where a row says that it stands, its salt, R, and the parts that lie in it."""
        n, stream, ver, *_, state = row
        place = Place(self._origin, stream, ver) if isinstance(stream, str) and isinstance(ver, int) else None
        try:
            return place, *unpack_container(state, place, self._find)
        except FormatError as error:
            raise DamagedError(f"event {n} cannot be read: {error}") from error
        except MissingKeysError as error:
            raise MissingKeysError(f"event {n} cannot be opened: {error}", hint=error.hint) from error


def _another(n: int) -> DamagedError:
    return DamagedError(f"expected event {n} to be the record that its row names, found another: the row was changed")
