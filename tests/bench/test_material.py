"""What is recorded for the benchmark is what the product records: it replays, and is found honest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.cli.bench.material import Messages, card_bytes, record_tasks
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.replay import replay_task

if TYPE_CHECKING:
    from pathlib import Path


def test_a_task_has_forty_events_and_replays_the_same(tmp_path: Path) -> None:
    with ContractLedger.open(tmp_path / "audit", follow=False, mark_dir=str(tmp_path / "mark")) as ledger:
        tasks = record_tasks(ledger, 2)
        ledger.catch_up()
        for task in tasks:
            records = ledger.store.read_stream(f"task:{task}")
            assert len(records) == 40
            assert [record.type.removesuffix(".v1") for record in records[:5]] == [
                "freshness.decided",
                "contract.captured",
                "message.recorded",
                "message.recorded",
                "task.bound",
            ]
            assert records[-1].data["state_read"] == "completed"
            assert replay_task(ledger, task).same
        assert not [r for r in ledger.store.read(0, 1000) if r.type == "violation.detected.v1"]


def test_a_message_is_one_kilobyte_and_a_card_at_most_ten(tmp_path: Path) -> None:
    with ContractLedger.open(tmp_path / "audit", follow=False, mark_dir=str(tmp_path / "mark")) as ledger:
        (placed,) = ledger.append([Messages(ledger, 1).draft(0)])
        assert len(ledger.store.record(placed.n).content("body") or b"") == 1024
    assert 5_000 < len(card_bytes()) <= 10_000
