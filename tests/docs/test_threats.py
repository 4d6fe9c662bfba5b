"""Each attacker of docs/threat-model.md has a test that attacks as he does; none is named that is not there.

A test is named by its file and name, a case of the conformance corpus as `case:<name>`: every verifier judges it.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.conformance.cases import all_rows

ROOT = Path(__file__).parents[2]

ATTACKS = {
    "somebody with write access to the database": [
        "evidence/test_audit_matrix.py",
        "evidence/test_verify.py::test_a_changed_record_is_not_what_its_leaf_commits_to",
    ],
    "the same, who cuts content": ["evidence/test_holes.py::test_every_blob_that_is_cut_afterwards_is_a_fault"],
    "somebody who restores an old copy": [
        "log/test_mark.py::test_an_older_database_is_refused",
        "log/test_mark_crash.py::test_after_a_crash_an_older_database_is_still_refused",
        "anchors/test_live_witness.py::test_a_rolled_back_log_is_told_what_the_witness_has_seen",
        "peers/test_exchange.py::test_an_old_copy_of_the_clients_ledger_is_told",
    ],
    "the operator rewrites history": [
        "case:earlier_other_root_fail",
        "case:earlier_proof_changed_fail",
        "log/test_mark.py::test_a_head_that_does_not_extend_the_mark_is_not_signed",
    ],
    "the operator shows two histories": [
        "anchors/test_fork.py::test_two_histories_are_proved_from_where_they_part",
        "anchors/test_live_witness.py::test_a_fork_is_proved_by_a_file",
        "peers/test_exchange.py::test_two_histories_are_proved_by_the_agent_and_by_the_client",
        "reconcile/test_two_clients.py::test_one_log_that_told_two_stories_gives_itself_away",
        "case:stream_tag_twice_fail",
    ],
    "the operator leaves an event out": [
        "case:stream_event_left_out_fail",
        "case:stream_goes_on_under_other_name_fail",
        "case:cut_end_against_signature_fail",
        "case:packed_task_less_fail",
        "reconcile/test_two_sides.py::test_each_event_that_the_client_lacks_is_named_and_no_other",
    ],
    "the operator lies in an event": [
        "evidence/test_false_records.py::test_a_record_that_contradicts_its_content_is_refuted",
        "case:decided_otherwise_fail",
        "case:finding_hidden_by_exporter_fail",
    ],
    "thief of the log key": [
        "case:log_key_revoked_fail",
        "case:earlier_same_size_other_root_fail",
        "log/test_mark.py::test_two_heads_of_one_size_are_a_fork",
    ],
    "thief of the statement or export key": [
        "evidence/test_false_records.py::test_an_invented_finding_is_refuted",
        "case:export_key_revoked_fail",
        "case:statement_key_revoked_before_notproven",
        "evidence/test_cut.py::test_a_retirement_cannot_be_left_out_of_the_middle",
    ],
    "several clients behind one observing proxy": [
        "proxy/test_clients.py::test_each_task_is_held_to_the_card_that_its_client_read"
    ],
    "the peer leaves the contract": ["divergence/test_rules.py"],
    "the peer denies a message": [
        "reconcile/test_two_sides.py::test_each_event_that_the_client_lacks_is_named_and_no_other"
    ],
    "one side of a dispute brings a false record": [
        "reconcile/test_hostile_bundles.py::test_a_changed_octet_anywhere_is_never_called_consistent",
        "reconcile/test_two_sides.py::test_a_pin_that_names_another_contract_excludes_the_clients_record",
    ],
    "both sides work on under a card that had changed": [
        "reconcile/test_two_sides.py::test_both_under_one_contract_that_had_changed_is_named"
    ],
    "an agent tells two clients two stories": [
        "reconcile/test_two_clients.py::test_another_story_under_one_id_is_a_contradiction",
        "reconcile/test_two_clients.py::test_one_tag_for_two_cards_is_a_contradiction_whatever_the_order",
    ],
    "somebody who changes a card, or serves another one": [
        "case:card_raw_hash_fail",
        "evidence/test_false_records.py::test_a_card_that_is_not_the_one_served_is_refuted",
    ],
    "whoever names the keys for a peer's cards": ["signature_keys/test_bundle.py"],
    "the peer feeds hostile input": [
        "divergence/test_hostile.py",
        "card/test_card_reading.py::test_duplicate_keys_at_any_level_are_refused_though_it_is_a_card",
    ],
    "whoever knows a webhook's url": [
        "server/test_push_agreements.py",
        "server/test_pushes.py::test_a_push_without_the_agreed_token_is_nobodys_word",
    ],
    "whoever hands in a file to `import`": [
        "divergence/test_sources.py::test_no_order_of_honest_recordings_is_a_certain_contradiction",
        "importer/test_beside.py",
    ],
    "network attacker": ["capture/test_cut_short.py"],
    "a peer as witness, or who sends heads in its name": [
        "peers/test_exchange.py",
        "peers/test_over_the_wire.py::test_an_answer_with_anything_in_it_is_an_answer",
        "peers/test_over_the_wire.py::test_a_stranger_learns_nothing",
        "peers/test_bundle.py::test_a_reader_who_does_not_name_the_peer_is_not_convinced",
    ],
    "witness or timestamp authority": [
        "case:witness_missing_notproven",
        "anchors/test_witness.py::test_what_is_no_cosignature_of_the_witness_is_refused",
        "anchors/test_anchoring.py::test_too_few_witnesses_are_said_and_still_recorded",
    ],
    "whoever attaches a time token": [
        "case:time_token_over_another_fail",
        "case:time_token_other_root_notproven",
        "case:time_token_use_other_use_notproven",
        "case:time_token_before_certificate_notproven",
    ],
    "whoever hands over a bundle": [
        "case:zip_name_parent_fail",
        "case:zip_bomb_fail",
        "case:packed_parent_fail",
        "case:all_by_strangers_fail",
        "conformance/test_hostile.py::test_a_bomb_costs_no_memory",
        "report/test_hostile.py::test_nothing_of_the_peer_runs_or_is_taken_for_markup",
    ],
    "hostile arbiter, or anybody on the way": [
        "case:stripped_notproven",
        "case:cut_story_unsigned_notproven",
        "evidence/test_long_task.py::test_a_packed_bundle_that_was_cut_never_verifies",
    ],
    "erasure asked by a data subject": ["erasing/test_erase.py"],
}
"""Attacker, as its row in docs/threat-model.md begins, to the tests that attack; a file alone is about nothing else."""

NOT_TRIED = {"future quantum computer": "nobody has one: what is said of it is that nothing here stops it"}


def rows() -> list[str]:
    """Return the attackers of the page's first table."""
    text = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
    table = text.partition("## Attackers\n\n")[2].partition("\n\n")[0].splitlines()
    return [line.split("|")[1].strip() for line in table[2:]]


@cache
def found_in(file: str) -> frozenset[str]:
    """Return the names of the tests in a file."""
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def test_every_attacker_of_the_page_is_here_and_no_other() -> None:
    assert sorted(rows()) == sorted([*ATTACKS, *NOT_TRIED])


@pytest.mark.parametrize("attacker", ATTACKS)
def test_what_attacks_is_there(attacker: str) -> None:
    cases = {row.name for row in all_rows()}
    assert ATTACKS[attacker]
    for named in ATTACKS[attacker]:
        if named.startswith("case:"):
            assert named.removeprefix("case:") in cases
        else:
            file, _, test = named.partition("::")
            assert found_in(file)
            assert not test or test in found_in(file), f"{named} is not there"
