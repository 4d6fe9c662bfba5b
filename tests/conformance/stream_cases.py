"""Streams, their keys and tags, and what is left out of them or put into them: sections 4 and 12, steps 5 and 9."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tests.conformance.material import log
from tests.conformance.remaking import Remaking, tag
from tests.conformance.sealing import sealed
from tests.conformance.table import Made, row
from tests.divergence.story import PEER
from tests.evidence.forging import repacked
from tests.evidence.refitting import signed_again, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.bundle import IndexRow
    from a2a_ledger.events import JsonObject
    from tests.conformance.table import Row
    from tests.evidence.forging import Files

POLL = 13
FINDING = 16
LATE: tuple[str, JsonObject] = ("task.snapshot.v1", {"peer": PEER, "task_id": "T-late"})
"""An event that says nothing, and may stand in the stream of a task as in that of a peer."""


def _remade(change: Callable[[Remaking], None], *, signed: bool = True) -> Made:
    made = Remaking(log())
    change(made)
    return Made(made.bundle(signed=signed), log().policy)


def _resealed(change: Callable[[Files], None]) -> Made:
    files = log().files
    change(files)
    return Made(sealed(files, log().signers["export"]), log().policy)


def _task() -> str:
    return f"task:{log().task}"


def _last_hidden(made: Remaking) -> None:
    """Append an event to the task, and show it to nobody."""
    made.hide(made.append(_task(), *LATE))


def _last_hidden_and_claimed(made: Remaking) -> None:
    _last_hidden(made)
    ends = (("findings:" + log().task, 0), ("ledger", 3), (_task(), 11))
    made.claimed = {"ends": [{"stream": stream, "ver": ver} for stream, ver in ends]}


def _finding_hidden(made: Remaking) -> None:
    made.hide(FINDING)
    used = [
        name for name in made.files if name.startswith(("data/blobs/", "data/streams/findings", "data/statements/"))
    ]
    kept = b"".join(made.records.values()).decode()
    for name in used:
        if not name.startswith("data/blobs/") or name.split("/")[2] not in kept:
            del made.files[name]


def _poll_hidden(made: Remaking) -> None:
    """Take the last poll out of the bundle with its blobs."""
    made.hide_with_blobs(POLL)


def _other_prev(made: Remaking) -> None:
    made.change(POLL, lambda record: record.update(prev="0" * 64))


def _other_tag(made: Remaking) -> None:
    made.tags[POLL] = "0" * 64


def _tag_twice(made: Remaking) -> None:
    """Append an event to a peer's stream whose leaf carries the tag of one of the task's."""
    n = made.append(f"peer:{PEER}", *LATE)
    made.tags[n] = made.tags[POLL]


def _version_twice(made: Remaking) -> None:
    """Tell another story for one place, as somebody does who holds the stream's key."""
    n = made.append(_task(), *LATE)
    made.change(n, lambda record: record.update(ver=8, prev=made.commitments[POLL - 1]))
    made.rows[n] = made.rows[n]._replace(ver=8)
    made.tags[n] = made.tags[POLL]


def _version_left_out(made: Remaking) -> None:
    n = made.append(_task(), *LATE)
    made.change(n, lambda record: record.update(ver=12))
    made.rows[n] = made.rows[n]._replace(ver=12)
    made.tags[n] = tag(made.stream_key(_task()), 12)


def _next_under_other_name(made: Remaking) -> None:
    """Show the task's next leaf as an event of a peer."""
    n = made.append(f"peer:{PEER}", *LATE)
    made.tags[n] = tag(made.stream_key(_task()), 11)


def _finding_under_other_name(made: Remaking) -> None:
    """Show the leaf of the next finding as an event of a peer."""
    n = made.append(f"peer:{PEER}", *LATE)
    made.tags[n] = tag(made.stream_key(f"findings:{log().task}"), 1)


def _of_another_task(made: Remaking) -> None:
    n = made.append(_task(), *LATE)
    other = f"task:{'0' * 40}"
    made.change(n, lambda record: record.update(stream=other, ver=0, prev=None))
    made.rows[n] = made.rows[n]._replace(stream=other, ver=0)
    made.tags[n] = "0" * 64


def _of_another_peer(made: Remaking) -> None:
    n = made.append(f"peer:{PEER}", *LATE)
    other = f"peer:{'0' * 32}"
    made.data(n, peer="0" * 32)
    made.change(n, lambda record: record.update(stream=other, ver=5, prev="0" * 64))
    made.rows[n] = made.rows[n]._replace(stream=other, ver=5)
    made.tags[n] = "0" * 64


