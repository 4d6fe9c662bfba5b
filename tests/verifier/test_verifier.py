"""The verifier signs what the rules find, once, whatever happens to it."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from a2a_ledger.contract import default_profile
from a2a_ledger.divergence import VERIFIER, Cases, RecordLog, judge, payload_of
from a2a_ledger.keys import parse_vkey
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.statement import open_envelope, parse_statement
from a2a_ledger_projections.verifier import Verifier, follower
from tests.divergence.story import MTLS, PEER, Story, card, task
from tests.verifier.ledger_story import LedgerStory, keys_of, many_tasks, recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.divergence import Finding


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "audit"


@pytest.fixture
def quick(place: Path) -> Iterator[Path]:
    """Return a place in memory where there is one: killing a process needs no disk, and thousands of appends do."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
    if not memory.is_dir():
        yield place
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder) / "audit"


@pytest.fixture
def ledger(place: Path) -> Iterator[ContractLedger]:
    with ContractLedger.open(place, follow=False) as opened:
        yield opened


def three_findings(story: Story) -> None:
    """Tell of a stuck task, a task of the window, and a rotation: suspected, certain, and one for the peer."""
    request = story.begun()
    story.answer(request, task("input-required", text="A client certificate (mutual TLS) is required"))
    story.failure(story.ask("CancelTask", task_id="T1"), tls_alert="certificate_required")
    story.fetch(card({"mtls": MTLS}, [{"mtls": ()}]), purpose="diagnostic")


def test_what_is_found_is_recorded_with_a_statement_that_verifies(ledger: ContractLedger) -> None:
    story = LedgerStory(ledger=ledger)
    three_findings(story)
    verifier = follower(ledger)
    told = ledger.store.size()
    assert verifier.catch_up() == told + 3  # it passes its own violations too
    violations = recorded(ledger)
    assert [(item.data["rule"], item.data["certainty"]) for item in violations] == [
        ("auth-demand", "suspected"),
        ("auth-demand", "certain"),
        ("weaker-authorization", "certain"),
    ]
    streams = [f"findings:{story.ids['t1']}"] * 2 + [f"findings:peer:{PEER}"]
    assert [item.stream for item in violations] == streams
    assert [item.how for item in violations] == ["derived"] * 3
    signer = ledger.statement_signer
    assert signer is not None
    for item in violations:
        opened = open_envelope(item.content("statement") or b"", [parse_vkey(signer.vkey)])
        assert hashlib.sha256(opened.payload).hexdigest() == item.data["statement_sha256"]
        statement = parse_statement(opened.payload)
        shown = cast("list[int]", item.data["evidence_index"])
        leaves = [next(ledger.store.leaves(n, n + 1)) for n in shown]
        assert [subject.name for subject in statement.subjects] == [f"{ledger.origin}#{n}" for n in shown]
        assert [subject.sha256 for subject in statement.subjects] == [hashlib.sha256(x).hexdigest() for x in leaves]
        assert statement.predicate_type == "https://w3id.org/a2a-ledger/violation/v1"
        assert statement.predicate["as_of"] == cast("int", item.data["trigger_index"]) + 1
        trigger = ledger.store.record(cast("int", item.data["trigger_index"]))
        assert statement.predicate["trigger"] == trigger.c
        assert item.data["trigger"] == trigger.ref


def test_a_replay_of_the_records_gives_the_same_payload(ledger: ContractLedger) -> None:
    three_findings(LedgerStory(ledger=ledger))
    follower(ledger).catch_up()
    records = ledger.store.read(0, 1000)
    cases = Cases(RecordLog(records), ledger.profile)
    again = [payload_of(one, ledger.origin, ledger.profile) for record in records for one in cases.judge(record)]
    signer = ledger.statement_signer
    assert signer is not None
    keys = [parse_vkey(signer.vkey)]
    signed = [open_envelope(item.content("statement") or b"", keys).payload for item in recorded(ledger)]
    assert signed == again


def test_nothing_is_found_twice_when_the_position_is_lost(ledger: ContractLedger) -> None:
    three_findings(LedgerStory(ledger=ledger))
    follower(ledger).catch_up()
    with ledger.store.transaction() as connection:
        connection.execute("DELETE FROM ledger_tracking")
    follower(ledger).catch_up()
    assert len(recorded(ledger)) == 3


def test_without_a_statement_key_nothing_is_written(place: Path) -> None:
    with ContractLedger.open(place, follow=False) as ledger:
        three_findings(LedgerStory(ledger=ledger))
    (place / "keys" / "statement.pem").unlink()
    with ContractLedger.open(place, follow=False) as ledger:
        assert follower(ledger).catch_up() == 0
        assert recorded(ledger) == []
        assert ledger.store.position(VERIFIER) == 0


