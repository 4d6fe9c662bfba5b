"""One task's story: what is in it, who left the contract, since when, and what can be done."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.divergence import RULES
from a2a_ledger.store import Appended
from a2a_ledger_projections.lookup import find_task
from a2a_ledger_projections.rule_words import ABOUT
from a2a_ledger_projections.timeline import Story, tell

from .logbook import CARD, CONTRACT, ENDPOINT, OAUTH, PEER, START

if TYPE_CHECKING:
    from .logbook import Logbook


LATER = timedelta(hours=4, minutes=12, seconds=7)


def story_of(log: Logbook, task: str, later: timedelta = LATER) -> Story:
    return tell(log.store, find_task(log.store, task), START + later)


def kinds(story: Story) -> list[str]:
    return [line.kind for line in story.lines]


def test_the_stuck_case_tells_who_since_when_and_that_nothing_can_be_done(log: Logbook) -> None:
    task = log.stuck()
    events = {record.n: record for record in log.store.read(0, 20)}
    demanded, refused = events[7], events[9]  # the answer in words, and the alert that ended the cancel
    assert (demanded.data["state"], refused.data["tls_alert"]) == ("input-required", "certificate_required")
    log.finding("auth-demand", _at(log, 7), task=task, certainty="suspected", subject="text")
    log.finding("auth-demand", _at(log, 9), task=task, subject="alert")
    story = story_of(log, task)
    assert story.stuck
    assert (story.row["state"], story.lasting) == ("input-required", 4 * 3600 + 12 * 60.0)
    assert story.who == (
        "the peer, #9 at 09:00:09Z, certain: the peer asked for a credential outside of the frozen contract: "
        "TLS alert certificate_required, no HTTP answer; "
        "the frozen contract offers oauth. First sign #7 (auth-demand, suspected)"
    )
    assert story.now.startswith("ask the peer to accept oauth or to cancel. A card fetch now is a probe")
    assert kinds(story) == [
        "card", "decided", "frozen", "->", "<-", "bound", "->", "<-", "->", "<-", "violation", "violation",
    ]  # fmt: skip
    words = [line.words for line in story.lines]
    assert words[0] == '200 ETag "a", contract sha256:9c9c9c9c… (oauth)  [discovery]'
    assert words[1] == "proceed fresh: card 0.9 s old; at stake: authorization"
    assert words[2] == f"sha256:9c9c9c9c…  JSONRPC 1.0 {ENDPOINT}  offers oauth"
    assert words[3] == "SendMessage m1  oauth credential #b41f"
    assert words[4] == "T1 working  pin unacknowledged"
    assert words[7].startswith('T1 input-required "A client certificate (mutual TLS) is required to \x1b[31mcontinue"')
    assert words[9] == "TLS alert certificate_required, no HTTP answer"
    assert words[11] == "auth-demand, about: peer, certain, shown by #9"


@pytest.mark.parametrize(
    ("leg", "error_kind", "side", "kind", "words"),
    [
        ("stream-end", None, None, "<-", "end of the stream"),
        ("stream-end", "timeout", None, "this side", "ended the stream after 3 events: its own time-out"),
        ("stream-end", "cancelled", None, "this side", "ended the stream after 3 events: cancelled here"),
        ("stream-end", "closed-by-caller", None, "this side", "ended the stream after 3 events: nobody here read on"),
        ("stream-end", "closed", None, "<-", "the stream broke off after 3 events: closed"),
        ("stream-end", "closed-by-caller", "server", "->", "the client left the stream after 3 events"),
        ("stream-end", "other", "server", "->", "the stream broke off after 3 events: other"),
        ("error", "timeout", None, "this side", "gave up before an answer came: its own time-out"),
        ("error", "cancelled", None, "this side", "gave up before an answer came: cancelled here"),
        ("error", "connect", None, "<-", "no answer: connect"),
        ("error", "closed", "server", "->", "no answer: closed"),
    ],
)
def test_an_end_is_told_as_the_doing_of_the_side_that_made_it(
    log: Logbook, leg: str, error_kind: str | None, side: str | None, kind: str, words: str
) -> None:
    task, _, request = log.sent()
    log.answer(
        task, None, answers=request, leg=leg, task_id=None, error_kind=error_kind, sequence=3, side=side,
        direction="out" if side else "in",
    )  # fmt: skip
    line = story_of(log, task).lines[-1]
    assert (line.kind, line.words) == (kind, words)


def _at(log: Logbook, n: int) -> Appended:
    """Return the place of an event as `append` returned it."""
    record = log.store.record(n)
    return Appended(record.n, record.stream, record.ver, record.c)


def test_a_demand_without_a_failed_cancel_is_not_stuck(log: Logbook) -> None:
    task, _, request = log.sent()
    demand = log.answer(task, "auth-required", answers=request)
    log.finding("auth-demand", demand, task=task)
    story = story_of(log, task)
    assert not story.stuck
    assert "no cancel was tried: cancel the task, or ask the peer to accept oauth" in story.now


def test_a_cancel_that_took_ends_the_being_stuck(log: Logbook) -> None:
    task, _, request = log.sent()
    demand = log.answer(task, "auth-required", answers=request)
    log.finding("auth-demand", demand, task=task)
    first = log.request(task, "CancelTask")
    log.answer(task, None, answers=first, method="CancelTask", task_id=None, status=401)
    assert story_of(log, task).stuck
    second = log.request(task, "CancelTask")
    log.answer(task, "canceled", answers=second, method="CancelTask")
    story = story_of(log, task)
    assert (story.stuck, story.row["state"]) == (False, "canceled")
    assert story.now.startswith("the task has ended")


def test_what_can_be_done_in_each_other_state(log: Logbook) -> None:
    intended = log.task()
    log.decide(intended)
    aborted = log.task()
    log.decide(aborted)
    log.abort(aborted)
    adopted = log.task()
    log.adopt(adopted)
    sent, _, _ = log.sent()
    refused, _, request = log.sent()
    log.answer(refused, None, answers=request, task_id=None, error_code=-32600)
    answered, _, request = log.sent()
    log.answer(answered, None, answers=request, task_id=None)
    waiting, _, request = log.sent()
    log.answer(waiting, "input-required", answers=request)
    working, _, request = log.sent()
    log.answer(working, "working", answers=request)

    def soon(task: str) -> str:
        return story_of(log, task, timedelta(minutes=1)).now

    probe = ". A card fetch now is a probe: use `card show URL --diagnostic`"
    assert {task: soon(task) for task in (intended, aborted, adopted, sent, refused, answered)} == {
        intended: "nothing has left; the send can still be made or dropped",
        aborted: "nothing was sent; build the client again to take the new contract on (`decide` says whether a person "
        "has to accept it first)",
        adopted: "first seen past `submitted`; it can be polled and cancelled" + probe,
        sent: "sent, and no answer recorded that says what became of it: a resend of the same message id is the same "
        "task" + probe,
        refused: "the peer refused the send, so it has no such task. A new send is a new task",
        answered: "the task has ended; replay it, or export the evidence",
    }
    assert soon(waiting) == "the peer waits for input: answer it, or cancel" + probe
    assert soon(working) == "the task runs; it can be polled and cancelled" + probe
    assert story_of(log, working).now == (
        f"{soon(working)}. STALLED: nothing new from the peer in working since #{log.store.size() - 1}"
    )
    assert story_of(log, working).who == "nobody that a rule of this version can name"


@pytest.mark.parametrize(
    ("reason", "retry_after", "now"),
    [
        ("flapping", 540, "nobody knows which one it keeps: send again, not before 2026-09-14T09:09:00Z"),
        ("sibling-submitted", 17, "poll that one, then send again, not before 2026-09-14T09:00:17Z"),
        ("sibling-submitted", None, "poll that one, then send again"),
        ("undecidable", None, "and build the client again when it can be"),
        ("version-skew", None, "send with a client that does"),
        ("version-not-stated", None, "ask the peer to state it"),
        ("refetch-failed", None, "send again when the peer serves it"),
        ("of-a-later-version", None, "nothing was sent; of-a-later-version: `decide` says what stands now"),
    ],
)
def test_what_can_be_done_after_an_abort_is_told_by_its_reason(
    log: Logbook, reason: str, retry_after: int | None, now: str
) -> None:
    task = log.task()
    log.decide(task, retry_after=retry_after)
    log.abort(task, reason=reason)
    story = story_of(log, task)
    assert story.now.startswith("nothing was sent; ")
    assert story.now.endswith(now)
    assert "take the new contract on" not in story.now
    decided, aborted = (line.words for line in story.lines)
    assert decided.endswith(f"; try again after {retry_after} s" if retry_after else "at stake: authorization")
    assert ("not before" in aborted) == (retry_after is not None)


def test_an_error_as_the_last_word_leaves_open_whether_the_task_runs(log: Logbook) -> None:
    task, _, request = log.sent()
    log.answer(task, "working", answers=request, leg="stream-event")
    failed = log.answer(
        task, None, answers=request, leg="stream-event", task_id=None, message_id=None, error_code=-32603
    )
    log.answer(task, None, answers=request, leg="stream-end", task_id=None, message_id=None, sequence=2)
    assert story_of(log, task).now.startswith(
        f"the peer's last answer, #{failed.n}, is an error (error -32603): a poll tells whether the task runs. "
    )
    poll = log.request(task, "GetTask")
    log.answer(task, "working", answers=poll, method="GetTask")
    assert story_of(log, task).now.startswith("the task runs; it can be polled and cancelled. ")


def test_every_rule_says_what_its_finding_is_about(log: Logbook) -> None:
    assert set(ABOUT) == set(RULES)
    task, _, request = log.sent()
    answer = log.answer(task, "working", answers=request)
    log.finding("auth-not-exercised", answer, task=task, rule_class="authorization")
    assert story_of(log, task).who == (
        f"the peer, #{answer.n} at 09:00:04Z, certain: the contract demands a credential, the request carried none, "
        "and the peer took it: T1 working  pin unacknowledged (auth-not-exercised)"
    )


def test_certain_findings_come_before_claimed_and_suspected_ones(log: Logbook) -> None:
    task, fetch, request = log.sent()
    answer = log.answer(task, "working", answers=request)
    log.finding("auth-demand", request, task=task, certainty="suspected")
    log.finding("weaker-authorization", fetch, tasks=[task], certainty="claimed", rule_class="authorization")
    log.finding("refetch-as-input", answer, task=task, about="client", rule_class="own-conduct")
    who = story_of(log, task).who
    assert who.startswith(f"the client (this side), #{answer.n} at 09:00:04Z, certain: ")
    assert who.endswith(f"(refetch-as-input). First sign #{fetch.n} (weaker-authorization, claimed)")


def test_a_challenge_is_told_with_the_schemes_that_it_names(log: Logbook) -> None:
    task, _, request = log.sent()
    asked = 'Bearer realm="a", scope="read", Basic realm="b", Bearer realm="c"'
    log.answer(task, None, answers=request, task_id=None, status=401, challenge=asked, body=b"no")
    assert story_of(log, task).lines[-1].words == "HTTP 401 asks for Bearer, Basic"


def test_a_tightened_card_is_told_as_what_the_task_ran_under(log: Logbook) -> None:
    task, _, request = log.sent()
    log.answer(task, "working", answers=request)
    newer = log.fetch("sha256:" + "cd" * 32, etag='"b"')
    log.finding("weaker-authorization", newer, tasks=[task], rule_class="authorization")
    assert story_of(log, task).who == (
        f"the peer, #{newer.n} at 09:00:05Z, certain: the task ran under less than the card of #{newer.n} asks; "
        "not established: when it changed (weaker-authorization)"
    )


def test_a_newer_card_with_another_contract_is_named_beside_what_can_be_done(log: Logbook) -> None:
    task, frozen, request = log.sent()
    log.answer(task, "working", answers=request)
    log.fetch(etag='"a2"')  # other octets, the same contract
    assert "card diff" not in story_of(log, task).now
    newer = log.fetch("sha256:" + "cd" * 32, etag='"b"')
    log.fetch("sha256:00", source="extended")  # another card of the peer
    assert f"card of #{newer.n} states another contract" in story_of(log, task).now
    assert f"`a2a-ledger card diff {frozen.n} {newer.n}`" in story_of(log, task).now
    log.answer(task, "completed", answers=request)
    assert "card diff" not in story_of(log, task).now


def test_card_fetches_of_the_window_are_in_the_story_and_others_are_not(log: Logbook) -> None:
    before = log.fetch()
    task, frozen_from, request = log.sent()
    probe = log.fetch(purpose="diagnostic")
    log.answer(task, "completed", answers=request)
    after = log.fetch()
    shown = {line.record.n for line in story_of(log, task).lines}
    assert {frozen_from.n, probe.n} <= shown
    assert not {before.n, after.n} & shown
    running, _, _ = log.sent()
    later = log.fetch(purpose="diagnostic")
    assert later.n in {line.record.n for line in story_of(log, running).lines}


def test_an_acknowledgement_is_part_of_the_story(log: Logbook) -> None:
    task, _, request = log.sent()
    violation = log.finding("auth-demand", request, task=task)
    log.acknowledge(violation)
    story = story_of(log, task)
    assert kinds(story)[-2:] == ["violation", "acked"]
    assert story.lines[-1].words == "by ada: agreed by mail"
    assert [v.acknowledged for v in story.violations] == [True]


def test_the_json_of_a_story(log: Logbook) -> None:
    task, _, request = log.sent(body=CARD)
    log.answer(task, "completed", answers=request)
    told = story_of(log, task).to_json()
    assert {name: told[name] for name in ("task", "peer", "state", "violations")} == {
        "task": task,
        "peer": PEER,
        "state": "completed",
        "violations": [],
    }
    assert told.keys() == {"task", "peer", "state", "contract", "events", "violations", "stalls"}
    contract, events = told["contract"], told["events"]
    assert isinstance(contract, dict)
    assert (contract["hash"], contract["position"], contract["reconstructed"]) == (OAUTH, 2, False)
    assert isinstance(contract["value"], dict)
    assert contract["value"]["schemes"] == {"oauth": {"flows": {}, "kind": "oauth2", "metadataUrl": ""}}
    assert CONTRACT.startswith(b'{"extendedCard"')
    assert isinstance(events, list)
    first = events[0]
    assert isinstance(first, dict)
    assert (first["position"], first["at"], first["type"]) == (0, "2026-09-14T09:00:00.000000Z", "card.fetched.v1")
