"""`extension-dropped`: a later send of ours leaves out an extension that the task runs under."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.divergence.cut import may_be_same
from a2a_ledger.divergence.reading import members, text
from a2a_ledger.divergence.task_case import carried
from a2a_ledger.wire import EXTENSION, SENDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.divergence.finding import Finding
    from a2a_ledger.divergence.matter import Matter
    from a2a_ledger.divergence.reading import Frozen

_LONGEST = 256


def extension_dropped(matter: Matter, frozen: Frozen) -> Iterator[Finding]:
    """A send after the first one lacks what the frozen contract requires, or what the first sends activated.

    An extension is asked for by header or in the message's own list; either will do. A request that hands over no
    work (a poll, a cancel) uses no extension's terms and need not ask. The first send is the peer's to judge: it
    answers -32008 if it insists. Our own frozen-contract extension promises nothing and is not looked for. Of the
    clients behind a proxy each may ask for what it knows: nothing is looked for there.

    Established: that the client left the terms that the task began under. Not established: that the peer noticed, or
    that the extension would have changed anything.
    """
    if frozen.for_many or matter.case.sent is None or text(matter.record.data, "method") not in SENDS:
        return
    if matter.told.sent is None and text(matter.record.data, "task_id") is None:
        return  # another source has the first send too
    listed = members(frozen.contract).get("extensions")
    required = [text(members(one), "uri") for one in listed] if isinstance(listed, list) else []
    wanted = {uri: "required" for uri in required if uri is not None}
    for uri in (*frozen.extensions, *matter.told.extensions):
        wanted.setdefault(uri, "activated")
    asked = set(carried(matter.record, matter.case.contents(matter.record)))
    for uri, why in wanted.items():
        if uri != EXTENSION and not _is_among(uri, asked):
            yield matter.finding(
                "extension-dropped",
                about="client",
                subject=matter.readings.in_subject(uri, _LONGEST),
                evidence=(matter.case.sent,),
                observed={"extension": uri[:_LONGEST], "why": why},
            )


def _is_among(uri: str, asked: set[str]) -> bool:
    """Say whether an extension is asked for; what is secret in a uri has `*` for each octet of it in the record."""
    return any(may_be_same(uri, one, {uri, one}) for one in asked)
