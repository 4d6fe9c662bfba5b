"""Lookup tags: the questions by which records are found again, derived from each record alone.

A tag is `<kind>:<value>`. It is written in the transaction of its event and is a pure function of
stream, type and data, so an audit recomputes every one (docs/format.md section 4). Tags help to
find; no proof rests on one.

| tag | of | finds |
|---|---|---|
| `task:<peer>:<peer's task id>` | task.bound, task.adopted | the local task |
| `context:<peer>:<context id>` | task.bound, task.adopted, message.recorded | a conversation |
| `message:<peer>:<message id>` | message.recorded: a send of the client | a resend of the same message |
| `trace:<trace id>` | message.recorded | a distributed trace |
| `sent:<peer>` | contract.captured, contract.reconstructed | the newest sends to a peer |
| `lists:<interface url>` | card.fetched | the peers whose cards list a url |
| `apikey:<peer>:<in>:<name>:<scheme>` | card.fetched with a body | where a peer's cards, of all times, put API keys |
| `reader:<mark>` | card.fetched by a proxy | the cards that a client's program read |
| `origin:<scheme://host[:port]>` | card.fetched with a body and status 200 | the peers of an origin |
| `import:<sha256>` | anything imported, with its line | whether a file was imported, and how far |
| `entry:<mark>` | the last record of an imported exchange | whether an exchange was imported, of whatever file |
| `finding:<digest>` | violation.detected | whether this finding is recorded |
| `ack:<stream>:<ver>` | finding.acknowledged | whether a finding is acknowledged |
| `manifest:<peer>` | card.manifest | manifests of a peer |
| `accepted:<peer>` | contract.accepted | acceptances of a peer's contract |
| `agreed:<peer>:<card id>` | contract.captured, contract.accepted | what was agreed to of one card |
| `cardkey:<peer>` | card_key.added, card_key.retired | the keys that may speak for a peer's cards |
| `aborted:<peer>` | send.aborted | sends that a change of contract stopped |
| `hint:<peer>` | message.recorded: an answer 401 | hints that the card may be stale |
| `contradicted:<peer>` | violation.detected: contract class, certain, about the peer | what contradicts a card |
| `type:<type>` | key events, card.manifest, checkpoint.anchored | the few events that concern the whole ledger |
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from a2a_ledger.codec.canonical import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.events import Json, JsonObject

_PLAIN = frozenset({str, int})
_SENDS = frozenset({"SendMessage", "SendStreamingMessage"})
_LEDGER_WIDE = frozenset(
    {"card.manifest.v1", "checkpoint.anchored.v1", "key.added.v1", "key.retired.v1", "key.revoked.v1"}
)
_HTTP_OK = 200
_HTTP_UNAUTHORIZED = 401


def tags_of(stream: str, event_type: str, data: JsonObject) -> tuple[str, ...]:
    """Return the sorted lookup tags of one record. Never raises: odd values have no tag."""
    rule = _RULES.get(event_type)
    found = set(rule(data)) if rule else set[str]()
    if event_type in _LEDGER_WIDE:
        found.add(f"type:{event_type}")
    source = data.get("source_file")
    if isinstance(source, str) and "line" in data:
        found.add(f"import:{source}")
        if isinstance(mark := data.get("entry"), str):
            found.add(f"entry:{mark}")
    _ = stream  # the derivation is defined over (stream, type, data); no tag needs the stream so far
    return tuple(sorted(found))


def finding_tag(rule: str, rule_set: str, profile_hash: str, trigger_c: str, subject: str) -> str:
    """Return the tag under which one finding occurs at most once (docs/format.md section 10)."""
    key: list[Json] = [rule, rule_set, profile_hash, trigger_c, subject]
    return f"finding:{hashlib.sha256(canonical(key)).hexdigest()}"


def _joined(kind: str, data: JsonObject, *names: str) -> Iterator[str]:
    """Yield `kind:value:value` when every named member is a string or an integer."""
    values = [data.get(name) for name in names]
    if _PLAIN.issuperset(map(type, values)):
        yield ":".join([kind, *map(str, values)])


def _message(data: JsonObject) -> Iterator[str]:
    if "context_id" in data:
        yield from _joined("context", data, "peer", "context_id")
    if "trace" in data:
        yield from _joined("trace", data, "trace")
    if data.get("direction") == "in" and data.get("status") == _HTTP_UNAUTHORIZED:
        yield from _joined("hint", data, "peer")
    method = data.get("method")
    is_send = isinstance(method, str) and method in _SENDS
    sent = "in" if data.get("side") == "server" else "out"  # at the agent it comes in
    if is_send and data.get("direction") == sent and data.get("leg") == "request":
        yield from _joined("message", data, "peer", "message_id")


def _card(data: JsonObject) -> Iterator[str]:
    interfaces = data.get("interfaces")
    for interface in interfaces if isinstance(interfaces, list) else []:
        if isinstance(interface, dict):
            yield from _joined("lists", interface, "url")
    places = data.get("api_keys")
    for place in places if isinstance(places, list) else []:
        if isinstance(place, str):
            yield from _joined("apikey", {**data, "place": place}, "peer", "place")
    if "reader" in data:
        yield from _joined("reader", data, "reader")
    peer_url = data.get("peer_url")
    if data.get("status") == _HTTP_OK and isinstance(peer_url, str) and isinstance(data.get("raw_hash"), str):
        try:
            parts = urlsplit(peer_url)
        except ValueError:
            return
        yield f"origin:{parts.scheme}://{parts.netloc}"


def _finding(data: JsonObject) -> Iterator[str]:
    trigger = data.get("trigger")
    values = [data.get(name) for name in ("rule", "rule_set", "profile_hash")]
    values += [trigger.get("c") if isinstance(trigger, dict) else None, data.get("subject")]
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) == len(values):
        yield finding_tag(*texts)
    if (data.get("rule_class"), data.get("certainty"), data.get("about")) == ("contract", "certain", "peer"):
        yield from _joined("contradicted", data, "peer")


def _identity(data: JsonObject) -> Iterator[str]:
    yield from _joined("task", data, "peer", "task_id")
    yield from _joined("context", data, "peer", "context_id")


def _acknowledged(data: JsonObject) -> Iterator[str]:
    violation = data.get("violation")
    if isinstance(violation, dict):
        yield from _joined("ack", violation, "stream", "ver")


def _agreed(data: JsonObject) -> Iterator[str]:
    ids = data.get("card_ids")
    for card_id in ids if isinstance(ids, list) else []:
        yield from _joined("agreed", {**data, "card_id": card_id}, "peer", "card_id")


def _captured(data: JsonObject) -> Iterator[str]:
    yield from _sent(data)
    yield from _agreed(data)


def _sent(data: JsonObject) -> Iterator[str]:
    return _joined("sent", data, "peer")


def _manifest(data: JsonObject) -> Iterator[str]:
    return _joined("manifest", data, "peer")


def _accepted(data: JsonObject) -> Iterator[str]:
    yield from _joined("accepted", data, "peer")
    yield from _agreed(data)


def _card_key(data: JsonObject) -> Iterator[str]:
    return _joined("cardkey", data, "peer")


def _aborted(data: JsonObject) -> Iterator[str]:
    return _joined("aborted", data, "peer")


_RULES: dict[str, Callable[[JsonObject], Iterator[str]]] = {
    "card.fetched.v1": _card,
    "card.manifest.v1": _manifest,
    "card_key.added.v1": _card_key,
    "card_key.retired.v1": _card_key,
    "contract.accepted.v1": _accepted,
    "contract.captured.v1": _captured,
    "contract.reconstructed.v1": _sent,
    "finding.acknowledged.v1": _acknowledged,
    "message.recorded.v1": _message,
    "send.aborted.v1": _aborted,
    "task.adopted.v1": _identity,
    "task.bound.v1": _identity,
    "violation.detected.v1": _finding,
}
