"""A peer that asks for the credential first: what it refused is not what a task was carried out with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger.contract import default_profile
from a2a_ledger.divergence import Cases, RecordLog
from tests.divergence.story import API_KEY, Story, card, task

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.codec import Record
    from a2a_ledger.divergence import Finding
    from a2a_ledger.events import JsonObject

DIGEST: JsonObject = {"httpAuthSecurityScheme": {"scheme": "Digest"}}
SCHEMES: JsonObject = {"d": DIGEST, "k": API_KEY}
EITHER = card(SCHEMES, [{"d": ()}, {"k": ()}, {}])
"""Digest, an API key, or nothing."""
DIGEST_ONLY = card(SCHEMES, [{"d": ()}])


def challenge(story: Story, request: Record) -> None:
    """Refuse a request, and ask for Digest."""
    story.answer(request, status=401, headers=[("www-authenticate", 'Digest realm="r", nonce="n"')], body=b"")


def sent(story: Story, name: str, fetch: Record, *credentials: tuple[str, ...]) -> list[Record]:
    """Freeze a task, and send with these credentials one after the other: all but the last one are refused."""
    story.capture(fetch, task=name, credential=credentials[0])
    requests = [story.ask(task=name, credential=credentials[0], message_id=f"{name}-m")]
    for credential in credentials[1:]:
        challenge(story, requests[-1])
        requests.append(story.ask(task=name, credential=credential, message_id=f"{name}-m"))
    story.answer(requests[-1], task("completed", task_id=name))
    return requests


def weaker(story: Story, rule_set: str = "2") -> list[Finding]:
    return [one for one in story.findings(rule_set=rule_set) if one.rule == "weaker-authorization"]


def test_a_challenged_task_ran_under_what_it_sent_then() -> None:
    story = Story()
    sent(story, "t1", story.fetch(EITHER), (), ("d",))
    story.fetch(DIGEST_ONLY)
    assert weaker(story) == []
    (kept,) = weaker(story, "1")
    assert (kept.tasks, kept.observed["carried"], kept.trigger.n) == (("t1",), [], 6)


def test_set_1_finds_what_it_found() -> None:
    """With and without a challenge: the capture alone speaks, and no send is evidence."""
    story = Story()
    first = story.fetch(EITHER)
    sent(story, "t1", first, (), ("d",))
    sent(story, "t2", first, ())
    newer = story.fetch(DIGEST_ONLY)
    (kept,) = weaker(story, "1")
    assert (kept.tasks, kept.observed["tasks_total"]) == (("t1", "t2"), 2)
    assert [one.n for one in kept.evidence] == [first.n, 1, 6, newer.n]


def test_what_it_sent_then_may_be_too_little_as_well() -> None:
    story = Story()
    first = story.fetch(EITHER)
    _, second = sent(story, "t1", first, (), ("k",))
    newer = story.fetch(DIGEST_ONLY)
    (finding,) = weaker(story)
    assert (finding.certainty, finding.about, finding.observed["carried"]) == ("certain", "peer", ["k"])
    assert [one.n for one in finding.evidence] == [first.n, 1, second.n, newer.n]


def _status(status: int) -> Callable[[Story, Record], object]:
    return lambda story, request: story.answer(request, status=status, body=b"")


TURNED_AWAY: dict[str, Callable[[Story, Record], object]] = {
    "401": challenge,
    "403": _status(403),
    "407": _status(407),
    "503": _status(503),
    "error": lambda story, request: story.answer(request, error={"code": -32603, "message": "who are you"}),
    "tls": lambda story, request: story.failure(request, kind="tls"),
    "connect": lambda story, request: story.failure(request, kind="connect"),
}


@pytest.mark.parametrize("how", TURNED_AWAY)
def test_nothing_ran_where_all_was_turned_away(how: str) -> None:
    story = Story()
    story.capture(story.fetch(EITHER), credential=())
    TURNED_AWAY[how](story, story.ask(credential=()))
    story.fetch(DIGEST_ONLY)
    assert weaker(story) == []


@pytest.mark.parametrize("kind", ["timeout", "closed", None])
def test_what_the_peer_may_be_at_work_on_counts(kind: str | None) -> None:
    story = Story()
    story.capture(story.fetch(EITHER), credential=())
    request = story.ask(credential=())
    if kind is not None:
        story.failure(request, kind=kind)
    story.fetch(DIGEST_ONLY)
    (finding,) = weaker(story)
    assert request.n in [one.n for one in finding.evidence]


def test_a_stream_that_fails_later_had_been_taken_on() -> None:
    story = Story()
    story.capture(story.fetch(EITHER), credential=())
    request = story.ask("SendStreamingMessage", credential=())
    story.stream_event(request, {"task": task("working")})
    story.answer(request, error={"code": -32603, "message": "lost"})
    story.fetch(DIGEST_ONLY)
    assert [one.tasks for one in weaker(story)] == [("t1",)]


def test_a_credential_that_the_task_asked_for_counts_with_it() -> None:
    story = Story()
    story.capture(story.fetch(EITHER), credential=())
    story.answer(story.ask(credential=()), task("auth-required"))
    story.answer(story.ask(task_id="T1", context="C1", credential=("d",), message_id="m2"), task("completed"))
    story.fetch(DIGEST_ONLY)
    assert weaker(story) == []


def test_what_comes_behind_the_newer_card_changes_nothing() -> None:
    story = Story()
    story.capture(story.fetch(EITHER), credential=())
    story.answer(story.ask(credential=()), task("working"))
    newer = story.fetch(DIGEST_ONLY)
    story.answer(story.ask(task_id="T1", context="C1", credential=("d",), message_id="m2"), task("completed"))
    assert [one.trigger.n for one in weaker(story)] == [newer.n]


def test_of_many_tasks_those_count_that_ran_under_less() -> None:
    """More than a window lists: the rest counts like the listed ones only where these are all alike."""
    for challenged, total in ((0, 70), (1, 63)):
        story = Story()
        first = story.fetch(EITHER)
        for index in range(70):
            sent(story, f"t{index}", first, (), *[("d",)] * (index < challenged))
        story.fetch(DIGEST_ONLY)
        (finding,) = weaker(story)
        assert finding.observed["tasks_total"] == total
        assert finding.tasks[0] == f"t{challenged}"


# ---- frozen from a card that had been replaced


def stale(*first: tuple[str, ...]) -> tuple[Story, Record, Record]:
    story = Story()
    return (story, *stale_story(story, *first))


def stale_story(story: Story, *first: tuple[str, ...]) -> tuple[Record, Record]:
    """Freeze t1 from a replaced card and send it so, then t2 and t3 with nothing; return both fetches."""
    old = story.fetch(EITHER)
    newer = story.fetch(DIGEST_ONLY, purpose="pre-send")
    sent(story, "t1", old, *first)
    for name in ("t2", "t3"):
        sent(story, name, old, ())
    return old, newer


def test_the_first_task_from_a_replaced_card_is_told_of_at_its_answer() -> None:
    story, old, newer = stale(())
    found = weaker(story)
    assert [(one.about, one.tasks, [item.n for item in one.evidence]) for one in found] == [
        ("client", ("t1",), [old.n, newer.n, 2, 3, 4]),
    ]
    (kept,) = weaker(story, "1")
    assert (kept.about, kept.tasks, kept.trigger.n) == ("client", ("t1",), 2)


def test_a_challenged_one_is_not_and_the_others_are_when_the_window_closes() -> None:
    story, _, _ = stale((), ("d",))
    assert weaker(story) == []
    again = story.fetch(DIGEST_ONLY, purpose="pre-send")
    (finding,) = weaker(story)
    assert (finding.about, finding.tasks, finding.trigger.n) == ("peer", ("t2", "t3"), again.n)


def test_an_answer_that_asks_for_more_takes_nothing_on() -> None:
    story = Story()
    old = story.fetch(EITHER)
    story.fetch(DIGEST_ONLY, purpose="pre-send")
    story.capture(old, credential=())
    story.answer(story.ask(credential=()), task("auth-required"))
    assert weaker(story) == []


def test_a_reader_who_starts_anew_before_every_event_finds_the_same() -> None:
    story, _, _ = stale(())
    sent(story, "t4", story.fetch(EITHER), (), ("d",))
    sent(story, "t5", story.fetch(EITHER), (), ("k",))
    story.fetch(DIGEST_ONLY)
    whole = story.findings()
    log = RecordLog(story.records)
    assert [one for record in story.records for one in Cases(log, default_profile()).judge(record)] == whole
    assert len([one for one in whole if one.rule == "weaker-authorization"]) == 2
