"""Whatever a finding names out of what came over the wire, there is a record that can hold it."""

from __future__ import annotations

import json

import pytest

from tests.divergence.stated import as_recorded
from tests.divergence.story import MTLS, Story, card, made, said, task


def failed_with(data: object, rule_set: str) -> object:
    """Tell of a task that failed with this data; return the pointer of what was found in it."""
    story = Story()
    story.working()
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": task("failed") | {"status": _failed(data)}})
    story.answer(story.ask("GetTask", task_id="T1"), body=body.encode())
    (found,) = story.findings(rule_set=rule_set)
    assert found.rule == "task-error-mismatch"
    as_recorded(found)
    return found.observed["pointer"]


def _failed(data: object) -> dict[str, object]:
    message = {"messageId": "s", "role": "ROLE_AGENT", "parts": [{"data": data}]}
    return {"state": "TASK_STATE_FAILED", "message": message}


@pytest.mark.parametrize("rule_set", ["1", "2"])
@pytest.mark.parametrize("name", ["\ud800", "a\udfffb", "\udc00\ud800"], ids=ascii)
def test_a_name_with_a_lone_surrogate(name: str, rule_set: str) -> None:
    shown = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in name)
    assert failed_with({name: {"skillId": "x"}}, rule_set) == f"/0/{shown}/skillId"


def test_a_pointer_is_escaped_as_rfc_6901_says() -> None:
    """The members of the example in RFC 6901 section 5."""
    assert failed_with({"a/b": {"m~n": {"skillId": "x"}}}, "2") == "/0/a~1b/m~0n/skillId"
    assert failed_with({"a/b": {"m~n": {"skillId": "x"}}}, "1") == "/0/a/b/m~n/skillId"  # as it was released


def test_a_pointer_that_is_too_long_names_the_last_place_that_fits() -> None:
    assert failed_with({"a": {"~" * 200: {"skillId": "x"}}}, "2") == "/0/a"
    assert failed_with({"a": {"b" * 200: {"c" * 60: ["report"]}}}, "2") == f"/0/a/{'b' * 200}"
    assert failed_with({"a": {"b" * 200: {"skillId": "x"}}}, "1") == f"/0/a/{'b' * 64}/skillId"


def test_a_repeated_member_with_a_lone_surrogate() -> None:
    story = Story()
    request = story.begun()
    story.answer(request, body=b'{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"T1","\\ud800":1,"\\ud800":2}}}')
    (found,) = story.findings()
    assert (found.subject, found.observed["members"]) == ("in:\ufffd", ["\ufffd"])
    as_recorded(found)


def test_a_card_whose_schemes_have_long_names() -> None:
    """The names that a contract offers stand in what was observed, and the card is the peer's."""
    names = [f"{index:02}{'n' * 20_000}" for index in range(20)]
    served = card(dict.fromkeys(names, MTLS), [dict.fromkeys(names, ())])
    story = Story()
    story.answer(story.begun(served), status=401, headers=[("WWW-Authenticate", "Basic")], body=b"")
    (found,) = (one for one in story.findings() if one.rule == "auth-demand")
    assert found.observed["frozen"] == [name[:256] for name in names[:16]]
    as_recorded(found)


def test_ids_with_lone_surrogates_name_nothing() -> None:
    """An id that no record can hold is no id; what it names is recorded and not compared."""
    story = Story()
    story.working()
    story.polled("completed", history=[said("\ud800", "x"), said("\ud800", "y")], artifacts=made("x", name="\ud800"))
    story.polled("completed", history=[said("\ud800", "z")], artifacts=made("y", name="\ud800"))
    assert story.findings() == []
