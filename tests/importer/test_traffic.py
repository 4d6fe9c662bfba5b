"""All recorded traffic of the corpus: each file by itself, and each conversation as it was held.

Both tables were made by reading the files, before anything ran: what stands in a file, and what a careful reader
would hold against whom. Most is honest, so most rows say that nothing is found.
"""

from __future__ import annotations

import base64
import csv
import re
from pathlib import Path  # noqa: TC003 - pytest reads the annotation

import pytest

from a2a_ledger.capture.formats.lone import read_message
from a2a_ledger.capture.import_file import import_file
from a2a_ledger.capture.jsonl_line import ExchangeLine
from a2a_ledger.ledger import ContractLedger
from tests.importer.lines import Line, fetch, line, write
from tests.importer.reading import facts, findings, kinds

BODY, ANSWER, PROSE = ["request"], ["response"], ["error"]
SENT, KNOWN_TASK = ["contract.reconstructed.v1", "request"], ["task.adopted.v1", "request"]
CUT = "stream-event"
EXCHANGE_OF_T27 = ["card.fetched.v1", *SENT, *[CUT] * 3, "stream-end", "task.bound.v1"]


def numbered(name: str, *numbers: int) -> list[str]:
    return [f"{name}_{number}" for number in numbers]


FILES: list[tuple[list[str], list[str]]] = [
    # A body that names a method, or holds a message of a user; nothing says where it was sent.
    (["T01_1", "T02_1", "T03_1", "T04_4", "T08_1", "T10_1", "T11_1", "T12_1", "T13_1", "T16_3", "T33", "T51_1"], BODY),
    ([*numbered("T09", 1, 2, 3), "T14_1", "T14_3", *numbered("T22", 4, 5, 6, 7, 8), "T24_1", "T24_3", "T52_7"], BODY),
    (numbered("T50", 1, 3, 5, 7, 9), BODY),
    # The answer of JSON-RPC, or a 1.0 envelope.
    (["T01_2", "T03_2", "T03_4", "T07_2", "T07_4", "T07_6", "T11_2", "T12_2", "T14_2", "T14_4", "T16_4"], ANSWER),
    (["T23_1", "T23_2", "T24_2", "T24_4", *numbered("T44", 1, 2, 3, 4, 5, 6, 7), *numbered("T45", 4, 5, 6)], ANSWER),
    ([*numbered("T50", 2, 4, 6, 8, 10), "T51_2", *numbered("T52", 1, 2, 3, 4, 5, 6, 8)], ANSWER),
    # HTTP with a status line.
    (["T17_2", "T18_2", "T19_2", "T19_4", "T20_2", "T20_4", "T20_6", "T21_2", "T23_3"], ANSWER),
    # HTTP with a request line, so it is known where it went: a send, a call about a task that is not known, a listing.
    (["T17_1", "T17_3", "T18_1", "T19_1", "T21_1"], SENT),
    (["T07_1", "T07_3", "T07_5", "T18_3"], KNOWN_TASK),
    (["T19_3", "T20_1", "T20_3", "T20_5", "T22_1"], BODY),
    (["T21_3"], ["push"]),  # a StreamResponse to a url that is no method
    # Streams, of which only that of the cassette ends with a blank line.
    (numbered("T02", 2, 3, 4, 5, 6), [CUT, "stream-end"]),
    (["T08_2"], [*[CUT] * 4, "stream-end"]),
    (["T17_4"], [*[CUT] * 3, "stream-end"]),
    (["T10_2", "T13_2"], [*[CUT] * 6, "stream-end"]),  # five, and the last after two blank lines
    (["T55"], [*[CUT] * 3, "stream-end"]),
    # A bare Task is what a store holds; two of them stand in a list.
    (["T45_1", "T45_3", "T51_4", "T51_5"], ["task.snapshot.v1"]),
    (["T45_2"], ["task.snapshot.v1"] * 2),
    # Cassettes: a card; card, stream and poll; card and stream; two calls of somebody else's API.
    (["T25"], ["card.fetched.v1"]),
    (["T26"], [*EXCHANGE_OF_T27, "request", "response"]),
    (["T27", "T28"], EXCHANGE_OF_T27),
    (["T30"], ["request", "response"] * 2),
    # JSON with comments, trailing commas or a missing end: recorded, withheld, flagged, reported.
    (["T03_3", *numbered("T04", 1, 2, 3), "T05_1", "T05_2", "T06_1", "T06_2", *numbered("T09", 4, 5, 6)], PROSE),
    ([*numbered("T15", 1, 2, 3), "T16_1", "T16_2", "T22_2", "T22_3"], PROSE),
    # JSON that is no message: lists of test vectors, a resource name, the provider of a card.
    (["T34", "T41", "T51_3", "T51_6"], PROSE),
]
NOT_JSON_INSIDE = {"T20_6", "T22_1", "T10_2", "T13_2"}
"""Their head can be read, or their events told apart; what stands there is not JSON."""


