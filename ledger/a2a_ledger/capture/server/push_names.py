"""Which tasks a push may be taken to speak of, by whichever reader. Pure.

A body can be read in two ways: a member that is there twice, more than one payload, an update with a task's `id` beside
its `taskId`. Whoever is handed the push reads it once more, and perhaps otherwise than we did.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

_IDS = frozenset({"id", "taskid"})
_HOLDERS = frozenset({"result", "task", "message", "statusupdate", "artifactupdate"})
"""Members that hold what is said, in lower case without their signs: some readers take names in any case."""


class _Members(list[tuple[str, object]]):
    """A JSON object as it stands in the text: a member that is there twice is here twice."""


def pushed_task_ids(body: bytes) -> frozenset[str]:
    """Return every text that some reader may take for the id of the task that a push speaks of.

    Args:
        body: after content decoding; of what is no JSON nothing is returned.
    """
    try:
        return frozenset(_ids_in(json.loads(body.decode("utf-8-sig"), object_pairs_hook=_Members)))
    except (ValueError, RecursionError):
        return frozenset()


def _ids_in(value: object) -> Iterator[str]:
    if not isinstance(value, _Members):
        return
    for spelled, inner in cast("list[tuple[str, object]]", value):
        name = spelled.replace("_", "").lower()
        if name in _IDS and isinstance(inner, str):
            yield inner
        elif name in _HOLDERS:
            yield from _ids_in(inner)
