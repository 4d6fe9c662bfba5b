"""Bundles with packs: of a task of many events, of a context, and of a peer: section 11.4."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, cast

from a2a_ledger.archive import read_archive
from tests.conformance.material import log
from tests.conformance.sealing import sealed
from tests.conformance.table import Made, row
from tests.evidence.forging import repacked
from tests.evidence.refitting import claim, claims

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.events import Json, JsonObject
    from tests.conformance.table import Row
    from tests.evidence.forging import Files

PACK = "data/packs/0"
OTHER_TASK = "0" * 40


def _plain(kind: str) -> Made:
    return Made(log().packed[kind], log().policy)


def _resealed(change: Callable[[Files], None], kind: str = "task") -> Made:
    """Change files of the zip itself; the exporter's raw signature is made again."""
    files = dict(read_archive(log().packed[kind]).files)
    change(files)
    return Made(sealed(files, log().signers["export"]), log().policy)


def _unsigned(change: Callable[[Files], None], kind: str) -> Made:
    """Change files of the zip itself, which nobody signs any more."""
    files = dict(read_archive(log().packed[kind]).files)
    change(files)
    return Made(repacked(files), log().policy)


def _numbered_from_1(files: Files) -> None:
    files["data/packs/1"] = files.pop(PACK)


def _with_zeros(files: Files) -> None:
    files["data/packs/00"] = files.pop(PACK)


def _cut(files: Files) -> None:
    files[PACK] = files[PACK][:-1]


def _octet_more(files: Files) -> None:
    files[PACK] += b"x"


def _twice(files: Files) -> None:
    files[PACK] += b"32 data/records/0.salt\n" + bytes(32)


def _foreign(files: Files) -> None:
    files[PACK] += b"2 data/claims.json\n{}"


def _parent(files: Files) -> None:
    files[PACK] += b"2 data/records/../0.json\n{}"


def _too_large(files: Files) -> None:
    files[PACK] += b"33 data/records/77.salt\n" + bytes(33)


def _leading_zero(files: Files) -> None:
    files[PACK] = b"0" + files[PACK]


def _beside(files: Files) -> None:
    files["data/records/77.salt"] = bytes(32)


def _record_changed(files: Files) -> None:
    """Change a letter of one record in its place."""
    found = re.search(rb"\n[0-9]+ data/records/13\.json\n", files[PACK])
    assert found is not None
    at = found.end() + 30
    files[PACK] = files[PACK][:at] + b"~" + files[PACK][at + 1 :]


def _other_context(files: Files) -> None:
    claim(files, selection={"context": "C2"})


def _two_selections(files: Files) -> None:
    claim(files, selection={"context": "C1", "task": log().task})


def _task_less(files: Files) -> None:
    said = claims(files)
    left = [task for task in cast("list[str]", said["tasks"]) if task != log().task]
    ends = [end for end in cast("list[JsonObject]", said["ends"]) if log().task not in str(end["stream"])]
    claim(files, tasks=[*left], ends=[*ends])


def _by_stream(ends: list[JsonObject]) -> Json:
    named = {str(end["stream"]): end for end in ends}
    return [named[stream] for stream in sorted(named)]


def _task_more(files: Files) -> None:
    said = claims(files)
    ends: list[JsonObject] = [{"stream": f"{kind}:{OTHER_TASK}", "ver": -1} for kind in ("findings", "task")]
    together = _by_stream([*cast("list[JsonObject]", said["ends"]), *ends])
    claim(files, tasks=[OTHER_TASK, *cast("list[str]", said["tasks"])], ends=together)


def _unsorted(files: Files) -> None:
    claim(files, tasks=[*reversed(cast("list[str]", claims(files)["tasks"]))])


def _other_peer(files: Files) -> None:
    other = "f" * 32
    said = claims(files)
    others: list[JsonObject] = [{"stream": f"{kind}peer:{other}", "ver": -1} for kind in ("findings:", "")]
    ends = [end for end in cast("list[JsonObject]", said["ends"]) if ":peer:" not in f":{end['stream']}"]
    claim(files, selection={"peer": other}, ends=_by_stream([*ends, *others]))


def _without_sentence(files: Files) -> None:
    claim(files, not_claimed=[*cast("list[str]", claims(files)["not_claimed"])[:-1]])


def _form_1(files: Files) -> None:
    claim(files, form="a2a-evidence/1")


def _hole_unlisted(files: Files) -> None:
    files["data/withheld.jsonl"] = b"".join(files["data/withheld.jsonl"].splitlines(keepends=True)[1:])


def _count_of_holes(files: Files) -> None:
    said = cast("JsonObject", claims(files)["withheld"])
    claim(files, withheld={**said, "parts": cast("int", said["parts"]) + 1})


def _without_peer_key(files: Files) -> None:
    del files[next(name for name in files if name.startswith("data/streams/peer."))]


def rows() -> Iterator[Row]:
    """Yield the cases of packs."""
    form = partial(row, section="11.4")
    for kind in ("task", "context"):
        yield form(f"packed_{kind}", recipe=partial(_plain, kind))
    yield form("packed_peer", recipe=partial(_plain, "peer"), valid="C3")  # nobody else is in this log
    yield form("packed_withheld_notproven", recipe=partial(_plain, "withheld"), unproven="R")
    refused = partial(form, invalid="I", unproven="L P C1 C2 R X")
    for change in (
        *(_numbered_from_1, _with_zeros, _cut, _octet_more, _twice, _foreign, _parent, _too_large),
        *(_leading_zero, _beside),
    ):
        yield refused(f"packed{change.__name__}_fail", recipe=partial(_resealed, change))
    changed = partial(form, invalid="I C1 C2", unproven="X")
    yield changed("packed_record_changed_fail", recipe=partial(_resealed, _record_changed))
    # Whoever changes what the claims say cannot sign it: so the ends of the streams rest on nobody's word.
    claimed = partial(form, invalid="I", unproven="C2")
    for change in (_other_context, _two_selections, _task_less, _task_more, _unsorted, _without_sentence, _form_1):
        yield claimed(f"packed{change.__name__}_fail", recipe=partial(_unsigned, change, "context"))
    yield claimed("packed_other_peer_fail", recipe=partial(_unsigned, _other_peer, "peer"), valid="C3")
    yield form(
        "packed_without_peer_key_notproven",
        recipe=partial(_unsigned, _without_peer_key, "peer"),
        valid="C3",
        unproven="C2",
    )
    holes = partial(form, invalid="X", unproven="C2 R")
    for change in (_hole_unlisted, _count_of_holes):
        yield holes(f"packed{change.__name__}_fail", recipe=partial(_unsigned, change, "withheld"))
