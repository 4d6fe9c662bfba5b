"""What came of asking for anchors last, in `anchoring.json` beside the database.

A note for whoever looks, no evidence, and no event: a witness that is down would fill the log with it.
"""

from __future__ import annotations

import json
import logging
import os
from datetime import datetime
from typing import TYPE_CHECKING, Final, cast

from a2a_ledger.codec import timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_log = logging.getLogger(__name__)

STATE: Final = "anchoring.json"
_TIME: Final = "timestamp"
"""The member that says of the timestamp authority what the others say of all else."""


def tell(root: Path, at: datetime, size: int, failures: Mapping[str, str], *, of_time: bool = False) -> None:
    """Write down what came of a round; where that cannot be done it is logged.

    Args:
        root: the ledger's directory.
        at: when it was.
        size: of the head that was given.
        failures: why who did not get it, by name.
        of_time: it was the timestamp authority that was asked, not the others.
    """
    said: dict[str, object] = {"at": timestamp(at), "failures": dict(failures), "size": size}
    state = {**_read(root), **({_TIME: said} if of_time else said)}
    temporary = root / f".{STATE}.{os.getpid()}.tmp"
    try:
        temporary.write_text(json.dumps(state), encoding="utf-8")
        temporary.replace(root / STATE)
    except OSError as problem:
        _log.warning("%s cannot be written: %s", root / STATE, problem.strerror)


def complaints(root: Path) -> list[str]:
    """Return a sentence for each that did not get a head last; none where no round was made or its note is odd.

    Args:
        root: the ledger's directory.
    """
    state = _read(root)
    return [*_complaints(state), *_complaints(state.get(_TIME))]


def no_time_since(root: Path) -> datetime | None:
    """Return when the timestamp authority was asked in vain; None: it answered last, or was not asked."""
    state = _read(root).get(_TIME)
    try:
        said = cast("dict[str, object]", state)
        return datetime.fromisoformat(str(said["at"])) if said["failures"] else None
    except (ValueError, LookupError, TypeError):
        return None


def _complaints(state: object) -> list[str]:
    try:
        said = cast("dict[str, object]", state)
        failures = cast("dict[str, object]", said["failures"])
        head = f"at {said['at']} the head of {said['size']}"
        return [f"{head} was not given to {name}: {problem}" for name, problem in failures.items()]
    except (LookupError, TypeError, AttributeError):
        return []


def _read(root: Path) -> dict[str, object]:
    try:
        state = cast("object", json.loads((root / STATE).read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, object]", state) if isinstance(state, dict) else {}
