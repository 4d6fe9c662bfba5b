"""Two logs that are the same in every run, with their keys, heads and leaves: what the cases are made from."""

from __future__ import annotations

import hashlib
import itertools
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.export import export_context, export_peer, export_task
from a2a_ledger.keys import Signer, generate
from a2a_ledger.ledger import ContractLedger
from tests.divergence.story import PEER
from tests.evidence.forging import files_of
from tests.evidence.recorded import clock, dispute

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.evidence.forging import Files


class Log(NamedTuple):
    """A recorded log: one task that ended in a finding, another one behind it, and a head after each."""

    origin: str
    task: str
    leaves: tuple[bytes, ...]
    signers: Mapping[str, Signer]  # log, statement, export
    earlier: bytes  # the head after the first task
    bundle: bytes  # of the first task, with a proof from the earlier head
    whole: bytes  # the bundle of the same task while it was alone in the log: all leaves are shown
    withheld: Mapping[str, bytes]  # the bundle without what is named so
    packed: Mapping[str, bytes]  # bundles with packs: of the task, its context, its peer, and of these without headers

    @property
    def policy(self) -> str:
        """Return a policy that trusts the log's key and asks for no witness."""
        return f"log {self.signers['log'].vkey}\nquorum none\n"

    @property
    def files(self) -> Files:
        """Return the files of the bundle, to be changed."""
        return files_of(self.bundle)


def entropy(seed: str) -> Callable[[int], bytes]:
    """Return octets that differ at each read and are the same in each run."""
    reads = itertools.count()
    return lambda size: hashlib.shake_256(f"{seed} {next(reads)}".encode()).digest(size)


@cache
def log(seed: str = "conformance") -> Log:
    """Record a log; another seed gives another log with the same story."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "audit"
        mark = str(Path(folder) / "elsewhere")
        with ContractLedger.open(
            place, origin="acme/audit", follow=False, clock=clock(), entropy=entropy(seed), mark_dir=mark
        ) as ledger:
            story = dispute(ledger)
            ledger.catch_up()
            task = story.tasks["t1"]
            earlier = ledger.sign_checkpoint()
            whole = export_task(ledger, task).data
            dispute(ledger, name="t2")
            ledger.catch_up()
            ledger.sign_checkpoint()
            bundle = export_task(ledger, task, since=[checkpoint_of(earlier).size]).data
            withheld = {kind: export_task(ledger, task, withhold=[kind]).data for kind in ("headers", "blobs")}
            packed = {
                "task": packed_task(ledger, task),
                "context": export_context(ledger, "C1").data,
                "peer": export_peer(ledger, PEER).data,
                "withheld": export_context(ledger, "C1", withhold=["headers"]).data,
            }
            leaves = tuple(ledger.store.leaves(0, ledger.store.size()))
            signers = {role: ledger.signers[role] for role in ("log", "statement", "export")}
            return Log(ledger.origin, task, leaves, signers, earlier.encode(), bundle, whole, withheld, packed)


def packed_task(ledger: ContractLedger, task: str) -> bytes:
    """Return the bundle of a task as if it had very many events."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("a2a_ledger.export.chosen._MOST_EVENTS", 1)
        return export_task(ledger, task).data


def stranger(name: str, seed: str = "stranger") -> Signer:
    """Return a key that no log names."""
    return generate(name, entropy(seed))
