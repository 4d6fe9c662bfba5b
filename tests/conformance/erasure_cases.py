"""Content that is gone since it was recorded: sections 2, 3.3 and 12, step 4. An event explains it, or none does."""

from __future__ import annotations

import tempfile
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, cast

from a2a_ledger.codec import parse_canonical
from a2a_ledger.erasing import erase_content
from a2a_ledger.export import export_task
from a2a_ledger.ledger import ContractLedger
from tests.conformance.material import entropy, log
from tests.conformance.remaking import Remaking
from tests.conformance.table import Made, row
from tests.evidence.recorded import clock, dispute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.events import Json, JsonObject
    from tests.conformance.table import Row

POLL = 13  # an answer that nothing refers to, and that no finding rests on
BEFORE = 11  # another one


def _erasure(*listed: int, gone: int | None = POLL, c: str = "") -> Made:
    """Append an event that says that the content of these events was erased, and leave the body of `gone` out.

    Args:
        listed: Log indexes of the events.
        gone: Log index of the event whose body is a hole; None: of none.
        c: What the references commit to; "": to the events that they name.
    """
    made = Remaking(log())
    refs: list[Json] = [
        {"c": c or made.commitments[n], "stream": made.rows[n].stream, "ver": made.rows[n].ver} for n in listed
    ]
    if refs:
        said: JsonObject = {"scope": "content", "records": refs, "requested_by": "Jo Doe", "reason": "request 17"}
        made.append(f"task:{log().task}", "content.erased.v1", said)
    if gone is not None:
        made.claimed["withheld"] = [_without_body(made, gone)]
    return Made(made.bundle(), log().policy)


def _without_body(made: Remaking, n: int) -> Json:
    """Make the body of an event a hole, and return how it is listed."""
    blob = cast("dict[str, dict[str, dict[str, str]]]", parse_canonical(made.records[n]))["blobs"]["body"]["id"]
    name = f"data/blobs/{blob}/0"
    salt, content = made.files.pop(f"{name}.salt"), made.files.pop(name)
    part = sha256(b"a2a-ledger/part/v1\x00" + salt + content).hexdigest()
    made.files[f"{name}.hole"] = f'[{len(content)},"{part}"]'.encode()
    return {"blob": blob, "index": n, "part": 0, "role": "body", "size": len(content)}


@cache
def _erased_by_us() -> Made:
    """Let the recorder itself erase a task, and export it."""
    with tempfile.TemporaryDirectory() as folder:
        mark = str(Path(folder) / "elsewhere")
        with ContractLedger.open(
            Path(folder) / "audit",
            origin="acme/audit",
            follow=False,
            clock=clock(),
            entropy=entropy("erased"),
            mark_dir=mark,
        ) as ledger:
            story = dispute(ledger)
            dispute(ledger, name="t2")
            ledger.catch_up()
            erase_content(ledger, story.tasks["t1"], reason="request 17", requested_by="Jo Doe")
            bundle = export_task(ledger, story.tasks["t1"]).data
            return Made(bundle, f"log {ledger.signers['log'].vkey}\nquorum none\n")


def rows() -> Iterator[Row]:
    """Yield the cases."""
    gap = partial(row, section="3.3", unproven="R")
    yield gap("erased_task_notproven", recipe=_erased_by_us)
    yield gap("erased_body_notproven", recipe=partial(_erasure, POLL))
    yield gap("gap_without_erasure_notproven", recipe=_erasure)
    yield gap("gap_beside_erasure_notproven", recipe=partial(_erasure, BEFORE))
    yield row("erased_and_still_there", "3.3", partial(_erasure, POLL, gone=None))
    yield row(
        "erasure_of_another_record_fail",
        "12, step 4",
        partial(_erasure, POLL, c="0" * 64),
        invalid="C1",
        unproven="R X",
    )
