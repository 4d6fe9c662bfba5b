"""Key events that readers refuse: the store takes none, an audit names them, and none lengthens a key's term."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.audit import audit_ledger
from a2a_ledger.errors import UsageError
from a2a_ledger.events import KeyAdded, KeyRetired, KeyRevoked
from a2a_ledger.export import export_task
from a2a_ledger.keys import COSIGNATURE, Signer, Verifier, generate
from a2a_ledger.store.log_keys import log_keys
from tests.evidence.forging import judged
from tests.evidence.recorded import append_unchecked, dispute, entropy, opened

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from a2a_ledger.audit import Fault
    from a2a_ledger.events import Event
    from a2a_ledger.ledger import ContractLedger

ORIGIN_OF_NOBODY = "evil.example/zz"


def adds(key: Signer, role: str = "export") -> KeyAdded:
    return KeyAdded(key_id=key.key_id, public_key=key.verifier.public_key.hex(), role=role, vkey=key.vkey)


def retires(key: Signer, role: str = "export") -> KeyRetired:
    return KeyRetired(key_id=key.key_id, role=role, vkey=key.vkey)


def revokes(key: Signer, size: int, role: str = "export") -> KeyRevoked:
    return KeyRevoked(key_id=key.key_id, role=role, vkey=key.vkey, size=size)


def other(ledger: ContractLedger, name: str | None = None) -> Signer:
    return generate(name or ledger.origin, entropy())


def faults_of_events(ledger: ContractLedger) -> list[Fault]:
    """Return the audit's faults of events; that the private key of a retired one still lies here is none of these."""
    return [fault for fault in audit_ledger(ledger).faults if fault.position is not None]


# What an operator might append, the last of each being what no reader accepts, and a word of what is said of it.
FAULTY: dict[str, tuple[Callable[[ContractLedger], list[Event]], str]] = {
    "retired twice": (lambda at: [retires(at.signers["export"])] * 2, "retired already"),
    "revoked twice": (
        lambda at: [revokes(at.signers["export"], 1), revokes(at.signers["export"], 10**9)],
        "revoked already",
    ),
    "ended under another role": (lambda at: [retires(at.signers["export"], "statement")], "was added as export key"),
    "ended under another id": (
        lambda at: [replace(retires(at.signers["export"]), key_id="00000000")],
        "was added as export key",
    ),
    "ended and never added": (lambda at: [retires(other(at))], "was never added"),
    "another log's name": (lambda at: [adds(other(at, ORIGIN_OF_NOBODY))], "expected acme/audit"),
    "another key id": (lambda at: [replace(adds(other(at)), key_id="00000000")], "key id and vkey differ"),
    "another public key": (lambda at: [replace(adds(other(at)), public_key="00" * 32)], "key id and vkey differ"),
    "no role": (lambda at: [adds(other(at), "god")], "expected one of the roles"),
    "one key, two roles": (lambda at: [adds(at.signers["log"])], "one key speaks for one role"),
    "no key": (lambda at: [replace(adds(other(at)), vkey="junk")], "verifier key"),
    "no size": (lambda at: [replace(revokes(at.signers["export"], 1), size=-1)], "expected a size"),
}


@pytest.mark.parametrize("name", FAULTY)
def test_what_readers_refuse_is_not_appended_and_is_a_fault_where_it_stands(tmp_path: Path, name: str) -> None:
    events, said = FAULTY[name]
    with opened(tmp_path / "audit") as ledger:
        *before, faulty = events(ledger)
        for event in before:
            ledger.append([ledger.draft(event, stream="ledger")])
        size = ledger.store.size()
        with pytest.raises(UsageError, match=said):
            ledger.append([ledger.draft(event, stream="ledger") for event in (faulty,)])
        assert (ledger.store.size(), faults_of_events(ledger)) == (size, [])
        append_unchecked(ledger, faulty)
        (fault,) = faults_of_events(ledger)
        assert (fault.kind, fault.position) == ("key", size)
        assert said in fault.detail


def test_a_faulty_event_spoils_its_whole_append(tmp_path: Path) -> None:
    with opened(tmp_path / "audit") as ledger:
        size = ledger.store.size()
        drafts = [ledger.draft(retires(ledger.signers["export"]), stream="ledger") for _ in range(2)]
        with pytest.raises(UsageError, match="retired already"):
            ledger.append(drafts)
        assert ledger.store.size() == size
        assert ledger.append(drafts[:1]) == ledger.append(drafts[:1])  # a retry is none


def test_keys_of_others_carry_their_own_names(tmp_path: Path) -> None:
    with opened(tmp_path / "audit") as ledger:
        witness = generate("witness.example/w", entropy())
        key = Verifier(witness.name, witness.verifier.public_key, COSIGNATURE)
        event = KeyAdded(key_id=key.key_id, public_key=key.public_key.hex(), role="witness", vkey=key.vkey)
        ledger.append([ledger.draft(event, stream="ledger")])
        assert audit_ledger(ledger).clean


@pytest.mark.parametrize("sizes", [(3, 10**9), (10**9, 3), (3, 3)])
def test_the_smallest_size_of_several_revocations_counts(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    with opened(tmp_path / "audit") as ledger:
        for size in sizes:
            append_unchecked(ledger, revokes(ledger.signers["export"], size))
        keys = log_keys(ledger.store)
        (term,) = [term for term in keys.terms if term.role == "export"]
        assert term.revoked == 3
        assert len(keys.faults) == (0 if sizes[1] < sizes[0] else 1)


def test_a_second_retirement_does_not_undo_the_first(tmp_path: Path) -> None:
    """A statement signed between the two stays one that no speaking key signed."""
    with opened(tmp_path / "audit") as ledger:
        story = dispute(ledger)
        statement = ledger.signers["statement"]
        append_unchecked(ledger, retires(statement, "statement"))
        first = ledger.store.size() - 1
        ledger.catch_up()
        append_unchecked(ledger, retires(statement, "statement"))
        (term,) = [term for term in log_keys(ledger.store).terms if term.role == "statement"]
        assert term.retired == first
        report = judged(export_task(ledger, story.tasks["t1"]).data, ledger.signers["log"].vkey)
    assert report.verdict == "invalid"
    assert "retired already" in report.claim("I").detail
    assert report.claim("R").status == "INVALID"
