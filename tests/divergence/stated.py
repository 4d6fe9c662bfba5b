"""What the verifier would append for a finding, and sign."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.codec import draft
from a2a_ledger.contract import default_profile
from a2a_ledger.divergence import payload_of, violation_of, violation_tags
from tests.divergence.story import LOG, START

if TYPE_CHECKING:
    from a2a_ledger.codec import Draft
    from a2a_ledger.divergence import Finding


def as_recorded(finding: Finding) -> Draft:
    """Return the violation of a finding with its statement, unsigned; raise where no record can hold it."""
    profile = default_profile()
    payload = payload_of(finding, LOG, profile)
    event = violation_of(finding, payload, profile)
    assert violation_tags(finding, profile)
    return draft(event, stream=finding.stream, at=START, entropy=bytes, blobs={"statement": payload})