def traffic(corpus: Path) -> dict[str, Path]:
    return {path.stem: path for path in (corpus / "corpus" / "traffic").iterdir() if path.suffix != ".tsv"}


def test_each_file_goes_in_by_itself_as_the_table_says(corpus: Path) -> None:
    files = traffic(corpus)
    table = {name: expected for names, expected in FILES for name in names}
    assert set(table) == set(files)
    for name, path in files.items():
        with ContractLedger.open(":memory:", follow=False) as ledger:
            report = import_file(ledger, path)
            assert kinds(ledger) == table[name], name
            assert bool(report.faults) == (table[name] == PROSE), name
            flags = {
                flag for (listed,) in facts(ledger, "flags") if isinstance(listed, list) for flag in map(str, listed)
            }
            assert ("unreadable-line" in flags) == (table[name] == PROSE), name
            assert ("not-json" in flags) == (name in NOT_JSON_INSIDE), name
            assert findings(ledger) == [], name


def test_what_the_index_calls_no_json_is_what_could_not_be_read(corpus: Path) -> None:
    with (corpus / "corpus" / "traffic" / "INDEX.tsv").open(newline="") as index:
        rows = list(csv.DictReader(index, delimiter="\t"))
    named = {name for row in rows for name in re.findall(r"(T\d+_\d+):n ", row["valid_json"])}
    prose = {name for names, expected in FILES if expected is PROSE for name in names}
    assert named == prose - {"T34", "T41", "T51_3", "T51_6"}


# ---- conversations

