"""Is the ledger well? What is looked at, what each look found, and what of it is a problem. Writes nothing.

What follows from a fault is judged, and causes are told beside it: that no follower runs is no problem as long as
no projection is behind, and a head that nobody signs any more shows as events that wait for one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from a2a_ledger.errors import LedgerError
from a2a_ledger.heads import newest_head
from a2a_ledger.key_ring import place_of
from a2a_ledger.keys import KINDS, is_encrypted, load_pem
from a2a_ledger.store.log_keys import check_signer, log_keys
from a2a_ledger_projections.measures import Measures

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.key_events import Keys
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store.mark import HighWaterMark

_ROLES = ("log", "statement", "export")


@dataclass(frozen=True, slots=True)
class Limits:
    """From where on something is a problem.

    Attributes:
        lag: age in seconds of the oldest event that a projection has not processed.
        unsigned: age in seconds of the oldest event under no signed head.
        unanchored: age in seconds of the oldest event under no head that somebody else has signed; None: any.
        free: octets that must be free where the ledger lies.
    """

    lag: float = 60.0
    unsigned: float = 60.0
    unanchored: float | None = None
    free: int = 256 * 1024 * 1024


class Waiting(TypedDict):
    """Events that wait for something: how many, and for how many seconds the oldest has."""

    events: int
    age: float


@dataclass(slots=True)
class Health:
    """What was found.

    Attributes:
        events: in the log.
        mark: size of the head that the high-water mark holds; None: there is none.
        head: size of the newest signed head.
        unsigned: events behind it.
        unanchored: events that nobody else has signed a head over.
        projections: by name, the events that each has not processed.
        keys: by role `readable`, `encrypted`, `elsewhere` (another process signs), `absent` or `unusable`.
        following: whether a process runs the projections; None: only the server that has the events knows.
        free: octets left where the ledger lies.
        problems: a sentence each; none: the ledger is well.
    """

    events: int
    mark: int | None
    head: int
    unsigned: Waiting
    unanchored: Waiting
    projections: dict[str, Waiting]
    keys: dict[str, str]
    following: bool | None
    free: int | None
    problems: list[str] = field(default_factory=list[str])


def examine(ledger: ContractLedger, limits: Limits) -> Health:
    """Look at an open ledger, which may be read-only.

    Raises:
        LedgerError: it cannot be read.
    """
    measures = Measures(ledger)
    try:
        problems: list[str] = []
        mark = _mark(ledger.mark, ledger, problems)
        events, head = ledger.store.size(), measures.head()
        _head(ledger, problems)
        ages = measures.lag_ages()
        unanchored, unanchored_age = measures.unanchored()
        found = Health(
            events=events,
            mark=mark,
            head=head,
            unsigned=Waiting(events=max(0, events - head), age=measures.unsigned_age()),
            unanchored=Waiting(events=unanchored, age=unanchored_age),
            projections={name: Waiting(events=lag, age=ages[name]) for name, lag in measures.lags().items()},
            keys=_keys(ledger, ledger.home.keys, problems) if ledger.home else {},
            following=_following(ledger),
            free=shutil.disk_usage(ledger.home.root).free if ledger.home else None,
            problems=problems,
        )
    finally:
        measures.close()
    found.problems += past_limits(found, limits)
    return found


def past_limits(found: Health, limits: Limits) -> list[str]:
    """Return a sentence for each limit that is passed. Pure."""
    said: list[str] = []
    if found.unsigned["age"] > limits.unsigned:
        said.append(
            f"expected every event under a signed head within {limits.unsigned:g} s, found "
            f"{_waiting(found.unsigned)}: see that a process with keys/log.pem runs"
        )
    runs = "no follower runs" if found.following is False else "the follower does not keep up"
    said += [
        f"expected projection {name} behind by at most {limits.lag:g} s, found {_waiting(waiting)}: {runs}; "
        "see its log, or run `a2a-ledger follow`"
        for name, waiting in found.projections.items()
        if waiting["age"] > limits.lag
    ]
    if limits.unanchored is not None and found.unanchored["age"] > limits.unanchored:
        said.append(
            f"expected every event anchored within {limits.unanchored:g} s, found {_waiting(found.unanchored)}: "
            "see what `a2a-ledger anchor list` says"
        )
    if found.free is not None and found.free < limits.free:
        said.append(f"expected {limits.free} octets free where the ledger lies, found {found.free}: make room")
    return said


def _waiting(waiting: Waiting) -> str:
    return f"{waiting['events']} waiting, the oldest for {waiting['age']:.0f} s"


def _mark(mark: HighWaterMark | None, ledger: ContractLedger, problems: list[str]) -> int | None:
    """Hold the database against the high-water mark, as opening it to write does; without a lock, and writing nothing.

    The mark is read first: events are there before a head over them is signed.
    """
    if mark is None:
        return None
    try:
        held = mark.read()
        if held is None:
            if ledger.store.latest_checkpoint() is not None:
                problems.append(
                    f"expected a high-water mark in {mark.beside} or {mark.apart}, found none, though heads were "
                    "signed: run `a2a-ledger audit`"
                )
            return None
        if ledger.store.size() < held.head.size:
            problems.append(
                f"expected the {held.head.size} events that the high-water mark was signed over, found "
                f"{ledger.store.size()}: this database is an old copy; restore the newest one"
            )
        elif ledger.store.root(held.head.size) != held.head.root:
            problems.append("the high-water mark was signed over other events than these: run `a2a-ledger audit`")
    except LedgerError as problem:
        problems.append(str(problem))
        return None
    return held.head.size


def _head(ledger: ContractLedger, problems: list[str]) -> None:
    try:
        newest_head(ledger.store)
    except LedgerError as problem:
        problems.append(str(problem))


def _keys(ledger: ContractLedger, folder: Path, problems: list[str]) -> dict[str, str]:
    """Say of each private key whether whoever looks could use it; none is kept."""
    named = log_keys(ledger.store)
    return {role: _key(named, role, place_of(folder, role), ledger.origin, problems) for role in _ROLES}


def _key(named: Keys, role: str, path: Path, origin: str, problems: list[str]) -> str:
    if path.suffix == ".uri":
        return "elsewhere"
    try:
        if is_encrypted(path.read_bytes()):
            return "encrypted"
        check_signer(named, role, path, load_pem(path, origin, kind=KINDS[role]))
    except FileNotFoundError:
        return "absent"
    except OSError as problem:
        problems.append(f"{path}: cannot be read ({problem.strerror}); give this user access to it")
    except LedgerError as problem:
        problems.append(str(problem))
    else:
        return "readable"
    return "unusable"


def _following(ledger: ContractLedger) -> bool | None:
    """Say whether some process is inside the fence of this directory; it is only looked at, never taken."""
    if ledger.store.recorder.fence is not None or ledger.home is None:
        return None
    try:
        descriptor = os.open(ledger.home.follower_lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False  # nobody was ever inside
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
