"""Rows wrapped again: under newer keys, sealed where they lay in clear, with holes for what is erased.

Storage only: no leaf, tag or tile is touched. Each page of rows is one transaction, so that a crash leaves
every row whole, old or new, and the same call goes on where it stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.codec import (
    NEVER_CUT,
    NONCES,
    SEALED_ROW,
    Hole,
    Place,
    Record,
    SealedBlob,
    pack_sealed,
    pack_sealed_parts,
    part_hash,
    read_record,
    sealed_by,
    unpack_container,
    unpack_parts,
)
from a2a_ledger.errors import FormatError, StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from a2a_ledger.codec import Boxes, Part
    from a2a_ledger.store.database import Session
    from a2a_ledger.store.keystore import KeyStore
    from a2a_ledger.store.store import Store

_PAGE = 200  # rows of one transaction: other writers wait for it
_IN_CLEAR = "originator_id <> 'ledger' AND length(t) > 0 AND substr(state, 1, 2) <> :sealed"
"""Rows of `ledger` lie in clear for ever; those that the library's own interface wrote have no tag, and no keys."""

_Row = tuple[int, str, int, object]


class Sealed(NamedTuple):
    """What became of a page of rows: how many are sealed, which cannot be read, the last one; None: the log ends."""

    rows: int
    unread: list[int]
    last: int | None


class _Place(NamedTuple):
    """Where a record stands and under which keys it comes to lie there."""

    keys: KeyStore
    boxes: Boxes
    at: Place


def lies_in_clear(store: Store, stream: str) -> bool:
    """Tell whether a row of a stream lies in clear, as older releases wrote it."""
    with store.views() as connection:
        found = connection.execute(
            f"SELECT 1 FROM ledger_events WHERE originator_id = :stream AND {_IN_CLEAR} LIMIT 1",  # noqa: S608 - a constant
            {"sealed": SEALED_ROW, "stream": stream},
        ).fetchone()
    return found is not None


def clear_rows(store: Store) -> int:
    """Return how many rows lie in clear."""
    with store.views() as connection:
        found: tuple[int] = connection.execute(
            f"SELECT count(*) FROM ledger_events WHERE {_IN_CLEAR}",  # noqa: S608 - a constant
            {"sealed": SEALED_ROW},
        ).fetchone()
    return found[0]


def seal_page(store: Store, after: int) -> Sealed:
    """Seal the next rows that lie in clear, behind log index `after`, each under the keys of its stream."""
    with store.transaction() as connection:
        rows: list[_Row] = connection.execute(
            "SELECT rowid, originator_id, originator_version, state FROM ledger_events"  # noqa: S608 - a constant
            f" WHERE rowid > :after AND {_IN_CLEAR} ORDER BY rowid LIMIT :page",
            {"sealed": SEALED_ROW, "after": after + 1, "page": _PAGE},
        ).fetchall()
        store.keys.boxes.prepare(row[1] for row in rows)
        unread: list[int] = []
        for row in rows:
            try:
                _wrap(connection, store, row)
            except StoreError:  # it stays as it is, and an audit names it
                unread.append(row[0] - 1)
    return Sealed(len(rows) - len(unread), unread, rows[-1][0] - 1 if len(rows) == _PAGE else None)


def renew_stream(store: Store, stream: str, erased: Collection[int] = ()) -> None:
    """Wrap those rows of a stream again that are not under its newest keys, with holes in those of `erased`.

    Args:
        store: The ledger's.
        stream: A task's; or one that has the task's keys, such as that of its findings.
        erased: Versions of the records whose content becomes holes.

    Raises:
        StoreError: A row cannot be read; those before it are wrapped.
    """
    newest = store.keys.boxes.newest(stream).id
    after = -1
    while True:
        with store.transaction() as connection:
            rows: list[_Row] = connection.execute(
                "SELECT rowid, originator_id, originator_version, state FROM ledger_events"
                " WHERE originator_id = :stream AND originator_version > :after"
                " ORDER BY originator_version LIMIT :page",
                {"stream": stream, "after": after, "page": _PAGE},
            ).fetchall()
            for row in rows:
                _wrap(connection, store, row, unless=newest, erase=row[2] in erased)
        if len(rows) < _PAGE:
            return
        after = rows[-1][2]


def has_content(record: Record) -> bool:
    """Tell whether a record has a part that an erasure would take."""
    return any(
        not isinstance(part, Hole)
        for role in record.blobs
        if role not in NEVER_CUT
        for part in record.stored_parts(role) or ()
    )


def _wrap(connection: Session, store: Store, row: _Row, *, unless: bytes = b"", erase: bool = False) -> None:
    """Wrap a row again, but where it is sealed under the keys of the id `unless` already."""
    rowid, stream, ver, state = row
    to = _Place(store.keys, store.keys.boxes.newest(stream), Place(store.origin, stream, ver))
    try:
        if sealed_by(state) == unless:
            return
        salt, raw, inline = unpack_container(state, to.at, to.keys.boxes.named)
        record = read_record(salt, raw, n=rowid - 1, trusted=True)
        cut = {bytes.fromhex(ref.id) for role, ref in record.blobs.items() if erase and role not in NEVER_CUT}
        blobs: list[SealedBlob] = []
        for ref in record.blobs.values():
            identity = bytes.fromhex(ref.id)
            if identity in inline:
                parts = _cut(inline[identity]) if identity in cut else inline[identity]
                blobs.append(SealedBlob(identity, ref.kept, ref.size, parts))
            else:
                _wrap_large(connection, to, identity, erase=identity in cut)
    except FormatError as error:
        raise StoreError(f"event {rowid - 1} cannot be read: {error}", hint="run `a2a-ledger audit`") from error
    wrapped = pack_sealed(to.boxes, to.at, to.keys.entropy(NONCES), salt, raw, blobs)
    connection.execute("UPDATE ledger_events SET state = ? WHERE rowid = ?", (wrapped, rowid))


def _wrap_large(connection: Session, to: _Place, identity: bytes, *, erase: bool) -> None:
    found: tuple[bytes] | None = connection.execute(
        "SELECT parts FROM ledger_blobs WHERE id = ?", (identity,)
    ).fetchone()
    if found is None:  # as an audit says, and no reason to keep the rest
        return
    parts = unpack_parts(found[0], identity, to.at, to.keys.boxes.named)
    nonce = to.keys.entropy(NONCES // 2)
    wrapped = pack_sealed_parts(to.boxes, to.at, nonce, identity, _cut(parts) if erase else parts)
    connection.execute("UPDATE ledger_blobs SET parts = ? WHERE id = ?", (wrapped, identity))


def _cut(parts: Iterable[Part]) -> tuple[Part, ...]:
    return tuple(
        part if isinstance(part, Hole) else Hole(len(part.content), part_hash(part.salt, part.content))
        for part in parts
    )
