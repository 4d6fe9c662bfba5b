"""Cassettes: what vcrpy, betamax and Ruby's VCR write, in YAML and JSON; nothing in a cassette makes an object."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from a2a_ledger.capture.formats import vcr_yaml
from a2a_ledger.capture.formats.vcr import read_interaction
from a2a_ledger.capture.import_file import import_file
from a2a_ledger.errors import FormatError, UsageError
from a2a_ledger.ledger import ContractLedger
from tests.capture.stored import all_octets
from tests.importer.archive import interaction
from tests.importer.lines import OAUTH, REQUIRED, TOKEN, Line, call, card, fetch, send, task, write
from tests.importer.reading import facts, findings, imported, kinds
from tests.importer.test_lines import STREAM, streamed

if TYPE_CHECKING:
    from pathlib import Path

EXCHANGES = [
    fetch(card(schemes=OAUTH, requirements=REQUIRED)),
    send("m1", {"task": task("WORKING", text="é 😀 ☃")}),
    call("GetTask", {"id": "T1"}, task("COMPLETED", text="after\u2028a separator")),
    {**streamed(STREAM + "\r\n\r\n")},
]
EXCHANGES[3]["request"]["body"] = EXCHANGES[3]["request"]["body"].replace("m1", "m2")

# As vcrpy 9.4.2 with httpx 0.28.1 wrote it of an answer that was gzipped.
PACKED = """\
interactions:
- request:
    body: ''
    headers:
      authorization:
      - Bearer sek
    method: GET
    uri: http://127.0.0.1:8765/.well-known/agent-card.json
  response:
    body:
      string: !!binary |
        H4sIACLkDGsC/6tWykvMTVWyUlCKUNJRUCotygGxM0pKCqz09Q2NzPUMgNDQysLczFQfpKCgKL8k
        Pzk/Jyy1qDgzPw+k2EDPWM9AqRYAC2IXIkoAAAA=
    headers:
      content-encoding:
      - gzip
      content-type:
      - application/json
    status:
      code: 200
      message: OK
version: 1
"""


def dumped(value: object, *, allow_unicode: bool = False) -> str:
    return str(yaml.safe_dump(value, allow_unicode=allow_unicode))  # pyright: ignore[reportUnknownMemberType] - its stubs


def cassettes(folder: Path) -> list[Path]:
    """Return the same cassette in YAML, as JSON, and with the names of Ruby's VCR."""
    made = {"interactions": [interaction(one) for one in EXCHANGES], "version": 1}
    ruby = {"http_interactions": made["interactions"], "recorded_with": "VCR 6.0.0"}
    paths = [folder / name for name in ("vcr.yaml", "vcr.json", "ruby.yml")]
    paths[0].write_text(dumped(made))
    paths[1].write_text(json.dumps(made, indent=2))
    paths[2].write_text("---\n" + dumped(ruby, allow_unicode=True))
    return paths


def told(ledger: ContractLedger) -> list[tuple[object, ...]]:
    return [(r.type, r.data.get("leg"), r.data.get("line"), r.content("body")) for r in imported(ledger)]


def test_a_cassette_yields_what_the_same_exchanges_yield_as_lines(tmp_path: Path) -> None:
    seen: list[list[tuple[object, ...]]] = []
    for file in (write(tmp_path, *EXCHANGES), *cassettes(tmp_path)):
        with ContractLedger.open(":memory:", follow=False) as ledger:
            report = import_file(ledger, file)
            assert report.faults == []
            assert (report.form, report.cards, report.exchanges) == ("jsonl" if not seen else "vcr", 1, 3)
            assert [r for r in imported(ledger) if r.data.get("claimed_at") and seen] == []
            seen.append(told(ledger))
            assert findings(ledger) == []
    assert seen[1:] == [seen[0]] * 3


def test_the_body_of_a_packed_answer_is_read(ledger: ContractLedger, tmp_path: Path) -> None:
    file = tmp_path / "packed.yaml"
    file.write_text(PACKED)
    assert import_file(ledger, file).faults == []
    (fetched,) = imported(ledger)
    body = b'{"name": "X", "url": "http://127.0.0.1:8765/", "protocolVersion": "0.3.0"}'
    assert (fetched.type, fetched.content("body"), fetched.data["dialect"]) == ("card.fetched.v1", body, "0.3")


