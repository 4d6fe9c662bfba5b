"""Publishing: the log's leaves, tiles and head as plain files that any static server can serve (C2SP tlog-tiles).

docs/format.md section 6.6. What is published is what leaves hold: commitments, no content. Who has fetched it can
prove every leaf and all growth without asking us, and keeps a head that we cannot take back. The checkpoint is put in
place last and as a whole, so a reader never sees a head whose tiles are not there.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_ledger.anchors import anchored_size, cosigned_note
from a2a_ledger.anchors.heads import head_to_anchor
from a2a_ledger.anchors.held import is_settled
from a2a_ledger.anchors.kept import check_file
from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.durable import of_this_process, replace_file
from a2a_ledger.errors import BusyError, StoreError
from a2a_ledger.store.tiles import WIDTH

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from a2a_ledger.checkpoint import Checkpoint
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store import Store

_HEIGHT: Final = 8
_HASH: Final = 32  # octets
_LENGTH: Final = 2  # octets in front of each entry
CHECKPOINT: Final = "checkpoint"


class Published(NamedTuple):
    """What was published: the head, how many tiles were written that were not there, and how many that were wrong."""

    head: Checkpoint
    written: int
    mended: int


class _Tile(NamedTuple):
    """One tile: its level (None: a bundle of entries), its index at that level, and how many of 256 hashes it has."""

    level: int | None
    place: int
    width: int

    @property
    def whole(self) -> str:
        """Return the path that the tile has when it is full."""
        return f"tile/{'entries' if self.level is None else self.level}/{tile_name(self.place)}"

    @property
    def path(self) -> str:
        """Return its path as it is."""
        return self.whole if self.width == WIDTH else f"{self.whole}.p/{self.width}"

    def is_filled_by(self, size: int) -> bool:
        """Say whether a log of this size fills it: then it was written under an earlier head."""
        return self.width == WIDTH and (self.place + 1) * WIDTH ** ((self.level or 0) + 1) <= size


def publish(ledger: ContractLedger, folder: Path, *, whole: bool = False) -> Published:
    """Write what is new into a folder: tiles that are not there yet, then the checkpoint.

    Full tiles that are there are not written again, unless they are damaged. The published head, which is put in place
    last, says up to which tile the folder was whole: behind it each octet is looked at, before it the length of the
    newest full tile of each level. Only where one of these is wrong, the length of every tile is.

    Args:
        ledger: with its log key the head is signed first; without, the newest head is published.
        folder: made if it is absent.
        whole: look at each octet of every tile, which takes the longer the more events there are.

    Raises:
        BusyError: another process publishes into the folder; nothing was written.
        UsageError: the folder's checkpoint is none of this log.
        RollbackError: it has more events than are here.
        ConsistencyError: it is no beginning of this log; both heads are kept as a fork proof.
        StoreError: no head is signed, or a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            return _publish(ledger, folder, whole=whole)
    except OSError as problem:
        raise StoreError(f"{problem.filename or folder}: cannot be published ({problem.strerror})") from problem


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Keep others from publishing into a folder: what one of them read before would be put over what is newer."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BusyError(
            f"expected nobody else to publish into {folder}, found a process at it; nothing was written: "
            "publish again when it is done"
        ) from None
    else:
        yield
    finally:
        os.close(descriptor)  # gives the lock back


