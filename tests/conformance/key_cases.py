"""The log's own keys: added, handed over, retired, revoked, of wrong kinds: sections 6.1, 6.3 and 12, step 6."""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING

from a2a_ledger.keys import handover_message, key_id
from a2a_ledger.note import SignatureLine
from tests.conformance.finding_cases import FINDING, STATEMENT
from tests.conformance.material import log, stranger
from tests.conformance.remaking import Remaking, enveloped, payload_of
from tests.conformance.table import Made, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.events import JsonObject
    from a2a_ledger.keys import Signer
    from tests.conformance.table import Row

_Y_OF_ORDER_8 = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"  # RFC 8032's curve
_NOT_REDUCED = "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"  # 2^255 - 18, which is 1
_NO_POINT = "0200000000000000000000000000000000000000000000000000000000000000"


def _made(change: Callable[[Remaking], None], policy: str = "") -> Made:
    made = Remaking(log())
    change(made)
    return Made(made.bundle(), policy or log().policy)


def _new() -> Signer:
    return stranger(log().origin, "new key")


def _added(key: Signer, role: str, **others: str) -> JsonObject:
    return {
        "key_id": key.key_id,
        "public_key": key.verifier.public_key.hex(),
        "role": role,
        "vkey": key.vkey,
        **others,
    }


def handed_over(*, by: Signer | None = None, new_by: Signer | None = None) -> JsonObject:
    """Return the addition of a log key that the one before hands over to."""
    old, new = log().signers["log"], _new()
    message = handover_message(log().origin, "log", old.vkey, new.vkey)
    return _added(
        new,
        "log",
        old=old.vkey,
        signature_old=(by or old).sign(message).hex(),
        signature_new=(new_by or new).sign(message).hex(),
    )


def _respelled(name: str, change: Callable[[str], str]) -> JsonObject:
    """Return a good hand-over, a signature of which is spelled as a lenient reader of hex would take it."""
    data = handed_over()
    return {**data, name: change(str(data[name]))}


def add_key(made: Remaking, data: JsonObject) -> None:
    """Append an addition, and put the key's file beside the others."""
    made.append("ledger", "key.added.v1", data)
    vkey = str(data["vkey"])
    made.files[f"data/keys/untrusted/{data['role']}-{vkey.split('+')[1]}.vkey"] = f"{vkey}\n".encode()


def _end(made: Remaking, role: str, *, size: int | None = None, **others: str) -> None:
    key = log().signers[role]
    data: JsonObject = {"key_id": key.key_id, "role": role, "vkey": key.vkey, **others}
    if size is not None:
        data["size"] = size
    made.append("ledger", "key.retired.v1" if size is None else "key.revoked.v1", data)


def _signed_by_new(made: Remaking) -> None:
    add_key(made, handed_over())
    made.signers["log"] = _new()


def _trusting_new() -> str:
    return f"log {_new().vkey}\nquorum none\n"


def _raw(role: str, public: str, *, stated: str = "") -> JsonObject:
    """Return the addition of a key by its octets."""
    octets = bytes.fromhex(public)
    made = key_id(log().origin, 1, octets).hex()
    vkey = f"{log().origin}+{stated or made}+{base64.b64encode(bytes([1]) + octets).decode()}"
    return {"key_id": stated or made, "public_key": public, "role": role, "vkey": vkey}


def _twice(made: Remaking) -> None:
    _end(made, "log")
    _end(made, "log")


def _two_old_and_new(made: Remaking) -> None:
    """Retire the old key; the head is signed by it and by the one it handed over to."""
    add_key(made, handed_over())
    _end(made, "log")
    old, new = log().signers["log"], _new()
    made.note = partial(_also_signed, new)
    made.signers["log"] = old


def _also_signed(key: Signer, note: str) -> str:
    text = note.partition("\n\n")[0] + "\n"
    return note + str(SignatureLine(key.name, key.key_id, key.sign(text.encode())))


