"""The shell recipe: what it checks of the corpus it finds, and what it does not check it says."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conformance.cases import all_rows
from tests.conformance.material import log
from tests.conformance.time_cases import authority

RECIPE = Path(__file__).parents[2] / "verifier" / "verify.sh"
TOOLS = ("bash", "unzip", "sha256sum", "openssl", "jq", "od", "base64")
ROWS = {row.name: row for row in all_rows()}

FOUND = (
    *("zip_cut_fail", "zip_is_none_fail", "zip_name_parent_fail", "zip_name_twice_fail", "zip_name_in_other_case_fail"),
    *("changed_README.txt_fail", "changed_bagit_fail", "changed_profile_fail", "changed_checkpoint_fail"),
    *("changed_manifest-sha256.txt_fail", "changed_tagmanifest-sha256.txt.sig_fail", "missing_claims.json_fail"),
    *("missing_proof_fail", "missing_signature_fail", "missing_statement_fail", "extra_unlisted_readme_fail"),
    *("proof_hash_changed_fail", "proof_of_another_leaf_fail", "proof_too_long_fail", "proof_too_short_fail"),
    *("proof_under_older_head_fail", "proof_with_extra_fail", "leaf_of_another_log_fail", "index_other_line_fail"),
    *("leaf_spelled_otherwise_fail", "head_by_stranger_fail", "head_signature_wrong_fail"),
    *("head_second_signature_wrong_fail", "head_size_with_zero_fail", "record_changed_fail", "salt_changed_fail"),
    *("record_missing_fail", "export_by_stranger_fail", "export_by_log_key_fail", "all_by_strangers_fail"),
)
NOT_LOOKED_AT = ("part_changed_fail", "stream_tag_fail", "statement_other_rule_fail", "withheld_unlisted_fail")


@pytest.fixture(autouse=True, scope="module")
def tools() -> None:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing and os.environ.get("A2A_LEDGER_SHELL") == "must":
        pytest.fail(f"{', '.join(missing)} missing, and A2A_LEDGER_SHELL=must")
    if missing:
        pytest.skip(f"{', '.join(missing)} missing: the shell recipe was not tried")


def recipe(tmp_path: Path, bundle: bytes, vkey: str = "", root: Path | None = None) -> subprocess.CompletedProcess[str]:
    place = tmp_path / "case.zip"
    place.write_bytes(bundle)
    given: list[str | Path] = [RECIPE, place, vkey or log().signers["log"].vkey, *([root] if root else [])]
    return subprocess.run(given, capture_output=True, text=True, check=False, timeout=120)


def test_a_good_bundle(tmp_path: Path) -> None:
    done = recipe(tmp_path, log().bundle)
    assert (done.returncode, done.stderr) == (0, "")
    assert "17 leaves are under it (P), and 17 records are what they commit to" in done.stdout
    assert "NOT CHECKED: blobs, streams and their ends, holes, findings, replay" in done.stdout


def test_keys_that_cannot_be_used(tmp_path: Path) -> None:
    key = log().signers["log"].vkey
    name, key_id, encoded = key.split("+", 2)
    for vkey in ("nonsense", f"{name}+00000000+{encoded}", f"{name}+{key_id}+AQ==", f"{name}+{key_id}"):
        assert recipe(tmp_path, log().bundle, vkey).returncode == 2
    assert recipe(tmp_path, log().bundle, log("another").signers["log"].vkey).returncode == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUND)
def test_finds(tmp_path: Path, name: str) -> None:
    done = recipe(tmp_path, ROWS[name].made().bundle)
    assert (done.returncode, done.stderr) == (1, ""), done.stdout
    assert done.stdout.startswith("INVALID: ")


@pytest.mark.slow
@pytest.mark.parametrize("name", NOT_LOOKED_AT)
def test_does_not_look_at_what_it_says(tmp_path: Path, name: str) -> None:
    done = recipe(tmp_path, ROWS[name].made().bundle)
    assert done.returncode == 0, done.stdout


def test_time_tokens_by_openssl(tmp_path: Path) -> None:
    root = authority().root.certificate
    good = recipe(tmp_path, ROWS["time_token"].made().bundle, root=root)
    assert (good.returncode, good.stderr) == (0, "")
    assert "VALID: data/time/0.tsr says by your root that a head of 31 events existed at " in good.stdout
    assert "(T); which is this checkpoint" in good.stdout
    older = recipe(tmp_path, ROWS["time_token_over_earlier_head"].made().bundle, root=root)
    assert "a head of 17 events" in older.stdout
    assert "that it leads on to this checkpoint is NOT CHECKED" in older.stdout
    assert "NOT CHECKED: data/time/0.tsr" in recipe(tmp_path, ROWS["time_token"].made().bundle).stdout


@pytest.mark.parametrize(
    "name", ["time_token_over_another_fail", "time_token_other_root_notproven", "time_token_use_not_alone_notproven"]
)
def test_a_time_token_that_openssl_does_not_take(tmp_path: Path, name: str) -> None:
    done = recipe(tmp_path, ROWS[name].made().bundle, root=authority().root.certificate)
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.startswith("NOT PROVEN: openssl ts -verify does not take data/time/0.tsr")


@pytest.mark.parametrize("name", ["head_by_retired_and_heir", "statement_key_retired", "packed_task", "packed_peer"])
def test_what_it_leaves_to_the_others_is_not_called_invalid(tmp_path: Path, name: str) -> None:
    done = recipe(tmp_path, ROWS[name].made().bundle)
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.startswith("NOT PROVEN: ")
    assert "a2a_verify.py" in done.stdout


def test_a_root_that_cannot_be_read(tmp_path: Path) -> None:
    assert recipe(tmp_path, log().bundle, root=tmp_path / "nothing.pem").returncode == 2
