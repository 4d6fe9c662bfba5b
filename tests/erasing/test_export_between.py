"""An export between an erasure's event and the destruction: what is listed as erased is left out already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger.bundle import read_bundle
from a2a_ledger.erasing import unfinished_erasures
from a2a_ledger.export import chosen, export_peer, export_task
from tests.divergence.story import PEER
from tests.erasing.dying import STEPS, die_erasing
from tests.erasing.marked import MARKER, OTHERS_TEXT
from tests.evidence.conftest import reopened
from tests.evidence.forging import judged, statuses
from tests.store.recording_child import running

if TYPE_CHECKING:
    from a2a_ledger.export import Exported
    from a2a_ledger.ledger import ContractLedger
    from tests.erasing.marked import Marked

LOGGED = list(STEPS)[list(STEPS).index("event") :]


def bundles(ledger: ContractLedger, task: str) -> list[Exported]:
    """Export in plain files and in packs: the task alone, without headers, and its peer."""
    made = [export_task(ledger, task), export_task(ledger, task, withhold=["headers"]), export_peer(ledger, PEER)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chosen, "_MOST_EVENTS", 1)
        return [*made, export_task(ledger, task)]


def shows(bundle: Exported, octets: bytes) -> bool:
    return any(octets in content for content in read_bundle(bundle.data).files.values())


def test_before_it_the_content_is_there_and_no_part_erased(marked: Marked) -> None:
    with reopened(marked.place) as ledger:
        made = bundles(ledger, marked.task)
    assert [shows(bundle, MARKER) for bundle in made] == [True] * 4
    assert [bundle.erased for bundle in made] == [0] * 4
    assert "erased" not in str(made[0])


@pytest.mark.parametrize("step", LOGGED)
def test_what_an_erasure_lists_is_left_out_before_it_is_destroyed(marked: Marked, step: str) -> None:
    with running(die_erasing, marked.place, marked.task, step) as child:
        assert child.rest() == [step]
    with reopened(marked.place) as reader:
        assert unfinished_erasures(reader) == [marked.task]
        between = bundles(reader, marked.task)
    with reopened(marked.place, read_only=False) as ledger:
        assert unfinished_erasures(ledger) == []
        after = bundles(ledger, marked.task)
    assert [shows(bundle, MARKER) for bundle in (*between, *after)] == [False] * 8
    assert shows(between[2], OTHERS_TEXT)  # of another task with the same peer
    assert [bundle.erased for bundle in between] == [bundle.erased for bundle in after]
    assert all(bundle.erased for bundle in between)
    assert [bundle.withheld for bundle in between] == [bundle.withheld for bundle in after] == [0] * 4
    assert f" {between[0].erased} parts were erased: claim R (replay) is NOT PROVEN of it" in str(between[0])
    assert between[0].to_json()["erased"] == between[0].erased
    for bundle in (*between, *after):
        found = statuses(judged(bundle.data, marked.log_key))
        assert found["R"] == "NOT PROVEN"
        assert "INVALID" not in found.values()
