"""Is a send a message that was sent before? Its id and its content say so together (docs/format.md section 4).

Ids alone do not: a client that counts from 1 begins again with each run, and two such clients may stand behind one
proxy. Their messages are other work, under the contract of their own time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.divergence.reading import body_cut, message_body
from a2a_ledger.wire import message_digest

if TYPE_CHECKING:
    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.codec import Record

_LOOK_BACK = 32
"""Sends of one id that are looked at, the newest: an id that is counted anew in each run has many."""

_TASK = "task:"


def resent_task(reader: LogReader, peer: str, message_id: str, said: str | None) -> str | None:
    """Return the local task of which a send is a resend; None: it is the first with this id, or says something else.

    Contents that cannot be compared (cut, erased, with a secret starred out, of unknown parts) leave it to the id,
    unless another send of the same id says something else.

    Args:
        reader: the log.
        peer: peer id.
        message_id: of the send.
        said: `message_digest` of its body.
    """
    by_id: str | None = None
    is_reused = False
    for record in reader.tagged(f"message:{peer}:{message_id}", limit=_LOOK_BACK, desc=True):
        if not record.stream.startswith(_TASK):
            continue
        task = record.stream.removeprefix(_TASK)
        before = _said(record)
        if said is None or before is None:
            by_id = task
        elif before == said:
            return task
        else:
            is_reused = True
    return None if is_reused else by_id


def _said(record: Record) -> str | None:
    return message_digest(message_body(record) or b"", other=body_cut(record))
