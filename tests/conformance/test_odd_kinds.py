"""A value of another kind than it should be, wherever one stands in a file of JSON: both verifiers say one thing of it.

The operator signed all of it, so that nothing else is wrong with the bundle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger.codec import canonical, parse_canonical
from a2a_ledger.policy import parse_policy
from a2a_ledger.verify import verify
from tests.conformance.export_cases import ODD
from tests.conformance.material import log
from tests.conformance.sealing import sealed
from tests.evidence.refitting import signed_again
from verifier import a2a_verify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.events import Json

FILES = ("data/claims.json", "data/custody.json", "data/replay/engine.json", "data/export.dsse.json")


def with_odd_values(value: Json) -> Iterator[Json]:
    """Yield a value, something odd in the place of each value in it in turn."""
    yield from (odd for odd in ODD.values() if type(odd) is not type(value))
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from ({**value, name: changed} for changed in with_odd_values(inner))
    elif isinstance(value, list) and value:
        yield from ([changed, *value[1:]] for changed in with_odd_values(value[0]))


@pytest.mark.parametrize("restated", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_a_value_of_another_kind_stops_neither_verifier(name: str, *, restated: bool) -> None:
    good, policy = log().files, log().policy
    trusted, by_file = parse_policy(policy), a2a_verify.read_policy(policy.encode())
    for changed in with_odd_values(parse_canonical(good[name])):
        files = {**good, name: canonical(changed)}
        try:
            bundle = (signed_again if restated else sealed)(files, log().signers["export"])
        except (TypeError, KeyError, AttributeError):  # no statement can be made of such claims
            continue
        report, alone = verify(bundle, policy=trusted), a2a_verify.verify(bundle, by_file)
        ours = {claim.claim: claim.status for claim in report.claims}
        theirs = {letter: answer.status for letter, answer in alone.claims.items()}
        said = " ".join(claim.detail for claim in report.claims)
        assert "defect of the verifier" not in said, (changed, said)
        assert {**ours, "R": ""} == {**theirs, "R": ""}, (changed, said)
