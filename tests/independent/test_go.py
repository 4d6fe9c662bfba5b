"""The Go checksum database's own code (golang.org/x/mod/sumdb) reads our notes, proofs and growth."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.material import log, stranger
from tests.independent.bags import HEADS, LEAVES, case, earlier, good, unpacked, vkey
from tests.independent.tools import program, run

SOURCE = Path(__file__).parent / "go" / "verify.go"
DEBIAN = "/usr/share/gocode"  # where Debian's packages put the sources of Go libraries


@pytest.fixture(scope="module")
def verify(tmp_path_factory: pytest.TempPathFactory) -> str:
    go = program("go")
    folder = tmp_path_factory.mktemp("go")
    command = (go, "build", "-o", folder / "verify", SOURCE)
    code, said = run(*command, GO111MODULE="off", GOPATH=DEBIAN, GOFLAGS="", GOCACHE=str(folder / "cache"))
    if "cannot find package" in said:
        program("golang-golang-x-mod-dev")  # says that the library is missing, as for a program
    assert code == 0, said
    return str(folder / "verify")


def test_a_good_bundle(verify: str, tmp_path: Path) -> None:
    found = run(verify, good(tmp_path), vkey("log"), earlier(tmp_path))
    assert found == (0, "17 leaves under 31, grown from 1 earlier heads\n")


@pytest.mark.parametrize("name", [*LEAVES, *HEADS])
def test_what_is_wrong_is_refused(verify: str, tmp_path: Path, name: str) -> None:
    code, said = run(verify, case(name, tmp_path), vkey("log"))
    assert (code, said.startswith("refused: ")) == (1, True)


def test_another_key(verify: str, tmp_path: Path) -> None:
    assert run(verify, good(tmp_path), stranger(log().origin).vkey)[0] == 1


def test_a_log_that_did_not_grow(verify: str, tmp_path: Path) -> None:
    """A hash of the consistency proof is changed, one is missing, and one is too many."""
    place = "data/log/consistency/17-31"
    lines = log().files[place].splitlines(keepends=True)
    for number, wrong in enumerate(([lines[1], *lines[1:]], lines[1:], [*lines, lines[0]])):
        bag = unpacked(tmp_path / str(number), {**log().files, place: b"".join(wrong)})
        code, said = run(verify, bag, vkey("log"), earlier(tmp_path))
        assert (code, said.startswith("refused: earlier head: ")) == (1, True)
