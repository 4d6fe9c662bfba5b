"""aics-tlog reads our checkpoints, inclusion proofs and consistency proofs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.conformance.material import log, stranger
from tests.independent.bags import HEADS, case, earlier, good, vkey
from tests.independent.tools import program, run

if TYPE_CHECKING:
    from pathlib import Path


def checkpoint(bag: Path, key: str) -> tuple[int, str]:
    return run(program("aics-tlog"), "verify-checkpoint", "--note", bag / "data/log/checkpoint", "--log-key", key)


def root(note: Path) -> tuple[str, str]:
    _origin, size, root, *_ = note.read_text().split("\n")
    return size, root


def test_the_checkpoint(tmp_path: Path) -> None:
    assert checkpoint(good(tmp_path), vkey("log"))[0] == 0
    assert checkpoint(tmp_path / "bag", stranger(log().origin).vkey)[0] != 0


@pytest.mark.parametrize("name", HEADS)
def test_a_checkpoint_that_the_log_did_not_sign(tmp_path: Path, name: str) -> None:
    assert checkpoint(case(name, tmp_path), vkey("log"))[0] != 0


@pytest.mark.slow
def test_every_leaf(tmp_path: Path) -> None:
    bag = good(tmp_path)
    size, head = root(bag / "data/log/checkpoint")
    for line in (bag / "data/log/events.jsonl").read_text().splitlines():
        number = str(json.loads(line)["n"])
        leaf, proof = tmp_path / "leaf", tmp_path / "proof"
        leaf.write_text(line)
        above = (bag / f"data/log/proofs/{number}.tlog-proof").read_text().partition("\n\n")[0]
        proof.write_text("\n".join(above.split("\n")[2:]) + "\n")
        given = ("--size", size, "--root", head, "--proof", proof, "--index")
        command = (program("aics-tlog"), "verify-inclusion", "--leaf", leaf, *given)
        assert run(*command, number)[0] == 0
        assert run(*command, str(int(number) + 1))[0] != 0


def test_growth(tmp_path: Path) -> None:
    bag = good(tmp_path)
    old_size, old_root = root(earlier(tmp_path))
    new_size, new_root = root(bag / "data/log/checkpoint")
    proof = bag / f"data/log/consistency/{old_size}-{new_size}"
    given = ("--old-size", old_size, "--new-size", new_size, "--old-root", old_root, "--new-root", new_root)
    command = (program("aics-tlog"), "verify-consistency", *given, "--proof", proof)
    assert run(*command)[0] == 0
    proof.write_text("".join(proof.read_text().splitlines(keepends=True)[:-1]))
    assert run(*command)[0] != 0