@pytest.mark.parametrize(
    ("member", "body"),
    [
        ({"body": {"encoding": "UTF-8", "string": "{}"}}, b"{}"),
        ({"body": {"encoding": "", "base64_string": "e30=\n"}}, b"{}"),
        ({"body": "{}"}, b"{}"),
        ({"body": None}, b""),
        ({"content": "{}", "status_code": 200}, b"{}"),
        ({"headers": {"content-encoding": "gzip"}, "body": {"string": "{}"}}, b"{}"),
        ({"headers": {"content-encoding": ["deflate"]}, "body": {"string": "{}"}}, b"{}"),
    ],
)
def test_bodies_are_read_as_their_writers_spell_them(member: Line, body: bytes) -> None:
    request: Line = {"method": "get", "uri": "https://vendor.example/a2a"}
    read = read_interaction({"request": request, "response": {"status": {"code": 200}, **member}})
    assert read.request.method == "GET"
    assert read.response is not None
    assert (read.response.status, read.response.body) == (200, body)


@pytest.mark.parametrize(
    ("interaction", "problem"),
    [
        ("!!python/object/apply:os.system [echo]", "a YAML tag that makes an object"),
        ("{request: !!python/object/new:a.B {x: 1}, response: {}}", "a YAML tag that makes an object"),
        ("{request: {method: GET, method: POST}}", "expected each key once"),
        ("{request: {method: GET, uri: 7}}", "response: expected an object, found nothing"),
        ("{request: {method: GET, uri: 7}, response: {}}", "request.uri: expected a text, found int"),
        (
            "{request: {method: GET, uri: x, headers: [a]}, response: {}}",
            "request.headers: expected an object, found list",
        ),
        (
            "{request: {method: GET, uri: x}, response: {status: {code: two}}}",
            "response.status: expected an HTTP status",
        ),
        ("{request: {method: GET, uri: x, body: !!binary '%'}, response: {}}", "expected base64 behind !!binary"),
        ("&loop [*loop]", "a YAML alias of what stands nowhere before it"),
        ("[" * 40 + "]" * 40, "expected at most 32 lists and maps within each other"),
    ],
)
def test_a_broken_interaction_is_unreadable_and_the_rest_goes_in(
    ledger: ContractLedger, tmp_path: Path, interaction: str, problem: str
) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(PACKED.replace("interactions:\n", f"interactions:\n- {interaction}\n"))
    (fault,) = import_file(ledger, file).faults
    assert fault.line == 1
    assert problem in fault.problem
    assert kinds(ledger) == ["error", "card.fetched.v1"]
    assert facts(ledger, "flags") == [(["unreadable-line"],)]


def test_yaml_that_breaks_off_yields_what_came_before(ledger: ContractLedger, tmp_path: Path) -> None:
    file = tmp_path / "cut.yaml"
    file.write_text(PACKED.replace("version: 1\n", "- request:\n    method: [never closed\n"))
    problem = "expected an interaction, found text that is not YAML at line "
    (fault,) = import_file(ledger, file).faults
    assert (fault.line, fault.problem[: len(problem)]) == (2, problem)
    assert kinds(ledger) == ["card.fetched.v1", "error"]


def test_yaml_in_other_bytes_than_utf_8_is_unreadable(ledger: ContractLedger, tmp_path: Path) -> None:
    file = tmp_path / "latin.yaml"
    file.write_bytes(PACKED.encode() + b"\xff")
    assert import_file(ledger, file).faults == [(1, "expected YAML in UTF-8, found other bytes")]


