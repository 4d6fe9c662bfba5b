"""What a client agreed on for the pushes of its tasks, read from the log (docs/format.md section 14).

A push configuration holds from the moment that its request is recorded, for a push may outrun the answer; the one that
it replaces holds until that answer has come. One that was refused never held, and a deleted one does no longer.
"""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from a2a_ledger.capture.push_objects import may_hold_push
from a2a_ledger.events import TaskBound
from a2a_ledger.wire import SENDS
from a2a_ledger.wire.jsontext import member, read_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Credential, Json
    from a2a_ledger.store import Store
    from a2a_ledger.wire import Headers

PUSH_TOKEN = "push-token"  # noqa: S105 - the name of the scheme, no token

_PAGE = 500
_KNOWN = 1024
"""Tasks of which what was agreed is remembered."""

_REDIRECTED = 300
_FAILED = 500
_INTERNAL_ERROR = -32603
_NEVER_ARRIVED = frozenset({"connect", "tls"})
"""Failures after which the peer cannot have read the request."""

_WITHIN = ("config", "taskPushNotificationConfig", "pushNotificationConfig")
"""Members that a configuration stands in, the outermost first: versions 0.1 to 0.3."""


class Webhook(NamedTuple):
    """One push configuration: its id, the path of its url, and the marks of its token and credentials."""

    id: str | None
    path: str
    marks: frozenset[str]


@dataclass(slots=True)
class _Held:
    """A configuration that may hold, and the version of what came of its request; None: nothing yet."""

    webhook: Webhook
    ended: int | None = None


@dataclass(slots=True)
class Agreed:
    """What a task's records say of its pushes, up to one version."""

    bound: bool = False
    """The peer has told its id."""

    ver: int = -1
    _held: dict[int, _Held] = field(default_factory=dict[int, _Held])  # by the version of the request
    _deleting: dict[int, str] = field(default_factory=dict[int, str])
    _ever: bool = False

    def take(self, record: Record) -> None:
        """Go on by one record of the task."""
        self.ver = record.ver
        self.bound = self.bound or record.type == TaskBound.TYPE
        leg = record.data.get("leg")
        if leg == "request" and record.data.get("direction") == "out":
            self._asked(record)
        elif leg in {"response", "stream-event", "stream-end", "error"}:
            answers = record.data.get("answers")
            asked = answers.get("ver") if isinstance(answers, dict) else None
            if isinstance(asked, int):
                self._answered(record, asked)

    def has(self, marks: frozenset[str], path: str) -> bool:
        """Say whether one of these marks is of a secret that was agreed for pushes to this path."""
        return any(held.webhook.marks & marks for held in self._at(path))

    def is_open(self, path: str) -> bool:
        """Say whether a push to this path may come without any secret."""
        at = self._at(path)
        return any(not held.webhook.marks for held in at) if at else not self._ever

    @property
    def has_secrets(self) -> bool:
        """Say whether some secret is agreed."""
        return any(held.webhook.marks for held in self._held.values())

    @property
    def awaits_bare(self) -> bool:
        """Say whether a configuration without a secret was sent and nothing came of its request yet."""
        return any(held.ended is None and not held.webhook.marks for held in self._held.values())

    @property
    def in_flight(self) -> bool:
        """Say whether pushes may come of a task whose id nobody has told: its send has no answer, or a failed one."""
        return not self.bound and not self._ever

    def _at(self, path: str) -> list[_Held]:
        """Return the configurations for a path; all, if none names it: a gateway may have changed the path."""
        return [held for held in self._held.values() if held.webhook.path == path] or list(self._held.values())

    def _asked(self, record: Record) -> None:
        if record.data.get("method") == "DeleteTaskPushNotificationConfig":
            deleted = _deleted_id(record)
            if deleted is not None:
                self._deleting[record.ver] = deleted
        elif (webhook := _webhook_of(record)) is not None:
            self._held[record.ver] = _Held(webhook)

    def _answered(self, record: Record, asked: int) -> None:
        held = self._held.get(asked)
        if asked not in self._deleting and (held is None or held.ended is not None):
            return
        deleted = self._deleting.pop(asked, None)
        if record.data.get("leg") in {"error", "stream-end"}:  # it may have been read all the same
            if held is not None:
                held.ended = record.ver
                if record.data.get("error_kind") in _NEVER_ARRIVED:
                    del self._held[asked]
            return
        body = read_json(record.content("body") or b"").value
        if _is_error(record, body):
            if held is not None:
                held.ended = record.ver
                if not _failed_inside(record):
                    del self._held[asked]
            return
        self._ever = True
        gone = deleted
        if held is not None:
            held.ended = record.ver
            held.webhook = held.webhook._replace(id=held.webhook.id or _given_id(record, body))
            gone = held.webhook.id
        if gone is not None:
            self._drop(gone, before=asked)

    def _drop(self, config: str, *, before: int) -> None:
        """Drop what was agreed under an id by requests that were over before another one for it was sent."""
        for ver, held in list(self._held.items()):
            if held.webhook.id == config and held.ended is not None and held.ended < before:
                del self._held[ver]


