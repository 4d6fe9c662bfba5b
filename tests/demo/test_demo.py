"""`a2a-ledger demo` end to end: real agents, real card rotations, and what it leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from a2a_ledger import ContractLedger
from a2a_ledger.checkpoint import parse_policy

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.timeout(180)
def test_the_demo_ends_as_it_must_and_leaves_evidence_behind(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    done = subprocess.run(
        [sys.executable, "-c", "from a2a_ledger.cli import main; main()", "--format", "json", "demo", "--keep", kept],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["ok"] is True
    assert [case["name"] for case in report["cases"]] == ["stuck", "false cancel", "silent downgrade", "evidence"]
    assert all(all(case["checks"].values()) for case in report["cases"])

    assert sorted(path.name for path in (kept / "bundles").iterdir()) == [
        "false-cancel.zip",
        "silent-downgrade.zip",
        "stuck.zip",
    ]
    policy = parse_policy((kept / "policy.txt").read_text())
    with ContractLedger.open(kept / "ledger", read_only=True) as ledger:
        assert [key.name for key in policy.keys("log")] == [ledger.origin]
        found = {
            str(record.data["rule"]) for record in ledger.store.read(0, 1000) if record.type == "violation.detected.v1"
        }
    assert found == {"auth-demand", "refetch-as-input", "self-inflicted-cancel", "weaker-authorization"}
