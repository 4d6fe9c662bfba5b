"""What one source tells of a task: live recording, or one run over one imported file, each in its own order.

A file says when things happened; we did not see it. Its events lie in the log where they were imported, so behind or
before all that another source tells, whatever was first. Only within one source the order of the log is that of events.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from a2a_ledger.divergence.reading import number, text
from a2a_ledger.divergence.spoken import Spoken

if TYPE_CHECKING:
    from a2a_ledger.codec import Record
    from a2a_ledger.divergence.exchanges import Said
    from a2a_ledger.divergence.finding import Evidence

LIVE = ""
"""The source of all that was recorded as it happened, whichever process did it: one log ordered it."""
SOURCES = 64
"""Sources of one task that are remembered: live recording, and of files the newest."""


@dataclass(slots=True)
class Told:
    """The fold over one source; of everything the newest is remembered, as in `exchanges`."""

    terminals: dict[str, Said] = field(default_factory=dict[str, "Said"])
    """The first terminal state of each task of the peer: a resend may open a second one."""
    pinned: dict[str, Said] = field(default_factory=dict[str, "Said"])
    """Where each of them acknowledged the pin, with its state then."""
    sayings: dict[str, None] = field(default_factory=dict[str, None])
    """Digests of what the peer said of a state."""
    first_answer: Evidence | None = None
    last_answer: Evidence | None = None
    version: str | None = None
    """Protocol version that the first exchange decided on, where the frozen interface states none."""
    redirect: str | None = None
    """Where the peer's last answer sent us."""
    redirect_cut: bool = False
    """Something was cut out of that."""
    worked: set[str] = field(default_factory=set[str])
    """Methods that the peer has answered without an error."""
    sent: Evidence | None = None
    """The first send."""
    last_act: Evidence | None = None
    """Our newest send or cancel."""
    spoken: Spoken = field(default_factory=Spoken)
    extensions: dict[str, None] = field(default_factory=dict[str, None])
    """What our sends so far asked for, in a header or in the message."""


def source_of(record: Record) -> str:
    """Name the source of a record: empty for live, else the file's SHA-256 and which import of it this is."""
    if record.how != "import":
        return LIVE
    return f"{text(record.data, 'source_file') or 'import'}#{number(record.data, 'run') or 1}"


def source_in(told: dict[str, Told], source: str) -> Told:
    """Return what a source has told, from now on the newest; of more than are remembered the oldest file goes."""
    found = told.pop(source, None) or Told()
    told[source] = found
    if len(told) > SOURCES:
        del told[next(name for name in told if name != LIVE)]
    return found
