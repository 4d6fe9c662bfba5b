"""The published log, read by two readers of other makers, and by the layout's own words (C2SP tlog-tiles)."""

from __future__ import annotations

import shutil
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.anchors import witnesses
from a2a_ledger.anchors.witnesses import anchor_by_witnesses
from a2a_ledger.checkpoint import Proof, checkpoint_of
from a2a_ledger.durable import replace_file
from a2a_ledger.errors import BusyError, ConsistencyError, RollbackError, StoreError, UsageError
from a2a_ledger.events import TaskAdopted
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.policy import parse_policy
from a2a_ledger.publish import publish, tile_name
from tests.anchors.pretend import Pretend
from tests.independent.tools import program, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Grow = Callable[[ContractLedger], None]


def grow_to(ledger: ContractLedger, size: int) -> None:
    """Append until the log has so many events."""
    event = TaskAdopted(peer="5" * 32, peer_url="https://peer.example/.well-known/agent-card.json", task_id="T1")
    stream = f"task:{ledger.new_task()}"
    ledger.append([ledger.draft(event, stream=stream) for _ in range(size - ledger.store.size())])


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_small_log_has_partial_tiles(ledger: ContractLedger, home: Path) -> None:
    done = publish(ledger, home / "log")
    assert (done.head.size, done.written) == (4, 2)
    found = files(home / "log")
    assert sorted(found) == ["checkpoint", "tile/0/000.p/4", "tile/entries/000.p/4"]
    leaves = list(ledger.store.leaves(0, 4))
    assert found["tile/0/000.p/4"] == b"".join(sha256(b"\0" + leaf).digest() for leaf in leaves)
    assert found["tile/entries/000.p/4"] == b"".join(bytes([0, len(leaf)]) + leaf for leaf in leaves)
    assert checkpoint_of(found["checkpoint"]) == done.head


