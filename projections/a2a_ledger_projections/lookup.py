"""Which task does somebody mean? Any id leads there: local, a prefix of it, or one of the peer's.

A lookup tag only helps to find; the record that it leads to is what counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from a2a_ledger.errors import UsageError
from a2a_ledger_projections import peers, task_contracts
from a2a_ledger_projections.base import reading

if TYPE_CHECKING:
    from a2a_ledger.codec import Record
    from a2a_ledger.store import Store
    from a2a_ledger_projections.peers import PeerRow
    from a2a_ledger_projections.task_contracts import TaskRow
    from a2a_ledger_projections.view import Table

_LISTED = 5  # candidates named in an error
_HITS = 200  # records looked at for one id


def find_task(store: Store, wanted: str) -> TaskRow:
    """Return the row of the one task that `wanted` names.

    Local id or unique prefix first, then the peer's task id, message, context and trace ids.

    Raises:
        UsageError: no task, or several, go by this name.
    """
    with reading(store, task_contracts.VIEW) as now:
        found = _local(now.rows, wanted) or _by_peer_ids(store, now.rows, wanted)
    if not found:
        raise UsageError(
            f"no task is known by {wanted!a}: expected a local id or a unique prefix of one, or a task, context, "
            "message or trace id of the peer",
            hint="`a2a-ledger tasks` lists the tasks.",
        )
    if len(found) > 1:
        names = ", ".join(row["task"][:12] for row in found[:_LISTED]) + (", …" if len(found) > _LISTED else "")
        raise UsageError(f"{len(found)} tasks go by {wanted!a}: {names}; name one by its local id")
    return found[0]


def find_peer(store: Store, wanted: str) -> PeerRow:
    """Return the row of the one peer that `wanted` names: its URL, host, or (a prefix of) its id.

    Raises:
        UsageError: no peer, or several, go by this name.
    """
    with reading(store, peers.VIEW) as now:
        rows = [cast("PeerRow", row) for row in now.rows.prefixed(peers.PEER)]
    asked = wanted.removesuffix("/")
    found = (
        [row for row in rows if asked in {row["peer"], row["url"], _host(row["url"]), _base(row["url"])}]
        or [row for row in rows if asked.lower() in _spellings(row["url"])]
        or [row for row in rows if len(asked) >= 4 and row["peer"].startswith(asked)]  # noqa: PLR2004 - a prefix shorter than that says nothing
    )
    if not found:
        raise UsageError(
            f"no peer is known by {wanted!a}: expected its card's URL, its host, or its id",
            hint="`a2a-ledger peers` lists the peers.",
        )
    if len(found) > 1:
        names = ", ".join(str(row["url"]) for row in found[:_LISTED])
        raise UsageError(f"{len(found)} peers go by {wanted!a}: {names}; name one by its card's URL")
    return found[0]


def _local(rows: Table, wanted: str) -> list[TaskRow]:
    exact = None if ":" in wanted else rows.get(wanted)  # with a colon it is the key of a list
    if exact is not None:
        return [cast("TaskRow", exact)]
    if not wanted or not set(wanted) <= set("0123456789abcdef"):
        return []
    return [cast("TaskRow", row) for row in rows.prefixed(wanted)]


def _by_peer_ids(store: Store, rows: Table, wanted: str) -> list[TaskRow]:
    for kind in ("task", "message", "context"):
        tags = [f"{kind}:{peer}:{wanted}" for peer in store.tagged_peers(kind)]
        hits = [record for tag in tags for record in store.tagged(tag, limit=_HITS)]
        if found := _tasks_of(rows, hits):
            return found
    return _tasks_of(rows, store.tagged(f"trace:{wanted}", limit=_HITS))


def _tasks_of(rows: Table, records: list[Record]) -> list[TaskRow]:
    streams = dict.fromkeys(r.stream.removeprefix("task:") for r in records if r.stream.startswith("task:"))
    found = [rows.get(task) for task in streams]
    return [cast("TaskRow", row) for row in found if row is not None]


def _host(url: str | None) -> str | None:
    return url.split("://", 1)[-1].split("/", 1)[0] if url else None


def _spellings(url: str | None) -> set[str]:
    """Return what else a peer is called: its host with or without the port, its card's URL, in lower case."""
    if not url:
        return set()
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    names = {url, _host(url), _base(url), host, f"[{host}]" if host and ":" in host else None}
    return {name.lower() for name in names if name}


def _base(url: str | None) -> str | None:
    return url.split("/.well-known/", 1)[0] if url else None
