"""One row a peer: its validators, our fetches, and what followed from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.events import CardFetchFailed
from a2a_ledger_projections import peers
from a2a_ledger_projections.base import catch_up, compare, reading

from .logbook import MTLS, OAUTH, PEER, PEER_URL

if TYPE_CHECKING:
    from a2a_ledger_projections.peers import PeerRow

    from .logbook import Logbook


def row_of(log: Logbook) -> PeerRow:
    with reading(log.store, peers.VIEW) as now:
        found = now.rows.get(peers.PEER + PEER)
    assert found is not None
    return cast("PeerRow", found)


def test_the_newest_capturable_contract_is_shown(log: Logbook) -> None:
    log.fetch(OAUTH)
    log.fetch(MTLS, etag='"b"')
    log.fetch(None, etag='"c"')
    row = row_of(log)
    assert (row["url"], row["contract"], row["fetches"]) == (PEER_URL, MTLS, 3)


def test_a_failed_fetch_is_a_fetch_and_a_card_brought_along_is_none(log: Logbook) -> None:
    failed = CardFetchFailed(
        peer=PEER,
        peer_url=PEER_URL,
        url=PEER_URL,
        answered_url=PEER_URL,
        source="well-known",
        purpose="discovery",
        caller="anonymous",
        outcome="timeout",
    )
    log.add(failed, f"peer:{PEER}")
    log.fetch(source="configured", etag=None)
    assert (row_of(log)["fetches"], row_of(log)["validator"]) == (1, "none")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([{"etag": None}], "none"),
        ([{"etag": '"a"'}], "honoured"),  # never asked
        ([{"etag": '"a"'}, {"asked_etag": '"a"', "status": 304}], "honoured"),
        ([{"etag": '"a"'}, {"asked_etag": '"a"', "etag": '"b"', "contract": MTLS}], "honoured"),
        ([{"etag": '"a"'}, {"asked_etag": '"a"', "etag": '"a"'}], "ignored"),
        ([{"etag": '"a"'}, {"etag": '"a"', "raw": MTLS}], "lied"),  # same strong tag, other bytes
        ([{"etag": 'W/"a"'}, {"etag": 'W/"a"', "raw": MTLS}], "honoured"),  # weak: other bytes, same contract
        ([{"etag": 'W/"a"'}, {"etag": 'W/"a"', "contract": MTLS}], "lied"),
        ([{"etag": '"a"'}, {"etag": '"a"', "raw": MTLS}, {"etag": '"c"', "contract": MTLS}], "lied"),
        ([{"etag": '"a"'}, {"etag": '"a"', "raw": MTLS}, {"asked_etag": '"a"', "status": 304}], "honoured"),
    ],
)
def test_what_is_said_of_a_validator(log: Logbook, answers: list[dict[str, str | int]], expected: str) -> None:
    for answer in answers:
        log.fetch(**answer)  # type: ignore[arg-type]  # each dict holds arguments of their own types
    assert row_of(log)["validator"] == expected


def test_a_validator_lied_finding_counts_until_a_304_that_came_later(log: Logbook) -> None:
    shown = log.fetch()
    log.finding("validator-lied", shown, rule_class="card")
    assert row_of(log)["validator"] == "lied"
    log.fetch(status=304, asked_etag='"a"')
    assert row_of(log)["validator"] == "honoured"
    log.finding("validator-lied", shown, rule_class="card", subject="told late")
    assert row_of(log)["validator"] == "honoured"


def test_probes_are_card_fetches_while_a_task_is_in_flight(log: Logbook) -> None:
    task, _, request = log.sent()
    assert (row_of(log)["probes_in_flight"], row_of(log)["in_flight"]) == (0, 1)
    log.fetch(purpose="diagnostic")
    log.fetch(purpose="lazy")  # waits for quiet by itself; recorded, not a probe
    log.fetch(source="registry")  # does not reach the peer
    log.fetch(source="configured")  # reaches nobody
    assert row_of(log)["probes_in_flight"] == 1
    log.answer(task, "completed", answers=request)
    log.fetch(purpose="discovery")
    row = row_of(log)
    assert (row["probes_in_flight"], row["in_flight"], row["fetches"]) == (1, 0, 5)


def test_a_cancel_after_a_probe_is_counted_and_one_without_is_not(log: Logbook) -> None:
    first, _, _ = log.sent()
    log.request(first, "CancelTask")
    assert row_of(log)["cancels_after_probe"] == 0
    log.fetch(purpose="application")
    log.request(first, "CancelTask")
    other, _, _ = log.sent()  # its own discovery is a probe of the first task, which is still in flight
    log.request(other, "CancelTask")
    row = row_of(log)
    assert (row["cancels_after_probe"], row["probes_in_flight"]) == (1, 2)


def test_tasks_aborts_and_downgrade_windows_are_counted(log: Logbook) -> None:
    task, fetch, _ = log.sent()
    stopped = log.task()
    log.decide(stopped)
    log.abort(stopped)
    log.finding("weaker-authorization", fetch, tasks=[task], rule_class="authorization")
    row = row_of(log)
    assert (row["tasks"], row["aborts"], row["downgrade_windows"]) == (2, 1, 1)


def test_stored_rows_equal_recomputed_ones(log: Logbook) -> None:
    log.sent()
    catch_up(log.store, peers.VIEW, limit=2)
    log.fetch(purpose="diagnostic")
    catch_up(log.store, peers.VIEW)
    assert compare(log.store, peers.VIEW) == []