def test_of_two_at_once_the_second_leaves_the_folder_alone(
    ledger: ContractLedger, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the first, who is slow, would put its head over the newer one of the second."""
    folder = home / "log"
    met: list[str] = []

    def slow(place: Path, data: bytes, *, by: str) -> None:
        if place.name == "checkpoint":
            grow_to(ledger, 30)
            with pytest.raises(BusyError, match="nothing was written: publish again when it is done") as busy:
                publish(ledger, folder)
            met.append(str(busy.value))
        replace_file(place, data, by=by)

    with monkeypatch.context() as patch:
        patch.setattr("a2a_ledger.publish.replace_file", slow)
        assert publish(ledger, folder).head.size == 4
    assert len(met) == 1
    assert publish(ledger, folder).head.size == 30


def test_full_tiles_are_never_written_again(ledger: ContractLedger, home: Path) -> None:
    folder = home / "log"
    grow_to(ledger, 300)
    publish(ledger, folder)
    assert sorted(files(folder)) == [
        "checkpoint",
        "tile/0/000",
        "tile/0/001.p/44",
        "tile/1/000.p/1",
        "tile/entries/000",
        "tile/entries/001.p/44",
    ]
    full = [folder / "tile/0/000", folder / "tile/entries/000"]
    before = [(path.stat().st_ino, path.stat().st_mtime_ns) for path in full]
    grow_to(ledger, 512)
    done = publish(ledger, folder)
    assert [(path.stat().st_ino, path.stat().st_mtime_ns) for path in full] == before
    assert done.written == 3
    assert sorted(files(folder)) == [
        "checkpoint",
        "tile/0/000",
        "tile/0/001",
        "tile/1/000.p/1",
        "tile/1/000.p/2",
        "tile/entries/000",
        "tile/entries/001",
    ]
    hashes = [sha256(b"\0" + leaf).digest() for leaf in ledger.store.leaves(0, 512)]
    assert (folder / "tile/0/001").read_bytes() == b"".join(hashes[256:])
    assert (folder / "tile/1/000.p/2").read_bytes() == over(hashes[:256]) + over(hashes[256:])
    assert publish(ledger, folder).written == 0


def damage(path: Path) -> None:
    """Leave its length as it is."""
    path.write_bytes(bytes(path.stat().st_size))


def test_what_is_damaged_is_mended(ledger: ContractLedger, home: Path) -> None:
    folder = home / "log"
    grow_to(ledger, 1100)  # numbers of one to four digits
    assert publish(ledger, folder).mended == 0
    good = files(folder)
    partial = [folder / f"tile/{name}" for name in ("entries/004.p/76", "0/004.p/76", "1/000.p/4")]
    full = [folder / "tile/entries/003", folder / "tile/0/003"]
    for path in [*partial, *full]:
        for left in (path.read_bytes()[:-1], b""):
            path.write_bytes(left)
            assert publish(ledger, folder)[1:] == (0, 1), path
            assert files(folder) == good
    for path in partial:
        damage(path)
    assert publish(ledger, folder)[1:] == (0, 3)
    assert files(folder) == good


def test_an_older_full_tile_is_mended_when_asked_for_or_when_a_newer_one_is_gone(
    ledger: ContractLedger, home: Path
) -> None:
    folder = home / "log"
    grow_to(ledger, 1100)
    publish(ledger, folder)
    good = files(folder)
    older, newest = folder / "tile/0/000", folder / "tile/entries/003"
    older.unlink()
    assert publish(ledger, folder)[1:] == (0, 0)
    assert publish(ledger, folder, whole=True)[1:] == (1, 0)
    assert files(folder) == good
    older.write_bytes(b"")
    newest.unlink()
    assert publish(ledger, folder)[1:] == (1, 1)
    assert files(folder) == good
    shutil.rmtree(folder / "tile")  # a checkpoint that was put there alone
    assert publish(ledger, folder)[1:] == (len(good) - 1, 0)
    assert files(folder) == good


def test_what_is_looked_at_does_not_grow_with_the_log(
    ledger: ContractLedger, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    for size in (600, 2600):
        grow_to(ledger, size)
        publish(ledger, home / "log")
        with monkeypatch.context() as patch:
            counted = Counted()
            patch.setattr("a2a_ledger.publish._length_of", counted)
            assert publish(ledger, home / "log")[1:] == (0, 0)
        looked.append(counted.looks)
    # the newest full tile and the partial one of entries and of level 0, the partial one of level 1; full ones twice
    assert looked == [7, 7]


class Counted:
    """Says how long a file is, and counts how often it was asked."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self, place: Path) -> int | None:
        self.looks += 1
        return place.stat().st_size if place.exists() else None


def test_full_tiles_of_earlier_heads_are_compared_when_asked_for(ledger: ContractLedger, home: Path) -> None:
    folder = home / "log"
    grow_to(ledger, 300)
    publish(ledger, folder)
    good = files(folder)
    for name in ("entries/000", "0/000"):
        damage(folder / "tile" / name)
    assert publish(ledger, folder)[1:] == (0, 0)
    assert publish(ledger, folder, whole=True)[1:] == (0, 2)
    assert files(folder) == good
    damage(folder / "tile/0/000")
    (folder / "checkpoint").unlink()  # then no head was published before
    assert publish(ledger, folder)[1:] == (0, 1)
    assert files(folder) == good


def over(hashes: list[bytes]) -> bytes:
    """Return the node over 256 hashes."""
    while len(hashes) > 1:
        hashes = [sha256(b"\1" + a + b).digest() for a, b in zip(hashes[::2], hashes[1::2], strict=True)]
    return hashes[0]


@pytest.mark.parametrize(
    ("index", "spelled"), [(0, "000"), (999, "999"), (1000, "x001/000"), (1_234_067, "x001/x234/067")]
)
def test_an_index_is_spelled_in_threes(index: int, spelled: str) -> None:
    assert tile_name(index) == spelled


@pytest.mark.slow
@pytest.mark.parametrize("size", [4, 256, 300])
def test_readers_of_other_makers_prove_leaves_by_it(ledger: ContractLedger, home: Path, size: int) -> None:
    aics, tiles = program("aics-tlog"), program("tlog-tiles")
    folder = home / "log"
    grow_to(ledger, size)
    publish(ledger, folder)
    (home / "log.vkey").write_text(ledger.signers["log"].vkey + "\n")
    for n in {0, size // 2, size - 1}:
        (leaf,) = ledger.store.leaves(n, n + 1)
        (home / "leaf").write_bytes(leaf)
        words = (aics, "verify-inclusion", "--leaf", home / "leaf", "--tiles", folder, "--vkey-file", home / "log.vkey")
        code, said = run(*words, "--index", str(n))
        assert code == 0, said
        assert run(*words, "--index", str((n + 1) % size))[0] != 0
        code, proof = run(tiles, "gen-proof", f"file://{folder}/", str(n))
        path = ledger.store.inclusion(n, size)
        assert (code, proof) == (0, str(Proof(n, tuple(path), (folder / "checkpoint").read_text())))


def test_readers_of_other_makers_see_growth_in_it(ledger: ContractLedger, home: Path) -> None:
    aics = program("aics-tlog")
    folder = home / "log"
    publish(ledger, folder)
    shutil.copy(folder / "checkpoint", home / "old")
    grow_to(ledger, 300)
    publish(ledger, folder)
    (home / "log.vkey").write_text(ledger.signers["log"].vkey + "\n")
    words = ("--old-checkpoint", home / "old", "--tiles", folder, "--vkey-file", home / "log.vkey")
    code, said = run(aics, "verify-consistency", *words)
    assert code == 0, said


def test_a_cosigned_head_is_published_and_never_a_smaller_one(
    ledger: ContractLedger, home: Path, grow: Grow, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend = Pretend()
    monkeypatch.setattr(witnesses, "ask", pretend)
    policy = parse_policy(f"{pretend.line}quorum none\n")
    folder = home / "log"
    anchor_by_witnesses(ledger, policy)  # adds its key
    anchor_by_witnesses(ledger, policy)
    assert publish(ledger, folder).head.size == 6
    trust = parse_policy(f"log {ledger.signers['log'].vkey}\n{pretend.line}quorum none\n")
    assert [entry.verifier.name for entry in trust.open((folder / "checkpoint").read_bytes()).cosigners] == [
        "witness.example/w"
    ]
    grow(ledger)
    assert publish(ledger, folder).head.size == 8
    assert publish(ledger, folder).head.size == 8


def test_a_folder_of_another_log_is_left_alone(ledger: ContractLedger, home: Path) -> None:
    with ContractLedger.open(home / "other", origin="acme/other", follow=False) as other:
        publish(other, home / "log")
    before = files(home / "log")
    with pytest.raises(UsageError, match="expected a head signed by acme/audit-"):
        publish(ledger, home / "log")
    assert files(home / "log") == before


@pytest.mark.parametrize(("more", "error"), [(0, RollbackError), (3, ConsistencyError)])
def test_a_published_log_is_not_taken_back(
    ledger: ContractLedger, home: Path, grow: Grow, more: int, error: type[Exception]
) -> None:
    ledger.close()
    shutil.copytree(home / "audit", home / "old")
    with ContractLedger.open(home / "audit", follow=False) as newer:
        grow(newer)
        publish(newer, home / "log")
    shutil.rmtree(home / "audit")
    shutil.rmtree(home / "state")
    (home / "old").rename(home / "audit")
    before = files(home / "log")
    with ContractLedger.open(home / "audit", follow=False) as older:
        for _ in range(more):
            grow(older)
        with pytest.raises(error):
            publish(older, home / "log")
    assert files(home / "log") == before


def test_a_copy_without_keys_publishes_what_was_signed(ledger: ContractLedger, home: Path) -> None:
    ledger.sign_checkpoint()
    ledger.close()
    shutil.rmtree(home / "audit" / "keys")
    with ContractLedger.open(home / "audit", read_only=True) as copy:
        assert publish(copy, home / "log").head.size == 4


def test_a_copy_that_holds_no_newer_head_publishes_none(ledger: ContractLedger, home: Path, grow: Grow) -> None:
    ledger.sign_checkpoint()
    grow(ledger)
    publish(ledger, home / "log")
    with ledger.store.transaction() as connection:
        connection.execute("DELETE FROM ledger_checkpoints WHERE size = 5")
    with (
        ContractLedger.open(home / "audit", read_only=True) as copy,
        pytest.raises(StoreError, match="a head of 5 is published, the newest that lies here is of 4"),
    ):
        publish(copy, home / "log")
