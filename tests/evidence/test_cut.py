"""What a verifier says of a genuine bundle that was cut, and of one whose files contradict what it shows."""

from __future__ import annotations

import re
import time
from hashlib import sha256
from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.bundle import (
    BAG_INFO,
    CLAIMS,
    CUSTODY,
    ENGINE,
    EXPECTED,
    INDEX,
    LEAVES,
    REPLAY_PROFILE,
    read_bundle,
    stream_key_file,
)
from a2a_ledger.codec import canonical, findings_key, parse_canonical
from a2a_ledger.divergence import RULE_SET, RULES
from a2a_ledger.divergence.readings import READINGS
from a2a_ledger.verify import verify
from a2a_ledger.verify.leaves import ShownLeaves
from a2a_ledger.verify.shown import Shown
from tests.evidence.forging import Files, export_key, files_of, judged, repacked, statuses
from tests.evidence.refitting import claim, claims, signed_again, without

if TYPE_CHECKING:
    from a2a_ledger.bundle import IndexRow
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.keys import Signer
    from a2a_ledger.verify.report import Report
    from tests.evidence.conftest import Case


def exporter(case: Case) -> Signer:
    return export_key(case.place, case.log_key.split("+")[0])


def signed(case: Case, files: Files, said: dict[str, Json] | None = None) -> Report:
    return judged(signed_again(files, exporter(case), said), case.log_key)


def test_a_careful_forger_with_the_export_key_and_nothing_changed_verifies(case: Case) -> None:
    """The tools of this file make bundles that are good, so that what follows fails for its own reason."""
    assert signed(case, files_of(case.bundle)).verdict == "verified"


@pytest.mark.parametrize("cut", [1, 4, 9])
def test_a_cut_end_is_never_verified_without_the_exporter(case: Case, cut: int) -> None:
    files = files_of(case.bundle)
    without(files, lambda row: (row.stream == f"task:{case.task}" and row.ver >= cut) or "findings" in row.stream)
    report = judged(repacked(files), case.log_key)
    assert report.verdict == "not proven"
    assert statuses(report)["C2"] == "NOT PROVEN"
    assert "anybody may have left parts out" in report.claim("I").detail


def test_an_exporter_who_signs_a_cut_contradicts_what_is_found_again(case: Case) -> None:
    files = files_of(case.bundle)
    without(files, lambda row: "findings" in row.stream)
    report = signed(case, files)
    assert "recorded none, again auth-demand" in report.claim("R").detail
    assert f"no findings:{case.task}" in report.claim("C2").detail


def test_a_retirement_cannot_be_left_out_of_the_middle(case: Case) -> None:
    files = files_of(case.bundle)
    without(files, lambda row: row.stream == "ledger" and row.ver == 2)
    report = judged(repacked(files), case.log_key)
    assert "ledger: version 2 is missing" in report.claim("C2").detail


def ends(case: Case, **ver: Json) -> list[Json]:
    made = {end["stream"]: end["ver"] for end in cast("list[JsonObject]", claims(files_of(case.bundle))["ends"])}
    names = {"findings": f"findings:{case.task}", "ledger": "ledger", "task": f"task:{case.task}"}
    return [{"stream": names[kind], "ver": ver.get(kind, made[names[kind]])} for kind in names]


def test_ends_have_one_form_and_are_those_of_the_claims(case: Case) -> None:
    good = ends(case)
    wrong: list[tuple[Json, str]] = [
        ([], "another ends than data/claims.json"),
        (5, "another ends"),
        ({"a": 1}, "another ends"),
        (good[:2], "another ends"),
        ([*good, good[0]], "another ends"),
        (ends(case, findings=True), "another ends"),
    ]
    for said, why in wrong:
        report = signed(case, files_of(case.bundle), {"ends": said})
        assert report.verdict == "invalid", said
        assert why in report.claim("I").detail
        files = files_of(case.bundle)
        claim(files, ends=said)
        assert signed(case, files).claim("I").detail.startswith("data/export.dsse.json: "), said


def test_an_end_that_is_signed_twice_is_named(case: Case) -> None:
    files = files_of(case.bundle)
    claim(files, ends=[*ends(case), ends(case)[0]])
    assert f"`ends` has findings:{case.task} twice" in signed(case, files).claim("I").detail


