"""Node's own crypto reads our manifests, signatures, DSSE statement and proofs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.material import log, stranger
from tests.independent.bags import FILES, HEADS, LEAVES, case, good, vkey
from tests.independent.tools import program, run

SOURCE = Path(__file__).parent / "node" / "verify.mjs"
SIGNED = ("export_by_stranger_fail", "missing_statement_fail", "changed_tagmanifest-sha256.txt.sig_fail")


def node(bag: Path, log_key: str = "", export_key: str = "") -> tuple[int, str]:
    return run(program("node"), SOURCE, bag, log_key or vkey("log"), export_key or vkey("export"))


def test_a_good_bundle(tmp_path: Path) -> None:
    assert node(good(tmp_path)) == (0, "17 leaves under 31, signed by the exporter\n")


@pytest.mark.parametrize("name", [*LEAVES, *HEADS, *FILES, *SIGNED])
def test_what_is_wrong_is_refused(tmp_path: Path, name: str) -> None:
    assert node(case(name, tmp_path))[0] == 1


def test_other_keys(tmp_path: Path) -> None:
    bag = good(tmp_path)
    other = stranger(log().origin).vkey
    assert node(bag, log_key=other) == (1, "refused: a checkpoint that this key did not sign\n")
    assert node(bag, export_key=other) == (1, "refused: the exporter's signature\n")
