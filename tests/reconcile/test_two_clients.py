"""Two clients of one agent, and two bundles of one log: what one agent told both, what one log told twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger.reconcile import reconcile
from tests.divergence.story import card, task
from tests.evidence.recorded import LedgerStory
from tests.reconcile.sides import REQUIRED, Dispute, kinds, made_ledger, side

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.events import JsonObject
    from a2a_ledger.reconcile import TaskReport


@pytest.fixture
def clients() -> Iterator[tuple[LedgerStory, LedgerStory]]:
    """Return two clients that both know task T1 of one agent."""
    ledgers = [made_ledger(name) for name in (b"first", b"second")]
    stories = LedgerStory(ledgers[0]), LedgerStory(ledgers[1])
    for story in stories:
        story.capture(story.fetch(REQUIRED, etag='"a"'))
    yield stories
    for ledger in ledgers:
        ledger.close()


def _told(story: LedgerStory, state: str, **said: object) -> None:
    story.answer(story.ask("GetTask", task_id="T1"), task(state, **said))  # type: ignore[arg-type]  # JSON of a test


def _report(clients: tuple[LedgerStory, LedgerStory]) -> TaskReport:
    (found,) = reconcile(side(clients[0]), side(clients[1])).tasks
    return found


def test_two_clients_that_were_told_the_same_are_consistent(clients: tuple[LedgerStory, LedgerStory]) -> None:
    for story, polls in zip(clients, (1, 3), strict=True):
        for _ in range(polls):
            _told(story, "completed", text="done")
    report = _report(clients)
    assert report.stances == ("client", "client")
    assert (report.verdict, report.differences) == ("consistent", [])
    assert report.legs.both == 1  # the status message s1


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ({"text": "paid 10"}, {"text": "paid 100"}, "other-message-told"),
        ({"context": "C1"}, {"context": "C2"}, "other-context-told"),
        (
            {"artifacts": [{"artifactId": "a1", "parts": [{"text": "one"}]}]},
            {"artifacts": [{"artifactId": "a1", "parts": [{"text": "two"}]}]},
            "other-artifact-told",
        ),
    ],
)
def test_another_story_under_one_id_is_a_contradiction(
    clients: tuple[LedgerStory, LedgerStory], first: dict[str, object], second: dict[str, object], kind: str
) -> None:
    _told(clients[0], "completed", **first)
    _told(clients[1], "completed", **second)
    assert kinds(_report(clients)) == [(kind, "contradiction")]


def test_one_text_that_was_cut_otherwise_is_one_artifact(clients: tuple[LedgerStory, LedgerStory]) -> None:
    for story, cut in zip(clients, (["ab", "c"], ["abc"]), strict=True):
        _told(story, "completed", artifacts=[{"artifactId": "a1", "parts": [{"text": text} for text in cut]}])
    assert (_report(clients).verdict, kinds(_report(clients))) == ("consistent", [])


def test_two_ends_of_one_task_are_a_contradiction(clients: tuple[LedgerStory, LedgerStory]) -> None:
    _told(clients[0], "completed")
    _told(clients[1], "failed")
    report = _report(clients)
    assert [(d.kind, d.detail) for d in report.differences] == [
        ("other-end-told", "the agent told A that the task ended completed, and B that it ended failed")
    ]


def test_two_states_on_the_way_are_no_contradiction(clients: tuple[LedgerStory, LedgerStory]) -> None:
    _told(clients[0], "working")
    _told(clients[1], "completed", artifacts=[{"artifactId": "a1", "parts": [{"text": "two"}]}])
    assert _report(clients).verdict == "consistent"


def test_two_contracts_of_two_clients_cannot_be_put_in_order(clients: tuple[LedgerStory, LedgerStory]) -> None:
    second = LedgerStory(made_ledger(b"third"))
    second.capture(second.fetch(card(schemes={}, required=[]), etag='"b"'))
    _told(clients[0], "working")
    _told(second, "working")
    found = reconcile(side(clients[0]), side(second))
    assert kinds(found.tasks[0]) == [("contracts-differ", "open")]
    assert found.verdict == "incomplete"
    assert found.cards == []
    second.ledger.close()


def test_one_tag_for_two_cards_is_a_contradiction_whatever_the_order(clients: tuple[LedgerStory, LedgerStory]) -> None:
    for story in clients:
        _told(story, "working")
    first = clients[0].fetch({**REQUIRED, "description": "one"}, etag='"same"')
    second = clients[1].fetch({**REQUIRED, "description": "two"}, etag='"same"')
    found = reconcile(side(clients[0]), side(clients[1]))
    assert [(d.kind, d.a, d.b) for d in found.cards] == [("one-tag-two-cards", first.n, second.n)]
    assert found.verdict == "contradiction"


def test_a_weak_tag_may_stand_for_two_contents(clients: tuple[LedgerStory, LedgerStory]) -> None:
    for story, text in zip(clients, ("one", "two"), strict=True):
        _told(story, "working")
        story.fetch({**REQUIRED, "description": text}, etag='W/"same"')
    assert reconcile(side(clients[0]), side(clients[1])).cards == []


def test_one_message_in_two_versions_of_the_protocol_is_one_message(clients: tuple[LedgerStory, LedgerStory]) -> None:
    _told(clients[0], "completed", text="done")
    request = clients[1].ask("tasks/get", task_id="T1", version="0.3")
    said: JsonObject = {
        "kind": "task",
        "id": "T1",
        "contextId": "C1",
        "status": {
            "state": "completed",
            "message": {
                "kind": "message",
                "role": "agent",
                "messageId": "s1",
                "parts": [{"kind": "text", "text": "done"}],
            },
        },
    }
    clients[1].answer(request, said)
    report = _report(clients)
    assert (report.legs.both, report.differences) == (1, [])


def test_a_longer_record_of_the_same_log_is_consistent_with_a_shorter_one() -> None:
    two = Dispute()
    two.answered(two.begun(), "working")
    shorter = side(two.client, records=list(two.client.records))
    two.polled("completed")
    report = reconcile(shorter, side(two.client)).tasks[0]
    two.close()
    assert report.matched_by[0] == "same-log"
    assert (report.verdict, report.legs.differ, report.legs.only_b) == ("consistent", 0, 2)


def test_one_log_that_told_two_stories_gives_itself_away() -> None:
    two = Dispute()
    two.answered(two.begun(), "working")
    honest = list(two.client.records)
    place = len(honest) - 1
    forged = [*honest[:place], honest[place]._replace(c="00" * 32)]
    report = reconcile(side(two.client, records=honest), side(two.client, records=forged)).tasks[0]
    two.close()
    assert [(d.kind, d.a) for d in report.differences] == [("two-stories-of-one-log", honest[place].n)]
    assert report.verdict == "contradiction"
