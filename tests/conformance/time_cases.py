"""Time tokens of a real authority over heads of the log: sections 6.5 and 12, step 10."""

from __future__ import annotations

import tempfile
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_ledger.checkpoint import Checkpoint, format_hashes, sign_checkpoint
from a2a_ledger.merkle import consistency_path, leaf_hash, root_of
from tests.conformance.material import log, stranger
from tests.conformance.sealing import sealed
from tests.conformance.table import Made, row
from tests.timestamps.authority import Authority, Signer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.conformance.table import Row

CHECKPOINT = "data/log/checkpoint"
GROWTH = "data/log/consistency/17-31"
_PLACES: list[tempfile.TemporaryDirectory[str]] = []  # the authorities' folders, which go when the run ends


@cache
def authority(name: str = "Test Root", key: str = "P-256") -> Authority:
    """Make an authority, once a run: a token states the time of the test, so none is the same in each run."""
    _PLACES.append(tempfile.TemporaryDirectory())
    return Authority(Path(_PLACES[-1].name) / "authority", name, key)


@cache
def signer(extensions: str, end: str = "20491231235959Z", *, by: str = "root") -> Signer:
    """Return a certificate of the authority for some use."""
    issuer = by if by == "root" else signer(by)
    kind = "middle" if extensions == "deeper" else extensions
    return authority().issue(kind, name=f"TSA {extensions}", by=issuer, end=end)


def _now() -> bytes:
    return log().files[CHECKPOINT]


def _trusting() -> str:
    return log().policy + authority().policy_line


def _with(files: Mapping[str, bytes], policy: str | None = None, *, without: str = "") -> Made:
    """Put files under data/time/ into the bundle."""
    made = {**log().files, **{f"data/time/{name}": content for name, content in files.items()}}
    made.pop(without, None)
    return Made(sealed(made, log().signers["export"]), _trusting() if policy is None else policy)


def _stamped(note: bytes, reply: bytes, policy: str | None = None, *, without: str = "") -> Made:
    return _with({"0.checkpoint": note, "0.tsr": reply}, policy, without=without)


def _anew(by: Callable[[], Signer], *more: str, year: str = "") -> Made:
    """Return a bundle whose token is signed under another certificate of the authority."""
    reply = authority().stamp(_now())
    return _stamped(_now(), authority().signed_anew(reply, by(), *map(signer, more), year=year))


def _changed(change: Callable[[bytes], bytes]) -> Made:
    return _stamped(_now(), change(authority().stamp(_now())))


def _other_time(reply: bytes) -> bytes:
    at = reply.index(b"Z", reply.index(b"\x18\x0f20")) - 1
    return reply[:at] + bytes([reply[at] ^ 1]) + reply[at + 1 :]


def _last_flipped(reply: bytes) -> bytes:
    return reply[:-1] + bytes([reply[-1] ^ 1])


def _head(size: int, root: bytes) -> bytes:
    """Return a head that the log's own key signed."""
    return sign_checkpoint(Checkpoint(log().origin, size, root), log().signers["log"]).encode()


def _head_of_another_log() -> bytes:
    other = stranger("acme/other-00112233")
    return sign_checkpoint(Checkpoint(other.name, 31, bytes(32)), other).encode()


def _over(note: bytes) -> Made:
    return _stamped(note, authority().stamp(note))


def _earlier() -> bytes:
    return log().earlier


def _good() -> Iterator[Row]:
    good = partial(row, section="6.5", valid="T")
    yield good("time_token", recipe=lambda: _over(_now()))
    yield good("time_token_over_earlier_head", recipe=lambda: _over(_earlier()))
    yield good(
        "time_token_by_sha1_name", recipe=lambda: _stamped(_now(), authority().stamp(_now(), section="tsa_plain"))
    )
    rsa = partial(authority, "RSA Root", "2048")
    yield good(
        "time_token_by_rsa", recipe=lambda: _stamped(_now(), rsa().stamp(_now()), log().policy + rsa().policy_line)
    )
    yield good("time_token_by_chain", recipe=lambda: _anew(lambda: signer("stamping", by="middle"), "middle"))
    past = partial(signer, "stamping", "20220101000000Z")
    yield good("time_token_expired_since", recipe=lambda: _anew(past, year="2021"))
    yield good("time_token_two", recipe=lambda: _with(_two(), _trusting()))
    yield good("time_token_good_and_unknown", recipe=lambda: _with(_two(rsa().stamp(_now())), _trusting()))
    # Trust in the log is another question: the time of what is shown stands without it.
    yield row(
        "time_token_without_log_key_notproven",
        "12, step 10",
        lambda: _stamped(_now(), authority().stamp(_now()), f"quorum none\n{authority().policy_line}"),
        valid="T",
        unproven="L C2",
    )


def _two(second: bytes = b"") -> dict[str, bytes]:
    return {
        "0.checkpoint": _now(),
        "0.tsr": second or authority().stamp(_now()),
        "7.checkpoint": _earlier(),
        "7.tsr": authority().stamp(_earlier()),
    }