def test_the_findings_key_follows_from_the_tasks_key(case: Case) -> None:
    files = files_of(case.bundle)
    name = stream_key_file(f"findings:{case.task}")
    assert files[name] == findings_key(files[stream_key_file(f"task:{case.task}")])
    del files[name]
    detail = signed(case, files).claim("C2").detail
    assert detail == f"{name} is missing: it follows from the task's key, which is disclosed"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task", "0" * 40),
        ("peer", "0" * 32),
        ("log", "acme/other-00000000"),
        ("events", 3),
        ("later_events", -1),
        ("later_events", True),
        ("form", "x"),
        ("claims", []),
        ("not_claimed", []),
        ("checkpoint", {"root": "0" * 64, "size": 9}),
        ("signed", "yes"),
        ("signed", False),
        ("more", 1),
    ],
)
def test_a_claim_that_the_bundle_does_not_show_is_invalid(case: Case, name: str, value: Json) -> None:
    files = files_of(case.bundle)
    claim(files, **{name: value})
    report = signed(case, files)
    assert (report.verdict, statuses(report)["I"]) == ("invalid", "INVALID")
    assert CLAIMS in report.claim("I").detail


@pytest.mark.parametrize("name", ["later_events", "peer", "task", "withheld", "checkpoint"])
def test_what_the_exporter_signed_is_what_is_claimed(case: Case, name: str) -> None:
    assert f"says another {name} than" in signed(case, files_of(case.bundle), {name: 7}).claim("I").detail


def changed(files: Files, name: str, **members: Json) -> None:
    files[name] = canonical({**cast("JsonObject", parse_canonical(files[name])), **members})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (EXPECTED, b'{"certainty":"certain","index":22,"rule":"nothing"}\n'),
        (EXPECTED, b""),
        (CUSTODY, b"not json"),
        (CUSTODY, b"{}"),
        (BAG_INFO, b"BagIt-Profile-Identifier: x\n"),
        ("data/extra/evil.html", b"<script>"),
        ("evil.html", b"<script>"),
        ("data/keys/untrusted/log-00000000.vkey", b"garbage"),
        ("data/keys/untrusted/log-00000000.vkey", b"\xff\xfe"),
    ],
)
def test_a_file_that_says_something_else_is_invalid(case: Case, name: str, content: bytes) -> None:
    files = files_of(case.bundle)
    files[name] = content
    report = judged(repacked(files, exporter(case)), case.log_key)
    assert report.verdict == "invalid"
    assert name in report.claim("I").detail


def test_a_false_key_for_comparison_is_invalid(case: Case) -> None:
    files = files_of(case.bundle)
    name = next(name for name in files if name.startswith("data/keys/untrusted/log-"))
    files[name] = files[next(name for name in files if name.startswith("data/keys/untrusted/export-"))]
    assert f"{name}: not the key" in signed(case, files).claim("I").detail


@pytest.mark.parametrize("name", [EXPECTED, CUSTODY, ENGINE, REPLAY_PROFILE])
def test_a_file_that_every_bundle_has_is_missed(case: Case, name: str) -> None:
    files = files_of(case.bundle)
    del files[name]
    assert judged(repacked(files, exporter(case)), case.log_key).verdict == "invalid"


# ---- the rules of the time


@pytest.mark.parametrize("value", [True, -1, "9", 1 << 40])
def test_how_far_the_verifier_had_read_is_a_size(case: Case, value: Json) -> None:
    files = files_of(case.bundle)
    changed(files, ENGINE, verified_to=value)
    assert "verified_to from 0 to" in signed(case, files).claim("R").detail


def test_a_profile_is_the_one_that_is_named(case: Case) -> None:
    files = files_of(case.bundle)
    files[REPLAY_PROFILE] = b'name = "other"\n'
    assert "not the profile that data/replay/engine.json names" in signed(case, files).claim("R").detail
    changed(files, ENGINE, profile="sha256:7a1e4eb5c9ea1c0e5fb4b4c1ab6a2f6d4dd0e8e4ac0a3f2cc4b5bd1ca6bb0000")
    assert statuses(signed(case, files))["R"] == "INVALID"


