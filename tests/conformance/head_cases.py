"""The checkpoint and who signed it, witnesses, earlier heads: sections 6.1 and 12, steps 7 and 10."""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING

from a2a_ledger.checkpoint import Checkpoint, checkpoint_of, sign_checkpoint
from a2a_ledger.keys import COSIGNATURE, Signer, Verifier
from a2a_ledger.note import SignatureLine, cosignature_message
from tests.conformance.material import log, stranger
from tests.conformance.sealing import sealed
from tests.conformance.table import Made, row
from tests.evidence.forging import flipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conformance.table import Row
    from tests.evidence.forging import Files

CHECKPOINT = "data/log/checkpoint"
GROWTH = "data/log/consistency/17-31"
TIME = 1_789_376_400  # 2026-09-14T09:00:00Z


def _resealed(change: Callable[[Files], None], policy: str = "", earlier: tuple[bytes, ...] = ()) -> Made:
    files = log().files
    change(files)
    return Made(sealed(files, log().signers["export"]), policy or log().policy, earlier)


def _note() -> str:
    return log().files[CHECKPOINT].decode()


def _with_note(note: str, policy: str | None = None) -> Made:
    """Put another note in the place of the checkpoint, also in every proof."""
    files = log().files
    before = files[CHECKPOINT]
    for name in files:
        if name.startswith("data/log/proofs/"):
            files[name] = files[name].replace(before, note.encode())
    files[CHECKPOINT] = note.encode()
    return Made(sealed(files, log().signers["export"]), log().policy if policy is None else policy)


# ---- Who signed the checkpoint


def _signed_by(*signers: Signer) -> str:
    return sign_checkpoint(checkpoint_of(_note()), *signers)


def _cosigned(note: str, witness: Signer, time: int = TIME, *, good: bool = True) -> str:
    """Add a witness's line to a note."""
    text = note.partition("\n\n")[0] + "\n"
    key = _witness_key(witness)
    signature = witness.sign(cosignature_message(text, time + (not good)))
    return note + str(SignatureLine(key.name, key.key_id, time.to_bytes(8, "big") + signature))


def _witness_key(witness: Signer) -> Verifier:
    return Verifier(witness.name, witness.verifier.public_key, COSIGNATURE)


def _witness(number: int) -> Signer:
    return stranger(f"witness.example/w{number}", f"witness {number}")


def _asking(quorum: str, *lines: str) -> str:
    """Return a policy that trusts the log and three witnesses."""
    named = [f"witness w{number} {_witness_key(_witness(number)).vkey}" for number in (1, 2, 3)]
    return "\n".join([f"log {log().signers['log'].vkey}", *named, *lines, f"quorum {quorum}", ""])


def _stranger_s_line() -> str:
    """Return a signature line of a key that nobody knows."""
    note = sign_checkpoint(Checkpoint("acme/other-00112233", 1, bytes(32)), stranger("acme/other-00112233"))
    return note.splitlines(keepends=True)[-1]


def _bad_line(key: Signer) -> str:
    return str(SignatureLine(key.name, key.key_id, bytes(64)))


def _same_name() -> Signer:
    return stranger(log().origin)


def _signers() -> Iterator[Row]:
    signed = partial(row, section="12, step 7")
    log_key = log().signers["log"]
    # Nobody whom the reader trusts signed: then nobody trusted says where the streams end.
    unsigned = partial(signed, invalid="L", unproven="C2")
    yield unsigned("head_by_stranger_fail", recipe=lambda: _with_note(_signed_by(_same_name())))
    yield unsigned("head_signature_wrong_fail", recipe=lambda: _with_note(_text() + _bad_line(log_key)))
    yield unsigned("head_second_signature_wrong_fail", recipe=lambda: _with_note(_note() + _bad_line(log_key)))
    yield unsigned(
        "head_without_trust_by_stranger_fail", recipe=lambda: _with_note(_signed_by(_same_name()), policy="")
    )
    unknown = partial(signed, unproven="L C2")
    yield unknown("no_trust_notproven", recipe=lambda: Made(log().bundle, ""))
    other = stranger("acme/other-00112233")
    yield unknown(
        "trust_in_another_log_notproven", recipe=lambda: Made(log().bundle, f"log {other.vkey}\nquorum none\n")
    )
    # The key is trusted, and for another role: as a log key the reader knows none.
    as_statement = f"# a2a-ledger: statement {log_key.vkey}\nquorum none\n"
    yield unknown("trust_for_another_role_notproven", recipe=lambda: Made(log().bundle, as_statement))
    yield signed("head_with_unknown_signature", recipe=lambda: _with_note(_note() + _stranger_s_line()))
    also_by_stranger = _signed_by(_same_name()).splitlines(keepends=True)[-1]
    yield signed("head_by_two_of_one_name", recipe=lambda: _with_note(_note() + also_by_stranger))
    # What is no checkpoint: nothing else can be answered.
    broken = partial(signed, invalid="I", unproven="L P C1 C2 R X")
    for what, old, new in (
        ("size_with_zero", "\n31\n", "\n031\n"),
        ("size_negative", "\n31\n", "\n-31\n"),
        ("root_short", checkpoint_root(), base64.b64encode(bytes(31)).decode()),
        ("without_empty_line", "\n\n", "\n"),
        ("with_tab", "\n31\n", "\n31\t\n"),
        ("other_dash", "— ", "- "),
        ("padding_missing", checkpoint_root(), checkpoint_root().rstrip("=")),
    ):
        yield broken(f"head_{what}_fail", recipe=partial(_with_replaced, old, new))


def checkpoint_root() -> str:
    """Return the root of the head, as its note spells it."""
    return _note().split("\n")[2]