def _additions() -> Iterator[Row]:
    added = partial(row, section="6.3", invalid="I")
    new, signers = _new(), log().signers
    other = stranger("acme/other-00112233")
    for what, data in {
        "twice": _added(signers["log"], "log"),
        "in_second_role": _added(signers["log"], "export"),
        "in_no_role": _added(new, "owner"),
        "of_other_name": _added(other, "statement"),
        "with_other_id": {**_added(new, "export"), "key_id": "00000000"},
        "with_other_octets": {**_added(new, "export"), "public_key": signers["log"].verifier.public_key.hex()},
        "of_small_order": _raw("export", _Y_OF_ORDER_8),
        "neutral": _raw("export", f"01{'00' * 31}"),
        "not_canonical": _raw("export", _NOT_REDUCED),
        "no_point": _raw("export", _NO_POINT),
        "with_wrong_vkey_id": _raw("export", new.verifier.public_key.hex(), stated="00000000"),
        "handed_over_by_another": handed_over(by=new),
        "handed_over_not_by_itself": handed_over(new_by=log().signers["log"]),
        "handed_over_in_capitals": _respelled("signature_old", str.upper),
        "handed_over_with_space": _respelled("signature_new", lambda text: f"{text[:2]} {text[2:]}"),
    }.items():
        yield added(f"key_added_{what}_fail", recipe=partial(_made, partial(_adding, data)))
    fine = partial(row, section="6.3")
    yield fine("key_added", recipe=partial(_made, partial(_adding, _added(new, "export"))))
    yield fine("key_added_of_a_witness", recipe=partial(_made, partial(_adding, _added(other, "witness"))))


def _adding(data: JsonObject, made: Remaking) -> None:
    add_key(made, data)


def _hand_overs() -> Iterator[Row]:
    over = partial(row, section="12")
    yield over("head_by_heir", recipe=partial(_made, _signed_by_new))
    # Whoever trusts the new key alone knows the log by it: no hand-over is needed.
    yield over("head_by_heir_trusted", recipe=lambda: _made(_signed_by_new, _trusting_new()))
    yield over("head_by_retired_and_heir", recipe=partial(_made, _two_old_and_new))
    # A hand-over that only one of them signed adds no key, and the head is by nobody whom the reader trusts.
    for what, data in {"old": handed_over(by=_new()), "new": handed_over(new_by=log().signers["log"])}.items():
        recipe = partial(_made, partial(_signed_by_heir_of, data))
        yield over(f"head_by_heir_without_{what}_fail", recipe=recipe, invalid="I L", unproven="C2")
    # A key that has ended hands over no more, and one that is revoked below that size never did.
    for what, end in {"retired": _after_its_end, "revoked": _before_its_revocation}.items():
        yield over(f"head_by_heir_of_{what}_fail", recipe=partial(_made, end), invalid="L", unproven="C2")
    # A key that is only added follows from nobody.
    recipe = partial(_made, partial(_signed_by_heir_of, _added(_new(), "log")))
    yield over("head_by_added_key_fail", recipe=recipe, invalid="L", unproven="C2")


def _after_its_end(made: Remaking) -> None:
    _end(made, "log")
    _signed_by_new(made)


def _before_its_revocation(made: Remaking) -> None:
    _signed_by_new(made)
    _end(made, "log", size=4)


def _signed_by_heir_of(data: JsonObject, made: Remaking) -> None:
    add_key(made, data)
    made.signers["log"] = _new()