def test_under_another_rule_set_nothing_is_refuted_and_nothing_verified(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer verifier meets an honest older bundle."""
    for module in ("rerun", "signed"):
        monkeypatch.setattr(f"a2a_ledger.verify.{module}.RULE_SETS", {"9": frozenset(RULES)})
    monkeypatch.setattr("a2a_ledger.verify.rerun.RULE_SET", "9")
    monkeypatch.setattr("a2a_ledger.verify.rerun._SETS", "9")
    for module in ("rules", "cases"):
        monkeypatch.setattr(f"a2a_ledger.divergence.{module}.RULE_SETS", {"9": frozenset(RULES)})
    monkeypatch.setitem(READINGS, "9", READINGS[RULE_SET])
    report = judged(case.bundle, case.log_key)
    assert (report.verdict, statuses(report)["R"]) == ("not proven", "NOT PROVEN")
    assert f"judged by rule set {RULE_SET}, here are 9" in report.claim("R").detail
    assert "recorded, not found again: auth-demand, about: peer, certain" in report.claim("R").detail


# ---- sizes


def test_rows_are_no_more_than_leaves(case: Case) -> None:
    files = files_of(case.bundle)
    files[INDEX] += b"1\t1\ta\t0\tb\t-\n" * 300_000
    report = judged(repacked(files, exporter(case)), case.log_key)
    assert f"lists {len(list(read_bundle(case.bundle).index())) + 300_000} events" in report.claim("P").detail


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (CLAIMS, b"[" * (1 << 20) + b"]"),
        (LEAVES, b"{}\n" * 3_000_000),
        (REPLAY_PROFILE, b"a" + b".a" * 40_000 + b"=1\n"),
        ("data/log/checkpoint", b"x\n" * 40_000),
    ],
)
def test_a_file_that_is_too_large_for_its_kind_is_not_read(case: Case, name: str, content: bytes) -> None:
    files = files_of(case.bundle)
    files[name] = content
    report = judged(repacked({**files, CLAIMS: files[CLAIMS]} if name != CLAIMS else files, exporter(case)))
    assert re.match(rf"{name}: \d+ bytes; such a file may have \d+", report.claim("I").detail)
    assert statuses(report)["P"] == "NOT PROVEN"


@pytest.mark.parametrize(
    "content",
    [b"a=" + b"[" * 30_000, b"a=" + b"{a=" * 9_000, b"a=" + b"[" * 300 + b"]" * 300, b"a" + b".a" * 900 + b"=1"],
)
def test_a_profile_that_nests_without_end_is_one_sentence(case: Case, content: bytes) -> None:
    files = files_of(case.bundle)
    files[REPLAY_PROFILE] = content
    changed(files, ENGINE, profile=f"sha256:{sha256(content).hexdigest()}")
    report = signed(case, files)
    assert statuses(report)["R"] == "NOT PROVEN"
    assert "data/replay/profile.toml cannot be read" in report.claim("R").detail


def test_a_surprise_of_the_verifier_is_an_invalid_report(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def surprised(*_: object) -> None:
        raise ZeroDivisionError("nobody thought of this")

    monkeypatch.setattr("a2a_ledger.verify.check_statements", surprised)
    report = verify(case.bundle, trust=[case.log_key])
    assert (report.verdict, statuses(report)["I"]) == ("invalid", "INVALID")
    assert "nobody thought of this" in report.claim("I").detail


def test_the_line_of_the_verdict_names_the_task(case: Case) -> None:
    assert judged(case.bundle, case.log_key).about.startswith(f"task {case.task}: ")


def row_of(case: Case, stream: str) -> IndexRow:
    return next(row for row in read_bundle(case.bundle).index() if row.stream.startswith(stream))


def test_a_fetch_that_the_task_rests_on_leaves_the_replay_open(case: Case) -> None:
    files = files_of(case.bundle)
    gone = row_of(case, "peer:").n
    without(files, lambda row: row.n == gone)
    report = signed(case, files)
    assert (report.verdict, statuses(report)["R"]) == ("not proven", "NOT PROVEN")
    assert "version 0, which is not shown" in report.claim("R").detail


def test_leaves_in_pairs_take_one_pass(case: Case) -> None:
    """A bundle may show 8 MiB of leaves; each pair carries one tag, and naming them all costs no more than reading."""
    leaves = ShownLeaves("acme/audit")
    for n in range(30_000):
        leaves.add(n, bytes(32), (n // 2).to_bytes(32, "big"))
    begun = time.monotonic()
    shown = Shown(read_bundle(case.bundle), [], leaves, "acme/audit")
    assert time.monotonic() - begun < 3
    assert len([fault for fault in shown.stream_faults if "carry one tag" in fault]) == 15_000