def test_a_row_that_cannot_be_read_stops_nothing_else(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    with ContractLedger.open(place, follow=False) as ledger:
        many_tasks(LedgerStory(ledger=ledger), 5)
        size = ledger.store.size()
        bad = next(r.n for r in ledger.store.read(0, size) if r.data.get("state") == "STATE_2")
    with closing(sqlite3.connect(place / "ledger.db")) as connection, connection:
        connection.execute("UPDATE ledger_events SET state = x'00' WHERE rowid = ?", (bad + 1,))
    connection.close()
    with ContractLedger.open(place, follow=False) as ledger:
        verifier = Verifier(ledger)
        verifier.catch_up()
        position = ledger.store.position(VERIFIER)
        found = {cast("dict[str, str]", x["observed"])["state"] for x in (r.data for r in _violations_but(ledger, bad))}
    assert position >= size
    assert found == {"STATE_0", "STATE_1", "STATE_3", "STATE_4"}
    assert verifier.could_not_verify == 2  # the event, and the next one of its task, which rests on it
    assert f"event {bad} could not be verified" in caplog.text


def _violations_but(ledger: ContractLedger, bad: int) -> list[Record]:
    """Read the violations of a log in which one row cannot be read."""
    rows = [*ledger.store.read(0, bad), *ledger.store.read(bad + 1, 1000)]
    return [record for record in rows if record.type == "violation.detected.v1"]


def test_a_rule_that_fails_leaves_only_its_event_unjudged(
    ledger: ContractLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_tasks(LedgerStory(ledger=ledger), 3)

    def failing(record: Record, *rest: object, **named: object) -> list[Finding]:
        if record.data.get("state") == "STATE_1":
            raise RuntimeError("a defect in a rule")
        return cast("Callable[..., list[Finding]]", judge)(record, *rest, **named)

    monkeypatch.setattr("a2a_ledger.divergence.cases.judge", failing)
    verifier = Verifier(ledger)
    verifier.catch_up()
    assert [key[2] for key in keys_of(recorded(ledger))] == ["STATE_0", "STATE_2"]
    assert verifier.could_not_verify == 1


# ---- crash and competition


def _follow(place: Path, page: int) -> int:
    """Start a process that follows the ledger to its end; return its id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        with ContractLedger.open(place, follow=False) as ledger:
            verifier = Verifier(ledger, page=page)
            while verifier.catch_up(page):
                pass
        status = 0
    finally:
        os._exit(status)


def _ended(child: int) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_killed_at_any_moment_it_finds_everything_once(quick: Path) -> None:
    with ContractLedger.open(quick, follow=False) as ledger:
        many_tasks(LedgerStory(ledger=ledger), 500, every=4)
        upstream = ledger.store.size()
    assert upstream >= 2000
    moments = random.Random(7)  # noqa: S311 - moments to kill at, no secrets
    kills = 0
    for _ in range(40):
        child = _follow(quick, moments.choice([1, 7, 100, 500]))
        time.sleep(moments.uniform(0.005, 0.12))
        os.kill(child, signal.SIGKILL)
        kills += not _ended(child)
    assert kills > 10
    assert _ended(_follow(quick, 500))
    with ContractLedger.open(quick, follow=False) as ledger:
        found = keys_of(recorded(ledger))
        assert len(found) == len(set(found)) == 125
        assert {key[2] for key in found} == {f"STATE_{index}" for index in range(0, 500, 4)}
        assert ledger.store.position(VERIFIER) == ledger.store.size()


def test_two_at_once_never_double(quick: Path) -> None:
    with ContractLedger.open(quick, follow=False) as ledger:
        many_tasks(LedgerStory(ledger=ledger), 150)
    children = [_follow(quick, page) for page in (3, 40, 500)]
    ended = [_ended(child) for child in children]
    assert ended == [True, True, True]
    with ContractLedger.open(quick, follow=False) as ledger:
        found = keys_of(recorded(ledger))
    assert len(found) == len(set(found)) == 150


# ---- a finding never depends on how far somebody had read


def _long_story(story: Story) -> None:
    three_findings(story)
    many_tasks(story, 4)
    fetch = story.fetch(card(), etag='"1"', purpose="application")
    story.ask("CancelTask", task="t2", task_id="T2")
    story.capture(fetch, task="late")
    story.answer(story.ask(task="late"), task("completed", task_id="L"))
    story.answer(story.ask("GetTask", task="late", task_id="L"), task("working", task_id="L"))
    story.fetch(card(description="other", required=[{"oauth": ()}, {}]), etag='"1"')


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(page=st.integers(1, 60), limit=st.integers(1, 60))
def test_the_size_of_a_page_changes_nothing(page: int, limit: int) -> None:
    with ContractLedger.open(":memory:", follow=False) as ledger:
        _long_story(LedgerStory(ledger=ledger))
        verifier = Verifier(ledger, page=page)
        while verifier.catch_up(limit):
            pass
        found = [(key[0], cast("int", key[1])) for key in keys_of(recorded(ledger))]
    start = 3 + 1  # behind the ledger's own four opening events
    assert [(rule, n - start) for rule, n in found] == _expected()


def _expected() -> list[tuple[str, int]]:
    story = Story()
    _long_story(story)
    return [(finding.rule, finding.trigger.n) for finding in story.findings()]


def test_the_long_story_has_findings_of_many_kinds() -> None:
    assert sorted({rule for rule, _ in _expected()}) == [
        "auth-demand",
        "illegal-transition",
        "refetch-as-input",
        "unknown-state",
        "validator-lied",
        "weaker-authorization",
    ]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_reader_who_begins_anywhere_finds_the_same(data: st.DataObject) -> None:
    story = Story()
    _long_story(story)
    whole = story.findings()
    begin = data.draw(st.integers(0, len(story.records)))
    tasks, peers = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 2))
    skipped = data.draw(st.sets(st.sampled_from(range(len(story.records)))))
    cases = Cases(RecordLog(story.records), default_profile(), tasks=tasks, peers=peers)
    judged = [record for record in story.records[begin:] if record.n not in skipped]
    found = [finding for record in judged for finding in cases.judge(record)]
    wanted = {record.n for record in judged}
    assert found == [finding for finding in whole if finding.trigger.n in wanted]
