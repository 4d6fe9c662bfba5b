"""The whole error tree. Every error that leaves this package is one of these.

LedgerError
├── UsageError                  an argument, a setting or an input file is wrong (exit 2)
├── FormatError                 bytes are not in the form that docs/format.md gives
│   ├── CardError               these bytes cannot be captured as an Agent Card
│   └── BundleError             this is not an evidence bundle that may be read
├── CaptureError                the guard stopped a call
│   ├── SendRefusedError        the freshness table says abort before send; nothing was sent
│   │   └── ContractChangedError  because the contract changed
│   │       └── SpentClientError  an earlier send of this client found that
│   ├── ContractDivergenceError the peer left the frozen contract (mode "enforce")
│   └── LedgerUnavailableError  the ledger could not record and the caller asked to block
├── ContractFrozenError         also a RuntimeError: the minimal client's own error
├── StoreError                  the database, the key store or the mark
│   ├── ConflictError           somebody else recorded this first
│   ├── BusyError               a lock was held longer than the time-out
│   ├── DiskFullError           there is no room for what was to be written
│   ├── UnreachableError        the database server does not answer: a write may have been done or not
│   ├── ReadOnlyError           this ledger was opened without the right or the keys to write
│   ├── MissingKeysError        a database without its key store, or the reverse
│   ├── RollbackError           the database is older than its high-water mark
│   └── DamagedError            what lies in the database was changed or removed from outside (exit 1)
├── AnchorError                 somebody else was asked to anchor a head, and did not
└── VerificationError           a check that must hold does not
    ├── SignatureError
    ├── InclusionError
    ├── ConsistencyError
    └── PolicyError             nothing that the reader trusts speaks for this

A message says what was expected, what was found, where, and what to do. `hint` is one more
line for people; only the command line prints it.
"""

from typing import TypeGuard


class LedgerError(Exception):
    """Base of every error of this package."""

    hint: str = ""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        if hint:
            self.hint = hint


class UsageError(LedgerError):
    """An argument, a setting or an input file is wrong."""


class FormatError(LedgerError):
    """Bytes are not in the form that docs/format.md gives."""


class CardError(FormatError):
    """These bytes cannot be captured as an Agent Card."""


class BundleError(FormatError):
    """This is not an evidence bundle that may be read."""


class CaptureError(LedgerError):
    """The guard stopped a call.

    Attributes:
        task: local id of the task that was stopped; "": none is known.
        event: number of the event in which the ledger says so; None: none is known.
    """

    def __init__(self, message: str, *, hint: str = "", task: str = "", event: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.task = task
        self.event = event


class SendRefusedError(CaptureError):
    """The freshness table says abort before send; nothing was sent.

    Attributes:
        reason: that of the table (docs/format.md section 9).
        retry_after: seconds after which asking again may go otherwise; None: no time is known (docs/errors.md).
    """

    def __init__(  # noqa: PLR0913 - what a caller has to be told, all named at the call
        self,
        message: str,
        *,
        hint: str = "",
        task: str = "",
        event: int | None = None,
        reason: str = "",
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message, hint=hint, task=task, event=event)
        self.reason = reason
        self.retry_after = retry_after


class ContractChangedError(SendRefusedError):
    """The peer's contract changed before the send; nothing was sent."""


class SpentClientError(ContractChangedError):
    """An earlier send found that the contract is gone that the client was built on: build the client again."""


class ContractDivergenceError(CaptureError):
    """The peer left the frozen contract, with certainty, in mode "enforce"."""


class LedgerUnavailableError(CaptureError):
    """The ledger could not record, and `on_ledger_failure` is "block"."""


class ContractFrozenError(LedgerError, RuntimeError):
    """The minimal client's error: freezing outside `submitted`, or a card that left the frozen hash."""


class StoreError(LedgerError):
    """The database, the key store or the high-water mark."""


class ConflictError(StoreError):
    """Somebody else recorded this position or this version first."""


class BusyError(StoreError):
    """A lock on the database was held longer than the time-out."""


class DiskFullError(StoreError):
    """There is no room on the disk of the database: nothing was written, and the same call can be made again."""


class UnreachableError(StoreError):
    """The database server did not answer, or lost what it was doing: a write under way may have been done or not.

    The same append, of the same drafts, can be made again: what was recorded is found, and not recorded twice.
    """


class ReadOnlyError(StoreError):
    """This ledger was opened without the right or the keys to write."""


class MissingKeysError(StoreError):
    """A database without its key store, or a key store that lacks a key."""


class RollbackError(StoreError):
    """The database is older than its high-water mark, or does not name the key that signed the mark."""


class DamagedError(StoreError):
    """What lies in the database was changed or removed from outside."""

    hint = "The ledger was changed from outside: run `a2a-ledger audit`, which names each fault."


def is_damage(error: BaseException) -> TypeGuard[StoreError]:
    """Say whether an error tells that what lies in the database is not what was put there, so that none may try again.

    That is `DamagedError`, and `StoreError` itself: what cannot be read, and names no cause that passes. Its other
    kinds speak of the moment or of the caller (busy, unreachable, a conflict, no right), not of what is stored.
    """
    return isinstance(error, DamagedError) or type(error) is StoreError


class AnchorError(LedgerError):
    """Somebody else was asked to anchor a head, and did not: no answer, a refusal, or one that proves nothing."""


class VerificationError(LedgerError):
    """A check that must hold does not."""


class SignatureError(VerificationError):
    """A signature does not verify, or no known key made it."""


class InclusionError(VerificationError):
    """A leaf is not under this tree head (RFC 9162 section 2.1.3)."""


class ConsistencyError(VerificationError):
    """A later tree head does not extend an earlier one (RFC 9162 section 2.1.4)."""


class PolicyError(VerificationError):
    """Nothing that the reader trusts speaks for this."""
