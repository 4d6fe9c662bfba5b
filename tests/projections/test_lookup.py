"""Any id leads to its task; a peer is found by what people call it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger.errors import UsageError
from a2a_ledger_projections.lookup import find_peer, find_task
from a2a_ledger_projections.violations import count_messages, violations, violations_of, would_reject

from .logbook import PEER, PEER_URL

if TYPE_CHECKING:
    from .logbook import Logbook


def test_every_id_of_a_task_finds_it(log: Logbook) -> None:
    task, _, request = log.sent()
    log.bind(task, request)
    log.answer(task, "working", answers=request)
    other = log.task()
    log.decide(other)
    for name in (task, task[:8], "T1", "C1", "m1", "0af7651916cd43dd8448eb211c80319c"):
        assert find_task(log.store, name)["task"] == task
    assert find_task(log.store, other[:6])["task"] == other


@pytest.mark.parametrize("name", ["T2", "", "zz", "%", "task:"])
def test_an_unknown_id_is_an_error_that_says_what_was_expected(log: Logbook, name: str) -> None:
    log.sent()
    with pytest.raises(UsageError, match="no task is known by"):
        find_task(log.store, name)


def test_an_id_of_several_tasks_is_an_error_that_names_them(log: Logbook) -> None:
    other, _, asked = log.sent()
    log.bind(other, asked)
    task, _, request = log.sent()
    log.bind(task, request)
    with pytest.raises(UsageError, match=f"2 tasks go by 'C1': .*{task[:12]}"):
        find_task(log.store, "C1")


@pytest.mark.parametrize(
    "name", [PEER, PEER[:8], PEER_URL, "vendor.example", "https://vendor.example", "https://vendor.example/"]
)
def test_a_peer_is_found_by_url_host_and_id(log: Logbook, name: str) -> None:
    log.fetch()
    assert find_peer(log.store, name)["peer"] == PEER


def test_an_unknown_peer_and_an_ambiguous_one_are_errors(log: Logbook) -> None:
    log.fetch()
    log.fetch(peer="0" * 32)
    with pytest.raises(UsageError, match="no peer is known by 'other\\.example'"):
        find_peer(log.store, "other.example")
    with pytest.raises(UsageError, match="2 peers go by 'vendor\\.example'"):
        find_peer(log.store, "vendor.example")


def test_violations_are_listed_in_log_order_with_their_acknowledgement(log: Logbook) -> None:
    one, fetch, request = log.sent()
    other, _, _ = log.sent()
    first = log.finding("auth-demand", request, task=one)
    second = log.finding("weaker-authorization", fetch, tasks=[one, other], rule_class="authorization")
    third = log.finding("auth-demand", request, task=other, certainty="suspected")
    log.acknowledge(first)
    found = list(violations(log.store))
    assert [(v.record.n, v.acknowledged, would_reject(log.store, v)) for v in found] == [
        (first.n, True, False),  # shown by a request
        (second.n, False, False),
        (third.n, False, False),
    ]
    assert [v.record.n for v in violations(log.store, start=second.n)] == [second.n, third.n]
    assert [v.record.n for v in violations_of(log.store, other, PEER)] == [second.n, third.n]


def test_the_json_of_a_finding_of_a_task_and_of_one_of_a_peer(log: Logbook) -> None:
    task, fetch, request = log.sent()
    log.finding("auth-demand", request, task=task)
    log.finding("weaker-authorization", fetch, tasks=[task], rule_class="authorization", certainty="claimed")
    of_task, of_peer = (violation.to_json() for violation in violations(log.store))
    assert of_task == {
        "rule": "auth-demand",
        "class": "contract",
        "about": "peer",
        "certainty": "certain",
        "basis": "live",
        "task": task,
        "position": 4,
        "at": "2026-09-14T09:00:04.000000Z",
        "rule_set": "1",
        "evidence": [3],
        "acknowledged": False,
        "statement_sha256": "ab" * 32,
    }
    assert "task" not in of_peer
    assert (of_peer["peer"], of_peer["tasks"], of_peer["certainty"]) == (PEER, [task], "claimed")


def test_messages_of_peers_are_counted_from_a_time_on(log: Logbook) -> None:
    task, _, request = log.sent()
    log.answer(task, "working", answers=request)
    log.answer(task, "completed", answers=request)
    assert count_messages(log.store) == 2
    assert count_messages(log.store, since="2026-09-14T09:00:05.000000Z") == 1
