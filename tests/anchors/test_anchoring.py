"""A head sent to several witnesses: what is recorded, when it is enough, and what a bundle takes along."""

from __future__ import annotations

import json
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.anchors import anchored_size, contradiction, witnesses
from a2a_ledger.anchors.asking import Answer
from a2a_ledger.anchors.witnesses import anchor_by_witnesses
from a2a_ledger.checkpoint import Checkpoint, open_checkpoint, sign_checkpoint
from a2a_ledger.errors import AnchorError, UsageError
from a2a_ledger.events import KeyAdded, KeyRevoked
from a2a_ledger.export import export_task
from a2a_ledger.keys import Signer
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.policy import parse_policy
from a2a_ledger.rotation import revoke
from a2a_ledger.verify import verify
from tests.anchors.pretend import Pretend, size
from tests.evidence.forging import files_of
from tests.evidence.recorded import dispute

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Grow = Callable[[ContractLedger], None]

VERIFIER = Path(__file__).parents[2] / "verifier" / "a2a_verify.py"


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> list[Pretend]:
    """Stand in for the network: three witnesses, each reached by its url."""
    made = [Pretend(f"witness.example/{name}") for name in "abc"]

    def route(method: str, url: str, body: bytes, headers: Mapping[str, str], *, timeout: float) -> Answer:
        (meant,) = (pretend for pretend in made if url.startswith(f"{pretend.witness.url}/"))
        return meant(method, url, body, headers, timeout=timeout)

    monkeypatch.setattr(witnesses, "ask", route)
    return made


def policy_of(three: list[Pretend], needed: int) -> str:
    names = " ".join(pretend.key.name for pretend in three)
    return f"{''.join(pretend.line for pretend in three)}group g {needed} {names}\nquorum g\n"


def test_enough_witnesses_are_enough(ledger: ContractLedger, three: list[Pretend]) -> None:
    three[1].answers = [Answer(503, "", b"")]
    done = anchor_by_witnesses(ledger, parse_policy(policy_of(three, 2)))
    assert (done.holders, list(done.failures), done.missing) == (
        ("witness.example/a", "witness.example/c"),
        ["witness.example/b"],
        "",
    )
    kinds = [(record.type, record.data.get("holder", record.data.get("vkey"))) for record in ledger.store.read(4, 9)]
    assert kinds == [
        ("key.added.v1", three[0].key.vkey),
        ("checkpoint.anchored.v1", "witness.example/a"),
        ("key.added.v1", three[2].key.vkey),
        ("checkpoint.anchored.v1", "witness.example/c"),
    ]
    assert anchored_size(ledger.store) == 4


def test_too_few_witnesses_are_said_and_still_recorded(ledger: ContractLedger, three: list[Pretend]) -> None:
    three[1].answers = [Answer(503, "", b"")]
    done = anchor_by_witnesses(ledger, parse_policy(policy_of(three, 3)))
    assert done.missing.startswith("the policy asks for quorum 'g', and this checkpoint is cosigned by witnesses")
    assert anchored_size(ledger.store) == 4


def test_each_witness_is_asked_from_where_it_was(ledger: ContractLedger, three: list[Pretend], grow: Grow) -> None:
    policy = parse_policy(policy_of(three, 1))
    three[1].answers = [Answer(503, "", b"")]
    anchor_by_witnesses(ledger, policy)
    grow(ledger)
    anchor_by_witnesses(ledger, policy)
    assert [[body.partition("\n")[0] for _, _, body in pretend.asked] for pretend in three] == [
        ["old 0", "old 4"],
        ["old 0", "old 0"],
        ["old 0", "old 4"],
    ]


def test_anchors_alone_are_no_reason_for_another_head(ledger: ContractLedger, three: list[Pretend]) -> None:
    policy = parse_policy(policy_of(three, 3))
    assert anchor_by_witnesses(ledger, policy).head.size == 4
    assert anchor_by_witnesses(ledger, policy).head.size == 10  # their keys were added
    assert anchor_by_witnesses(ledger, policy).head.size == 10


