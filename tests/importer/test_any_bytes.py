"""Whatever stands in a file: it is imported, or refused by a word, and never stops with a traceback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from a2a_ledger.capture.formats import FORMATS
from a2a_ledger.capture.formats.scan import end_of, member, spans
from a2a_ledger.capture.import_file import import_file
from a2a_ledger.errors import UsageError
from a2a_ledger.ledger import ContractLedger
from tests.importer.archive import entry, interaction
from tests.importer.lines import card, fetch, send, task
from tests.importer.test_lines import STREAM, streamed

if TYPE_CHECKING:
    from pathlib import Path

EXCHANGES = [fetch(card()), send("m1", {"task": task("WORKING")}), streamed(STREAM)]
SEEDS = [
    json.dumps({"log": {"entries": [entry(one) for one in EXCHANGES]}}).encode(),
    json.dumps({"interactions": [interaction(one) for one in EXCHANGES]}).encode(),
    str(yaml.safe_dump({"interactions": [interaction(one) for one in EXCHANGES]})).encode(),  # pyright: ignore[reportUnknownMemberType] - its stubs
    json.dumps([task("WORKING"), task("COMPLETED", task_id="T2")]).encode(),
    "\n".join(json.dumps(one) for one in EXCHANGES).encode(),
    b"POST /a2a HTTP/1.1\r\nHost: vendor.example\r\n\r\n" + EXCHANGES[1]["request"]["body"].encode(),
    STREAM.encode(),
]
JUNK = st.sampled_from(
    [
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\\",
        b"\n",
        b"\r\n\r\n",
        b"\xff",
        b"\x00",
        b"null",
        b"7e999",
        b"!!x",
        b"&a *a",
    ]
)


def taken(path: Path, form: str | None = None) -> None:
    with ContractLedger.open(":memory:", follow=False) as ledger:
        try:
            report = import_file(ledger, path, form=form)
        except UsageError:
            return
        ledger.catch_up()
        assert report.lines >= len(report.faults)


@pytest.mark.slow
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(SEEDS), st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 40), JUNK), max_size=4))
def test_a_damaged_file_of_any_format(tmp_path: Path, seed: bytes, damages: list[tuple[int, int, bytes]]) -> None:
    octets = seed
    for at, length, junk in damages:
        start = at % (len(octets) + 1)
        octets = octets[:start] + junk + octets[start + length :]
    path = tmp_path / "damaged"
    path.write_bytes(octets)
    taken(path)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60), st.sampled_from(FORMATS))
def test_any_bytes_under_any_name(tmp_path: Path, octets: bytes, form: str) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(octets)
    taken(path)
    taken(path, form)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=5), st.sampled_from([None, 1, "\t"]), st.booleans())
def test_what_is_found_in_a_json_text_is_what_a_json_reader_finds(
    value: dict[str, object], indent: int | str | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    found = {
        span.name: json.loads(text[span.start : span.end].decode("utf-8", "surrogatepass")) for span in spans(text, 0)
    }
    assert found == value
    assert end_of(text, 0) == len(text)
    for name, inner in value.items():
        start = member(text, 0, name)
        assert start is not None
        assert json.JSONDecoder().raw_decode(text[start:].decode("utf-8", "surrogatepass"))[0] == inner


@pytest.mark.parametrize(
    "text", [b'{"a": "b\\', b'{"a": "' + b'\\"' * 100_000, b"[" * 100_000, b'{"a"', b"{:,", b"7", b""]
)
def test_a_text_that_breaks_off_ends_the_walk_at_once(text: bytes) -> None:
    assert all(0 <= span.start <= span.end <= len(text) for span in spans(text, 0))
