"""Every recorded file of real traffic, wrapped in lines, goes in without a fault."""

from __future__ import annotations

import base64
from pathlib import Path  # noqa: TC003 - pytest reads the annotation
from typing import TYPE_CHECKING

from a2a_ledger.capture.import_file import import_file
from tests.importer.lines import URL, Line, card, fetch, line, write
from tests.importer.reading import imported, kinds

if TYPE_CHECKING:
    from a2a_ledger.ledger import ContractLedger


def wrapped(path: Path) -> list[Line]:
    """Return a file as the body of a request, of an answer and, of a stream, as a stream."""
    body = base64.b64encode(path.read_bytes()).decode()
    asked: Line = {"method": "POST", "url": URL, "headers": [["content-type", "application/json"]], "body_b64": body}
    kind = "text/event-stream" if path.suffix == ".sse" else "application/json"
    answer: Line = {"status": 200, "headers": [["content-type", kind]], "body_b64": body}
    poll: Line = {
        "method": "POST",
        "url": URL,
        "headers": [],
        "body": '{"jsonrpc":"2.0","id":1,"method":"message/stream"}',
    }
    return [line(asked, answer), line(poll, answer), line(asked, None, kind="push")]


def test_all_real_traffic_is_imported(ledger: ContractLedger, tmp_path: Path, corpus: Path) -> None:
    files = [p for p in sorted((corpus / "corpus" / "traffic").iterdir()) if p.suffix in {".json", ".sse", ".http"}]
    lines = [one for path in files for one in wrapped(path)]

    report = import_file(ledger, write(tmp_path, fetch(card()), *lines))

    assert report.faults == []
    assert report.lines == 1 + 3 * len(files) > 300
    assert kinds(ledger).count("stream-end") == 2 * sum(path.suffix == ".sse" for path in files)
    kept = {record.content("body") for record in imported(ledger) if record.data.get("leg") == "request"}
    assert sum(path.read_bytes() in kept for path in files) > 0.9 * len(files)  # the rest holds push tokens, cut
    ledger.catch_up()