def _ends() -> Iterator[Row]:
    ended = partial(row, section="6.3")
    # The log key speaks for no head of this size: nobody trusted says where the streams end.
    silent = partial(ended, invalid="L", unproven="C2")
    yield silent("log_key_retired_fail", recipe=partial(_made, partial(_end, role="log")))
    yield silent("log_key_revoked_fail", recipe=partial(_made, partial(_end, role="log", size=31)))
    yield ended("log_key_revoked_for_later_heads", recipe=partial(_made, partial(_end, role="log", size=32)))
    # Without an export key that speaks, both signatures fail, and nobody has said where the streams end.
    unsigned = partial(ended, invalid="I", unproven="C2")
    yield unsigned("export_key_retired_fail", recipe=partial(_made, partial(_end, role="export")))
    yield unsigned("export_key_revoked_fail", recipe=partial(_made, partial(_end, role="export", size=4)))
    # It spoke at the finding's index, and until then.
    yield ended("statement_key_retired", recipe=partial(_made, partial(_end, role="statement")))
    recipe = partial(_made, partial(_end, role="statement", size=15))
    # The finding was logged before the revocation: its signer counts no more, and what replay finds again is not false.
    yield ended("statement_key_revoked_before_notproven", recipe=recipe, unproven="R")
    recipe = partial(_made, _revoked_and_false)
    yield ended("statement_key_revoked_before_a_false_finding_fail", recipe=recipe, invalid="R", missed="R")
    recipe = partial(_made, _revoked_and_by_stranger)
    yield ended("statement_key_revoked_and_finding_by_stranger_fail", recipe=recipe, invalid="R")
    yield ended("statement_key_revoked_behind", recipe=partial(_made, partial(_end, role="statement", size=16)))
    # Ends that cannot be: what is usable of them counts all the same.
    yield silent("log_key_retired_twice_fail", recipe=partial(_made, _twice), invalid="I L")
    other = partial(_end, role="statement", key_id="00000000")
    yield ended("key_retired_by_other_id_fail", recipe=partial(_made, other), invalid="I")
    never = partial(_end, role="statement", vkey=_new().vkey)
    yield ended("key_retired_that_was_not_added_fail", recipe=partial(_made, never), invalid="I")
    yield ended(
        "key_revoked_below_zero_fail", recipe=partial(_made, partial(_end, role="statement", size=-1)), invalid="I"
    )


def _revoked_and_false(made: Remaking) -> None:
    """Let the key sign that the finding is less certain than the rules find it."""
    _end(made, "statement", size=15)
    before = payload_of(made.files[STATEMENT])
    after = before.replace(b'"certainty":"certain"', b'"certainty":"suspected"')
    assert after != before
    made.put_statement(FINDING, enveloped(after, log().signers["statement"]), before, after)
    made.data(FINDING, certainty="suspected")


def _revoked_and_by_stranger(made: Remaking) -> None:
    _end(made, "statement", size=15)
    made.signers["statement"] = stranger(log().origin)


def _wrong_role() -> Iterator[Row]:
    """Keys of the log that sign what they do not speak for."""
    role = partial(row, section="6.3")
    statement = log().signers["statement"]

    def head_by_statement_key(made: Remaking) -> None:
        made.signers["log"] = statement

    policy = f"log {statement.vkey}\nquorum none\n"
    recipe = partial(_made, head_by_statement_key, policy)
    yield role("head_by_statement_key_fail", recipe=recipe, invalid="L", unproven="C2")

    def export_by_log_key(made: Remaking) -> None:
        made.signers["export"] = log().signers["log"]

    yield role("export_by_log_key_fail", recipe=partial(_made, export_by_log_key), invalid="I", unproven="C2")

    def export_by_stranger(made: Remaking) -> None:
        made.signers["export"] = stranger(log().origin)

    yield role("export_by_stranger_fail", recipe=partial(_made, export_by_stranger), invalid="I", unproven="C2")

    def finding_by_export_key(made: Remaking) -> None:
        made.signers["statement"] = log().signers["export"]

    yield role("finding_by_export_key_fail", recipe=partial(_made, finding_by_export_key), invalid="R")

    def finding_by_stranger(made: Remaking) -> None:
        made.signers["statement"] = stranger(log().origin)

    yield role("finding_by_stranger_fail", recipe=partial(_made, finding_by_stranger), invalid="R")

    def all_by_stranger(made: Remaking) -> None:
        made.signers = {name: stranger(log().origin, name) for name in made.signers}

    # By keys that the log does not name; the reader's key signed nothing of it.
    recipe = partial(_made, all_by_stranger)
    yield role("all_by_strangers_fail", recipe=recipe, invalid="I L R", unproven="C2")


def rows() -> Iterator[Row]:
    """Yield the cases of keys."""
    yield from _additions()
    yield from _hand_overs()
    yield from _ends()
    yield from _wrong_role()
