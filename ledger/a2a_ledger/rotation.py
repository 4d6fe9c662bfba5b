"""A key of the log gives way to a new one, or is revoked: the events, signed by both keys, and the key files.

docs/format.md section 6.3. Nothing here is undone by a crash: before the events are in the log the old key speaks and
the next key is a file that nobody uses; afterwards the new key speaks, and `KeyRing.finish` puts its file in place.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.errors import BusyError, ReadOnlyError, StoreError, UsageError
from a2a_ledger.events import KeyAdded, KeyRetired, KeyRevoked
from a2a_ledger.home import alone
from a2a_ledger.key_ring import KeyRing, key_file, next_file, next_uri_file, save_uri, save_whole
from a2a_ledger.keys import KINDS, generate, handover_message
from a2a_ledger.signing.away import SocketSigner
from a2a_ledger.store.log_keys import NOW, log_keys
from a2a_ledger.verify.rerun import VIOLATION
from a2a_ledger.verify.signed import lapsed_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager

    from a2a_ledger.events import Event
    from a2a_ledger.keys import Signer, Verifier
    from a2a_ledger.ledger import ContractLedger

SETTLE = 2.0
"""Seconds in which both keys speak: what another process signed just before is in the log when the old one ends."""


class Rotated(NamedTuple):
    """What a rotation, or a revocation, came to."""

    role: str
    old: list[Verifier]
    new: Verifier | None
    size: int
    """Of the log afterwards: the first head under the new key."""
    lapsed: int = 0
    """How many recorded findings have no signer any more that counts."""
    unsigned: str | None = None
    """Why no head covers it yet, where none could be signed."""


class Elsewhere(NamedTuple):
    """A new key that lies elsewhere: its URI, and its signer."""

    uri: str
    signer: Signer


def rotate(
    ledger: ContractLedger, role: str, *, sleep: Callable[[float], None], to: Elsewhere | None = None
) -> Rotated:
    """Replace the key of a role by a new one; both sign the hand-over, and the old private key is overwritten.

    Args:
        ledger: open for writing, with the key.
        role: `log`, `statement`, `export` or `peer`.
        sleep: waits `SETTLE` seconds between the two events, for roles that other processes sign for meanwhile.
        to: the new key, where it is not to lie here.

    Raises:
        ReadOnlyError: the key is not here.
        BusyError: another process replaces or revokes a key just now; nothing was appended.
        StoreError: the key file or the log cannot be written; nothing is lost.
    """
    with _alone(ledger):
        return _rotate(ledger, role, sleep, to)


def _rotate(ledger: ContractLedger, role: str, sleep: Callable[[float], None], to: Elsewhere | None) -> Rotated:
    ring = _ring(ledger)
    old = ring.get(role)
    if old is None:
        raise ReadOnlyError(
            f"{key_file(ring.folder, role)}: expected the {role} key, found none: a key hands over itself; one "
            "that is lost is revoked: a2a-ledger keys revoke KEY_ID --size N"
        )
    if isinstance(old, SocketSigner):
        raise UsageError(
            f"the {role} key lies with a signer process, which signs no hand-over: whoever got into this process would "
            "have it name a key of their own",
            hint=f"stop the signer; move {role}.pem from its folder to {ring.folder}, and nothing else; "
            f"a2a-ledger keys rotate --role {role}; move the new {role}.pem to the signer's folder; start it; "
            "a2a-ledger keys use unix:SOCKET",
        )
    with _signing_stopped(ledger, role):
        new = _make(ledger, ring, role, to)
        added = _addition(ledger.origin, role, new, old)
        ends = [_retirement(role, key) for key in log_keys(ledger.store).speaking(role, NOW)]
        if role == "log":  # heads wait meanwhile
            _append(ledger, added, *ends)
        else:
            _append(ledger, added)
        _put_in_place(ring, role)
    if role != "log":
        sleep(SETTLE)
        _append(ledger, *ends)
    return _done(ledger, role, old.verifier, new.verifier)


def revoke(ledger: ContractLedger, key_id: str, size: int) -> Rotated:
    """Say that a key is not to be trusted for heads larger than `size`; one in force gets a successor.

    Args:
        ledger: open for writing.
        key_id: the 8 hex digits of a key that the log names.
        size: the last size at which it was surely nobody else's.

    Raises:
        UsageError: the log names no such key, or it is revoked from there on already.
        BusyError: another process replaces or revokes a key just now; nothing was appended.
        StoreError: the key file or the log cannot be written.
    """
    with _alone(ledger):
        return _revoke(ledger, key_id, size)


def _revoke(ledger: ContractLedger, key_id: str, size: int) -> Rotated:
    terms = [term for term in log_keys(ledger.store).terms if term.key.key_id == key_id]
    if not terms:
        raise UsageError(f"{ledger.origin} names no key {key_id}; a2a-ledger keys list shows those that it names")
    if not 0 <= size <= ledger.store.size():
        raise UsageError(f"expected a size from 0 to {ledger.store.size()}, that of the log, found {size}")
    term = terms[0]
    end = KeyRevoked(key_id=key_id, role=term.role, vkey=term.key.vkey, size=size)
    if term.role == "witness" or not term.covers(NOW):
        _append(ledger, end)
        return _done(ledger, term.role, term.key, None)._replace(lapsed=_lapsed(ledger, term.role))
    ring = _ring(ledger)
    old = ring.get(term.role)
    old = None if isinstance(old, SocketSigner) else old  # which signs no hand-over
    with _signing_stopped(ledger, term.role):
        new = _make(ledger, ring, term.role)
        _append(ledger, _addition(ledger.origin, term.role, new, old), end)
        _put_in_place(ring, term.role)
    return _done(ledger, term.role, term.key, new.verifier)._replace(lapsed=_lapsed(ledger, term.role))


def _lapsed(ledger: ContractLedger, role: str) -> int:
    """Count the findings that lost their signer by revocations."""
    if role != "statement":
        return 0
    store = ledger.store
    records = (record for stream in store.streams("findings:") for record in store.read_stream(stream))
    found = ((record.n, record.content("statement") or b"") for record in records if record.type == VIOLATION)
    return lapsed_findings(found, log_keys(store))


@contextmanager
def _alone(ledger: ContractLedger) -> Generator[None]:
    """Be the only one who replaces or revokes a key of this ledger, from reading the keys to the last event.

    Raises:
        BusyError: another process does.
    """
    if ledger.home is None:
        yield
        return
    with alone(ledger.home.rotating_lock) as got:
        if not got:
            raise BusyError(
                f"expected nobody else to replace or revoke a key of {ledger.origin}, found another process at it; "
                "nothing was changed: when it is done, look at `a2a-ledger keys list` and decide again"
            )
        yield


def _make(ledger: ContractLedger, ring: KeyRing, role: str, to: Elsewhere | None = None) -> Signer:
    """Make the next key of a role, durable before anybody hears of it; encrypted where the others are."""
    path, elsewhere = next_file(ring.folder, role), next_uri_file(ring.folder, role)
    for left in (path, elsewhere):
        try:
            left.unlink(missing_ok=True)  # of a rotation that was given up: the log never named it
        except OSError as e:
            raise StoreError(f"{left}: cannot be removed ({e.strerror}); no key was replaced") from e
    if to is not None:
        save_uri(elsewhere, to.uri, to.signer.vkey)
        return to.signer
    new = generate(ledger.origin, ledger.entropy, KINDS[role])
    save_whole(path, new, ring.sealing())
    return new


def _put_in_place(ring: KeyRing, role: str) -> None:
    ring.finish(role)


def _addition(origin: str, role: str, new: Signer, old: Signer | None) -> KeyAdded:
    added = KeyAdded(key_id=new.key_id, public_key=new.verifier.public_key.hex(), role=role, vkey=new.vkey)
    if old is None:
        return added
    message = handover_message(origin, role, old.vkey, new.vkey)
    return KeyAdded(
        key_id=added.key_id,
        public_key=added.public_key,
        role=role,
        vkey=added.vkey,
        old=old.vkey,
        signature_new=new.sign(message).hex(),
        signature_old=old.sign(message).hex(),
    )


def _retirement(role: str, key: Verifier) -> KeyRetired:
    return KeyRetired(key_id=key.key_id, role=role, vkey=key.vkey)


def _append(ledger: ContractLedger, *events: Event) -> None:
    ledger.append([ledger.draft(event, stream="ledger") for event in events])


def _done(ledger: ContractLedger, role: str, old: Verifier, new: Verifier | None) -> Rotated:
    """Sign a head over what was appended, where the log key is here; the key has changed in any case."""
    unsigned: str | None = None
    if "log" in ledger.signers and ledger.mark is not None:
        try:
            ledger.sign_checkpoint()
        except StoreError as problem:  # a signer's process that was stopped for this, a mark that cannot be written
            unsigned = str(problem)
    return Rotated(role, [old], new, ledger.store.size(), unsigned=unsigned)


def _signing_stopped(ledger: ContractLedger, role: str) -> AbstractContextManager[object]:
    return ledger.mark.exclusive() if role == "log" and ledger.mark is not None else nullcontext()


def _ring(ledger: ContractLedger) -> KeyRing:
    if not isinstance(ledger.signers, KeyRing):
        raise UsageError("the keys of this ledger lie in no directory of its own: there is nothing here to replace")
    return ledger.signers