class Agreements:
    """What was agreed for each task: all of its records count, and each is read once; for one thread at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, Agreed] = OrderedDict()

    def of(self, task: str) -> Agreed:
        """Read what is new of a task, and return what is known of it."""
        agreed = self._known.setdefault(task, Agreed())
        self._known.move_to_end(task)
        if len(self._known) > _KNOWN:
            self._known.popitem(last=False)
        while page := self._store.read_stream(f"task:{task}", gt=agreed.ver, limit=_PAGE):
            for record in page:
                agreed.take(record)
        return agreed


def shown_in(headers: Headers) -> Iterator[bytes]:
    """Yield what a push may show of what was agreed: header values, whole, behind their scheme, and as `user:password`.

    A2A names no header for the token, and senders use several; its credentials go into whichever their scheme says.
    """
    for _, value in headers:
        octets = value.encode("latin-1", "replace")
        kind, _, rest = octets.strip().partition(b" ")
        yield from dict.fromkeys((octets, octets.strip(), rest.strip()))
        if kind.lower() == b"basic":
            try:
                yield base64.b64decode(rest.strip(), validate=True)
            except binascii.Error:
                continue


def _webhook_of(record: Record) -> Webhook | None:
    """Return the configuration that a request asks for; None: it asks for none."""
    method, body = record.data.get("method"), record.content("body") or b""
    is_send = method in SENDS
    if not is_send and method != "CreateTaskPushNotificationConfig":
        return None
    if is_send and not may_hold_push(body):
        return None
    marks = _marks(cast("list[Credential]", record.data.get("credential") or []))
    read = read_json(body)
    if not read.ok:  # a number that was cut out
        return Webhook(None, "", marks) if marks or not is_send else None
    params = _params(record, read.value)
    if is_send:
        config = member(member(params, "configuration"), *_WITHIN[1:], "pushNotification")
        config = member(params, "pushNotification") if config is None else config
        if not isinstance(config, dict):
            return None
    else:
        config = _inner(params)
    given = member(config, "id") or member(params, "configId")
    return Webhook(given if isinstance(given, str) else None, _path(member(config, "url")), marks)


def _deleted_id(record: Record) -> str | None:
    """Return the id of the configuration that a request deletes, wherever its version has it."""
    params = _params(record, read_json(record.content("body") or b"").value)
    named = member(params, "pushNotificationConfigId")
    if named is None and member(params, "taskId") is not None:
        named = member(params, "id")
    if named is None and isinstance(resource := member(params, "name"), str):
        named = resource.rsplit("/", 1)[-1]
    if named is None and record.data.get("binding") == "HTTP+JSON":
        named = unquote(str(record.data.get("url")).rsplit("/", 1)[-1])
    return named if isinstance(named, str) else None


def _params(record: Record, body: Json) -> Json:
    return member(body, "params") if record.data.get("binding") == "JSONRPC" else body


def _inner(config: Json) -> Json:
    for name in _WITHIN:
        config = inner if isinstance(inner := member(config, name), dict) else config
    return config


def _given_id(record: Record, body: Json) -> str | None:
    """Return the id that a peer gave to a configuration which came without one."""
    if record.data.get("method") != "CreateTaskPushNotificationConfig":
        return None
    result = member(body, "result") if record.data.get("binding") == "JSONRPC" else body
    given = member(_inner(result), "id")
    return given if isinstance(given, str) and given else None


def _is_error(record: Record, body: Json) -> bool:
    status = record.data.get("status")
    went_elsewhere = isinstance(status, int) and status >= _REDIRECTED
    return went_elsewhere or record.data.get("error_code") is not None or member(body, "error") is not None


def _failed_inside(record: Record) -> bool:
    """Say whether an error came of what the peer did with a request, and so, perhaps, behind the configuration."""
    status = record.data.get("status")
    return record.data.get("error_code") == _INTERNAL_ERROR or (isinstance(status, int) and status >= _FAILED)


def _path(url: Json) -> str:
    try:
        return urlsplit(url).path if isinstance(url, str) else ""
    except ValueError:
        return ""


def _marks(marks: Iterable[Credential]) -> frozenset[str]:
    return frozenset(mark["mac"] for mark in marks if mark["scheme"] == PUSH_TOKEN)