def _text() -> str:
    return _note().partition("\n\n")[0] + "\n\n"


def _with_replaced(old: str, new: str) -> Made:
    assert old in _note()
    return _with_note(_note().replace(old, new, 1))


def _witnesses() -> Iterator[Row]:
    seen = partial(row, section="12, step 10")
    one, two = _witness(1), _witness(2)
    yield seen("witnessed", recipe=lambda: _with_note(_cosigned(_note(), one), _asking("w1")), valid="W T")
    both = partial(_both, one, two)
    group = "group g 2 w1 w2 w3"
    yield seen("witnessed_by_quorum", recipe=lambda: _with_note(both(), _asking("g", group)), valid="W T")
    any_of = _asking("g", "group g any w1 w2 w3")
    yield seen("witnessed_by_any", recipe=lambda: _with_note(_cosigned(_note(), two), any_of), valid="W T")
    deep = [f"group g{level} any {f'g{level - 1}' if level else 'w1'}" for level in range(3000)]
    deeply = _asking("g2999", *deep)
    yield seen("witnessed_in_deep_groups", recipe=lambda: _with_note(_cosigned(_note(), one), deeply), valid="W T")
    yield seen("witness_missing_in_deep_groups_notproven", recipe=lambda: _with_note(_cosigned(_note(), two), deeply))
    nested = _asking("top", "group g any w1 w2", "group top all g w3")
    yield seen("witnessed_in_nested_group_notproven", recipe=lambda: _with_note(both(), nested))
    # One witness that the reader named is no quorum of his: its clock alone dates nothing.
    yield seen("witness_missing_notproven", recipe=lambda: _with_note(_cosigned(_note(), one), _asking("g", group)))
    yield seen("witness_not_asked_for_notproven", recipe=lambda: _with_note(_cosigned(_note(), one), _asking("none")))
    yield seen(
        "witness_unknown_notproven", recipe=lambda: _with_note(_cosigned(_note(), stranger("w.example")), _asking("w1"))
    )
    # A known witness's signature that fails refuses the whole note.
    wrong = partial(seen, invalid="L", unproven="C2")
    yield wrong(
        "witness_signature_wrong_fail", recipe=lambda: _with_note(_cosigned(_note(), one, good=False), _asking("w1"))
    )
    yield wrong("witness_time_too_large_fail", recipe=lambda: _with_note(_cosigned(_note(), one, 2**63), _asking("w1")))
    yield wrong("witness_alone_fail", recipe=lambda: _with_note(_cosigned(_text(), one), _asking("w1")))


def _both(one: Signer, two: Signer) -> str:
    return _cosigned(_cosigned(_note(), one), two, TIME + 1)


# ---- Earlier heads


def _held(*earlier: bytes, change: Callable[[Files], None] = lambda _: None) -> Made:
    return _resealed(change, earlier=earlier)


def _head(size: int, root: bytes, origin: str = "") -> bytes:
    """Return a head that the log's own key signed."""
    origin = origin or log().origin
    return sign_checkpoint(Checkpoint(origin, size, root), log().signers["log"]).encode()


def _growth(files: Files) -> list[str]:
    return files[GROWTH].decode().splitlines()


def _put_growth(files: Files, lines: list[str]) -> None:
    files[GROWTH] = "".join(f"{line}\n" for line in lines).encode()


def _drop_growth(files: Files) -> None:
    del files[GROWTH]


def _flip_growth(files: Files) -> None:
    first, *rest = _growth(files)
    _put_growth(files, [base64.b64encode(flipped(base64.b64decode(first))).decode(), *rest])


def _longer_growth(files: Files) -> None:
    _put_growth(files, [*_growth(files), _growth(files)[-1]])


def _shorter_growth(files: Files) -> None:
    _put_growth(files, _growth(files)[:-1])


def _no_growth(files: Files) -> None:
    files[GROWTH] = b""


def _growth_without_end(files: Files) -> None:
    files[GROWTH] = files[GROWTH][:-1]


def _earlier() -> Iterator[Row]:
    held = partial(row, section="12, step 10")
    now = _note().encode()
    yield held("earlier", recipe=lambda: _held(log().earlier), valid="A")
    yield held("earlier_is_this", recipe=lambda: _held(now), valid="A")
    yield held("earlier_two", recipe=lambda: _held(log().earlier, now), valid="A")
    yield held("earlier_without_proof_notproven", recipe=lambda: _held(log().earlier, change=_drop_growth))
    yield held("earlier_is_later_notproven", recipe=lambda: _held(_head(32, bytes(32))))
    yield held("earlier_of_another_log_notproven", recipe=lambda: _held(log("another").earlier))
    yield held("earlier_of_no_leaves_notproven", recipe=lambda: _held(_head(0, bytes(32))))
    rewritten = partial(held, invalid="A")
    yield rewritten("earlier_other_root_fail", recipe=lambda: _held(_head(17, bytes(32))))
    yield rewritten("earlier_same_size_other_root_fail", recipe=lambda: _held(_head(31, bytes(32))))
    for what, change in {
        "changed": _flip_growth,
        "too_long": _longer_growth,
        "too_short": _shorter_growth,
        "empty": _no_growth,
        "without_end": _growth_without_end,
    }.items():
        yield rewritten(f"earlier_proof_{what}_fail", recipe=partial(_held, log().earlier, change=change))
    # Of several the gravest answer counts, whichever comes first.
    yield rewritten("earlier_later_and_other_fail", recipe=lambda: _held(_head(32, bytes(32)), _head(17, bytes(32))))


def rows() -> Iterator[Row]:
    """Yield the cases of heads."""
    yield from _signers()
    yield from _witnesses()
    yield from _earlier()
