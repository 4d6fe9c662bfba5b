"""A finding about a contract that was read in another form than the verifier's: left open, and never refuted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from a2a_ledger.contract import FORM
from a2a_ledger.divergence import RULE_SET, VERIFIER, Cases, payload_of, violation_of
from a2a_ledger.export import export_task
from a2a_ledger.statement import sign_envelope
from tests.evidence.forging import judged
from tests.evidence.recorded import dispute, opened

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.divergence import Finding
    from a2a_ledger.verify.report import Claim

OLDER = "a2a-contract/0"


OTHER_HASH = "sha256:" + "1f" * 32


def verdict(place: Path, form: str, contract: str | None = None) -> Claim:
    """Record the finding of a dispute as of a contract of this form and hash; return what is said of claim R."""
    with opened(place) as ledger:
        story = dispute(ledger)
        cases = Cases(ledger.store, ledger.profile, rule_set=RULE_SET)
        found: list[Finding] = [one for n in range(ledger.store.size()) for one in cases.judge(ledger.store.record(n))]
        assert [one.frozen_form for one in found] == [FORM]
        for one in found:
            finding = replace(one, frozen_form=form, frozen_hash=contract or one.frozen_hash)
            payload = payload_of(finding, ledger.origin, ledger.profile)
            event = violation_of(finding, payload, ledger.profile)
            signed = sign_envelope(payload, ledger.signers["statement"])
            story.add(event, finding.stream, {"statement": signed}, "derived")
        with ledger.store.transaction() as connection:
            ledger.store.advance(connection, VERIFIER, ledger.store.size())
        ledger.sign_checkpoint()
        return judged(export_task(ledger, story.tasks["t1"]).data, ledger.signers["log"].vkey).claim("R")


def test_a_finding_about_a_contract_of_another_form_is_not_proven_and_never_invalid(tmp_path: Path) -> None:
    told = verdict(tmp_path / "audit", OLDER, OTHER_HASH)
    assert told.status == "NOT PROVEN"
    assert f"its contract is of form {OLDER}, here is {FORM}" in told.detail


def test_the_same_finding_in_the_form_of_today_is_found_again(tmp_path: Path) -> None:
    assert verdict(tmp_path / "audit", FORM).status == "VALID"


def test_a_false_finding_about_a_contract_of_the_form_of_today_is_refuted(tmp_path: Path) -> None:
    assert verdict(tmp_path / "audit", FORM, OTHER_HASH).status == "INVALID"