def _open() -> Iterator[Row]:
    unproven = partial(row, section="6.5")
    yield unproven(
        "time_token_root_unknown_notproven", recipe=lambda: _stamped(_now(), authority().stamp(_now()), log().policy)
    )
    other = partial(authority, "Other Root")
    yield unproven("time_token_other_root_notproven", recipe=lambda: _stamped(_now(), other().stamp(_now())))
    for use in ("not_critical", "not_alone", "other_use", "no_use", "unread"):
        yield unproven(f"time_token_use_{use}_notproven", recipe=partial(_anew, partial(signer, use)))
    yield unproven("time_token_expired_notproven", recipe=lambda: _anew(partial(signer, "stamping", "20220101000000Z")))
    yield unproven(
        "time_token_before_certificate_notproven", recipe=lambda: _anew(partial(signer, "stamping"), year="2019")
    )
    yield unproven("time_token_chain_missing_notproven", recipe=lambda: _anew(lambda: signer("stamping", by="middle")))
    yield unproven(
        "time_token_chain_too_long_notproven",
        recipe=lambda: _anew(_too_deep, "middle"),
    )
    grown = partial(row, section="12, step 10")
    yield grown(
        "time_token_without_growth_notproven",
        recipe=lambda: _stamped(_earlier(), authority().stamp(_earlier()), without=GROWTH),
    )
    yield grown("time_token_over_too_few_notproven", recipe=_over_first)


def _over_first() -> Made:
    """Return a bundle with a token over a head that has not all that is shown, and a proof that leads on from it."""
    hashes = [leaf_hash(raw) for raw in log().leaves]

    def node(level: int, index: int) -> bytes:
        return root_of(hashes[index << level : (index + 1) << level])

    note = _head(16, root_of(hashes[:16]))
    path = format_hashes(consistency_path(16, 31, node)).encode()
    made = {**log().files, "data/log/consistency/16-31": path}
    made |= {"data/time/0.checkpoint": note, "data/time/0.tsr": authority().stamp(note)}
    return Made(sealed(made, log().signers["export"]), _trusting())


def _too_deep() -> Signer:
    """Return a signer under an authority under another one, which may have none under it."""
    deeper = authority().issue("middle", name="TSA deeper", by=signer("middle"))
    return authority().issue("stamping", name="TSA last", by=deeper)


def _broken() -> Iterator[Row]:
    broken = partial(row, section="6.5", invalid="T")
    yield broken("time_token_over_another_fail", recipe=lambda: _stamped(_now(), authority().stamp(_earlier())))
    yield broken(
        "time_token_over_another_without_trust_fail",
        recipe=lambda: _stamped(_now(), authority().stamp(_earlier()), log().policy),
    )
    yield broken("time_token_time_changed_fail", recipe=lambda: _changed(_other_time))
    yield broken("time_token_signature_changed_fail", recipe=lambda: _changed(_last_flipped))
    yield broken("time_token_cut_fail", recipe=lambda: _changed(lambda reply: reply[:-1]))
    yield broken("time_token_longer_fail", recipe=lambda: _changed(lambda reply: reply + b"\0"))
    yield broken("time_token_empty_fail", recipe=lambda: _changed(lambda _: b""))
    yield broken("time_token_is_a_page_fail", recipe=lambda: _changed(lambda _: b"<html>busy</html>"))
    yield broken("time_token_refused_fail", recipe=lambda: _changed(lambda _: authority().refusal()))
    yield broken("time_token_good_and_broken_fail", recipe=lambda: _with(_two(b"\x30\x00"), _trusting()))
    head = partial(row, section="12, step 10", invalid="T")
    yield head("time_token_over_no_head_fail", recipe=lambda: _over(b"no checkpoint\n"))
    yield head("time_token_over_another_log_fail", recipe=lambda: _over(_head_of_another_log()))
    yield head("time_token_over_other_root_fail", recipe=lambda: _over(_head(31, bytes(32))))
    yield head("time_token_over_rewritten_fail", recipe=lambda: _over(_head(17, bytes(32))))
    yield head("time_token_over_later_head_fail", recipe=lambda: _over(_head(32, bytes(32))))
    yield head("time_token_alone_fail", recipe=lambda: _with({"0.tsr": authority().stamp(_now())}))
    yield head("time_token_missing_fail", recipe=lambda: _with({"0.checkpoint": _now()}))
    files = partial(row, section="11.2", invalid="I")
    yield files("time_token_of_another_name_fail", recipe=lambda: _with({"10.tsr": authority().stamp(_now())}))
    large = partial(row, section="11.1", invalid="I", unproven="L P C1 C2 R X")
    yield large("time_token_too_large_fail", recipe=lambda: _with({"0.checkpoint": _now(), "0.tsr": bytes(65_537)}))


def rows() -> Iterator[Row]:
    """Yield the cases of time tokens."""
    yield from _good()
    yield from _open()
    yield from _broken()
