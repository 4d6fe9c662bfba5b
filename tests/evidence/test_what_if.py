"""What would have been decided and found under other rules, or another profile: compared, never written."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from a2a_ledger.cli import cli
from a2a_ledger.contract import default_profile, parse_profile
from a2a_ledger.divergence import RULE_SET, RULE_SETS, Cases, payload_of, violation_of
from a2a_ledger.errors import UsageError
from a2a_ledger.events import FreshnessDecided
from a2a_ledger.freshness import RULES, decide, inputs_from_json
from a2a_ledger.statement import sign_envelope
from a2a_ledger.what_if import what_if
from tests.divergence.story import PEER, card, task
from tests.evidence.conftest import reopened
from tests.evidence.recorded import LedgerStory, dispute, opened

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.codec import Record
    from a2a_ledger.contract import Profile
    from a2a_ledger.events import Json, JsonObject
    from tests.evidence.conftest import Case

ELSEWHERE = "https://other.example/a2a"


def profile(text: str) -> Profile:
    return parse_profile(text.encode())


def decided(
    story: LedgerStory,
    fetch: Record,
    refetch: Record | None = None,
    *,
    brought: JsonObject | None = None,
    **others: Json,
) -> Record:
    """Record the decision that the real table gives to these inputs under the default profile."""
    inputs: JsonObject = {
        "now": fetch.at,
        "card": {
            "kind": "well-known",
            "caller": "anonymous",
            "fetched_at": fetch.at,
            "age_header": 0,
            "max_age": None,
            "no_cache": False,
            "etag": '"a"',
            "last_modified": None,
            "version": "1.0",
            "contract": fetch.data["contract_hash"],
        },
        "validator": {"present": True, "last": "never", "lied": False},
        "client_versions": ["1.0"],
        "refetch": brought,
        **others,
    }
    read, _ = inputs_from_json(inputs)
    made = decide(read)
    event = FreshnessDecided(
        peer=PEER,
        decision=made.decision,
        reason=made.reason,
        at_stake=made.at_stake,
        inputs=read.to_json(),
        rules=RULES,
        card=fetch.ref,
        refetch=None if refetch is None else refetch.ref,
    )
    return story.add(event, "task:t1")


def test_the_rules_and_the_profile_of_the_time_change_nothing(case: Case) -> None:
    with reopened(case.place) as ledger:
        report = what_if(ledger, case.task)
    assert (report.verdict, report.differences, report.decisions, report.findings) == ("same", (), 1, 1)
    assert str(report) == (
        "same under rule set 2, profile default: nothing differs from what was recorded under rule set 2, "
        "1 decisions and 1 findings"
    )


def test_a_finding_of_both_rule_sets_is_the_same_under_each(case: Case) -> None:
    with reopened(case.place) as ledger:
        found = {rules: what_if(ledger, case.task, rules=rules).verdict for rules in RULE_SETS}
        told = str(what_if(ledger, case.task, rules="1"))
    assert found == {"1": "same", "2": "same"}
    assert told.startswith("same under rule set 1, profile ")
    assert "nothing differs from what was recorded under rule set 2, " in told.splitlines()[0]


def test_two_findings_that_differ_in_what_they_observed_are_told_apart(tmp_path: Path) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = dispute(ledger)
        cases = Cases(ledger.store, ledger.profile, rule_set="1")
        [found] = [finding for n in range(ledger.store.size()) for finding in cases.judge(ledger.store.record(n))]
        old = replace(found, observed={**found.observed, "by": "something that set 1 alone saw"})
        payload = payload_of(old, ledger.origin, ledger.profile)
        story.add(
            violation_of(old, payload, ledger.profile),
            old.stream,
            {"statement": sign_envelope(payload, ledger.signers["statement"])},
            "derived",
        )
        report = what_if(ledger, story.tasks["t1"], rules="2")
    [difference] = report.differences
    base = f"{found.rule}, about: {found.about}, {found.certainty}, by rule set"
    assert difference.recorded == f'{base} 1, observed: by "something that set 1 alone saw"'
    assert difference.now == f"{base} 2, observed: no by"
    assert (report.recorded_rules, report.to_json()["recorded_rules"]) == (("1",), ["1"])
    assert "1 of what was recorded under rule set 1 would be otherwise" in str(report)


def test_an_older_rule_set_does_not_find_what_a_newer_one_found(tmp_path: Path) -> None:
    """`duplicate-keys` came with rule set 2."""
    with opened(tmp_path / "audit") as ledger:
        story = LedgerStory(ledger)
        request = story.begun()
        twice = b'{"id":"T1","id":"T2","status":{"state":"TASK_STATE_WORKING"}}'
        answer = story.answer(request, body=b'{"jsonrpc":"2.0","id":1,"result":{"task":' + twice + b"}}")
        ledger.catch_up()
        now = what_if(ledger, story.tasks["t1"], rules=RULE_SET)
        then = what_if(ledger, story.tasks["t1"], rules="1")
    assert now.verdict == "same"
    assert then.verdict == "differs"
    assert [(d.what, d.recorded, d.now) for d in then.differences] == [
        ("finding", "duplicate-keys, about: peer, certain, by rule set 2", "none")
    ]
    assert then.differences[0].n > answer.n
    assert f"finding at #{then.differences[0].n}: would not be found: duplicate-keys" in str(then)


def test_an_alias_of_another_profile_silences_a_drift_that_was_found(tmp_path: Path) -> None:
    silent = profile('[[alias]]\nfrozen = "https://vendor.example/"\nseen = "https://other.example/"\n')
    with opened(tmp_path / "audit") as ledger:
        story = LedgerStory(ledger)
        story.capture(story.fetch(card()))
        story.answer(story.ask(url=ELSEWHERE), task("working"))
        ledger.catch_up()
        before = ledger.store.size()
        report = what_if(ledger, story.tasks["t1"], profile=silent)
        assert ledger.store.size() == before
    assert [(d.what, d.recorded, d.now) for d in report.differences] == [
        ("finding", "interface-drift, about: client, certain, by rule set 2", "none")
    ]
    assert report.to_json()["profile_hash"] == silent.hash


def test_a_profile_that_aborts_where_the_other_went_on_decides_otherwise(tmp_path: Path) -> None:
    strict = profile('[freshness]\nskew = "abort"\nfailed = "abort"\n')
    with opened(tmp_path / "audit") as ledger:
        story = LedgerStory(ledger)
        fetch = story.fetch(card())
        skewed = decided(story, fetch, client_versions=["0.3"])
        later = "2026-09-14T09:10:00.000000Z"
        failed = decided(story, fetch, now=later, brought={"outcome": "failed", "etag": None})
        story.capture(fetch)
        story.ask()
        ledger.catch_up()
        report = what_if(ledger, story.tasks["t1"], profile=strict)
    found = {d.n: (d.recorded, d.now) for d in report.differences if d.what == "decision"}
    assert found[skewed.n] == (
        "never-refetch version-skew (at stake: authorization)",
        "abort-before-send version-skew (at stake: authorization)",
    )
    assert found[failed.n] == (
        "proceed refetch-failed (at stake: authorization)",
        "abort-before-send refetch-failed (at stake: authorization)",
    )
    assert report.verdict == "differs"


def test_a_member_that_another_profile_calls_a_term_stops_the_send(tmp_path: Path) -> None:
    """The vendor's `billing` changed between fetch and re-fetch: unclassified by default, a term under this profile."""
    paid = profile('[terms]\npaths = ["/billing"]\n')
    free, dear = card(billing={"per_task": 0}), card(billing={"per_task": 9})
    with opened(tmp_path / "audit") as ledger:
        story = LedgerStory(ledger)
        fetch = story.fetch(free, etag='"a"')
        refetch = story.fetch(dear, etag='"b"', purpose="pre-send")
        outcome: JsonObject = {"outcome": "unclassified", "etag": '"b"'}
        went_on = decided(story, fetch, refetch, now="2026-09-14T09:10:00.000000Z", brought=outcome)
        captured = story.capture(refetch)
        story.ask()
        ledger.catch_up()
        report = what_if(ledger, story.tasks["t1"], profile=paid)
        same = what_if(ledger, story.tasks["t1"], profile=default_profile())
    assert went_on.data["decision"] == "proceed"
    assert same.verdict == "same"
    (decision,) = [d for d in report.differences if d.what == "decision"]
    assert (decision.n, decision.now) == (went_on.n, "abort-before-send contract-changed (at stake: authorization)")
    assert captured.n not in {d.n for d in report.differences}  # its record has no terms to compare


