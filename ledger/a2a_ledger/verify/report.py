"""What a verification says: one claim a line, each VALID, INVALID or NOT PROVEN, and one verdict over them.

docs/format.md section 12. There is never one green tick: a claim that is not proven says what would
settle it, and a verdict without trust from outside is "self-consistent only".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.events import Json

Status: TypeAlias = Literal["VALID", "INVALID", "NOT PROVEN"]
Verdict: TypeAlias = Literal["verified", "self-consistent only", "invalid", "not proven"]
Sides: TypeAlias = Literal["unilateral", "bilateral", "mixed"]

LETTERS: Final = ("I", "L", "P", "A", "W", "T", "S", "C1", "C2", "C3", "R", "X")
"""Every claim that a report has, in the order in which it has them."""

REQUIRED: Final = ("I", "L", "P", "C2", "R")
"""The claims that have to be VALID for "verified", unless the reader names others."""

TITLES: Final = {
    "I": "files intact",
    "L": "checkpoint by a key that you trust",
    "P": "events included under the checkpoint",
    "A": "nothing rewritten before the checkpoint",
    "W": "seen by witnesses",
    "T": "existed by a date",
    "S": "the peer sent these messages",
    "C1": "events shown as they were recorded",
    "C2": "all of the task, none missing",
    "C3": "no other event of the task in the log",
    "R": "replay gives the same verdict",
    "X": "what was left out is listed",
}


@dataclass(frozen=True, slots=True)
class Claim:
    """One answer: `settle` says what would settle a claim that is not proven."""

    claim: str
    status: Status
    detail: str
    settle: str = ""

    @property
    def title(self) -> str:
        """Return the claim in a few plain words."""
        return TITLES[self.claim]

    def to_json(self) -> dict[str, Json]:
        """Return {"claim", "status", "detail"}; what would settle it is part of the detail."""
        detail = f"{self.detail}; settle: {self.settle}" if self.settle else self.detail
        return {"claim": self.claim, "status": self.status, "detail": detail}


@dataclass(frozen=True, slots=True)
class Report:
    """The whole answer about one bundle.

    `about` is one line on what the bundle is, `not_established` what its findings do not establish; `size` that of
    the checkpoint, `anchored_size` how many first events of the log those whom the reader trusts have put their own
    signatures to, by claims W and T.
    """

    verdict: Verdict
    sides: Sides
    claims: tuple[Claim, ...]
    about: str = ""
    not_established: tuple[str, ...] = field(default=())
    size: int | None = None
    anchored_size: int = 0

    def claim(self, letter: str) -> Claim:
        """Return the claim of this letter."""
        return next(claim for claim in self.claims if claim.claim == letter)

    @property
    def reach(self) -> str:
        """Say how far the log is signed, and how far somebody else vouches for it, in the words of all verifiers."""
        if self.size is None:
            return "No checkpoint can be read"
        by = f"up to {self.anchored_size} by whom you trust" if self.anchored_size else "by nobody whom you trust"
        return f"Checkpoint {self.size}, anchored {by}"

    def to_json(self) -> dict[str, Json]:
        """Return the members of `verify --format json`, docs/format.md section 13.3."""
        return {
            "verdict": self.verdict,
            "sides": self.sides,
            "size": self.size,
            "anchored_size": self.anchored_size,
            "claims": [claim.to_json() for claim in self.claims],
        }


def verdict_of(claims: Sequence[Claim], *, trusting: bool, required: Sequence[str] = REQUIRED) -> Verdict:
    """Return the one verdict over all claims.

    `trusting` says whether the reader named any key at all: without one nothing is known about who
    made the bundle, however well it fits together.
    """
    if any(claim.status == "INVALID" for claim in claims):
        return "invalid"
    if not trusting:
        return "self-consistent only"
    valid = {claim.claim for claim in claims if claim.status == "VALID"}
    return "verified" if valid.issuperset(required) else "not proven"
