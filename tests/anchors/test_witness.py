"""One witness, answer by answer (C2SP tlog-witness): what is sent to it, and what of its answers is believed."""

from __future__ import annotations

import base64
from hashlib import sha256

import pytest

from a2a_ledger.anchors.asking import Answer
from a2a_ledger.anchors.witness import DisagreementError, cosign, latest_seen, read_witnesses, witnesses_of
from a2a_ledger.checkpoint import Checkpoint, sign_checkpoint
from a2a_ledger.errors import AnchorError, UsageError
from a2a_ledger.keys import generate
from a2a_ledger.policy import parse_policy
from tests.anchors.pretend import Pretend, size

ORIGIN = "acme/audit-1b9e04c7"
LOG = generate(ORIGIN, lambda size: b"l" * size)
HEAD = Checkpoint(ORIGIN, 7, b"r" * 32)
NOTE = sign_checkpoint(HEAD, LOG)


class Proofs:
    """A log whose proofs name the sizes that they were asked for."""

    def consistency(self, old: int, new: int) -> list[bytes]:
        return [bytes([old]) * 32, bytes([new]) * 32]


def test_a_first_head_is_sent_without_a_proof() -> None:
    pretend = Pretend()
    note = cosign(pretend.witness, NOTE, 0, Proofs(), pretend)
    assert [line.name for line in note.signatures] == [pretend.key.name]
    assert note.text == str(HEAD)
    assert pretend.asked == [("POST", "https://witness.example/w/add-checkpoint", f"old 0\n\n{NOTE}")]


def test_growth_is_sent_with_a_proof_from_what_the_witness_saw() -> None:
    pretend = Pretend()
    cosign(pretend.witness, NOTE, 3, Proofs(), pretend)
    path = "".join(f"{base64.b64encode(bytes([at]) * 32).decode()}\n" for at in (3, 7))
    assert [body for _, _, body in pretend.asked] == [f"old 3\n{path}\n{NOTE}"]


def test_the_same_head_again_is_sent_without_a_proof() -> None:
    pretend = Pretend()
    cosign(pretend.witness, NOTE, 7, Proofs(), pretend)
    assert [body for _, _, body in pretend.asked] == [f"old 7\n\n{NOTE}"]


def test_a_witness_that_is_elsewhere_is_met_there() -> None:
    pretend = Pretend()
    pretend.answers = [size(5)]
    assert cosign(pretend.witness, NOTE, 3, Proofs(), pretend).signatures
    assert [body.partition("\n")[0] for _, _, body in pretend.asked] == ["old 3", "old 5"]


def test_a_witness_that_never_stands_still_is_left() -> None:
    pretend = Pretend()
    pretend.answers = [size(1), size(2), size(3), size(4)]
    with pytest.raises(AnchorError, match="named another size each time"):
        cosign(pretend.witness, NOTE, 0, Proofs(), pretend)
    assert len(pretend.asked) == 3


@pytest.mark.parametrize(
    ("answer", "has"),
    [
        (size(8), 8),  # it has seen more than there is
        (size(3), 3),  # it has what was stated, and did not take the proof
        (Answer(422, "text/plain", b"no"), None),
        (Answer(409, "text/plain", b"fork"), None),
    ],
)
def test_a_witness_that_has_seen_something_else_disagrees(answer: Answer, has: int | None) -> None:
    pretend = Pretend()
    pretend.answers = [answer]
    with pytest.raises(DisagreementError) as caught:
        cosign(pretend.witness, NOTE, 3, Proofs(), pretend)
    assert caught.value.size == has


@pytest.mark.parametrize("status", [302, 400, 403, 404, 429, 500, 503])
def test_another_status_is_a_refusal_that_is_quoted(status: int) -> None:
    pretend = Pretend()
    pretend.answers = [Answer(status, "text/html", b"<p>\x1b[31mno\xff")]
    with pytest.raises(AnchorError, match=rf"refused this head of 7: status {status}, '<p>.*31mno") as caught:
        cosign(pretend.witness, NOTE, 0, Proofs(), pretend)
    assert not isinstance(caught.value, DisagreementError)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("body", [b"", b"5", b"x\n", b"05\n", b"-1\n", b"\xff\n", b"99999999999999999999\n"])