def test_a_fetch_that_was_not_made_then_is_not_made_up(tmp_path: Path) -> None:
    """Under the record's profile a sibling's send made the client go on; without it there would have been a fetch."""
    with opened(tmp_path / "audit") as ledger:
        story = LedgerStory(ledger)
        fetch = story.fetch(card())
        sibling: JsonObject = {"state": "sent", "sent_at": "2026-09-14T09:09:50.000000Z"}
        record = decided(story, fetch, now="2026-09-14T09:10:00.000000Z", siblings=[sibling])
        story.capture(fetch)
        story.ask()
        ledger.catch_up()
        waits = what_if(ledger, story.tasks["t1"], profile=profile('[freshness]\nsibling = "abort"\n'))
    assert record.data["reason"] == "sibling-submitted"
    assert [d.now for d in waits.differences if d.what == "decision"] == [
        "abort-before-send sibling-submitted (at stake: authorization)"
    ]


def test_a_finding_that_is_due_is_a_note_and_no_difference(tmp_path: Path) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = LedgerStory(ledger)
        story.capture(story.fetch(card()))
        request = story.ask(url=ELSEWHERE)
        report = what_if(ledger, story.tasks["t1"])
    assert report.verdict == "same"
    assert report.notes == (
        f"the verifier had read up to 0: interface-drift, about: client, certain, by rule set 2 at #{request.n} is due",
    )


def test_an_unknown_rule_set_is_refused_with_those_that_there_are(case: Case) -> None:
    with reopened(case.place) as ledger, pytest.raises(UsageError, match="no rule set '9' here: expected one of 1, 2"):
        what_if(ledger, case.task, rules="9")


# ---- the verb


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(cli, [str(word) for word in words], prog_name="a2a-ledger")
    return result.exit_code, result.stdout


def test_the_verb_prints_the_differences_and_exits_by_them(copy: Path, case: Case, tmp_path: Path) -> None:
    place = tmp_path / "other.toml"
    place.write_text('name = "other"\n')
    before = (copy / "ledger.db").read_bytes()
    code, out = run("--ledger", copy, "--format", "json", "replay", case.task, "--rules", "1", "--profile", place)
    told = json.loads(out)
    assert (code, told["verdict"], told["rules"], told["profile"]) == (0, "same", "1", "other")
    assert set(told) == {
        "task", "rules", "recorded_rules", "profile", "profile_hash", "verdict",
        "decisions", "findings", "differences", "notes",
    }  # fmt: skip
    assert (copy / "ledger.db").read_bytes() == before
    assert run("--ledger", copy, "replay", case.task, "--rules", "1")[0] == 0
    assert run("--ledger", copy, "replay", case.task, "--rules", "nine")[0] == 2
    place.write_text("[nonsense]\n")
    assert run("--ledger", copy, "replay", case.task, "--profile", place)[0] == 2
