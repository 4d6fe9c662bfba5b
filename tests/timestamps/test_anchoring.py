"""A head stamped by a real authority over HTTP: what is recorded, what is refused, and what a bundle takes along."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.anchors import anchored_size, anchors_of
from a2a_ledger.anchors.timestamp import Authority as Asked
from a2a_ledger.anchors.timestamp import anchor_by_authority, stamp
from a2a_ledger.audit import audit_ledger
from a2a_ledger.bundle import read_bundle
from a2a_ledger.checkpoint import Checkpoint, sign_checkpoint
from a2a_ledger.errors import AnchorError, UsageError
from a2a_ledger.events import CheckpointAnchored, TaskAdopted
from a2a_ledger.export import export_task
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.policy import parse_policy
from a2a_ledger.time_token import open_token, read_roots
from a2a_ledger.verify import verify
from tests.cli.conftest import objects, run
from tests.conformance.material import stranger
from tests.evidence.recorded import dispute
from tests.timestamps.authority import OTHER_POLICY, POLICY
from tests.timestamps.server import Responder, Said
from verifier import a2a_verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from click.testing import Result

    from tests.timestamps.authority import Authority

    Run = Callable[..., Result]

__all__ = ["run"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def place(home: Path, authority: Authority, responder: Responder) -> Path:
    """Make a ledger with one disputed task, whose settings name the authority."""
    with ContractLedger.open(home / "audit", origin="acme/audit", follow=False) as opened:
        dispute(opened)
        opened.catch_up()
        opened.sign_checkpoint()
    (home / "audit" / "roots.pem").write_bytes(authority.pem)
    lines = ["[anchor]", f'timestamp = "{responder.url}"', 'timestamp_roots = "roots.pem"', ""]
    (home / "audit" / "config.toml").write_text("\n".join(lines))
    return home / "audit"


@pytest.fixture
def ledger(place: Path) -> Iterator[ContractLedger]:
    with ContractLedger.open(place, follow=False) as opened:
        yield opened


def asked(authority: Authority, responder: Responder, policy: str | None = None) -> Asked:
    return Asked(responder.url, read_roots(authority.pem), policy)


def grow(ledger: ContractLedger) -> None:
    event = TaskAdopted(peer="5" * 32, peer_url="https://peer.example/.well-known/agent-card.json", task_id="T9")
    ledger.append([ledger.draft(event, stream=f"task:{ledger.new_task()}")])


# ---- Asking


def test_a_token_is_recorded_with_the_head_it_is_over(
    ledger: ContractLedger, authority: Authority, responder: Responder
) -> None:
    size = ledger.store.size()
    done = anchor_by_authority(ledger, asked(authority, responder))
    assert [kind for kind, _ in responder.asked] == ["application/timestamp-query"]
    record = ledger.store.record(size)
    assert record.stream == "anchors"
    assert record.data == {
        "stream_commitment": ledger.store.keys.commitment("anchors"),
        "origin": ledger.origin,
        "size": size,
        "root": ledger.store.root(size).hex(),
        "holder": "CN=Test TSA",
        "kind": "rfc3161",
    }
    note, token = record.content("note"), record.content("token")
    assert note == ledger.store.checkpoints()[-1][1].encode()
    assert token == done.token
    assert note is not None
    assert token is not None
    assert authority.accepts(note, token)
    roots = read_roots(authority.pem)
    assert anchored_size(ledger.store, roots) == size
    assert anchored_size(ledger.store) == 0  # nobody said whom to trust


def test_each_request_has_a_nonce_of_its_own(
    ledger: ContractLedger, authority: Authority, responder: Responder
) -> None:
    first, second = (anchor_by_authority(ledger, asked(authority, responder)) for _ in range(2))
    assert first.head == second.head, "an anchor alone is no reason for a new head"
    nonces = {one.stamp.states.nonce for one in (first, second)}
    assert len(nonces) == 2
    assert all(nonce is not None and nonce.bit_length() > 64 for nonce in nonces)


def test_a_policy_is_asked_for_and_held_against_the_answer(
    ledger: ContractLedger, authority: Authority, responder: Responder
) -> None:
    done = anchor_by_authority(ledger, asked(authority, responder, OTHER_POLICY))
    assert done.stamp.states.policy == OTHER_POLICY
    note = ledger.store.checkpoints()[-1][1].encode()
    plain = authority.reply(responder.asked[0][1])
    responder.answer = lambda _: Said(authority.stamp(note))
    with pytest.raises(AnchorError, match="answers another request"):
        anchor_by_authority(ledger, asked(authority, responder, OTHER_POLICY))
    assert open_token(plain, note).states.policy == OTHER_POLICY
    responder.answer = lambda query: Said(authority.reply(without_policy(query)))
    with pytest.raises(AnchorError, match=f"expected one under policy {OTHER_POLICY}, found {POLICY}"):
        anchor_by_authority(ledger, asked(authority, responder, OTHER_POLICY))


def without_policy(query: bytes) -> bytes:
    """Take the policy out of a request, as an authority that does not look at it."""
    oid = bytes.fromhex("06092b0601040183bf3003")
    assert oid in query
    return bytes([query[0], query[1] - len(oid)]) + query[2:].replace(oid, b"")


# ---- Answers that are not taken


def bad_answers(authority: Authority, other: Authority) -> dict[str, tuple[Callable[[bytes], Said], str]]:
    expired = partial(authority.issue, "stamping", name="Old", end="20210101000000Z")
    two_uses = partial(authority.issue, "not_alone", name="Both")

    def changed(query: bytes) -> Said:
        reply = authority.reply(query)
        return Said(reply[:-1] + bytes([reply[-1] ^ 1]))

    return {
        "another nonce": (
            lambda query: Said(authority.reply(query[:-4] + bytes([query[-4] ^ 1]) + query[-3:])),
            "another request",
        ),
        "about something else": (lambda _: Said(authority.stamp(b"something else")), "given for something else"),
        "expired": (lambda query: Said(authority.signed_anew(authority.reply(query), expired())), "was not valid at"),
        "two uses": (lambda query: Said(authority.signed_anew(authority.reply(query), two_uses())), "stamping alone"),
        "unknown root": (lambda query: Said(other.reply(query)), "leads to none of the roots"),
        "refused": (lambda _: Said(authority.refusal()), "gave no token, status 2, rejection"),
        "changed": (changed, "does not verify by the certificate"),
        "garbage": (lambda _: Said(b"\xff\xd8garbage"), "expected a value of tag 30"),
        "empty": (lambda _: Said(b""), "expected a value of tag 30"),
        "too long": (lambda _: Said(bytes(70_000)), "an answer may have 65536"),
        "a page": (lambda _: Said(b"<html>", media_type="text/html"), "found 200 and 'text/html'"),
        "an error": (lambda query: Said(authority.reply(query), status=500), "found 500"),
    }


NAMES = [
    "another nonce",
    "about something else",
    "expired",
    "two uses",
    "unknown root",
    "refused",
    "changed",
    "garbage",
]


@pytest.mark.parametrize("name", [*NAMES, "empty", "too long", "a page", "an error"])
def test_an_answer_that_is_not_taken_leaves_nothing(
    ledger: ContractLedger, authority: Authority, other_authority: Authority, responder: Responder, name: str
) -> None:
    answer, why = bad_answers(authority, other_authority)[name]
    responder.answer = answer
    before = ledger.store.size()
    with pytest.raises(AnchorError, match=why):
        anchor_by_authority(ledger, asked(authority, responder))
    assert ledger.store.size() == before


def test_an_authority_that_falls_silent(authority: Authority, responder: Responder) -> None:
    """It says half of its answer, and nothing more while the test runs."""
    responder.answer = lambda query: Said(authority.reply(query), silence=60)
    note = sign_checkpoint(Checkpoint("acme/audit-00112233", 1, bytes(32)), stranger("acme/audit-00112233")).encode()
    with pytest.raises(AnchorError, match=r"no whole answer within 0\.2 s"):
        stamp(note, asked(authority, responder), nonce=1, timeout=0.2)


def test_nobody_there(ledger: ContractLedger, authority: Authority, responder: Responder) -> None:
    responder.stop()
    with pytest.raises(AnchorError, match="no answer"):
        anchor_by_authority(ledger, asked(authority, responder))


def test_a_url_that_is_none(ledger: ContractLedger, authority: Authority) -> None:
    with pytest.raises(UsageError, match="expected an http or https url"):
        anchor_by_authority(ledger, Asked("ftp://tsa.example", read_roots(authority.pem)))


# ---- What counts, and what a bundle takes along


def test_an_audit_counts_what_the_settings_trust(
    ledger: ContractLedger, authority: Authority, responder: Responder, other_authority: Authority, place: Path
) -> None:
    size = anchor_by_authority(ledger, asked(authority, responder)).head.size
    ledger.sign_checkpoint()
    report = audit_ledger(ledger)
    assert (report.faults, report.anchored_size) == ((), size)
    (place / "roots.pem").write_bytes(other_authority.pem)
    report = audit_ledger(ledger)
    assert (report.faults, report.anchored_size) == ((), 0)
    assert [note for note in report.notes if "counts as none: nobody who is trusted vouches for 'CN=Test TSA'" in note]


@pytest.mark.parametrize("what", ["token", "note", "holder"])
def test_a_recorded_anchor_that_says_something_else_counts_as_none(
    ledger: ContractLedger, authority: Authority, what: str
) -> None:
    size, text = ledger.store.checkpoints()[-1]
    note, token = text.encode(), authority.stamp(text.encode())
    event = CheckpointAnchored(
        origin=ledger.origin,
        size=size,
        root=ledger.store.root(size).hex(),
        holder="CN=Somebody" if what == "holder" else "CN=Test TSA",
        kind="rfc3161",
    )
    blobs = {
        "note": note.replace(b"\n", b"\n", 1) + (b"" if what != "note" else b"\xe2\x80\x94 x AAAAAAA=\n"),
        "token": token[:-1] + bytes([token[-1] ^ (what == "token")]),
    }
    ledger.append([ledger.draft(event, stream="ledger", blobs=blobs)])
    ((_, why),) = anchors_of(ledger.store, read_roots(authority.pem))
    expected = {
        "token": "does not verify",
        "note": "given for something else",
        "holder": "its token is by 'CN=Test TSA'",
    }
    assert expected[what] in why


def test_a_bundle_takes_the_token_along(
    ledger: ContractLedger, authority: Authority, responder: Responder, home: Path
) -> None:
    task = next(record.stream for record in ledger.store.read(0, 40) if record.stream.startswith("task:"))[5:]
    assert "time tokens" not in str(export_task(ledger, task))
    done = anchor_by_authority(ledger, asked(authority, responder))
    grow(ledger)
    again = anchor_by_authority(ledger, asked(authority, responder))
    assert again.head.size > done.head.size

    made = export_task(ledger, task, home / "case.zip")

    assert made.stamped_by == ("CN=Test TSA",)
    assert "not anchored; time tokens of CN=Test TSA" in str(made)
    files = read_bundle(made.data).files
    assert sorted(name for name in files if name.startswith("data/time/")) == [
        "data/time/0.checkpoint",
        "data/time/0.tsr",
    ]
    assert files["data/time/0.tsr"] == done.token, "the earliest that covers all of it"
    assert authority.accepts(files["data/time/0.checkpoint"], files["data/time/0.tsr"])
    policy = f"log {ledger.signers['log'].vkey}\nquorum none\n{authority.policy_line}"
    report = verify(made.data, policy=parse_policy(policy))
    assert report.verdict == "verified"
    time = f"existed not later than {done.stamp.latest:%Y-%m-%dT%H:%M:%SZ}, by the time authority CN=Test TSA"
    assert report.claim("T").status == "VALID"
    assert f"the first {done.head.size} events of the log {time}" in report.claim("T").detail
    alone = a2a_verify.verify(made.data, a2a_verify.read_policy(policy.encode()))
    assert alone.claims["T"].status == "VALID"
    assert time.partition(",")[0] in alone.claims["T"].detail


def test_a_token_of_each_authority_goes_along(
    ledger: ContractLedger, authority: Authority, responder: Responder
) -> None:
    second = authority.issue("stamping", name="Second TSA")
    task = next(record.stream for record in ledger.store.read(0, 40) if record.stream.startswith("task:"))[5:]
    first = anchor_by_authority(ledger, asked(authority, responder))
    responder.answer = lambda query: Said(authority.reply(query, second))
    other = anchor_by_authority(ledger, asked(authority, responder))
    grow(ledger)
    anchor_by_authority(ledger, asked(authority, responder))
    made = export_task(ledger, task)
    assert made.stamped_by == ("CN=Second TSA", "CN=Test TSA")
    files = read_bundle(made.data).files
    assert [files.get(f"data/time/{number}.tsr") for number in range(3)] == [first.token, other.token, None]
    report = verify(made.data, policy=parse_policy(f"quorum none\n{authority.policy_line}"))
    assert "CN=Test TSA" in report.claim("T").detail
    assert "(also: " in report.claim("T").detail
    assert "CN=Second TSA" in report.claim("T").detail


@pytest.mark.parametrize("what", ["token", "note"])
def test_a_broken_token_does_not_go_along(ledger: ContractLedger, authority: Authority, what: str) -> None:
    """Whoever can append can record anything; a bundle that every reader refuses would be the price."""
    task = next(record.stream for record in ledger.store.read(0, 40) if record.stream.startswith("task:"))[5:]
    size, text = ledger.store.checkpoints()[-1]
    note = text.encode()
    if what == "note":
        note = sign_checkpoint(Checkpoint(ledger.origin, size, bytes(32)), ledger.signers["log"]).encode()
    token = authority.stamp(note)
    event = CheckpointAnchored(
        origin=ledger.origin, size=size, root=ledger.store.root(size).hex(), holder="CN=Test TSA", kind="rfc3161"
    )
    given = {"note": note, "token": token[:-1] if what == "token" else token}
    ledger.append([ledger.draft(event, stream="ledger", blobs=given)])
    made = export_task(ledger, task)
    assert [name for name in read_bundle(made.data).files if name.startswith("data/time/")] == []
    assert (
        verify(made.data, policy=parse_policy(f"quorum none\n{authority.policy_line}")).claim("T").status
        == "NOT PROVEN"
    )


def test_a_token_from_before_the_task_s_last_event_goes_along_and_is_called_short(
    ledger: ContractLedger, authority: Authority, responder: Responder
) -> None:
    done = anchor_by_authority(ledger, asked(authority, responder))
    later = dispute(ledger, name="t2")
    ledger.catch_up()
    made = export_task(ledger, later.tasks["t2"])
    assert made.stamped_by == ()
    report = verify(made.data, policy=parse_policy(f"quorum none\n{authority.policy_line}"))
    assert report.claim("T").status == "NOT PROVEN"
    assert f"the first {done.head.size} events of the log existed" in report.claim("T").detail
    assert "and what is shown goes up to event" in report.claim("T").detail


# ---- The command


def test_the_verb(run: Run, place: Path) -> None:
    done = run("--ledger", place, "anchor", "timestamp")
    assert done.exit_code == 0, done.stderr
    assert ", by CN=Test TSA\n" in done.stdout
    assert "head of 17 existed not later than 20" in done.stdout
    (shown,) = objects(run("--ledger", place, "--format", "json", "anchor", "show"))
    assert shown == {"position": 17, "size": 17, "kind": "rfc3161", "holder": "CN=Test TSA", "why": ""}
    told = json.loads(run("--ledger", place, "--format", "json", "checkpoint", "show").stdout)
    assert told["anchored_size"] == 17


def test_the_verb_without_settings(
    run: Run, place: Path, authority: Authority, home: Path, responder: Responder
) -> None:
    (place / "config.toml").unlink()
    (home / "roots.pem").write_bytes(authority.pem)
    nobody = run("--ledger", place, "anchor", "timestamp")
    assert (nobody.exit_code, nobody.stdout) == (2, "")
    assert "--url and --roots" in nobody.stderr
    done = run(
        "--ledger", place, "--format", "json", "anchor", "timestamp", "--url", responder.url, "--roots", "roots.pem"
    )
    assert (done.exit_code, json.loads(done.stdout)["holder"]) == (0, "CN=Test TSA")
    assert "counts as an anchor here only where config.toml names the roots" in done.stderr
    responder.answer = lambda _: Said(authority.refusal())
    refused = run("--ledger", place, "anchor", "timestamp", "--url", responder.url, "--roots", "roots.pem")
    assert (refused.exit_code, refused.stdout) == (3, "")
    assert "gave no token" in refused.stderr


def test_roots_that_cannot_be_read(run: Run, place: Path) -> None:
    (place / "roots.pem").write_text("nothing")
    done = run("--ledger", place, "anchor", "timestamp")
    assert done.exit_code == 2
    assert "timestamp_roots" in done.stderr