def test_a_size_that_is_none_is_refused(body: bytes) -> None:
    pretend = Pretend()
    pretend.answers = [Answer(409, "text/x.tlog.size", body)]
    if body == b"5":  # the line feed is missing, which says nothing else
        assert cosign(pretend.witness, NOTE, 0, Proofs(), pretend).signatures
        return
    with pytest.raises(AnchorError, match="answered 409 without a size"):
        cosign(pretend.witness, NOTE, 0, Proofs(), pretend)


def test_what_is_no_cosignature_of_the_witness_is_refused() -> None:
    pretend, other = Pretend(), Pretend("witness.example/other")
    wrong = str(Checkpoint(ORIGIN, 6, b"r" * 32))
    bodies = [
        b"",
        b"\n",
        b"<html>",
        other.cosigned(str(HEAD)).body,  # somebody else's
        pretend.cosigned(str(HEAD), over=wrong).body,  # over another head
        pretend.cosigned(str(HEAD)).body[:-1],
        pretend.cosigned(str(HEAD)).body + pretend.cosigned(str(HEAD), over=wrong).body,
        b"\xe2\x80\x94 witness.example/w AAAAAAAA\n",
    ]
    for body in bodies:
        pretend.answers = [Answer(200, "text/plain", body)]
        with pytest.raises(AnchorError, match="no cosignature of its own"):
            cosign(pretend.witness, NOTE, 0, Proofs(), pretend)


def test_lines_of_others_beside_the_cosignature_are_left_out() -> None:
    pretend, other = Pretend(), Pretend("witness.example/other")
    lines = other.cosigned(str(HEAD)).body + pretend.cosigned(str(HEAD)).body
    pretend.answers = [Answer(200, "text/plain", lines)]
    note = cosign(pretend.witness, NOTE, 0, Proofs(), pretend)
    assert [line.name for line in note.signatures] == ["witness.example/w"]


def test_the_newest_head_of_a_witness_counts_when_the_log_signed_it() -> None:
    pretend = Pretend()
    pretend.shown = Answer(200, "text/plain", NOTE.encode())
    seen = latest_seen(pretend.witness, ORIGIN, [LOG.verifier], pretend)
    assert seen is not None
    assert seen.checkpoint == HEAD
    assert pretend.asked[0][:2] == (
        "GET",
        f"https://witness.example/w/{sha256(ORIGIN.encode()).hexdigest()}/checkpoint",
    )
    stranger = generate(ORIGIN, lambda size: b"s" * size)
    assert latest_seen(pretend.witness, ORIGIN, [stranger.verifier], pretend) is None
    assert latest_seen(pretend.witness, "acme/other-1b9e04c7", [LOG.verifier], pretend) is None
    pretend.shown = Answer(404, "text/plain", NOTE.encode())
    assert latest_seen(pretend.witness, ORIGIN, [LOG.verifier], pretend) is None


def test_a_policy_says_where_its_witnesses_are() -> None:
    one, two = Pretend(), Pretend("witness.example/two")
    policy = read_witnesses(f"{one.line}witness mute {two.key.vkey}\nquorum none\n".encode())
    assert [(found.name, found.url, found.key) for found in witnesses_of(policy)] == [
        ("witness.example/w", "https://witness.example/w", one.key)
    ]
    assert parse_policy(str(policy)) == policy


@pytest.mark.parametrize(
    "url", ["http://witness.example/w", "https://u@witness.example/", "https://w.example/?a", "ftp://w.example", "w"]
)
def test_a_policy_with_a_url_that_may_not_be_asked_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="expected an https url"):
        read_witnesses(f"witness w {Pretend().key.vkey} {url}\nquorum w\n".encode())


def test_a_policy_without_a_url_is_refused() -> None:
    with pytest.raises(UsageError, match="nobody to send a head to"):
        read_witnesses(f"witness w {Pretend().key.vkey}\nquorum w\n".encode())
