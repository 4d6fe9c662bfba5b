"""One witness: asks it to cosign a head, and believes nothing of the answer (C2SP tlog-witness v1.0.0).

The witness is sent the head, the size that it saw last and a consistency proof from there. It answers with
its cosignature (200), or with the size that it really has (409), or it finds that the proof does not lead
to the head (422; v1.0.0 said 409 where sizes are equal). The last is what witnesses are for: see `fork`.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from a2a_ledger.anchors.asking import check_url
from a2a_ledger.checkpoint import checkpoint_of, format_hashes, open_checkpoint, read_number
from a2a_ledger.errors import AnchorError, LedgerError, UsageError
from a2a_ledger.note import Note, parse_note, verify_note
from a2a_ledger.policy import parse_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from a2a_ledger.anchors.asking import Answer
    from a2a_ledger.checkpoint import SignedCheckpoint
    from a2a_ledger.keys import Verifier
    from a2a_ledger.policy import Policy

    Ask = Callable[[str, str, bytes, Mapping[str, str]], Answer]

SIZE_TYPE: Final = "text/x.tlog.size"
_TRIES = 3  # the witness may be moved on by another process of ours between two questions
_PLAIN: Final = {"Content-Type": "text/plain; charset=utf-8"}
_OK, _NOT_FOUND, _CONFLICT, _UNPROCESSABLE = 200, 404, 409, 422


class Tree(Protocol):
    """What is asked of our own log."""

    def consistency(self, old: int, new: int) -> list[bytes]:
        """Prove that the tree of `new` leaves extends that of `old`."""
        ...


class Witness(NamedTuple):
    """A witness: its name in the policy, its key of type 04, and the prefix of the url that submissions go to."""

    name: str
    key: Verifier
    url: str


class DisagreementError(AnchorError):
    """The witness does not extend what it saw to this head; `size` is what it says it has, None if it does not."""

    def __init__(self, message: str, size: int | None) -> None:
        super().__init__(message)
        self.size = size


def witnesses_of(policy: Policy) -> list[Witness]:
    """Return the witnesses of a policy that a head can be sent to.

    Raises:
        UsageError: there is none, or one has a url that may not be asked or a key that verifies nothing here.
    """
    found = [Witness(name, policy.witnesses[name], url.rstrip("/")) for name, url in policy.urls.items()]
    if not found:
        raise UsageError("the policy has no line `witness <name> <vkey> <url>`: there is nobody to send a head to")
    for witness in found:
        check_url(witness.url)
        if not witness.key.usable:
            raise UsageError(f"witness {witness.name}: expected a key of signature type 04, found {witness.key.vkey}")
    return found


def read_witnesses(raw: bytes) -> Policy:
    """Read a policy that names at least one witness that a head can be sent to.

    Raises:
        FormatError: it is no policy.
        UsageError: see `witnesses_of`.
    """
    policy = parse_policy(raw)
    witnesses_of(policy)
    return policy


def cosign(witness: Witness, note: str, since: int, tree: Tree, ask: Ask) -> Note:
    """Have a witness cosign a head; return its text with the witness's signatures alone, each verified.

    Args:
        witness: whom to ask.
        note: the signed head.
        since: size of the head that the witness probably saw last; 0: none.
        tree: our log, which has at least the head's size.
        ask: sends one request; see `asking.ask`.

    Raises:
        DisagreementError: the witness holds a head that it cannot extend to this one.
        AnchorError: it did not answer, refused, or answered what does not verify.
    """
    head = checkpoint_of(note)
    old = since if 0 < since <= head.size else 0
    for _ in range(_TRIES):
        path = tree.consistency(old, head.size) if 0 < old < head.size else []
        body = f"old {old}\n{format_hashes(path)}\n{note}".encode()
        answer = ask("POST", f"{witness.url}/add-checkpoint", body, _PLAIN)
        if answer.status == _OK:
            return _verified(witness, str(head), answer.body)
        if answer.status == _UNPROCESSABLE:
            raise DisagreementError(f"{witness.name} finds no way from what it saw to this head of {head.size}", None)
        if answer.status != _CONFLICT:
            raise AnchorError(f"{witness.name} refused this head of {head.size}: {_said(answer)}")
        has = _size_in(witness, answer)
        if has > head.size:
            raise DisagreementError(f"{witness.name} has seen a head of {has}, this one is of {head.size}", has)
        if has == old:
            raise DisagreementError(f"{witness.name} has seen another head of {has}", has)
        old = has
    raise AnchorError(f"{witness.name} named another size each time that it was asked, {old} at last: ask again")


def latest_seen(witness: Witness, origin: str, logs: Sequence[Verifier], ask: Ask) -> SignedCheckpoint | None:
    """Fetch the newest head of our log that a witness has seen; None where it gives none that a log key signed.

    Raises:
        AnchorError: no answer.
    """
    url = f"{witness.url}/{sha256(origin.encode()).hexdigest()}/checkpoint"
    answer = ask("GET", url, b"", {})
    if answer.status != _OK:
        return None
    try:
        signed = open_checkpoint(answer.body, logs)
    except LedgerError:
        return None  # nobody can be blamed by what no key of the log signed
    return signed if signed.checkpoint.origin == origin else None


def _verified(witness: Witness, text: str, lines: bytes) -> Note:
    """Return the witness's own signatures among the lines of an answer."""
    try:
        answered = parse_note(f"{text}\n".encode() + lines)
        key = (witness.key.name, witness.key.key_id)
        own = Note(text, tuple(line for line in answered.signatures if (line.name, line.key_id) == key))
        verify_note(own, [witness.key])
    except LedgerError as problem:
        raise AnchorError(f"{witness.name} answered what is no cosignature of its own: {problem}") from problem
    return own


def _size_in(witness: Witness, answer: Answer) -> int:
    if answer.media_type != SIZE_TYPE:
        raise DisagreementError(f"{witness.name} has seen another head: {_said(answer)}", None)
    try:
        return read_number(answer.body.decode("ascii").removesuffix("\n"), "the size that a witness has")
    except (LedgerError, UnicodeDecodeError) as problem:
        raise AnchorError(f"{witness.name} answered 409 without a size: {_said(answer)}") from problem


def _said(answer: Answer) -> str:
    text = answer.body[:200].decode("ascii", errors="backslashreplace").strip()
    return f"status {answer.status}, {text!a}"