def _other_commitment(made: Remaking) -> None:
    made.data(0, stream_commitment="0" * 64)


def _other_key(stream: str, files: Files) -> None:
    name = next(name for name in files if name.startswith(f"data/streams/{stream}"))
    files[name] = bytes(32)


def _swapped_keys(files: Files) -> None:
    one, other = (f"data/streams/{kind}.{log().task}.key" for kind in ("task", "findings"))
    files[one], files[other] = files[other], files[one]


def _spliced() -> Made:
    """Put an event of another log in the place of ours: leaf, proof, record, blobs."""
    files, other = log().files, log("another").files
    for name in (f"data/records/{POLL}.json", f"data/records/{POLL}.salt", f"data/log/proofs/{POLL}.tlog-proof"):
        files[name] = other[name]
    ours, theirs = (one["data/log/events.jsonl"].splitlines(keepends=True) for one in (files, other))
    ours[POLL] = theirs[POLL]
    files["data/log/events.jsonl"] = b"".join(ours)
    return Made(signed_again(files, log().signers["export"]), log().policy)


def _stripped() -> Made:
    """Take the exporter's signatures off, and say so: anybody can."""
    return _remade(lambda _: None, signed=False)


def _without_last() -> Made:
    """Take the end of the task and its finding out of a bundle that nobody signed any more."""
    files = log().files
    without(files, _is_late)
    return Made(repacked(files), log().policy)


def _is_late(found: IndexRow) -> bool:
    return found.n > POLL  # the cancel, its answer, and the finding


def _other_log_whole() -> Made:
    """Give the reader the bundle of another log, in the name of this one."""
    return Made(log("another").bundle, log().policy)


def rows() -> Iterator[Row]:
    """Yield the cases of streams."""
    stream = partial(row, section="12, step 5")
    faulty = partial(stream, invalid="C2")
    yield faulty("stream_event_left_out_fail", recipe=partial(_remade, _poll_hidden))
    yield faulty("stream_prev_fail", recipe=partial(_remade, _other_prev))
    yield faulty("stream_tag_fail", recipe=partial(_remade, _other_tag))
    yield faulty("stream_tag_twice_fail", recipe=partial(_remade, _tag_twice))
    yield faulty("stream_version_twice_fail", recipe=partial(_remade, _version_twice))
    yield faulty("stream_version_left_out_fail", recipe=partial(_remade, _version_left_out))
    yield faulty("stream_goes_on_under_other_name_fail", recipe=partial(_remade, _next_under_other_name))
    yield faulty("findings_go_on_under_other_name_fail", recipe=partial(_remade, _finding_under_other_name))
    yield faulty("stream_commitment_fail", recipe=partial(_remade, _other_commitment))
    for kind in ("task", "ledger", "findings"):
        yield faulty(f"stream_key_of_{kind}_fail", recipe=partial(_resealed, partial(_other_key, kind)))
    yield faulty("stream_keys_swapped_fail", recipe=partial(_resealed, _swapped_keys))
    # Neither of the task nor of a peer: that is no event of this bundle.
    yield stream("stream_of_another_task_fail", recipe=partial(_remade, _of_another_task), invalid="I")
    yield stream("stream_of_another_peer", recipe=partial(_remade, _of_another_peer))
    # Nobody sees that an end is cut off but who has all leaves: an exporter's word, where there is one.
    cut = partial(row, section="12, step 9")
    yield cut("stripped_notproven", recipe=_stripped, unproven="C2")
    yield cut("cut_end_unsigned_notproven", recipe=partial(_remade, _last_hidden, signed=False), unproven="C2")
    yield cut("cut_story_unsigned_notproven", recipe=_without_last, unproven="C2")
    yield cut("cut_end_that_exporter_lies_about", recipe=partial(_remade, _last_hidden))
    yield cut("cut_end_against_signature_fail", recipe=partial(_remade, _last_hidden_and_claimed), invalid="I C2")
    # What the rules find in the shown events is not there: only who judges again sees it.
    hidden = partial(_remade, _finding_hidden)
    yield cut("finding_hidden_by_exporter_fail", recipe=hidden, invalid="R", missed="R")
    # The leaf is of another log, and so no leaf; of its record nothing is shown.
    spliced = partial(row, section="12, step 3", invalid="I P C1 C2", unproven="X")
    yield spliced("spliced_from_another_log_fail", recipe=_spliced)
    yield row("bundle_of_another_log_notproven", "12, step 7", _other_log_whole, unproven="L C2")
