"""The file that stands alone, as a command: arguments, exit codes, output, and what it may import."""

from __future__ import annotations

import ast
import base64
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.keys import key_id
from a2a_ledger.policy import parse_policy
from a2a_ledger.verify import verify
from a2a_ledger.verify.report import TITLES
from tests.conformance import unshown_cases
from tests.conformance.material import log, stranger
from verifier import a2a_verify

if TYPE_CHECKING:
    from collections.abc import Sequence

FILE = Path(a2a_verify.__file__)
FORMAT = Path(__file__).parents[2] / "docs" / "format.md"
CODES = {
    "text": "t",
    "integer": "i",
    "boolean": "b",
    "object": "o",
    "ref": "r",
    "interface": "f",
    "list of text": "T",
    "list of integer": "I",
    "list of ref": "R",
    "list of interface": "F",
    "list of credential": "C",
}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    place = tmp_path / "case.zip"
    place.write_bytes(log().bundle)
    return place


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    place = tmp_path / "policy.txt"
    place.write_text(log().policy)
    return place


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = a2a_verify.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_imports_the_standard_library_and_cryptography_alone() -> None:
    names: set[str] = set()
    for node in ast.walk(ast.parse(FILE.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add((node.module or "").split(".")[0])
    assert names - set(sys.stdlib_module_names) == {"cryptography"}


def test_events_are_those_of_the_format() -> None:
    text = FORMAT.read_text("utf-8")
    text = text[text.index("## 2 Events") : text.index("## 3 Record")]
    found: dict[str, set[str]] = {}
    for section in re.split(r"\n### ", text)[1:]:
        rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| (yes|no) \|", section, re.MULTILINE)
        fields = {f"{name}{'' if needed == 'yes' else '?'}:{CODES[kind.strip()]}" for name, kind, needed in rows}
        found[section.split("\n")[0].strip("`")] = fields
    found["contract.reconstructed.v1"] = found["contract.captured.v1"]
    every = found.pop("Fields of every event")
    assert {name: set(fields.split()) for name, fields in a2a_verify.EVENTS_TABLE.items()} == found
    assert set(a2a_verify.EVERY_FIELD.split()) == every


def test_says_of_itself_what_it_does_not_do(capsys: pytest.CaptureFixture[str], bundle: Path, policy: Path) -> None:
    code, out, err = run(capsys, bundle, "--policy", policy)
    assert (code, err) == (3, "")
    assert out.splitlines()[0] == "not proven. Checkpoint 31, anchored by nobody whom you trust."
    assert re.search(r"^R  replay gives the same verdict +NOT PROVEN .*does not judge again", out, re.MULTILINE)


def test_verified_by_the_claims_that_the_reader_asks_for(
    capsys: pytest.CaptureFixture[str], bundle: Path, policy: Path
) -> None:
    code, out, _ = run(capsys, bundle, "--policy", policy, "--require", "I,L,P,C2")
    assert (code, out.splitlines()[0]) == (0, "verified. Checkpoint 31, anchored by nobody whom you trust.")


def test_json_has_the_shape_of_the_package(capsys: pytest.CaptureFixture[str], bundle: Path, policy: Path) -> None:
    code, out, _ = run(capsys, bundle, "--policy", policy, "--format", "json")
    found = json.loads(out)
    expected = json.loads(json.dumps(verify(bundle, policy=parse_policy(log().policy)).to_json()))
    assert code == 3
    assert found.keys() == expected.keys()
    assert [claim.keys() for claim in found["claims"]] == [claim.keys() for claim in expected["claims"]]
    assert [claim["claim"] for claim in found["claims"]] == [claim["claim"] for claim in expected["claims"]]
    assert found["sides"] == expected["sides"] == "unilateral"
    assert a2a_verify.TITLES == TITLES


def test_invalid(capsys: pytest.CaptureFixture[str], bundle: Path) -> None:
    bundle.write_bytes(log().bundle[:-1])
    code, out, err = run(capsys, bundle, "--trust", log().signers["log"].vkey)
    assert (code, out.splitlines()[0], err) == (1, "invalid. No checkpoint can be read.", "")


def test_without_trust(capsys: pytest.CaptureFixture[str], bundle: Path) -> None:
    code, out, _ = run(capsys, bundle)
    assert (code, out.splitlines()[0]) == (3, "self-consistent only. Checkpoint 31, anchored by nobody whom you trust.")


def test_an_earlier_head_is_asked_for_too(capsys: pytest.CaptureFixture[str], bundle: Path, tmp_path: Path) -> None:
    note = tmp_path / "head"
    asked = ("--trust", log().signers["log"].vkey, "--require", "I,L,P,C2", "--earlier", note)
    note.write_bytes(log().earlier)
    assert run(capsys, bundle, *asked)[0] == 0
    note.write_bytes(log("another").earlier)
    assert run(capsys, bundle, *asked)[0] == 3


def vkey(octets: bytes, kind: int = 1, *, stated: str = "") -> str:
    name = "acme/x-00112233"
    made = stated or key_id(name, kind, octets).hex()
    return f"{name}+{made}+{base64.b64encode(bytes([kind]) + octets).decode()}"


SMALL = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
NOT_REDUCED = bytes.fromhex("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f")
GOOD = stranger("acme/x-00112233").verifier.public_key
USELESS = {
    "of order 8": (vkey(SMALL), "has small order"),
    "neutral": (vkey(b"\x01" + bytes(31)), "has small order"),
    "of order 4": (vkey(bytes(32)), "has small order"),
    "not canonical": (vkey(NOT_REDUCED), "is not canonical"),
    "short": (vkey(GOOD[:31]), "is not canonical"),
    "no point": (vkey(b"\x02" + bytes(31)), "is no point of the curve"),
    "other id": (vkey(GOOD, stated="00000000"), "has another key id"),
    "cosigner of small order": (vkey(SMALL, 4), "has small order"),
    "of no type": (vkey(GOOD, 3), "is of no known type"),
    "empty": ("", "is not <name>"),
}


@pytest.mark.parametrize("what", USELESS)
def test_keys_that_prove_nothing_are_refused(capsys: pytest.CaptureFixture[str], bundle: Path, what: str) -> None:
    key, problem = USELESS[what]
    code, out, err = run(capsys, bundle, "--trust", key)
    assert (code, out) == (2, "")
    assert problem in err


POLICIES = {
    "no quorum": ("", "no quorum line"),
    "two quorums": ("quorum none\nquorum none\n", "policy line 2"),
    "unknown word": ("trust me\nquorum none\n", "policy line 1"),
    "unknown witness": ("quorum w1\n", "no witness or group"),
    "group of nobody": ("group g 1 w1\nquorum g\n", "not above"),
    "small order": (f"witness w {vkey(SMALL, 4)}\nquorum none\n", "has small order"),
    "too many asked for": (f"witness w {vkey(GOOD, 4)}\ngroup g 2 w\nquorum g\n", "can never be"),
    "name taken": (f"witness none {vkey(GOOD, 4)}\nquorum none\n", "is taken"),
    "no role": ("# a2a-ledger: owner x\nquorum none\n", "policy line 1"),
    "key twice": (f"log {vkey(GOOD)}\nlog {vkey(GOOD)}\nquorum none\n", "given twice"),
    "witness as log": (f"log {vkey(GOOD, 4)}\nquorum none\n", "cannot be a log key"),
    "control character": ("quorum\x01none\n", "control characters"),
}


@pytest.mark.parametrize("what", POLICIES)
def test_policies_that_cannot_be_used(
    capsys: pytest.CaptureFixture[str], bundle: Path, tmp_path: Path, what: str
) -> None:
    text, problem = POLICIES[what]
    (tmp_path / "p.txt").write_text(text)
    code, out, err = run(capsys, bundle, "--policy", tmp_path / "p.txt")
    assert (code, out) == (2, "")
    assert problem in err


def test_earlier_heads_that_cannot_be_used(capsys: pytest.CaptureFixture[str], bundle: Path, tmp_path: Path) -> None:
    trust = ("--trust", log().signers["log"].vkey)
    note = tmp_path / "head"
    for octets in (b"", b"no note", log().earlier.replace(b"\n17\n", b"\n16\n"), log().earlier[:-20]):
        note.write_bytes(octets)
        code, out, _ = run(capsys, bundle, *trust, "--earlier", note)
        assert (code, out) == (2, "")
    assert run(capsys, bundle, "--earlier", tmp_path / "missing")[0] == 2
    assert run(capsys, tmp_path / "missing")[0] == 2


def test_unknown_letters_are_a_mistake(bundle: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        a2a_verify.main([str(bundle), "--require", "Q"])
    assert stopped.value.code == 2


def test_output_steers_no_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    place = tmp_path / "case.zip"
    place.write_bytes(log().bundle.replace(b"README.txt", b"RE\x1b[2J.txt"))
    code, out, _ = run(capsys, place, "--trust", vkey(GOOD))
    assert code == 1
    assert "\x1b" not in out


def command(python: Path, file: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    given: Sequence[str | Path] = (python, "-I", "-B", file, *arguments)
    return subprocess.run(given, capture_output=True, text=True, check=False, timeout=60)


def test_runs_as_a_file_of_its_own(bundle: Path, policy: Path, tmp_path: Path) -> None:
    alone = Path(shutil.copy(FILE, tmp_path / "elsewhere.py"))
    done = command(Path(sys.executable), alone, bundle, "--policy", policy, "--require", "I,L,P,C2")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_on_an_empty_machine(bundle: Path, policy: Path, tmp_path: Path) -> None:
    """A fresh environment with nothing but cryptography, and a copy of the file."""
    place = tmp_path / "environment"
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    alone_in_it = {**os.environ, "PYTHONPATH": ""}
    subprocess.run([*pip, "cryptography"], check=True, timeout=170, env=alone_in_it)
    listed = subprocess.run([python, "-m", "pip", "list"], check=True, capture_output=True, text=True, env=alone_in_it)
    assert "a2a-ledger" not in listed.stdout
    alone = Path(shutil.copy(FILE, tmp_path / "a2a_verify.py"))
    good = command(python, alone, bundle, "--policy", policy, "--require", "I,L,P,C2", "--format", "json")
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["verdict"] == "verified"
    bundle.write_bytes(log().bundle.replace(b'"events":17', b'"events":18'))
    assert command(python, alone, bundle, "--policy", policy).returncode == 1


def test_without_cryptography_it_says_so(tmp_path: Path, bundle: Path) -> None:
    (tmp_path / "cryptography.py").write_text("raise ImportError")
    shutil.copy(FILE, tmp_path / "a2a_verify.py")
    given = [sys.executable, "-B", str(tmp_path / "a2a_verify.py"), str(bundle)]
    done = subprocess.run(given, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "pip install cryptography" in done.stderr


@pytest.mark.parametrize("words", [[], ["--format", "json"]])
def test_a_reader_that_goes_away_is_met_in_silence(bundle: Path, words: list[str]) -> None:
    """As after SIGPIPE, 141, and no word: 1 would say that the bundle is refuted."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, str(FILE), str(bundle), *words], check=False, stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_closed_output_says_nothing_of_the_bundle(bundle: Path) -> None:
    command = f"exec {shlex.quote(sys.executable)} {shlex.quote(str(FILE))} {shlex.quote(str(bundle))} >&-"
    done = subprocess.run(["sh", "-c", command], check=False, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, b"a2a_verify: standard output is closed\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_says_nothing_of_the_bundle(bundle: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, str(FILE), str(bundle)], check=False, stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 2
    assert done.stderr == b"a2a_verify: standard output cannot be written: No space left on device\n"


def test_says_what_it_could_not_hold_the_bundle_against() -> None:
    """It never says VALID of R; of what is not shown, or unknown, it says so."""
    case = {row.name: row for row in unshown_cases.rows()}
    for name, said in {
        "forged_contract_of_no_stream_notproven": "data/records/6.json: rests on no-such version 0, which is not shown",
        "message_of_unknown_leg_notproven": "data/records/13.json: an event, or a message, of a kind that is unknown",
    }.items():
        made = case[name].made()
        answer = a2a_verify.verify(made.bundle, a2a_verify.read_policy(made.policy.encode())).claims["R"]
        assert said in answer.detail
