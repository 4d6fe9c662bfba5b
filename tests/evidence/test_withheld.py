"""What an exporter leaves out of a bundle: nothing of it is in there, all of it is listed, and the rest verifies."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.bundle import CLAIMS, EXPORT_STATEMENT, read_bundle
from a2a_ledger.codec import parse_canonical
from a2a_ledger.errors import UsageError
from a2a_ledger.export import export_task
from a2a_ledger.statement import parse_statement
from a2a_ledger.verify import verify
from tests.evidence.conftest import reopened
from tests.evidence.forging import files_of, forged, judged, statuses
from tests.evidence.refitting import claim
from verifier import a2a_verify

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.events import Json, JsonObject
    from tests.evidence.conftest import Case
    from tests.evidence.forging import Files

PROOF = ("I", "L", "P", "C1", "C2", "X")
MESSAGE = b'"messageId": "m-t1"'


def withheld(bundle: bytes) -> list[Json]:
    return cast("list[Json]", json.loads(files_of(bundle)[CLAIMS])["withheld"])


def entries(bundle: bytes) -> list[JsonObject]:
    return [cast("JsonObject", part) for part in withheld(bundle)]


def assert_proven(bundle: bytes, key: str, *, again: bool) -> None:
    """See that both verifiers find everything but the replay proven, and the replay open, never refuted."""
    report = judged(bundle, key)
    found = statuses(report)
    assert {letter: found[letter] for letter in PROOF} == dict.fromkeys(PROOF, "VALID"), report
    assert found["R"] == ("VALID" if again else "NOT PROVEN"), report
    assert report.verdict == ("verified" if again else "not proven")
    policy = a2a_verify.read_policy(f"log {key}\nquorum none\n".encode())
    alone = a2a_verify.verify(bundle, policy)
    assert verify(bundle, trust=[key], required=("I", "L", "P", "C2")).verdict == "verified"
    assert {letter: alone.claims[letter].status for letter in PROOF} == dict.fromkeys(PROOF, "VALID")
    assert alone.claims["R"].status == "NOT PROVEN"


def test_kept_headers_are_left_out_and_nothing_else(case: Case, copy: Path) -> None:
    with reopened(copy, read_only=False) as ledger:
        made = export_task(ledger, case.task, withhold=["headers"])
    gone = entries(made.data)
    assert {str(part["role"])[:7] for part in gone} == {"header."}
    assert len(gone) == made.withheld > 0
    octets = [content for name, content in files_of(case.bundle).items() if f"blobs/{gone[0]['blob']}/0" in name]
    assert octets
    assert not set(octets) & set(files_of(made.data).values())
    assert_proven(made.data, case.log_key, again=False)
    assert "header.00 of event" in judged(made.data, case.log_key).claim("R").detail
    assert "as far as it goes: 1 decisions and" in judged(made.data, case.log_key).claim("R").detail
    assert "parts are withheld: claim R (replay) is NOT PROVEN of it" in str(made)
    assert made.to_json()["withheld"] == made.withheld


def test_the_signed_statement_lists_what_is_left_out(case: Case, copy: Path) -> None:
    with reopened(copy, read_only=False) as ledger:
        made = export_task(ledger, case.task, withhold=["headers"])
    envelope = cast("JsonObject", parse_canonical(files_of(made.data)[EXPORT_STATEMENT]))
    said = parse_statement(base64.b64decode(str(envelope["payload"])))
    assert said.predicate["withheld"] == withheld(made.data)


def test_a_list_without_one_of_the_holes_is_refuted(case: Case, copy: Path) -> None:
    with reopened(copy, read_only=False) as ledger:
        made = export_task(ledger, case.task, withhold=["headers"])

    def shorten(files: Files) -> None:
        claim(files, withheld=withheld(made.data)[1:])

    assert statuses(judged(forged(made.data, shorten), case.log_key))["X"] == "INVALID"


def test_all_contents_are_left_out_but_what_judging_begins_with(case: Case, copy: Path) -> None:
    with reopened(copy, read_only=False) as ledger:
        made = export_task(ledger, case.task, withhold=["blobs"])
    roles = {str(part["role"]) for part in entries(made.data)}
    assert {"body", "header.00"} <= roles
    assert not roles & {"contract", "terms", "statement"}
    assert MESSAGE in b"".join(files_of(case.bundle).values())
    assert MESSAGE not in b"".join(files_of(made.data).values())
    assert_proven(made.data, case.log_key, again=False)


def test_one_blob_is_left_out_by_its_id(case: Case, copy: Path) -> None:
    rows = list(read_bundle(case.bundle).index())
    blob = next(row.body.rpartition("/")[2] for row in reversed(rows) if row.body != "-")
    with reopened(copy, read_only=False) as ledger:
        made = export_task(ledger, case.task, withhold=[blob])
        assert [part["blob"] for part in entries(made.data)] == [blob]
        assert_proven(made.data, case.log_key, again=False)
        with pytest.raises(UsageError, match="nothing in this bundle has it"):
            export_task(ledger, case.task, withhold=["0" * 64])
        with pytest.raises(UsageError, match="expected headers, blobs, cut, or the id"):
            export_task(ledger, case.task, withhold=["bodies"])
        with pytest.raises(UsageError, match=r"names no \[withhold\] paths"):
            export_task(ledger, case.task, withhold=["cut"])


@pytest.mark.parametrize("kind", ["headers", "blobs"])
def test_one_claim_is_lost_by_leaving_out_and_no_other(case: Case, copy: Path, kind: str) -> None:
    with reopened(copy, read_only=False) as ledger:
        made = export_task(ledger, case.task, withhold=[kind])
    whole, without = statuses(judged(case.bundle, case.log_key)), statuses(judged(made.data, case.log_key))
    assert {letter for letter in whole if whole[letter] != without[letter]} == {"R"}
    assert without["R"] == "NOT PROVEN"
