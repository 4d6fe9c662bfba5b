"""No bytes make the wire raise, and whatever it lifts fits into a record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_ledger.codec import canonical
from a2a_ledger.wire import EXTENSION, Leg, parse_push, parse_request, parse_response, parse_stream_event

if TYPE_CHECKING:
    from a2a_ledger.events import Json

NAMES = [
    *("jsonrpc", "id", "method", "params", "result", "error", "code", "message", "data", "details", "reason"),
    *("task", "statusUpdate", "artifactUpdate", "kind", "status", "state", "history", "metadata", EXTENSION, "parts"),
    *("text", "content", "taskId", "contextId", "messageId", "tenant", "configuration", "historyLength", "artifact"),
    *("schemes", "security", "scopes", "type", "name", "final", "contractHash", "tasks"),
]
WORDS = ["2.0", "SendMessage", "message/send", "tasks/get", "task", "message", "working", "auth-required", "T1", ""]
ODD_WORDS = ["\ud800", "x" * 1025]
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([*WORDS, *ODD_WORDS])
    | st.text(max_size=8)
)
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=25,
)
bodies = trees.map(lambda tree: json.dumps(tree).encode()) | st.binary(max_size=60)
headers = st.lists(
    st.tuples(
        st.sampled_from(["A2A-Version", "a2a-extensions", "WWW-Authenticate", "Location", "Content-Type"]),
        st.text(max_size=20) | st.sampled_from(["1.0", "Bearer scope=x", 'a="b\\', "http://[", "\ud800"]),
    ),
    max_size=4,
)
urls = st.text(max_size=20) | st.sampled_from(
    ["https://v.example/a2a", "https://v/v1/tasks/%ff:cancel?historyLength=\u0663", "http://[::1", "//h/message:send"]
)
verbs = st.sampled_from(["GET", "POST", "DELETE", "", "\u0130"])


def fits_a_record(leg: Leg) -> None:
    lifted: list[Json] = [leg.method_spelled, leg.version, leg.rpc_id, leg.message_id, leg.task_id, leg.context_id]
    lifted += [leg.tenant, leg.state, leg.state_read, *leg.extensions, *(leg.pin or {}).values(), *leg.flags]
    canonical(lifted)
    assert all(len(text) <= 1024 for text in lifted if isinstance(text, str))
    leg.text.encode()


@settings(max_examples=80, deadline=None)
@given(verbs, urls, headers, bodies, st.integers(100, 599), headers, bodies)
def test_an_exchange_of_anything_is_read(
    verb: str,
    url: str,
    asked: list[tuple[str, str]],
    body: bytes,
    status: int,
    answered: list[tuple[str, str]],
    answer: bytes,
) -> None:
    request = parse_request(verb, url, asked, body)
    for leg in (
        request,
        parse_response(request, status, answered, answer),
        parse_stream_event(request, answer),
        parse_push(answered, answer),
    ):
        assert isinstance(leg, Leg)
        fits_a_record(leg)


def test_every_field_of_a_leg_has_a_default_but_its_leg_and_binding() -> None:
    assert [name for name in Leg._fields if name not in Leg._field_defaults] == ["leg", "binding"]