def test_no_credential_of_a_cassette_is_kept(tmp_path: Path) -> None:
    sent = interaction(EXCHANGES[1])
    sent["request"]["headers"] = {**sent["request"]["headers"], "cookie": ["sid=cookie-secret"]}
    file = tmp_path / "secret.yaml"
    file.write_text(dumped({"interactions": [interaction(EXCHANGES[0]), sent, {"request": {"Bearer": TOKEN}}]}))
    with ContractLedger.open(tmp_path / "audit", follow=False) as ledger:
        assert [fault.line for fault in import_file(ledger, file).faults] == [3]
        ledger.catch_up()
    kept = all_octets(tmp_path / "audit")
    assert TOKEN.encode() not in kept
    assert b"cookie-secret" not in kept
    assert b"Makes reports" in kept


def test_without_pyyaml_a_cassette_in_yaml_is_refused_and_one_in_json_is_read(
    ledger: ContractLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_yaml, in_json, _ = cassettes(tmp_path)
    monkeypatch.delitem(sys.modules, "a2a_ledger.capture.formats.vcr_yaml", raising=False)
    monkeypatch.delattr("a2a_ledger.capture.formats.vcr_yaml", raising=False)
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(UsageError, match=r"needs PyYAML: pip install 'a2a-ledger\[import\]'"):
        import_file(ledger, in_yaml)
    assert import_file(ledger, in_json).exchanges == 3


def test_a_cassette_too_long_to_be_held_is_refused(
    ledger: ContractLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_yaml, in_json, _ = cassettes(tmp_path)
    monkeypatch.setattr(vcr_yaml, "MOST_OCTETS", 100)
    with pytest.raises(UsageError, match=r"expected at most 100 octets of YAML, found \d+: split the cassette"):
        import_file(ledger, in_yaml)
    assert import_file(ledger, in_json).exchanges == 3


def test_what_is_named_a_cassette_and_is_none_is_refused(ledger: ContractLedger, tmp_path: Path) -> None:
    for text in ("a: b\n", "{}", '{"interactions": 7}'):
        file = tmp_path / "x"
        file.write_text(text)
        with pytest.raises(UsageError, match="expected interactions or http_interactions, found none"):
            import_file(ledger, file, form="vcr")


def test_a_header_may_stand_alone_or_in_a_list_or_as_octets() -> None:
    request: Line = {
        "method": "GET",
        "uri": "x",
        "headers": {"a": "1", "b": ["2", "3"], "c": [{"base64_string": "NA=="}]},
    }
    read = read_interaction({"request": request, "response": {"status": 200}})
    assert read.request.headers == [("a", "1"), ("b", "2"), ("b", "3"), ("c", "4")]
    with pytest.raises(FormatError, match="half a surrogate pair"):
        read_interaction({"request": {**request, "uri": "\ud83d"}, "response": {"status": 200}})


PLAIN = """\
- request: {method: GET, uri: 'https://vendor.example/x', body: null, headers: {}}
  response: {status: {code: 200, message: OK}, headers: {}, body: {string: 'x'}}
"""
DEEP = ["[" * 900 + "]" * 900, "{a: " * 600 + "1" + "}" * 600]


@pytest.mark.parametrize("deep", DEEP, ids=["lists", "maps"])
def test_an_interaction_that_is_too_deep_costs_no_other(ledger: ContractLedger, tmp_path: Path, deep: str) -> None:
    file = tmp_path / "deep.yaml"
    file.write_text(f"x: {deep}\ninteractions:\n- {deep}\n{PLAIN}")
    report = import_file(ledger, file)
    assert report.faults == [(1, "expected at most 32 lists and maps within each other, found more")]
    assert report.exchanges == 1


MANY = "x: &t v\ny: &l [" + ",".join(["*t"] * 3000) + "]\n"
LONG = f"x: &t '{'A' * 400_000}'\n"
GROWING = "x: &a0 [v,v,v,v,v,v,v,v,v,v]\n" + "".join(
    f"x{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)
TOO_MANY = "request.headers: expected at most 10000 headers of 1048576 characters in all, found more"
REFUSED = "expected plain values, found a YAML alias of what stands nowhere before it, or is refused"


@pytest.mark.parametrize(
    ("before", "headers", "problem"),
    [
        (MANY, "{" + ",".join(f"h{n}: *l" for n in range(3000)) + "}", TOO_MANY),
        (LONG, "{" + ",".join(f"h{n}: *t" for n in range(50)) + "}", TOO_MANY),
        (GROWING, "{a: *a8}", REFUSED),
    ],
    ids=["nine million headers", "twenty million characters", "ten to the power of nine values"],
)
def test_aliases_that_multiply_cost_one_interaction(
    ledger: ContractLedger, tmp_path: Path, before: str, headers: str, problem: str
) -> None:
    file = tmp_path / "grows.yaml"
    file.write_text(f"{before}interactions:\n{PLAIN.replace('{}', headers)}{PLAIN}")
    report = import_file(ledger, file, form="vcr")
    assert report.faults == [(1, problem)]
    assert report.exchanges == 1


def test_aliases_of_one_body_stand_for_no_more_than_a_cassette_may_hold(
    ledger: ContractLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vcr_yaml, "MOST_OCTETS", 10_000)
    file = tmp_path / "again.yaml"
    again = PLAIN.replace("string: 'x'", "string: *t")
    file.write_text(f"x: &t '{'A' * 3_000}'\ninteractions:\n{again * 5}")
    report = import_file(ledger, file, form="vcr")
    problem = "expected YAML aliases that stand for at most 10000 characters in all, found more"
    assert report.faults == [(4, problem), (5, problem)]
    assert report.exchanges == 3


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"---\nfoo: 1\n---\ninteractions:\n{PLAIN}", [1, 0]),
        (f"interactions:\n{PLAIN}---\n- 1\n---\nhttp_interactions:\n{PLAIN}", [2, 0]),
        ("interactions: []\n", [0, 0]),
        ("interactions: {a: 1}\n", [0, 1]),
        ("interactions:\n", [0, 1]),
        ("x: |\n\n  y\n# \ninteractions: 7", [0, 1]),
        (f"interactions:\n- *nowhere\n{PLAIN}", [1, 1]),
        (f"interactions:\n- &a [*a]\n{PLAIN}", [1, 1]),
        (f"x: &x !!python/object:os.system {{}}\ninteractions:\n- *x\n{PLAIN}", [1, 1]),
    ],
)
def test_every_document_is_read_and_nothing_passes_in_silence(
    ledger: ContractLedger, tmp_path: Path, text: str, found: list[int]
) -> None:
    file = tmp_path / "documents.yaml"
    file.write_text(text)
    report = import_file(ledger, file, form="vcr")
    assert [report.exchanges, len(report.faults)] == found