def test_a_key_that_another_process_adds_meanwhile_is_not_added_twice(
    ledger: ContractLedger, three: list[Pretend], home: Path
) -> None:
    witness = three[0]

    def meanwhile(text: str) -> Answer:
        with ContractLedger.open(home / "audit", follow=False) as other:
            key = witness.key
            added = KeyAdded(key_id=key.key_id, public_key=key.public_key.hex(), role="witness", vkey=key.vkey)
            other.append([other.draft(added, stream="ledger")])
        return witness.cosigned(text)

    witness.answers = [meanwhile]
    done = anchor_by_witnesses(ledger, parse_policy(f"{witness.line}quorum none\n"))
    assert (done.holders, done.missing) == (("witness.example/a",), "")
    assert [record.type for record in ledger.store.read(4, 9)] == ["key.added.v1", "checkpoint.anchored.v1"]
    assert anchored_size(ledger.store) == 4


def test_a_witness_that_hangs_holds_up_nobody(
    ledger: ContractLedger, three: list[Pretend], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witnesses, "_QUESTIONS", 0)  # no patience at all: whoever is not done is late
    done = anchor_by_witnesses(ledger, parse_policy(policy_of(three, 1)))
    assert {type(problem) for problem in done.failures.values()} <= {AnchorError}
    assert set(done.failures) | set(done.holders) == {pretend.key.name for pretend in three}


def test_a_disagreement_without_a_signed_head_accuses_nobody(ledger: ContractLedger, three: list[Pretend]) -> None:
    three[0].answers = [size(99)]
    done = anchor_by_witnesses(ledger, parse_policy(policy_of(three, 1)))
    assert "nobody is accused" in str(done.failures["witness.example/a"])
    assert ledger.home is not None
    assert not (ledger.home.root / "forks").exists()


def test_a_head_by_a_key_of_ours_that_has_ended_accuses_nobody(
    ledger: ContractLedger, three: list[Pretend], grow: Grow
) -> None:
    """Whoever stole the key and shows the witness a history of their own shows nothing about this one."""
    stolen = ledger.signers["log"]
    assert isinstance(stolen, Signer)
    revoke(ledger, stolen.key_id, 2)
    grow(ledger)
    for of in (3, 99):
        theirs = sign_checkpoint(Checkpoint(ledger.origin, of, b"\1" * 32), stolen)
        three[0].answers = [size(99)]
        three[0].shown = Answer(200, "text/plain", theirs.encode())
        done = anchor_by_witnesses(ledger, parse_policy(policy_of(three, 1)))
        assert "nobody is accused" in str(done.failures["witness.example/a"])
        grow(ledger)
    assert ledger.home is not None
    assert not (ledger.home.root / "forks").exists()


