"""Heads kept in plain files: of our own, on another mount, and those of others that contradicted us.

A file elsewhere is not an anchor: nobody else has signed it. But an old copy of the ledger, with both copies of its
mark, does not take it back, so a start and an audit see that events are gone (docs/format.md section 6.4).
"""

from __future__ import annotations

import errno
import json
import logging
import stat
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.anchors.contradiction import FOLDER, contradiction
from a2a_ledger.anchors.heads import head_to_anchor
from a2a_ledger.checkpoint import checkpoint_of, open_checkpoint
from a2a_ledger.durable import of_this_process, replace_file
from a2a_ledger.errors import LedgerError, PolicyError, SignatureError, StoreError, UsageError
from a2a_ledger.store.log_keys import head_verifiers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from a2a_ledger.checkpoint import Checkpoint
    from a2a_ledger.ledger import ContractLedger

_log = logging.getLogger(__name__)

_MAX = 64 * 1024  # bytes of a head with many cosignatures


class Elsewhere(NamedTuple):
    """Heads that lie outside of the database, each under a name for a report.

    Attributes:
        heads: what lies in each place.
        remarks: which places have nothing: a mount may be away.
        unread: which have something that cannot be read, so that nobody can hold the log against it.
    """

    heads: dict[str, bytes]
    remarks: list[str]
    unread: list[str]


def keep_in_file(ledger: ContractLedger, path: Path) -> Checkpoint:
    """Write the head as it is now into a file, which is replaced as a whole; durable when this returns.

    Args:
        ledger: open for writing, with its log key.
        path: where; not in the ledger's own directory.

    Raises:
        UsageError: the place is in the ledger, or holds something else than a head of this log.
        PolicyError: the file holds a head that no key of this log signed.
        RollbackError: the file holds a head of more events than are here.
        ConsistencyError: the file holds a head that is no beginning of this log; both are kept as a fork proof.
        StoreError: it cannot be written, or the head not signed.
    """
    _check_place(ledger, path)
    check_file(ledger, path)
    note = head_to_anchor(ledger)
    try:
        replace_file(path, note.encode(), by=of_this_process(path))
    except OSError as problem:
        raise StoreError(f"{path}: the head cannot be kept there ({problem.strerror})") from problem
    return checkpoint_of(note)


def check_files(ledger: ContractLedger, root: Path) -> None:
    """Hold every head that the settings keep elsewhere against this log, before anything is written.

    Args:
        ledger: open for writing.
        root: the ledger's directory.

    Raises:
        RollbackError, ConsistencyError, UsageError, PolicyError, StoreError: see `check_file`.
    """
    for name in ledger.settings.anchor.files:
        remark = check_file(ledger, root / name)
        if remark:
            _log.warning("%s", remark)


def check_file(ledger: ContractLedger, path: Path) -> str:
    """Hold the head in a file against this log; return a remark where there is none, "" where it fits.

    Raises:
        UsageError: the file holds something else than a head of this log.
        PolicyError: no key that this database names signed the head in it.
        RollbackError, ConsistencyError: see `keep_in_file`.
        StoreError: it cannot be read.
    """
    try:
        raw = _read(path)
    except FileNotFoundError:
        return f"{path}: no head is kept there yet, or its place is not mounted"
    except OSError as problem:
        raise StoreError(f"{path}: the head kept there cannot be read ({problem.strerror})") from problem
    try:
        if (found := checkpoint_of(raw).origin) != ledger.origin:
            raise UsageError(f"it is a head of {found}")
        seen = open_checkpoint(raw, head_verifiers(ledger.store))
    except SignatureError as problem:
        raise PolicyError(
            f"{path}: expected a head signed by a key that this database names for {ledger.origin}: {problem}. Leave "
            "the file there: if the log key was replaced since, this database is an old copy: restore the newest one; "
            "else find out who wrote the file"
        ) from problem
    except LedgerError as problem:
        raise UsageError(f"{path}: expected a head signed by {ledger.origin}, or no file: {problem}") from problem
    wrong = contradiction(ledger, str(path), seen)
    if wrong is not None:
        raise wrong
    return ""


def heads_elsewhere(root: Path, files: Sequence[str]) -> Elsewhere:
    """Return what lies in `forks/` of a ledger's directory and in the files of `[anchor] files`, for an audit.

    A file of `forks/` that cannot be read gives octets that are no head: who audits says so.

    Args:
        root: the ledger's directory; the files' paths are relative to it.
        files: as in the settings.
    """
    found = Elsewhere({}, [], [])
    for path in sorted((root / FOLDER).glob("[!.]*")):
        try:
            raw = path.read_bytes()
            raw = str(json.loads(raw)["theirs"]).encode() if path.suffix == ".json" else raw
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            raw = b""
        found.heads[f"the head in {FOLDER}/{path.name}"] = raw
    for name in files:
        path = root / name
        try:
            found.heads[f"the head kept in {path}"] = _read(path)
        except (FileNotFoundError, NotADirectoryError) as problem:
            found.remarks.append(f"{path}: no head could be read there ({problem.strerror})")
        except OSError as problem:
            found.unread.append(
                f"the head kept in {path} cannot be read ({problem.strerror}), so the log is not held against it. Give "
                "this user access to it, or name the file itself"
            )
    return found


def _read(path: Path) -> bytes:
    """Return the octets of a file, of a long one the beginning.

    Raises:
        OSError: there is none, it cannot be read, or it is no file: a pipe would never end.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, "it is no file")
    with path.open("rb") as file:
        return file.read(_MAX + 1)


def _check_place(ledger: ContractLedger, path: Path) -> None:
    home = ledger.home
    if home is not None and path.resolve().is_relative_to(home.root.resolve()):
        raise UsageError(
            f"{path}: expected a place outside of the ledger's directory {home.root}, which an old copy would bring "
            "back with it; name one on another mount"
        )
