"""Bundles that were damaged anywhere: something is said, nothing is raised, and nothing is called consistent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from a2a_ledger.archive import Archive, read_archive
from a2a_ledger.bundle import record_file
from a2a_ledger.codec import canonical, parse_canonical
from a2a_ledger.errors import BundleError
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


def unpacks_to_the_same(broken: bytes, whole: bytes) -> bool:
    """Some octets of a zip say nothing of a content: who made it, attributes, what fills deflate's last octet."""
    try:
        return read_archive(broken) == Archive(dict(read_archive(whole).files), ())
    except BundleError:
        return False


def with_octet(bundle: bytes, place: int, flip: int) -> bytes:
    return bundle[:place] + bytes([bundle[place] ^ flip]) + bundle[place + 1 :]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_changed_octet_anywhere_is_never_called_consistent(honest: Parties, data: st.DataObject) -> None:
    ours, theirs = ((honest.root / name).read_bytes() for name in ("ours.zip", "theirs.zip"))
    broken = with_octet(theirs, data.draw(st.integers(0, len(theirs) - 1)), data.draw(st.integers(1, 255)))
    assume(not unpacks_to_the_same(broken, theirs))
    found = reconcile(bundle_side(ours), bundle_side(broken))
    assert found.verdict == "incomplete"
    assert found.sides[1].verdict == "invalid"


def test_an_octet_of_the_zip_that_changes_no_content_changes_no_verdict(honest: Parties) -> None:
    ours, theirs = ((honest.root / name).read_bytes() for name in ("ours.zip", "theirs.zip"))
    made_by = theirs.rindex(b"PK\x01\x02") + 4
    other = with_octet(theirs, made_by, 1)
    assert unpacks_to_the_same(other, theirs)
    assert reconcile(bundle_side(ours), bundle_side(other)) == reconcile(bundle_side(ours), bundle_side(theirs))
