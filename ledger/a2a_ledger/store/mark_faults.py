"""What can be wrong with a high-water mark, and what a person is told to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.errors import RollbackError, StoreError, VerificationError

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.checkpoint import Checkpoint
    from a2a_ledger.store.mark import HighWaterMark, Mark

RECOVERY = "a2a-ledger checkpoint --recover-mark"
"""The command that starts a new mark when both copies are gone; `HeldMark.recover` does the work."""

COMPARE = "compare the newest checkpoint with one that somebody else holds (a witness, a peer, an exported bundle)"
SAFE_SIDE = f"{COMPARE}; if the log is not behind it, run `{RECOVERY}`"
LOST = "keep this directory and its mark for reading, and begin a new log elsewhere with `a2a-ledger init`"


def damaged(path: Path, why: str, other: Path, there: Mark | str | None) -> StoreError:
    """Say what to do about a damaged copy. It may have been the larger one, so the other alone settles nothing."""
    fault = f"the high-water mark {path} is damaged ({why})"
    if there is not None and not isinstance(there, str):
        return StoreError(
            f"{fault}, and may have been ahead of the other copy, which stands at size {there.head.size}: {COMPARE}; "
            f"if the log is not behind that, move it away, and it is written again from {other}"
        )
    found = "is missing" if there is None else f"is damaged as well ({there})"
    return StoreError(
        f"{fault}, and the other copy, {other}, {found}: nothing shows any more that this database is not an old copy; "
        f"{COMPARE}; if the log is not behind that, move what is damaged away and run `{RECOVERY}`"
    )


def same_tree(new: Checkpoint, old: Checkpoint) -> None:
    """Refuse two heads of one size that are not of one tree."""
    if new.root != old.root:
        raise VerificationError(
            f"two tree heads of {old.origin} at size {old.size} with different roots ({old.root.hex()} and "
            f"{new.root.hex()}): the log has forked, and both signed notes together prove it; stop writing, keep "
            "both, and find out which of two databases is the true one"
        )


def behind(place: HighWaterMark, signed: int, found: str) -> RollbackError:
    """Say what to do about a database that has less than was signed."""
    return RollbackError(
        f"{found}, but a tree head of {signed} was signed for {place.origin} (see {place.beside} and {place.apart}): "
        "this database is an old copy, and writing to it would fork the log; restore the newest copy of ledger.db, or, "
        f"if it is lost, {LOST}"
    )
