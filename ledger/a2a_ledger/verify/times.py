"""Who else has seen the checkpoint, and by when it existed: claims W and T (docs/format.md section 12, step 10).

The recorder's own clock proves nothing. What proves a time is somebody else's: the witnesses of the reader's quorum,
or a timestamp authority whose root the reader trusts.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.bundle import TIMES, time_files
from a2a_ledger.checkpoint import parse_checkpoint
from a2a_ledger.errors import BundleError, FormatError, LedgerError, PolicyError
from a2a_ledger.note import parse_note
from a2a_ledger.time_token import open_token
from a2a_ledger.verify.proven import check_growth
from a2a_ledger.verify.report import Claim

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.bundle import Bundle
    from a2a_ledger.checkpoint import Checkpoint
    from a2a_ledger.policy import Policy
    from a2a_ledger.verify.proven import Head

_MOST_TOKENS = 10


class Bound(NamedTuple):
    """The first `size` events of the log existed not later than `seconds` (POSIX), by the clock of `whose`."""

    size: int
    seconds: int
    whose: str

    def __str__(self) -> str:
        """Say it in a sentence."""
        return f"the first {self.size} events of the log existed not later than {_time(self.seconds)}, by {self.whose}"


def judge_witnesses(head: Head, policy: Policy | None) -> Claim:
    """Return claim W: who else has seen the checkpoint."""
    if not head.cosigners:
        why = "no witness that you trust has signed the checkpoint"
        return Claim("W", "NOT PROVEN", why, "a cosignature of a witness that your policy names")
    names = f"checkpoint {head.checkpoint.size} is cosigned by {_named(head)}"
    if policy is None or policy.quorum == "none":
        return Claim("W", "NOT PROVEN", names, "a quorum line in your policy")
    if head.quorum:
        return Claim("W", "NOT PROVEN", head.quorum, "the cosignatures that are missing")
    return Claim("W", "VALID", names)


def judge_time(bundle: Bundle, head: Head, policy: Policy | None, needed: int) -> tuple[Claim, int]:
    """Return claim T, by when what the bundle shows existed; and how many first events of the log are anchored.

    Args:
        bundle: with its time tokens.
        head: the checkpoint, and who cosigned it.
        policy: what the reader trusts.
        needed: a time counts for T where it is over at least so many events of the log.
    """
    bounds, faults, left = list[Bound](), list[str](), list[str]()
    if head.quorum_time is not None:
        bounds.append(Bound(head.checkpoint.size, head.quorum_time, "the clocks of the witnesses of your quorum"))
    elif head.cosigners:
        left.append(f"cosigned by {_named(head)}, which is no quorum of your policy")
    for number in range(_MOST_TOKENS):
        note, token = time_files(number)
        if note not in bundle.files and token not in bundle.files:
            continue
        try:
            bounds.append(_read_bound(bundle, head, policy, note, token))
        except PolicyError as problem:
            left.append(f"{token}: {problem}")
        except LedgerError as problem:
            text = str(problem)
            faults.append(text if text.startswith(TIMES) else f"{token}: {text}")
    return _time_claim(bounds, faults, left, needed), max((bound.size for bound in bounds), default=0)


def _read_bound(bundle: Bundle, head: Head, policy: Policy | None, note: str, token: str) -> Bound:
    """Return what one token of the bundle proves.

    Raises:
        PolicyError: nothing, as far as the reader's trust and the bundle go.
        LedgerError: it is broken, or over no head of this log.
    """
    now, old = head.checkpoint, _stamped_head(bundle, head, note)
    grown = check_growth(bundle, now, old)
    stamp = open_token(bundle.read(token), bundle.read(note))
    bound = Bound(old.size, int(stamp.latest.timestamp()), f"the time authority {stamp.holder}")
    roots = policy.authorities if policy else ()
    if not grown:
        raise PolicyError(f"it says that {bound}; the bundle does not lead from that head to {now.size}")
    if not roots:
        raise PolicyError(f"it says that {bound}; you named no root of a time authority")
    try:
        stamp.check_trust(roots)
    except PolicyError as problem:
        raise PolicyError(f"it says that {bound}; {problem}") from problem
    return bound


def _stamped_head(bundle: Bundle, head: Head, name: str) -> Checkpoint:
    """Read the head that a token is over: one of this log, up to the bundle's own."""
    now = head.checkpoint
    try:
        old = parse_checkpoint(parse_note(bundle.read(name)).text)
    except FormatError as problem:
        raise BundleError(f"{name}: {problem}") from problem
    if old.origin != now.origin or not 0 < old.size <= now.size:
        raise BundleError(f"{name}: expected a head of {now.origin} up to {now.size}, found {old.size} of {old.origin}")
    return old


def _time_claim(bounds: Iterable[Bound], faults: list[str], left: list[str], needed: int) -> Claim:
    """Return claim T: any fault makes it INVALID; of the times that cover enough, the earliest counts."""
    if faults:
        return Claim("T", "INVALID", "; ".join(faults))
    known = sorted(bounds, key=lambda bound: bound.seconds)
    covering = [bound for bound in known if bound.size >= needed]
    if covering:
        others = [bound for bound in known if bound is not covering[0]]
        more = f" (also: {'; '.join(map(str, others))})" if others else ""
        return Claim("T", "VALID", f"{covering[0]}{more}; no earliest time is shown")
    short = [f"{bound}, and what is shown goes up to event {needed - 1}" for bound in known]
    why = "; ".join([*short, *left]) or "no witness or time authority that you trust states a time"
    return Claim("T", "NOT PROVEN", why, _settle(short, left))


def _settle(short: list[str], left: list[str]) -> str:
    if any(one.startswith(TIMES) for one in left):
        note, token = time_files(0)
        by_hand = f"openssl ts -verify -data {note} -in {token} -CAfile ROOT.pem"
        return f"a `tsa` line of your policy with the root of that authority, by another way ({by_hand})"
    if short:
        return "a time token, or the cosignatures of a quorum, over a later head"
    return "a time token or a quorum of witnesses that your policy names; the recorder's own clock proves nothing"


def _named(head: Head) -> str:
    return ", ".join(f"{entry.verifier.name} at {_time(entry.time or 0)}" for entry in head.cosigners)


def _time(seconds: int) -> str:
    """Spell POSIX seconds; a hostile number is no reason to fail."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"second {seconds}"
