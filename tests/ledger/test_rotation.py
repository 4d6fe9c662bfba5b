"""A key gives way to a new one: the events, the files, whoever runs meanwhile, and a crash at each step."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from a2a_ledger import rotation
from a2a_ledger.audit import audit_ledger
from a2a_ledger.checkpoint import checkpoint_of, open_checkpoint
from a2a_ledger.errors import BusyError, ReadOnlyError, UsageError
from a2a_ledger.export import export_task
from a2a_ledger.key_events import KeyTerm
from a2a_ledger.keys import generate, load_pem, parse_vkey, verify_handover
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.replay import replay_task
from a2a_ledger.rotation import revoke, rotate
from a2a_ledger.store.log_keys import log_keys
from tests.evidence.forging import judged
from tests.evidence.recorded import dispute

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from a2a_ledger.codec import Record

ROLES = ["log", "statement", "export"]


def open_at(tmp_path: Path, **options: Any) -> ContractLedger:  # noqa: ANN401 - passed through
    return ContractLedger.open(
        tmp_path / "audit", origin="acme/audit", follow=False, mark_dir=str(tmp_path / "mark"), **options
    )


def wait(_: float) -> None:
    """Wait for nobody."""


def key_events(ledger: ContractLedger) -> list[Record]:
    return [record for record in ledger.store.read_stream("ledger") if record.n >= 4]


@pytest.mark.parametrize("role", ROLES)
def test_both_keys_sign_the_hand_over_and_the_old_one_ends(tmp_path: Path, role: str) -> None:
    with open_at(tmp_path) as ledger:
        old = ledger.signers[role].vkey
        done = rotate(ledger, role, sleep=wait)
        assert done.new is not None
        assert ledger.signers[role].vkey == done.new.vkey != old
        added, retired = key_events(ledger)
        data = added.data
        assert (added.type, data["role"], data["old"], data["vkey"]) == ("key.added.v1", role, old, done.new.vkey)
        assert (retired.type, retired.data["vkey"]) == ("key.retired.v1", old)
        signatures = {name: bytes.fromhex(str(data[name])) for name in ("signature_old", "signature_new")}
        verify_handover(ledger.origin, role, old=old, new=done.new.vkey, **signatures)
        spans = [(t.added, t.retired) for t in log_keys(ledger.store).terms if t.role == role]
        assert spans == [(1 + ROLES.index(role), 5), (4, None)]
    with open_at(tmp_path) as ledger:
        assert ledger.signers[role].vkey == done.new.vkey
        assert audit_ledger(ledger).faults == ()
    assert sorted(path.name for path in (tmp_path / "audit" / "keys").iterdir()) == sorted(f"{r}.pem" for r in ROLES)


def test_a_bundle_after_each_rotation_verifies_by_the_first_log_key(tmp_path: Path) -> None:
    with open_at(tmp_path) as ledger:
        first, story = ledger.signers["log"].vkey, dispute(ledger)
        ledger.catch_up()
        for role in (*ROLES, *ROLES):
            rotate(ledger, role, sleep=wait)
        bundle = export_task(ledger, story.tasks["t1"]).data
        newest = ledger.signers["log"].vkey
    assert [judged(bundle, vkey).verdict for vkey in (first, newest)] == ["verified", "verified"]


def test_the_first_head_under_a_new_log_key_is_signed_by_it_alone(tmp_path: Path) -> None:
    with open_at(tmp_path) as ledger:
        before, old = ledger.sign_checkpoint(), ledger.signers["log"].verifier
        done = rotate(ledger, "log", sleep=wait)
        assert done.new is not None
        size, note = ledger.store.latest_checkpoint() or (0, "")
        assert (checkpoint_of(before).size, size) == (4, 6)
        assert [one.verifier for one in open_checkpoint(note, [old, done.new]).verified] == [done.new]
        assert open_checkpoint(before, [old]).checkpoint.size == 4


@pytest.mark.parametrize("role", ["log", "statement"])
def test_a_process_that_runs_meanwhile_signs_with_the_new_key(tmp_path: Path, role: str) -> None:
    with open_at(tmp_path) as running, open_at(tmp_path) as other:
        old = running.signers[role].vkey
        done = rotate(other, role, sleep=wait)
        assert done.new is not None
        assert running.signers[role].vkey == done.new.vkey != old
        dispute(running)
        running.catch_up()
        running.sign_checkpoint()
        assert audit_ledger(running).faults == ()


def test_others_may_sign_for_a_while_when_the_key_of_statements_gives_way(tmp_path: Path) -> None:
    seen: list[tuple[float, list[str]]] = []
    with open_at(tmp_path) as ledger:
        rotate(
            ledger,
            "statement",
            sleep=lambda seconds: seen.append((seconds, [record.type for record in key_events(ledger)])),
        )
        assert seen == [(2.0, ["key.added.v1"])]
        assert [record.type for record in key_events(ledger)] == ["key.added.v1", "key.retired.v1"]


class CrashError(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("step", ["save_whole", "_append", "_put_in_place"])
@pytest.mark.parametrize("done", [False, True])
def test_a_crash_at_any_step_leaves_a_ledger_that_opens_and_signs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str, step: str, done: bool
) -> None:
    whole = getattr(rotation, step)

    def crash(*args: Any) -> None:  # noqa: ANN401 - handed on
        if done:
            whole(*args)
        raise CrashError

    with open_at(tmp_path) as ledger:
        old = ledger.signers[role].vkey
        with monkeypatch.context() as patch:
            patch.setattr(rotation, step, crash)
            with pytest.raises(CrashError):
                rotate(ledger, role, sleep=wait)
        counted = step == "_put_in_place" or (step == "_append" and done)
        assert (ledger.signers[role].vkey != old) is counted
    with open_at(tmp_path) as ledger:
        assert (ledger.signers[role].vkey != old) is counted
        rotate(ledger, role, sleep=wait)  # once more; it ends whatever else still speaks
        speaking = [key.vkey for key in log_keys(ledger.store).speaking(role, 1 << 60)]
        assert speaking == [ledger.signers[role].vkey]
        assert audit_ledger(ledger).faults == ()
    assert not (tmp_path / "audit" / "keys" / f"{role}.next.pem").exists()


def test_a_next_key_that_the_log_does_not_name_is_not_taken(tmp_path: Path) -> None:
    with open_at(tmp_path) as ledger:
        old = ledger.signers["export"].vkey
    keys = tmp_path / "audit" / "keys"
    os.link(keys / "log.pem", keys / "export.next.pem")
    with open_at(tmp_path) as ledger:
        assert ledger.signers["export"].vkey == old


def test_a_revoked_key_is_followed_by_one_that_its_readers_have_to_be_given(tmp_path: Path) -> None:
    with open_at(tmp_path) as ledger:
        old, story = ledger.signers["log"], dispute(ledger)
        ledger.catch_up()
        before = export_task(ledger, story.tasks["t1"]).data
        done = revoke(ledger, old.key_id, 4)
        assert done.new is not None
        after = export_task(ledger, story.tasks["t1"]).data
        assert audit_ledger(ledger).faults == ()
    assert judged(before, old.vkey).verdict == "verified"  # which does not show the revocation
    assert judged(after, old.vkey).claim("L").status == "INVALID"
    assert judged(after, done.new.vkey).verdict == "verified"


def test_findings_that_a_revoked_key_signed_before_are_not_proven_and_counted(tmp_path: Path) -> None:
    with open_at(tmp_path) as ledger:
        log_key, old, story = ledger.signers["log"].vkey, ledger.signers["statement"], dispute(ledger)
        ledger.catch_up()
        before = export_task(ledger, story.tasks["t1"]).data
        done = revoke(ledger, old.key_id, 5)
        after = export_task(ledger, story.tasks["t1"]).data
        audited = audit_ledger(ledger)
        replayed = replay_task(ledger, story.tasks["t1"])
    assert done.lapsed == 1
    assert judged(before, log_key).verdict == "verified"
    report = judged(after, log_key)
    assert report.verdict == "not proven"
    assert "revoked from size 5 on: who else held that key could sign it too" in report.claim("R").detail
    assert "1 findings again, equal byte for byte" in report.claim("R").detail
    assert report.claim("R").settle.endswith("a bundle of before under an anchored checkpoint")
    assert audited.faults == ()
    assert [
        note for note in audited.notes if note.startswith("1 finding was signed by a statement key behind the size")
    ]
    assert replayed.differences == ()
    assert "revoked from size 5" in replayed.notes[0]


def test_a_key_speaks_no_more_for_what_is_logged_behind_its_revocation() -> None:
    """By two revocations, at 20 for sizes above 18 and at 30 for those above 5."""
    key = generate("acme/audit-00112233", lambda size: bytes(range(size))).verifier
    term = KeyTerm("statement", key, added=1, retired=None, revoked=5, revoked_by=20)
    assert [n for n in (1, 2, 5, 6, 19, 20, 25) if term.covers(n)] == [2, 5]
    assert [n for n in (1, 2, 5, 6, 19, 20, 25) if term.lapsed(n)] == [6, 19]
    assert not term._replace(retired=10).lapsed(11)


def test_a_key_that_was_retired_may_be_revoked_later_and_needs_no_successor(tmp_path: Path) -> None:
    with open_at(tmp_path) as ledger:
        old = rotate(ledger, "export", sleep=wait).old[0]
        done = revoke(ledger, old.key_id, 4)
        assert (done.role, done.old, done.new, done.size) == ("export", [old], None, 7)
        assert [r.type for r in key_events(ledger)] == ["key.added.v1", "key.retired.v1", "key.revoked.v1"]
        with pytest.raises(UsageError, match="revoked already"):
            revoke(ledger, old.key_id, 5)


def test_a_lost_key_is_revoked_without_it(tmp_path: Path) -> None:
    with open_at(tmp_path) as ledger:
        lost = ledger.signers["statement"]
    (tmp_path / "audit" / "keys" / "statement.pem").unlink()
    with open_at(tmp_path) as ledger:
        with pytest.raises(ReadOnlyError, match=r"statement\.pem: expected the statement key, found none"):
            rotate(ledger, "statement", sleep=wait)
        done = revoke(ledger, lost.key_id, 4)
        assert done.new is not None
        assert "old" not in key_events(ledger)[0].data
    with open_at(tmp_path) as ledger:
        assert ledger.signers["statement"].vkey == done.new.vkey


@pytest.mark.parametrize(("key_id", "size", "said"), [("00000000", 1, "names no key"), ("", 5, "a size from 0 to 4")])
def test_a_revocation_of_nothing_is_refused(tmp_path: Path, key_id: str, size: int, said: str) -> None:
    with open_at(tmp_path) as ledger:
        with pytest.raises(UsageError, match=said):
            revoke(ledger, key_id or ledger.signers["log"].key_id, size)
        assert key_events(ledger) == []


def test_the_private_key_of_the_old_one_is_gone(tmp_path: Path) -> None:
    with open_at(tmp_path) as ledger:
        path = tmp_path / "audit" / "keys" / "log.pem"
        before = path.read_bytes()
        done = rotate(ledger, "log", sleep=wait)
        assert done.new is not None
        assert load_pem(path, ledger.origin).verifier == parse_vkey(done.new.vkey)
        assert path.stat().st_mode & 0o777 == 0o600
    assert not any(before in found.read_bytes() for found in (tmp_path / "audit" / "keys").iterdir())


@pytest.mark.parametrize("role", ["statement", "export"])
def test_whoever_comes_while_a_key_is_replaced_changes_nothing(tmp_path: Path, role: str) -> None:
    with open_at(tmp_path) as ledger, open_at(tmp_path) as other:
        log_key, refused = ledger.signers["log"].vkey, list[str]()

        def meanwhile(_: float) -> None:  # between the hand-over and the end of the old key
            attempts: list[Callable[[], object]] = [
                lambda: rotate(other, role, sleep=wait),
                lambda: rotate(other, "log", sleep=wait),
                lambda: revoke(other, other.signers[role].key_id, 1),
            ]
            for attempt in attempts:
                with pytest.raises(BusyError, match="nobody else to replace or revoke a key of acme/audit") as told:
                    attempt()
                refused.append(str(told.value))

        first = rotate(ledger, role, sleep=meanwhile)
        assert len(refused) == 3
        assert [record.type for record in key_events(ledger)] == ["key.added.v1", "key.retired.v1"]
        assert log_keys(other.store).speaking(role, 1 << 60) == [first.new]
        second = rotate(other, role, sleep=wait)  # afterwards it is the new key that gives way
        assert (second.old, log_keys(ledger.store).speaking(role, 1 << 60)) == ([first.new], [second.new])
        story = dispute(ledger)
        ledger.catch_up()
        assert judged(export_task(ledger, story.tasks["t1"]).data, log_key).verdict == "verified"