def test_a_witness_cannot_fill_the_disk(
    ledger: ContractLedger, three: list[Pretend], grow: Grow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has the log key and is a witness shows another head, or another spelling of one, at each question."""
    monkeypatch.setattr(contradiction, "MOST_KEPT", 3)
    key, policy = ledger.signers["log"], parse_policy(three[0].line + "quorum none\n")

    def shows(of: int, root: bytes, more: str = "") -> str:
        three[0].answers = [size(99)]
        note = sign_checkpoint(Checkpoint(ledger.origin, of, root), key) + more
        three[0].shown = Answer(200, "text/plain", note.encode())
        return str(anchor_by_witnesses(ledger, policy).failures[three[0].key.name])

    assert ledger.home is not None
    folder = ledger.home.root / contradiction.FOLDER
    assert "is kept as" in shows(3, b"\1" * 32)
    first = {path: path.read_bytes() for path in folder.iterdir()}
    for root in (b"\1" * 32, b"\2" * 32):
        grow(ledger)  # our own head is another one each time
        junk = f"\u2014 junk {'A' * 43}=\n"
        assert f"not kept beside the first of its size, {next(iter(first))}" in shows(3, root, junk)
    assert {path: path.read_bytes() for path in folder.iterdir()} == first
    assert "is kept as" in shows(2, b"\1" * 32)
    assert "is kept as" in shows(99, b"\1" * 32)
    assert f"not kept beside the 3 of this holder in {folder}" in shows(98, b"\1" * 32)
    assert len(list(folder.iterdir())) == 3
    contradiction.contradiction(ledger, "another", open_checkpoint(three[0].shown.body, [key.verifier]))
    assert len(list(folder.iterdir())) == 4, "what one holder does takes no room from another"


def test_a_key_that_the_log_uses_otherwise_is_no_witness(ledger: ContractLedger, three: list[Pretend]) -> None:
    policy = parse_policy(policy_of(three, 1))
    anchor_by_witnesses(ledger, policy)
    key = three[0].key
    revoked = KeyRevoked(key_id=key.key_id, role="witness", vkey=key.vkey, size=1)
    ledger.append([ledger.draft(revoked, stream="ledger")])
    with pytest.raises(UsageError, match="the log has its key revoked"):
        anchor_by_witnesses(ledger, policy)


def test_a_bundle_goes_under_the_head_that_others_signed(
    ledger: ContractLedger, three: list[Pretend], grow: Grow, home: Path
) -> None:
    task = dispute(ledger).tasks["t1"]
    ledger.catch_up()
    alone = export_task(ledger, task)
    assert alone.anchored_by == ()
    assert "(not anchored; 0 later events)" in str(alone)
    anchored = anchor_by_witnesses(ledger, parse_policy(policy_of(three, 3)))
    grow(ledger)  # somebody else's event, and a head over it that nobody cosigned

    made = export_task(ledger, task, home / "case.zip")

    assert made.size == anchored.head.size < ledger.store.size()
    assert made.anchored_by == ("witness.example/a", "witness.example/b", "witness.example/c")
    assert "(anchored by witness.example/a, witness.example/b, witness.example/c; 0 later events)" in str(made)
    trust = f"log {ledger.signers['log'].vkey}\n"
    report = verify(made.data, policy=parse_policy(trust + policy_of(three, 3)))
    claims = {claim.claim: claim for claim in report.claims}
    assert report.verdict == "verified"
    assert (claims["W"].status, claims["T"].status) == ("VALID", "VALID")
    assert "2026-09-14T09:00:00Z" in claims["T"].detail

    (home / "policy.txt").write_text(trust + policy_of(three, 3))
    words = [sys.executable, str(VERIFIER), "--policy", "policy.txt", "case.zip"]
    alone_file = subprocess.run(words, capture_output=True, text=True, check=False, cwd=home)
    rows = {line.split()[0]: line for line in alone_file.stdout.splitlines()[1:]}
    assert alone_file.returncode == 3, "it does not judge again, so it cannot say verified"
    assert "VALID       cosigned by witness.example/a, witness.example/b, witness.example/c" in rows["W"]
    assert "events of the log existed not later than 2026-09-14T09:00:00Z, by the clocks of the witnesses" in rows["T"]


def test_a_bundle_does_not_grow_with_how_often_heads_were_anchored(
    ledger: ContractLedger, three: list[Pretend], grow: Grow
) -> None:
    for _ in range(5):
        grow(ledger)
        anchor_by_witnesses(ledger, parse_policy(policy_of(three, 3)))
    task = dispute(ledger).tasks["t1"]
    ledger.catch_up()
    ledger.sign_checkpoint()
    assert len(ledger.store.read_stream("anchors")) == 15
    files = files_of(export_task(ledger, task).data)
    shown = [json.loads(octets) for name, octets in files.items() if fnmatch(name, "data/records/*.json")]
    assert [record["type"] for record in shown if record["stream"] == "ledger"] == [
        "ledger.opened.v1",
        *["key.added.v1"] * 6,  # log, statement, export, and three witnesses
    ]
    assert [record["type"] for record in shown if record["stream"] == "anchors"] == []


def test_a_head_that_leaves_out_something_of_the_task_is_not_taken(
    ledger: ContractLedger, three: list[Pretend]
) -> None:
    anchor_by_witnesses(ledger, parse_policy(policy_of(three, 1)))
    task = dispute(ledger).tasks["t1"]
    ledger.catch_up()
    made = export_task(ledger, task)
    assert (made.anchored_by, made.later_events) == ((), 0)
    assert made.size == ledger.store.size()


def test_a_head_behind_the_one_that_the_reader_holds_is_not_taken(
    ledger: ContractLedger, three: list[Pretend], grow: Grow
) -> None:
    task = dispute(ledger).tasks["t1"]
    ledger.catch_up()
    anchor_by_witnesses(ledger, parse_policy(policy_of(three, 1)))
    grow(ledger)
    held = ledger.store.size()
    made = export_task(ledger, task, since=[held])
    assert (made.size, made.anchored_by) == (held, ())