def _publish(ledger: ContractLedger, folder: Path, *, whole: bool) -> Published:
    check_file(ledger, folder / CHECKPOINT)
    there = _published_size(folder)
    note = _note(ledger, there)
    head = checkpoint_of(note)
    if head.size < there:
        raise StoreError(f"{folder}: a head of {there} is published, the newest that lies here is of {head.size}")
    leaf = sum(map(len, ledger.store.leaves(0, 1))) - 1  # that of number 0: leaves differ in the digits alone
    written = mended = 0
    begun = 0 if whole or not _stands(folder, there, leaf) else there
    for tile in _tiles(head.size, begun):
        place = folder / tile.path
        length = _length_of(place)
        if length is None:
            _put(place, _content(ledger.store, tile, head.size))
            written += 1
        elif length != _expected_length(tile, leaf):
            _put(place, _content(ledger.store, tile, head.size))
            mended += 1
        elif whole or not tile.is_filled_by(there):
            content = _content(ledger.store, tile, head.size)
            if place.read_bytes() != content:
                _put(place, content)
                mended += 1
    _put(folder / CHECKPOINT, note.encode())
    for tile in _tiles(head.size, begun):
        if tile.width == WIDTH:
            shutil.rmtree(folder / f"{tile.whole}.p", ignore_errors=True)  # readers look for the full one now
    return Published(head, written, mended)


def _stands(folder: Path, size: int, leaf: int) -> bool:
    """Say whether the newest full tiles under the published head are there, as long as they must be.

    A folder that lost tiles as a whole (a copy that was cut, a checkpoint put there alone) mostly lacks one of them.
    """
    full = (tile for tile in _tiles(size, size) if tile.width == WIDTH)
    return all(_length_of(folder / tile.path) == _expected_length(tile, leaf) for tile in full)


def _length_of(place: Path) -> int | None:
    try:
        return place.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return None


def _expected_length(tile: _Tile, leaf: int) -> int:
    """Return how many octets a tile has; `leaf`: how many a leaf of this log has beside the digits of its number."""
    if tile.level is not None:
        return _HASH * tile.width
    start = tile.place * WIDTH
    return (_LENGTH + leaf) * tile.width + sum(len(str(n)) for n in range(start, start + tile.width))


def _published_size(folder: Path) -> int:
    try:
        return checkpoint_of((folder / CHECKPOINT).read_bytes()).size
    except FileNotFoundError:
        return 0


def _note(ledger: ContractLedger, there: int) -> str:
    """Return the head to publish: one that others have signed, if only anchors came since and it is no step back."""
    store = ledger.store
    anchored = anchored_size(store)
    cosigned = cosigned_note(store, anchored) if anchored and is_settled(store, anchored) else None
    if cosigned is not None and there <= anchored:
        return cosigned
    if not ledger.read_only:
        return head_to_anchor(ledger)
    newest = store.latest_checkpoint()
    if newest is None:
        raise StoreError("no head is signed yet: run `a2a-ledger checkpoint sign` where the log key is")
    return newest[1]


def _tiles(size: int, begun: int = 0) -> Iterator[_Tile]:
    """Yield the tiles of a tree of this size, bundles of entries first.

    Args:
        size: leaves of the tree.
        begun: leaves of an older head. Of each level the tiles before the newest one that it fills are left out.
    """
    level: int | None = None
    nodes, filled = size, begun // WIDTH
    while nodes:
        full, rest = divmod(nodes, WIDTH)
        for index in range(max(0, filled - 1), full):
            yield _Tile(level, index, WIDTH)
        if rest:
            yield _Tile(level, full, rest)
        if level is None:
            level = 0
        else:
            level, nodes, filled = level + 1, full, filled // WIDTH


def _content(store: Store, tile: _Tile, size: int) -> bytes:
    start = tile.place * WIDTH
    if tile.level is None:
        leaves = store.leaves(start, start + tile.width)
        return b"".join(len(leaf).to_bytes(_LENGTH, "big") + leaf for leaf in leaves)
    return b"".join(store.nodes(tile.level * _HEIGHT, start, start + tile.width, size))


def tile_name(index: int) -> str:
    """Spell a tile's index: groups of three digits, an x before each but the last."""
    digits = f"{index % 1000:03d}"
    while index >= 1000:  # noqa: PLR2004 - three digits
        index //= 1000
        digits = f"x{index % 1000:03d}/{digits}"
    return digits


def _put(place: Path, data: bytes) -> None:
    """Write a file as a whole; after any crash either nothing of it is there or all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    replace_file(place, data, by=of_this_process(place))
