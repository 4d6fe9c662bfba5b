"""What the rules find in recorded traffic of real projects: a table made by hand, and for most of it nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from a2a_ledger.capture.import_file import import_file
from a2a_ledger.ledger import ContractLedger
from tests.divergence.conversations import conversations

if TYPE_CHECKING:
    from pathlib import Path

FOUND: dict[str, list[tuple[str, str]]] = {
    # T17, two samples of the specification with one message id and two messages, is two tasks: nothing to find.
    # The sample shows a client that asks for 0.5, and is refused.
    "T19": [("version-skew", "request:0.5")],
    # A file that is named 1.0 and speaks the methods of 0.3.
    "T33": [("version-skew", "request:0.3")],
    "T34": [("version-skew", "request:0.3"), ("version-skew", "request:0.3")],
    # A task that asks for scopes where the card requires nothing; three of 31 vectors of 0.3 are wrapped as in 1.0.
    "T41": [
        ("auth-demand", "status-data:scope:peer39:read peer39:activate"),
        *[("version-skew", "envelope:1.0")] * 3,
    ],
    # Single messages of a test suite with one task id, laid together as one conversation.
    "T50": [
        ("identity-swap", "context:c295ea44-7543-4f78-b524-7a38915ad6e4"),
        ("illegal-transition", "completed->canceled"),
    ],
}
"""By the name of a conversation: rule and subject of every finding; what is not named has none."""


def test_the_rules_find_in_real_traffic_what_is_there_and_no_more(tmp_path: Path, corpus: Path) -> None:
    found: dict[str, list[tuple[str, str]]] = {}
    judged = 0
    for told in conversations(corpus / "corpus" / "traffic"):
        file = told.cassette or tmp_path / f"{told.name}.jsonl"
        if told.cassette is None:
            file.write_text("".join(json.dumps(line) + "\n" for line in told.lines), "utf-8")
        with ContractLedger.open(":memory:", follow=False) as ledger:
            report = import_file(ledger, file)
            assert report.faults == [], told.name
            ledger.catch_up()
            records = ledger.store.read(0, 10_000)
        judged += sum(record.type == "contract.reconstructed.v1" for record in records)
        violations = [record.data for record in records if record.type == "violation.detected.v1"]
        if violations:
            found[told.name] = [(str(data["rule"]), str(data["subject"])) for data in violations]
    assert found == FOUND
    assert judged > 60
