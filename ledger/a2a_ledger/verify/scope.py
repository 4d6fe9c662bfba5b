"""What a bundle is about: one task, or in the form with packs the tasks of a context or a peer. Pure.

docs/format.md sections 11.2 and 11.4. The scope says which streams are shown whole, and which members repeat it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from a2a_ledger.bundle import PROFILE
from a2a_ledger.codec import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.verify.shown import Shown

NOT_CLAIMED: Final = (
    "that the peer sent these messages: the peer signed none of them",
    "that anything was recorded at the time that `at` states: it is the recorder's own clock",
    "that nothing happened which the recorder did not see",
    "that the log has no later events of this task than the bundle shows",
    "that a change of the peer's card breaks A2A: a finding says that the peer left the frozen contract",
)
"""What no bundle of this form claims, in plain sentences."""

NOT_ALL: Final = "that these are all tasks of the context or the peer: the log does not prove which tasks it has"
"""What a bundle of a context or a peer does not claim beside that."""

_TASK = re.compile(r"[0-9a-f]{40}")
_PEER = re.compile(r"[0-9a-f]{32}")
_SHARED: Final = ("checkpoint", "ends", "later_events", "withheld")


@dataclass(frozen=True, slots=True)
class Scope:
    """What a bundle is about.

    Attributes:
        profile: the bundle's form.
        kind: `task`, `context` or `peer`.
        value: the id of it; of a context as the peer gave it.
        tasks: local ids of the tasks that are shown, sorted.
    """

    profile: str
    kind: str
    value: str
    tasks: tuple[str, ...]

    @property
    def ends(self) -> list[str]:
        """Return the streams that are shown whole and whose ends an export states, sorted."""
        streams = ["ledger"]
        for task in self.tasks:
            streams += [f"findings:{task}", f"task:{task}"]
        if self.kind == "peer":
            streams += [f"findings:peer:{self.value}", f"peer:{self.value}"]
        return sorted(streams)

    @property
    def identifier(self) -> str:
        """Return what `bag-info.txt` says behind the log's name."""
        if self.profile == PROFILE:
            return f"task:{self.value}"
        return sha256(canonical({self.kind: self.value})).hexdigest()[:40]

    @property
    def said_twice(self) -> tuple[str, ...]:
        """Return the members that the export's statement and `data/claims.json` have in common."""
        own = ("peer", "task") if self.profile == PROFILE else ("peers", "selection", "tasks")
        return tuple(sorted((*_SHARED, *own)))

    @property
    def not_claimed(self) -> list[Json]:
        """Return what such a bundle does not claim."""
        return [*NOT_CLAIMED, *([] if self.kind == "task" else [NOT_ALL])]

    @property
    def lists_apart(self) -> bool:
        """Say whether what was left out is listed in a file of its own."""
        return self.profile != PROFILE

    def members(self, peers: Sequence[str]) -> JsonObject:
        """Return the members of `data/claims.json` that say what the bundle is about.

        `peers`: of each task the peer that its events name first.
        """
        if self.profile == PROFILE:
            return {"peer": peers[0] if peers else "", "task": self.value}
        return {
            "peers": [*sorted(set(peers))],
            "selection": {self.kind: self.value},
            "tasks": [*self.tasks],
        }

    def strangers(self, shown: Shown) -> list[str]:
        """Return one sentence for each stream or task that is shown and does not belong here, or is missing."""
        known = {*self.ends}
        faults = [
            f"{stream} is shown, which is neither of {self} nor of a peer"
            for stream in shown.streams
            if stream not in known and not stream.startswith(("peer:", "findings:peer:"))
        ]
        if self.profile != PROFILE:
            faults += [f"task {task} is not shown" for task in self.tasks if f"task:{task}" not in shown.streams]
        if self.kind == "context":
            faults += [
                f"no event of task {task} names {self}"
                for task in self.tasks
                if all(record.data.get("context_id") != self.value for record in shown.stream(f"task:{task}"))
            ]
        if self.kind == "peer":
            faults += [f"task {task} is not with {self}" for task in self.tasks if shown.peer_of(task) != self.value]
        return faults

    def __str__(self) -> str:
        """Say what it is in two words; a context's name is the peer's own text."""
        return f"{self.kind} {self.value[:80]}"


def peer_of(events: Iterable[Record]) -> str:
    """Return the peer that a task's events name first, "" if none does."""
    return next((str(record.data["peer"]) for record in events if "peer" in record.data), "")


def scope_of(claimed: JsonObject, profile: str) -> Scope | None:
    """Read what a bundle of a form says in `data/claims.json` that it is about; None: nothing of that form."""
    if profile == PROFILE:
        task = claimed.get("task")
        return Scope(profile, "task", task, (task,)) if isinstance(task, str) and _TASK.fullmatch(task) else None
    tasks, selection = claimed.get("tasks"), claimed.get("selection")
    if not isinstance(selection, dict) or len(selection) != 1:
        return None
    listed = tasks if isinstance(tasks, list) else [None]
    named = tuple(task for task in listed if isinstance(task, str) and _TASK.fullmatch(task))
    if len(named) != len(listed) or list(named) != sorted(set(named)):
        return None
    match selection:
        case {"task": str(value)} if named == (value,):
            kind = "task"
        case {"context": str(value)} if named:
            kind = "context"
        case {"peer": str(value)} if _PEER.fullmatch(value):
            kind = "peer"
        case _:
            return None
    return Scope(profile, kind, value, named)
