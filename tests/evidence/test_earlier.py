"""What an earlier head that the reader holds does to the verdict (claim A)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from a2a_ledger.bundle import CHECKPOINT
from a2a_ledger.checkpoint import Checkpoint, sign_checkpoint
from a2a_ledger.cli import cli
from a2a_ledger.errors import UsageError
from a2a_ledger.keys import load_pem
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.verify import verify
from tests.evidence.forging import files_of, statuses
from tests.evidence.recorded import dispute

if TYPE_CHECKING:
    from pathlib import Path

    from tests.evidence.conftest import Case


def head(case: Case, size: int) -> str:
    """Return a head of another history, signed by the log's own key."""
    origin = case.log_key.split("+")[0]
    return sign_checkpoint(Checkpoint(origin, size, b"\x07" * 32), load_pem(case.place / "keys" / "log.pem", origin))


def test_with_an_earlier_head_the_proof_from_it_is_required(case: Case) -> None:
    now = files_of(case.bundle)[CHECKPOINT]
    size = int(now.split(b"\n")[1])
    for note, verdict, status in (
        (now, "verified", "VALID"),
        (head(case, size), "invalid", "INVALID"),  # same size, another root
        (head(case, size - 1), "not proven", "NOT PROVEN"),  # the bundle holds no proof from there
        (head(case, size + 1), "not proven", "NOT PROVEN"),  # the bundle is older than what the reader holds
    ):
        report = verify(case.bundle, trust=[case.log_key], earlier=[note])
        assert (report.verdict, statuses(report)["A"]) == (verdict, status)


@pytest.mark.parametrize("note", [b"garbage", b"acme/audit\n97\nAAAA\n\n"])
def test_what_is_no_head_is_the_readers_mistake(case: Case, note: bytes) -> None:
    with pytest.raises(UsageError, match="the earlier checkpoint that you gave cannot be used"):
        verify(case.bundle, trust=[case.log_key], earlier=[note])


def test_a_head_that_the_log_did_not_sign_is_the_readers_mistake(case: Case) -> None:
    text, _, _ = files_of(case.bundle)[CHECKPOINT].decode().partition("\n\n")
    other = head(case, 5)
    forged = f"{text}\n\n{other.partition(chr(10) * 2)[2]}"
    with pytest.raises(UsageError, match="cannot be used"):
        verify(case.bundle, trust=[case.log_key], earlier=[forged])


def test_the_command_line_proves_growth_since_a_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    place = tmp_path / "audit"
    with ContractLedger.open(place, origin="acme/audit", follow=False) as ledger:
        story = dispute(ledger)
        (tmp_path / "head").write_text(ledger.sign_checkpoint(), encoding="utf-8")
        dispute(ledger, name="t2")
        ledger.catch_up()
        trust, task = ledger.signers["log"].vkey, story.tasks["t1"]
    words = [
        "--ledger",
        str(place),
        "export",
        task,
        "-o",
        str(tmp_path / "case.zip"),
        "--since",
        str(tmp_path / "head"),
    ]
    made = CliRunner().invoke(cli, words)
    assert made.exit_code == 0, made.output
    asked = ["verify", str(tmp_path / "case.zip"), "--trust", trust, "--earlier", str(tmp_path / "head")]
    told = CliRunner().invoke(cli, asked)
    assert told.exit_code == 0
    assert told.output.startswith("verified. Checkpoint ")
    (tmp_path / "head").write_text("garbage", encoding="utf-8")
    assert CliRunner().invoke(cli, asked).exit_code == 2