# Tags that the reader of Ruby's psych knows (lib/psych/visitors/to_ruby.rb).
RUBY = """\
---
http_interactions:
- request: !ruby/hash:ActiveSupport::HashWithIndifferentAccess
    method: !ruby/symbol post
    uri: !ruby/string:Addressable "https://vendor.example/a2a"
    body: !ruby/struct:VCR::Body
      encoding: US-ASCII
      string: !str
        str: '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"T1"}}'
        "@frozen": true
    headers:
      Content-Type: !ruby/array:Headers
      - application/json
  response:
    status: {code: 200, message: OK}
    headers:
      X-Odd: [!binary "w7w="]
    body:
      encoding: ASCII-8BIT
      string: !binary |-
        eyJqc29ucnBjIjoiMi4wIiwiaWQiOjEsInJlc3VsdCI6eyJraW5kIjoidGFzayIsImlkIjoiVDEi
        LCJjb250ZXh0SWQiOiJDMSIsInN0YXR1cyI6eyJzdGF0ZSI6IndvcmtpbmcifX19
  recorded_at: Tue, 01 Nov 2011 04:58:44 GMT
- !ruby/class String
"""


def test_what_ruby_tags_is_the_plain_value_that_it_is_written_as(ledger: ContractLedger, tmp_path: Path) -> None:
    file = tmp_path / "ruby.yml"
    file.write_text(RUBY)
    report = import_file(ledger, file)
    assert report.faults == [(2, "expected plain values, found a YAML tag that makes an object")]
    assert facts(ledger, "leg", "method", "state_read", "task_id")[:2] == [
        ("request", "GetTask", None, "T1"),
        ("response", "GetTask", "working", "T1"),
    ]