RPC, REST = "https://agent.example.com/rpc", "https://agent.example.com"
CARDS: dict[str, Line] = {
    "0.1": {"name": "A", "url": RPC, "version": "1", "capabilities": {"streaming": True}, "skills": []},
    "0.2": {"name": "A", "url": RPC, "version": "1", "protocolVersion": "0.2.5", "capabilities": {}, "skills": []},
    "0.3": {
        "name": "A",
        "url": RPC,
        "version": "1",
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": REST, "transport": "HTTP+JSON"}],
        "capabilities": {},
        "skills": [],
    },
    "1.0": {
        "name": "A",
        "description": "a",
        "version": "1",
        "capabilities": {},
        "skills": [],
        "supportedInterfaces": [
            {"url": RPC, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": REST, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        ],
    },
}
NOTHING: list[tuple[str, str]] = []
# Version, the exchanges as (asked, answered), pushes, and rule and whom it is about.
CONVERSATIONS: list[tuple[str, list[tuple[str, str]], list[str], list[tuple[str, str]]]] = [
    ("0.1", [("T01_1", "T01_2")], [], NOTHING),
    ("0.1", [("T02_1", "T02_2 T02_3 T02_4 T02_5 T02_6")], [], NOTHING),
    ("0.1", [("T03_1", "T03_2"), ("T03_3", "T03_4")], [], NOTHING),
    ("0.1", [("T04_1", "T04_2"), ("T04_4", "")], ["T04_3"], NOTHING),
    ("0.1", [("T05_1", "T05_2"), ("T06_1", "T06_2")], [], NOTHING),
    ("0.1", [("T07_1", "T07_2"), ("T07_3", "T07_4"), ("T07_5", "T07_6")], [], NOTHING),
    ("0.1", [("T08_1", "T08_2")], [], NOTHING),
    ("0.2", [("T09_1", ""), ("T09_3", "T09_4"), ("T09_5", "T09_6")], [], NOTHING),
    ("0.2", [("T10_1", "T10_2")], [], NOTHING),
    ("0.3", [("T11_1", "T11_2")], [], NOTHING),
    ("0.3", [("T12_1", "T12_2")], [], NOTHING),
    ("0.3", [("T13_1", "T13_2")], [], NOTHING),
    ("0.3", [("T14_1", "T14_2"), ("T14_3", "T14_4")], [], NOTHING),  # the last word of the agent is in no history
    ("0.3", [("T15_1", "T15_2")], ["T15_3"], NOTHING),
    ("0.3", [("T16_1", "T16_2"), ("T16_3", "T16_4")], [], NOTHING),
    ("1.0", [("T17_1", "T17_2")], [], NOTHING),
    ("1.0", [("T17_3", "T17_4")], [], NOTHING),
    ("1.0", [("T18_1", "T18_2"), ("T18_3", "")], [], NOTHING),
    # The client asks in version 0.5, and is told that 0.3 is spoken here: as frozen.
    ("0.3", [("T19_1", "T19_2"), ("T19_3", "T19_4")], [], [("version-skew", "client")]),
    ("1.0", [("T20_1", "T20_2"), ("T20_3", "T20_4"), ("T20_5", "T20_6")], [], NOTHING),
    ("1.0", [("T21_1", "T21_2")], ["T21_3"], NOTHING),
    (
        "1.0",
        [("T22_1", "T22_3"), ("T22_4", ""), ("T22_5", ""), ("T22_6", ""), ("T22_7", ""), ("T22_8", "")],
        [],
        NOTHING,
    ),
    ("1.0", [("T24_1", "T24_2"), ("T24_3", "T24_4")], [], NOTHING),
    # Asked in context-1234, answered in c295ea44-….
    ("1.0", [("T50_1", "T50_2")], [], [("identity-swap", "peer")]),
    ("1.0", [("T50_3", "T50_4")], [], NOTHING),
    ("1.0", [("T50_5", "T50_6")], [], NOTHING),
    ("1.0", [("T50_7", "T50_8"), ("T50_9", "T50_10")], [], NOTHING),
]


def exchange(files: dict[str, Path], asked: str, answered: str) -> Line:
    """Return one exchange of files as a line: HTTP text as it says, a body alone as a POST to the interface."""
    request = read_message(files[asked].read_bytes(), RPC) if files[asked].suffix == ".http" else None
    body = files[asked].read_bytes()
    url, headers, method = RPC, [["content-type", "application/json"]], "POST"
    if isinstance(request, ExchangeLine):
        method, body = request.request.method, request.request.body
        url = request.request.url.replace("http://localhost:10000", RPC)
        headers = [list(pair) for pair in request.request.headers]
    sent: Line = {"method": method, "url": url, "headers": headers, "body_b64": base64.b64encode(body).decode()}
    return line(sent, answer(files, answered.split()) if answered else None)


def answer(files: dict[str, Path], names: list[str]) -> Line:
    octets = b"\n\n".join(files[name].read_bytes().rstrip(b"\n") for name in names) + b"\n\n"
    kind = "text/event-stream" if files[names[0]].suffix == ".sse" else "application/json"
    status = 200
    if octets.startswith(b"HTTP/1.1 "):
        head, _, octets = octets.partition(b"\n\n")
        status = int(head[9:12])
        kind = "text/event-stream" if b"event-stream" in head else "application/a2a+json"
    return {"status": status, "headers": [["content-type", kind]], "body_b64": base64.b64encode(octets).decode()}


@pytest.mark.parametrize(
    ("version", "exchanges", "pushes", "expected"),
    CONVERSATIONS,
    ids=[exchanges[0][0] for _, exchanges, _, _ in CONVERSATIONS],
)
def test_each_conversation_is_judged_as_the_table_says(
    ledger: ContractLedger,
    tmp_path: Path,
    corpus: Path,
    version: str,
    exchanges: list[tuple[str, str]],
    pushes: list[str],
    expected: list[tuple[str, str]],
) -> None:
    files = traffic(corpus)
    card = fetch(CARDS[version])
    card["request"]["url"] = f"{REST}/.well-known/agent-card.json"
    lines = [card, *(exchange(files, *names) for names in exchanges)]
    for name in pushes:
        came = read_message(files[name].read_bytes()) if files[name].suffix == ".http" else None
        body = came.request.body if isinstance(came, ExchangeLine) else files[name].read_bytes()
        asked: Line = {"method": "POST", "url": "https://client.example.com/webhook", "headers": []}
        asked["body_b64"] = base64.b64encode(body).decode()
        lines.append(line(asked, None, kind="push"))

    report = import_file(ledger, write(tmp_path, *lines))

    assert (report.faults, report.cards, report.pushes) == ([], 1, len(pushes))
    assert report.exchanges == len(exchanges)
    assert [(rule, about) for rule, about, _ in findings(ledger)] == expected
