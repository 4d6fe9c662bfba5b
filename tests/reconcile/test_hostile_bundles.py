"""Bundles that were damaged anywhere: something is said, nothing is raised, and nothing is called consistent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from a2a_ledger.bundle import record_file
from a2a_ledger.codec import canonical, parse_canonical
from a2a_ledger.reconcile import bundle_side, reconcile
from tests.evidence.forging import forged
from tests.reconcile.test_verb import Parties, honest

if TYPE_CHECKING:
    from a2a_ledger.events import Json

__all__ = ["honest"]

ODD: st.SearchStrategy[Json] = st.sampled_from([None, True, -1, "", "x" * 2000, [], [[]], {}, {"c": 1}])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_record_with_odd_fields_ends_in_a_verdict(honest: Parties, data: st.DataObject) -> None:
    ours, theirs = ((honest.root / name).read_bytes() for name in ("ours.zip", "theirs.zip"))
    n = data.draw(st.integers(0, 8))
    value = data.draw(ODD)

    def change(files: dict[str, bytes]) -> None:
        record = parse_canonical(files[record_file(n)])
        assert isinstance(record, dict)
        fields = record["data"]
        assert isinstance(fields, dict)
        name = data.draw(st.sampled_from(sorted(fields)))
        assume(canonical(value) != canonical(fields[name]))
        files[record_file(n)] = canonical({**record, "data": {**fields, name: value}})

    found = reconcile(bundle_side(ours), bundle_side(forged(theirs, change)))
    assert found.verdict == "incomplete"
    assert found.sides[1].verdict == "invalid"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_changed_octet_anywhere_is_never_called_consistent(honest: Parties, data: st.DataObject) -> None:
    ours, theirs = ((honest.root / name).read_bytes() for name in ("ours.zip", "theirs.zip"))
    place = data.draw(st.integers(0, len(theirs) - 1))
    broken = theirs[:place] + bytes([theirs[place] ^ data.draw(st.integers(1, 255))]) + theirs[place + 1 :]
    found = reconcile(bundle_side(ours), bundle_side(broken))
    assert found.verdict == "incomplete"
    assert found.sides[1].verdict == "invalid"
