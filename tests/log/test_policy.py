"""Policies: what a reader trusts, and whether enough witnesses have seen a head."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_ledger.checkpoint import Checkpoint, SignedCheckpoint, sign_checkpoint
from a2a_ledger.errors import FormatError, PolicyError, SignatureError
from a2a_ledger.keys import COSIGNATURE, Signer, Verifier, generate
from a2a_ledger.note import Note, SignatureLine, cosignature_message, parse_note
from a2a_ledger.policy import Group, Policy, parse_policy

ORIGIN = "ledger.example/acme-0a1b2c3d"


def signer(number: int, name: str = ORIGIN) -> Signer:
    return generate(name, lambda size: bytes([number]) * size)


LOG = signer(1)
STATEMENTS = signer(2)
NAMES = ("X1", "X2", "X3", "Y1", "Y2", "Y3")
WITNESSES = {name: signer(10 + number, f"witness.example/{name}") for number, name in enumerate(NAMES)}
HEAD = Checkpoint(ORIGIN, 3, bytes(32))


def vkey(name: str) -> str:
    one = WITNESSES[name]
    return Verifier(one.name, one.verifier.public_key, COSIGNATURE).vkey


# The example of C2SP tlog-policy, with keys, urls, comments and odd spacing.
EXAMPLE = f"""\
# Our own
log {LOG.vkey} https://ledger.example/

witness X1 {vkey("X1")}
witness X2 {vkey("X2")} https://witness.example/
  witness\tX3  {vkey("X3")}\t
group X-witnesses 2 X1 X2 X3

witness Y1 {vkey("Y1")}
witness Y2 {vkey("Y2")}
witness Y3 {vkey("Y3")}
group Y-witnesses any Y1 Y2 Y3

