"""The disk is full, or fails: each refusal is one clear error, nothing acknowledged is lost, the process goes on."""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, NamedTuple, cast

import pytest

from tests.faults.conftest import run_on

if TYPE_CHECKING:
    from pathlib import Path


class Outcome(NamedTuple):
    """How each try of an action ended, and what is wrong with the ledger afterwards."""

    ends: list[str]
    lost: list[str]
    faults: list[str]


def refused(disk: Path, root: Path, action: str, code: int, how: str) -> Outcome:
    told = run_on(disk, root, "tests.faults.failing", action, str(code), how)
    return Outcome(**cast("dict[str, list[str]]", json.loads(told)))


@pytest.mark.slow
@pytest.mark.parametrize(("code", "how"), [(errno.ENOSPC, "on"), (errno.EIO, "once")], ids=["full", "failing"])
@pytest.mark.parametrize("action", ["append", "sign", "rotate", "erase", "open", "make", "backup", "publish"])
def test_every_change_that_is_refused(disk: Path, tmp_path: Path, action: str, code: int, how: str) -> None:
    outcome = refused(disk, tmp_path, action, code, how)
    assert (outcome.lost, outcome.faults) == ([], [])
    errors = [end for end in outcome.ends if end != "done"]
    # Where a database cannot be opened for writing, SQLite opens it for reading, and says so at the first write.
    assert {end.partition(":")[0] for end in errors} <= {"DiskFullError", "ReadOnlyError", "StoreError"}
    assert errors or action == "open", "an opening may have nothing that must be written"
    assert all(str(tmp_path) in end for end in errors), "which file it was"
    assert outcome.ends[-1] == "done"


def test_a_full_disk_is_called_one(disk: Path, tmp_path: Path) -> None:
    outcome = refused(disk, tmp_path, "append", errno.ENOSPC, "on")
    database = tmp_path / "audit" / "ledger.db"
    assert outcome.ends[0] == (
        f"DiskFullError: expected room on the disk for {database}, found it full; nothing was written"
    )
