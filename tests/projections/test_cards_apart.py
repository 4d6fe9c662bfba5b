"""Which of a peer's cards a contract came from: in the row of the peer, and in a task's story."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from a2a_ledger.events import CardFetched, Credential
from a2a_ledger_projections import peers
from a2a_ledger_projections.base import reading
from a2a_ledger_projections.lookup import find_task
from a2a_ledger_projections.timeline import tell
from a2a_ledger_projections.words import which_card

from .logbook import FORM, MTLS, OAUTH, PEER, PEER_URL, START

if TYPE_CHECKING:
    from a2a_ledger_projections.peers import PeerRow

    from .logbook import Logbook

PUBLIC = CardFetched(
    peer=PEER,
    peer_url=PEER_URL,
    url=PEER_URL,
    answered_url=PEER_URL,
    source="well-known",
    purpose="discovery",
    caller="anonymous",
    status=200,
    flags=[],
    form=FORM,
    raw_hash=OAUTH,
    contract_hash=OAUTH,
    etag='"a"',
)
EXTENDED = replace(
    PUBLIC, source="extended", url="https://vendor.example/a2a", caller="oauth", raw_hash=MTLS, contract_hash=MTLS
)
MARK: Credential = {"k": "00", "mac": "aa", "scheme": "oauth"}


def row_of(log: Logbook) -> PeerRow:
    with reading(log.store, peers.VIEW) as now:
        found = now.rows.get(peers.PEER + PEER)
    assert found is not None
    return cast("PeerRow", found)


def test_a_peers_contract_says_whose_it_is_and_the_others_stand_beside_it(log: Logbook) -> None:
    log.add(PUBLIC, f"peer:{PEER}")
    within = log.add(replace(EXTENDED, etag=None), f"peer:{PEER}").ref
    log.add(replace(EXTENDED, etag=None, within=within), f"peer:{PEER}")
    row = row_of(log)
    assert (row["contract"], row["source"], row["caller"]) == (MTLS, "extended", "oauth")
    assert {(card["source"], card["contract"]) for card in row["cards"].values()} == {
        ("well-known", OAUTH),
        ("extended", MTLS),
    }


def test_a_method_that_answers_without_a_validator_says_nothing_about_that_of_the_public_card(log: Logbook) -> None:
    first = log.add(PUBLIC, f"peer:{PEER}").ref
    log.add(replace(EXTENDED, etag=None, within=first), f"peer:{PEER}")
    assert row_of(log)["validator"] == "honoured"


def test_one_tag_on_the_cards_of_two_callers_is_no_lie(log: Logbook) -> None:
    log.add(replace(EXTENDED, credential=[MARK]), f"peer:{PEER}")
    other: Credential = {**MARK, "mac": "bb"}
    log.add(replace(EXTENDED, credential=[other], raw_hash=OAUTH), f"peer:{PEER}")
    assert row_of(log)["validator"] == "honoured"


def test_a_tasks_story_names_the_card_that_it_was_frozen_from(log: Logbook) -> None:
    log.add(PUBLIC, f"peer:{PEER}")
    extended = log.add(EXTENDED, f"peer:{PEER}")
    task = log.task()
    log.capture(task, extended, MTLS)
    story = tell(log.store, find_task(log.store, task), START)
    [frozen] = [line for line in story.lines if line.kind == "frozen"]
    assert frozen.words.endswith(f"from card #{extended.n} (extended to oauth)")
    contract = story.to_json()["contract"]
    assert isinstance(contract, dict)
    assert contract["card"] == {"position": extended.n, "source": "extended", "caller": "oauth", "url": EXTENDED.url}


def test_a_task_that_was_sent_without_a_card_is_said_to_have_nothing_frozen(log: Logbook) -> None:
    log.add(PUBLIC, f"peer:{PEER}")
    task = log.task()
    capture = log.capture(task, log.fetch(), contract=None)
    assert "contract_hash" not in log.store.record(capture.n).data
    [frozen] = [line for line in tell(log.store, find_task(log.store, task), START).lines if line.kind == "frozen"]
    assert frozen.words.startswith("nothing: no card that can be frozen was read before the send")
    assert "credential" not in frozen.words


def test_which_card_is_said_in_a_few_words() -> None:
    assert which_card({"source": "well-known", "caller": "anonymous", "url": PEER_URL}) == ""
    assert which_card({"source": "well-known", "caller": "basic", "url": PEER_URL}) == "to basic, "
    old = "https://vendor.example/.well-known/agent.json"
    assert which_card({"source": "well-known", "caller": "anonymous", "url": old}) == "agent.json to anonymous, "
    assert which_card({"source": "registry", "caller": "oauth", "url": ""}) == "registry to oauth, "
