"""`a2a-ledger demo` end to end, and what the person on call and the arbiter make of what it leaves behind."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from a2a_ledger import ContractLedger
from a2a_ledger.policy import parse_policy
from tests.evidence.forging import damaged

if TYPE_CHECKING:
    from pathlib import Path

    from tests.demo.conftest import Kept

pytestmark = pytest.mark.timeout(240)


def stuck_task(place: Path) -> tuple[str, str]:
    """Return the local id and the peer's id of the stuck task."""
    with ContractLedger.open(place, read_only=True) as ledger:
        records = ledger.store.read(0, 1000)
        found = next(r for r in records if r.type == "violation.detected.v1" and r.data["rule"] == "auth-demand")
        task = str(found.data["task"])
        bound = next(r for r in records if r.type == "task.bound.v1" and r.stream == f"task:{task}")
    return task, str(bound.data["task_id"])


def test_the_demo_ends_as_it_must_and_leaves_evidence_behind(kept: Kept) -> None:
    assert kept.code == 0
    assert kept.report["ok"] is True
    assert [case["name"] for case in kept.report["cases"]] == ["stuck", "false cancel", "silent downgrade", "evidence"]
    assert all(all(case["checks"].values()) for case in kept.report["cases"])
    bundles = sorted(path.name for path in (kept.place / "bundles").iterdir())
    assert bundles == ["false-cancel.zip", "silent-downgrade.zip", "stuck.zip"]
    policy = parse_policy((kept.place / "policy.txt").read_text())
    with ContractLedger.open(kept.place / "ledger", read_only=True) as ledger:
        assert [key.name for key in policy.keys("log")] == [ledger.origin]
        records = ledger.store.read(0, 1000)
    found = {str(record.data["rule"]) for record in records if record.type == "violation.detected.v1"}
    assert found == {"auth-demand", "refetch-as-input", "self-inflicted-cancel", "weaker-authorization"}


def test_the_person_on_call_works_on_a_copy_without_keys(kept: Kept, tmp_path: Path) -> None:
    copy = tmp_path / "audit-copy"
    shutil.copytree(kept.place / "ledger", copy, ignore=shutil.ignore_patterns("keys"))
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file() and path.suffix == ".db"}
    task, peer_task = stuck_task(kept.place / "ledger")

    code, shown = kept.command("--ledger", copy, "show", peer_task)
    assert code == 0
    for fact in ("STUCK: cannot go on, cannot be cancelled", "read only", "WHO", "NOW", "pin unacknowledged"):
        assert fact in shown
    assert "TLS alert certificate_required" in shown
    assert "the frozen contract offers oauth" in shown
    assert "auth-demand, about: peer, certain" in shown

    code, replayed = kept.command("--ledger", copy, "replay", task[:12])
    assert code == 0
    assert "same:" in replayed
    assert "equal byte for byte" in replayed

    code, exported = kept.command("--ledger", copy, "export", peer_task, "-o", tmp_path / "case-17.zip")
    assert code == 0
    assert "Unilateral: the peer signed none of it" in exported
    assert "not anchored" in exported
    assert {path: path.read_bytes() for path in before} == before  # reading verbs never write


def test_the_arbiter_trusts_nobody(kept: Kept, tmp_path: Path) -> None:
    bundle = tmp_path / "case-17.zip"
    shutil.copy(kept.place / "bundles" / "stuck.zip", bundle)
    with ContractLedger.open(kept.place / "ledger", read_only=True) as ledger:
        vkey = str(ledger.store.record(1).data["vkey"])

    code, out = kept.command("verify", bundle)
    assert code == 3
    assert out.startswith("self-consistent only")

    code, out = kept.command("--format", "json", "verify", bundle, "--trust", vkey)
    report = json.loads(out)
    assert (code, report["verdict"], report["sides"]) == (0, "verified", "unilateral")
    status = {claim["claim"]: claim["status"] for claim in report["claims"]}
    assert {letter: status[letter] for letter in ("I", "L", "P", "C2", "R")} == dict.fromkeys("ILPR", "VALID") | {
        "C2": "VALID"
    }
    assert status["A"] == status["T"] == status["S"] == "NOT PROVEN"

    bundle.write_bytes(damaged(bundle.read_bytes()))
    code, out = kept.command("--format", "json", "verify", bundle, "--trust", vkey)
    report = json.loads(out)
    assert (code, report["verdict"]) == (1, "invalid")
    assert {claim["claim"]: claim["status"] for claim in report["claims"]}["I"] == "INVALID"
