"""Whichever one body an exporter leaves out, nothing honest is refuted: a rule may rest on it without showing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger.export import export_task
from a2a_ledger_projections.verifier import follower
from tests.divergence.story import artifact, made, ours, said, task, update
from tests.divergence.wires import Wire
from tests.evidence.forging import judged, statuses
from tests.evidence.recorded import LedgerStory, opened
from tests.verifier.ledger_story import recorded

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WHOLE = (artifact("one, "), artifact("two", append=True, last=True))


def answered_as_before(wire: Wire) -> None:
    wire.begin()
    wire.answer(wire.send(), {"task": task("submitted")})
    wire.poll("completed")
    wire.answer(wire.send(), {"task": task("submitted")})


def rewritten_behind_its_chunks(wire: Wire) -> None:
    wire.begin()
    wire.tell(wire.send(streaming=True), {"task": task("submitted")}, *WHOLE, update("completed"))
    wire.poll("completed", artifacts=made("one, 2"))


def told_again_in_chunks(wire: Wire) -> None:
    wire.begin()
    stream = wire.send(streaming=True)
    wire.tell(stream, {"task": task("submitted")}, *WHOLE, update("completed"))
    wire.tell(stream, WHOLE[0], WHOLE[1], update("completed"))


def another_history(wire: Wire) -> None:
    wire.begin()
    wire.answer(wire.send(), {"task": task("working", history=[ours("m1"), said("a1", "x")])})
    wire.poll(history=[ours("m1"), said("a1", "x"), said("a2", "y")])
    wire.poll(history=[ours("m1"), said("a2", "y"), said("a1", "z")])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tell", "rules"),
    [
        (answered_as_before, set[str]()),
        (rewritten_behind_its_chunks, {"artifact-rewritten"}),
        (told_again_in_chunks, set[str]()),
        (another_history, {"history-divergence"}),
    ],
)
def test_no_body_that_is_left_out_refutes(tell: Callable[[Wire], None], rules: set[str], tmp_path: Path) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = LedgerStory(ledger)
        tell(Wire("JSONRPC", story))
        follower(ledger).catch_up()
        assert {str(record.data["rule"]) for record in recorded(ledger)} == rules
        ledger.sign_checkpoint()
        key = ledger.signers["log"].vkey
        whole = export_task(ledger, story.tasks["t1"]).data
        assert statuses(judged(whole, key))["R"] == "VALID"
        messages = [record for record in story.records if record.type == "message.recorded.v1"]
        blobs = [record.blobs["body"].id for record in messages]
        assert len(blobs) > 4
        for blob in blobs:
            report = judged(export_task(ledger, story.tasks["t1"], withhold=[blob]).data, key)
            assert statuses(report)["R"] != "INVALID", report.claim("R").detail
