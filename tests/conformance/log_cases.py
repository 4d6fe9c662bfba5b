"""Leaves, the index and inclusion proofs: sections 5 and 12, steps 3 and 8."""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING

from tests.conformance.material import log
from tests.conformance.remaking import Remaking
from tests.conformance.sealing import sealed
from tests.conformance.table import Made, row
from tests.evidence.forging import files_of, flipped, repacked
from tests.evidence.refitting import signed_again

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conformance.table import Row
    from tests.evidence.forging import Files

CHECKPOINT = "data/log/checkpoint"
EVENTS = "data/log/events.jsonl"
INDEX = "data/log/index.tsv"
PROOF = "data/log/proofs/5.tlog-proof"


def _resealed(change: Callable[[Files], None], policy: str = "", earlier: tuple[bytes, ...] = ()) -> Made:
    files = log().files
    change(files)
    return Made(sealed(files, log().signers["export"]), policy or log().policy, earlier)


# ---- Leaves and proofs


def _proof(change: Callable[[list[str]], None]) -> Made:
    """Change the lines of one proof above its checkpoint."""

    def edit(files: Files) -> None:
        top, _, note = files[PROOF].decode().partition("\n\n")
        lines = top.split("\n")
        change(lines)
        files[PROOF] = ("\n".join(lines) + "\n\n" + note).encode()

    return _resealed(edit)


def _flip_hash(lines: list[str]) -> None:
    lines[2] = base64.b64encode(flipped(base64.b64decode(lines[2]))).decode()


def _other_index(lines: list[str]) -> None:
    lines[1] = "index 6"


def _longer(lines: list[str]) -> None:
    lines.append(lines[-1])


def _shorter(lines: list[str]) -> None:
    lines.pop()


def _short_hash(lines: list[str]) -> None:
    lines[2] = base64.b64encode(base64.b64decode(lines[2])[:31]).decode()


def _extra(lines: list[str]) -> None:
    lines.insert(1, "extra aGVsbG8=")


def _other_header(lines: list[str]) -> None:
    lines[0] = "c2sp.org/tlog-proof@v2"


def _swapped(lines: list[str]) -> None:
    lines[2], lines[3] = lines[3], lines[2]


def _older_note(files: Files) -> None:
    files[PROOF] = files[PROOF].replace(files[CHECKPOINT], log().earlier)


def _two_proofs_swapped(files: Files) -> None:
    other = "data/log/proofs/6.tlog-proof"
    files[PROOF], files[other] = files[other], files[PROOF]


def _relisted(change: Callable[[list[bytes], list[bytes]], None]) -> Made:
    """Change the lines of leaves and index; the exporter states and signs all again."""
    files = log().files
    leaves = files[EVENTS].splitlines(keepends=True)
    rows = files[INDEX].splitlines(keepends=True)
    change(leaves, rows)
    files |= {EVENTS: b"".join(leaves), INDEX: b"".join(rows)}
    return Made(signed_again(files, log().signers["export"]), log().policy)


def _line_less(leaves: list[bytes], _: list[bytes]) -> None:
    leaves.pop()


def _no_end(leaves: list[bytes], _: list[bytes]) -> None:
    leaves[-1] = leaves[-1][:-1]


def _other_column(_: list[bytes], rows: list[bytes]) -> None:
    rows[0] = rows[0].replace(b"ver", b"version")


def _other_line(_: list[bytes], rows: list[bytes]) -> None:
    rows[-1] = rows[-1].replace(b"17\t", b"18\t", 1)


def _rows_of_another(change: Callable[[bytes], bytes]) -> Made:
    """Let one row of the index, of a poll, say something else of its record."""
    files = log().files
    rows = files[INDEX].splitlines(keepends=True)
    assert change(rows[13]) != rows[13]
    rows[13] = change(rows[13])
    files[INDEX] = b"".join(rows)
    return Made(sealed(files, log().signers["export"]), log().policy)


def _leaf_of_another_log(n: int) -> Made:
    made = Remaking(log())
    made.leaves[n] = lambda leaf: leaf.replace(log().origin.encode(), b"acme/other-00112233")
    return Made(made.bundle(), log().policy)


def _leaf_spelled_otherwise(n: int) -> Made:
    made = Remaking(log())
    made.leaves[n] = lambda leaf: leaf.replace(b":", b": ", 1)
    return Made(made.bundle(), log().policy)


def _leaf_of_version_2(n: int) -> Made:
    made = Remaking(log())
    made.leaves[n] = lambda leaf: leaf.replace(b'"v":1', b'"v":2')
    return Made(made.bundle(), log().policy)


def _whole() -> Made:
    return Made(log().whole, log().policy)


def _whole_unsigned() -> Made:
    return Made(repacked(files_of(log().whole)), log().policy)


def rows() -> Iterator[Row]:
    """Yield the cases of leaves."""
    proof = partial(row, section="12, step 8", invalid="P")
    for what, change in {
        "hash_changed": _flip_hash,
        "of_another_leaf": _other_index,
        "too_long": _longer,
        "too_short": _shorter,
        "hash_too_short": _short_hash,
        "with_extra": _extra,
        "of_version_2": _other_header,
        "out_of_order": _swapped,
    }.items():
        yield proof(f"proof_{what}_fail", recipe=partial(_proof, change))
    yield proof("proof_under_older_head_fail", recipe=partial(_resealed, _older_note))
    yield proof("proofs_swapped_fail", recipe=partial(_resealed, _two_proofs_swapped))
    # Lines that do not go together show no leaf at all: no record, and no key of a stream, belongs to anything.
    none = partial(row, section="12, step 3", invalid="I P C1 R", unproven="C2 X")
    yield none("leaf_less_than_rows_fail", recipe=partial(_relisted, _line_less))
    yield none("leaves_without_end_fail", recipe=partial(_relisted, _no_end))
    yield none("index_other_columns_fail", recipe=partial(_relisted, _other_column))
    # One leaf less is shown, the finding: its record and statement belong to nothing. The exporter's statement is
    # about other leaves than are shown and counts for nothing, so nobody has said where the streams end.
    one = partial(row, section="12, step 3", invalid="I P C1 R", unproven="C2 X")
    yield one("index_other_line_fail", recipe=partial(_relisted, _other_line))
    yield one("leaf_of_another_log_fail", recipe=partial(_leaf_of_another_log, 16))
    yield one("leaf_spelled_otherwise_fail", recipe=partial(_leaf_spelled_otherwise, 16))
    yield one("leaf_of_version_2_fail", recipe=partial(_leaf_of_version_2, 16))
    # The event of that row is not shown: a poll, on which no finding rests.
    other = partial(row, section="12, step 4", invalid="I C1 C2", unproven="X")
    for what, old, new in (
        ("stream", b"task:", b"peer:"),
        ("version", b"\t7\t", b"\t6\t"),
        ("record", b"records/12", b"records/13"),
        ("body", b"data/blobs", b"data/blobz"),
    ):
        yield other(f"index_other_{what}_fail", recipe=partial(_rows_of_another, partial(_replaced, old, new)))
    yield row("all_leaves", "12, step 12", _whole, valid="C3")
    # All leaves of the log say where the streams end, whoever signed.
    yield row("all_leaves_unsigned", "12, step 9", _whole_unsigned, valid="C3")


def _replaced(old: bytes, new: bytes, octets: bytes) -> bytes:
    return octets.replace(old, new)