group X-and-Y all X-witnesses Y-witnesses
quorum X-and-Y
# a2a-ledger: statement {STATEMENTS.vkey}
"""


def cosigned(*names: str) -> str:
    note = parse_note(sign_checkpoint(HEAD, LOG))
    lines = list(note.signatures)
    for name in names:
        one = WITNESSES[name]
        key = Verifier(one.name, one.verifier.public_key, COSIGNATURE)
        blob = (7).to_bytes(8, "big") + one.sign(cosignature_message(note.text, 7))
        lines.append(SignatureLine(key.name, key.key_id, blob))
    return str(Note(note.text, tuple(lines)))


def test_the_example_of_the_standard() -> None:
    policy = parse_policy(EXAMPLE)
    assert policy.logs == (LOG.verifier,)
    assert policy.keys("log") == (LOG.verifier,)
    assert policy.keys("statement") == (STATEMENTS.verifier,)
    assert policy.keys("export") == ()
    assert [key.vkey for key in policy.keys("witness")] == [vkey(name) for name in NAMES]
    assert policy.groups == {
        "X-witnesses": Group(2, ("X1", "X2", "X3")),
        "Y-witnesses": Group(1, ("Y1", "Y2", "Y3")),
        "X-and-Y": Group(2, ("X-witnesses", "Y-witnesses")),
    }
    assert parse_policy(str(policy)) == policy


def test_every_subset_of_witnesses_meets_the_quorum_exactly_when_it_should() -> None:
    policy = parse_policy(EXAMPLE)
    for count in range(7):
        for names in itertools.combinations(NAMES, count):
            enough = sum(name[0] == "X" for name in names) >= 2 and any(name[0] == "Y" for name in names)
            signed = policy.open(cosigned(*names))
            assert {entry.verifier.name for entry in signed.cosigners} == {f"witness.example/{n}" for n in names}
            try:
                policy.check_quorum(signed)
                met = True
            except PolicyError:
                met = False
            assert met == enough, names


def test_a_quorum_of_none_and_of_one_witness() -> None:
    none = parse_policy(f"log {LOG.vkey}\nquorum none\n")
    none.check_quorum(none.open(cosigned()))
    one = parse_policy(f"log {LOG.vkey}\nwitness w {vkey('X1')}\nquorum w")
    one.check_quorum(one.open(cosigned("X1")))
    with pytest.raises(PolicyError, match="quorum 'w', and this checkpoint is cosigned by none"):
        one.check_quorum(one.open(cosigned("X2")))
    with pytest.raises(PolicyError, match=r"cosigned by witnesses \['X2'\]"):
        parse_policy(EXAMPLE).check_quorum(parse_policy(EXAMPLE).open(cosigned("X2")))


def test_a_log_key_in_the_place_of_a_witness_is_no_cosignature() -> None:
    """The same key bytes as type 01 sign without a time: that is no cosignature, whatever the name."""
    policy = parse_policy(f"log {LOG.vkey}\nwitness w {vkey('X1')}\nquorum w")
    note = parse_note(cosigned())
    plain = SignatureLine(WITNESSES["X1"].name, WITNESSES["X1"].key_id, WITNESSES["X1"].sign(note.text.encode()))
    with pytest.raises(PolicyError):
        policy.check_quorum(policy.open(str(Note(note.text, (*note.signatures, plain)))))


def test_a_log_that_the_policy_does_not_name() -> None:
    other = parse_policy(f"log {signer(3, 'other.example/log-01234567').vkey}\nquorum none\n")
    with pytest.raises(PolicyError, match=f"names no key of log {ORIGIN}"):
        other.open(cosigned())
    later = parse_policy(f"log {signer(3).vkey}\nquorum none\n")
    with pytest.raises(SignatureError, match="no known key signed"):
        later.open(cosigned())
    with pytest.raises(FormatError):
        later.open("no note")


def test_a_log_with_two_keys_and_one_in_our_own_line() -> None:
    old, new = signer(4), signer(5)
    policy = parse_policy(f"log {old.vkey}\nquorum none\n# a2a-ledger: log {new.vkey}\n")
    assert policy.keys("log") == (old.verifier, new.verifier)
    assert policy.open(sign_checkpoint(HEAD, new)).checkpoint == HEAD


def test_a_policy_without_anything_trusts_nothing() -> None:
    with pytest.raises(PolicyError):
        Policy().open(cosigned())
    signed = SignedCheckpoint(HEAD, parse_note(cosigned()), ())
    Policy().check_quorum(signed)
    with pytest.raises(PolicyError):
        Policy(quorum="w").check_quorum(signed)


def test_names_are_octets() -> None:
    """C2SP: the letter K and the Kelvin sign are two names, and names need not be UTF-8."""
    raw = f"witness K {vkey('X1')}\nwitness \u212a {vkey('X2')}\n".encode()
    raw += b"witness \xff " + vkey("X3").encode() + b"\ngroup \xfe any K \xff\nquorum \xfe\n"
    policy = parse_policy(raw)
    assert len(policy.witnesses) == 3
    with pytest.raises(PolicyError) as error:
        policy.check_quorum(SignedCheckpoint(HEAD, parse_note(cosigned()), ()))
    assert str(error.value).encode()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("quorum X1\n", "line 18: a second quorum line"),
        ("quorum none\n", "line 18: a second quorum line"),
        ("quorum\n", "line 18: expected a log, witness, group or quorum line"),
        ("quorum X1 X2\n", "line 18: expected"),
        ("witness none {Z}\n", "'none' is taken"),
        ("witness X1 {Z}\n", "'X1' is taken"),
        ("witness Z {X1}\n", "was already given, as witness"),
        ("witness Z {LOG}\n", "type 04, found 01"),
        ("witness Z\n", "expected a log"),
        ("witness Z {Z} url more\n", "expected a log"),
        ("log {Z}\n", "type 01, found 04"),
        ("log {LOG}\n", "was already given, as log"),
        ("log {STATEMENTS}\n", "was already given, as statement"),
        ("log nonsense\n", "a verifier key has the form"),
        ("group X1 any Y1\n", "'X1' is taken"),
        ("group G any none\n", "'none' is no witness or group of a line above"),
        ("group G any G\n", "is no witness or group of a line above|is taken"),
        ("group G any X1\n", "'X1' is a member already"),
        ("group G any\n", "expected a log"),
        ("witness Z {Z}\ngroup G 0 Z\n", "needs 0 of its 1 members"),
        ("witness Z {Z}\ngroup G 2 Z\n", "needs 2 of its 1 members"),
        ("witness Z {Z}\ngroup G 01 Z\n", "without leading zeros"),
        ("witness Z {Z}\ngroup G ALL Z\n", "the threshold of a group"),
        ("witness Z {Z}\ngroup G any Z Z\n", "'Z' is a member already"),
        ("LOG {Z}\n", "expected a log"),
        ("\x00\n", "control characters"),
        ("# comment\x7f\n", "control characters"),
        ("quorum\r\n", "control characters"),
        ("# a2a-ledger: statement\n", "with a role of log, statement, export, witness, peer"),
        ("# a2a-ledger: boss {LOG}\n", "with a role of"),
        ("# a2a-ledger: export {LOG}\n", "was already given, as log"),
        ("#a2a-ledger: witness {LOG2}\n", "type 04, found 01"),
        ("# a2a-ledger: peer nonsense\n", "a verifier key has the form"),
    ],
)
def test_what_is_no_policy(change: str, reason: str) -> None:
    spare = generate("witness.example/Z", lambda size: b"\x30" * size)
    keys = {
        "LOG": LOG.vkey,
        "LOG2": signer(6).vkey,
        "STATEMENTS": STATEMENTS.vkey,
        "X1": vkey("X1"),
        "Z": Verifier(spare.name, spare.verifier.public_key, COSIGNATURE).vkey,
    }
    for name, text in keys.items():
        change = change.replace("{" + name + "}", text)
    with pytest.raises(FormatError, match=f"policy line 1[6-9]: .*({reason.removeprefix('line 18: ')})"):
        parse_policy(EXAMPLE + change)


def test_a_policy_without_a_quorum_line() -> None:
    with pytest.raises(FormatError, match="exactly one quorum line, found none"):
        parse_policy(f"log {LOG.vkey}\n")


def test_a_comment_that_only_looks_like_ours_is_a_comment() -> None:
    assert parse_policy("#\n# a2a ledger: boss\n## a2a-ledger: boss\nquorum none\n") == Policy()


@given(st.binary(max_size=100))
def test_no_bytes_raise_anything_else(raw: bytes) -> None:
    for candidate in (raw, EXAMPLE.encode() + raw, b"group G any " + raw, b"# a2a-ledger: log " + raw):
        try:
            parse_policy(candidate)
        except FormatError as error:
            assert str(error).encode()  # noqa: PT017 - that it can be printed is the point
