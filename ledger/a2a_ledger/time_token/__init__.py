"""Time tokens: what a timestamp authority states about a checkpoint, RFC 3161. Pure; docs/format.md section 6.5.

A token says that somebody had these octets no later than a time. `open_token` reads one and holds it against the
octets; `Token.check_trust` asks whose clock it was. Whether a root may be trusted is said from outside, never by a
token.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from a2a_ledger.errors import VerificationError
from a2a_ledger.time_token.certificates import (
    Certificate,
    check_chain,
    check_signature,
    read_root,
    read_roots,
)
from a2a_ledger.time_token.response import MAX_RESPONSE, TimeToken, read_response
from a2a_ledger.time_token.tst_info import NONCE_SIZE, Statement, request

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Stamp:
    """A token that holds by the certificate that came with it, over octets that are at hand."""

    token: TimeToken
    signer: Certificate

    @property
    def states(self) -> Statement:
        """Return what the authority states."""
        return self.token.states

    @property
    def holder(self) -> str:
        """Return the name of the authority, as its certificate has it (RFC 4514)."""
        return self.signer.name

    @property
    def latest(self) -> datetime:
        """Return the time by which the octets existed, in whole seconds, rounded up."""
        latest = self.states.latest
        whole = latest.replace(microsecond=0)
        return whole if whole == latest else whole + timedelta(seconds=1)

    def check_trust(self, roots: Sequence[Certificate]) -> None:
        """Check that one of these roots vouches for the authority, at the token's own time.

        Raises:
            PolicyError: none does.
        """
        check_chain(self.token, self.signer, roots)


def open_token(raw: bytes, content: bytes) -> Stamp:
    """Read an answer of an authority, and hold it against the octets that it is about.

    Raises:
        FormatError: it is no answer of the form of docs/format.md section 6.5.
        VerificationError: the authority refused, the token is over other octets, or its signature does not hold.
        PolicyError: it is signed in a way that is not judged here, so nothing can be said.
    """
    token = read_response(raw)
    if token.states.imprint != sha256(content).digest():
        raise VerificationError(
            f"time stamp: it is over the SHA-256 {token.states.imprint.hex()}, "
            f"expected {sha256(content).hexdigest()}: it was given for something else"
        )
    return Stamp(token, check_signature(token))


__all__ = [
    "MAX_RESPONSE",
    "NONCE_SIZE",
    "Certificate",
    "Stamp",
    "Statement",
    "open_token",
    "read_root",
    "read_roots",
    "request",
]
