"""Several honest clients behind one proxy speak of one task, each over an interface that its card lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.divergence.story import URL, Story, card, task

if TYPE_CHECKING:
    from a2a_ledger.events import JsonObject

OLD_URL = "https://vendor.example/v03"
LISTED: list[JsonObject] = [
    {"url": URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
    {"url": OLD_URL, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
]


def begun(side: str | None, *, extensions: tuple[str, ...] = ()) -> Story:
    """One client sends over the first interface, and the peer is at work."""
    story = Story()
    fetch = story.fetch({**card(), "supportedInterfaces": [*LISTED]})
    story.capture(fetch, side=side, extensions=extensions)
    story.bind(story.answer(story.ask(extensions=extensions), task("working")))
    return story


def test_another_client_uses_the_interface_of_its_own_version() -> None:
    for side, found in (("proxy", []), (None, ["version-skew", "interface-drift"])):
        story = begun(side)
        story.ask("tasks/get", task_id="T1", url=OLD_URL, version=None)
        assert [one.rule for one in story.findings()] == found


def test_another_client_need_not_ask_for_the_extension_of_the_first() -> None:
    for side, found in (("proxy", []), (None, ["extension-dropped"])):
        story = begun(side, extensions=("urn:billing",))
        story.ask(task_id="T1", message_id="m2")
        assert [one.rule for one in story.findings()] == found


@pytest.mark.parametrize(
    ("url", "version", "method"),
    [
        ("https://elsewhere.example/rpc", "1.0", "GetTask"),
        (URL, None, "tasks/get"),  # 0.3, which the card lists elsewhere
        (OLD_URL, "1.0", "GetTask"),
    ],
)
def test_what_the_card_does_not_list_together_is_found(url: str, version: str | None, method: str) -> None:
    story = begun("proxy")
    story.ask(method, task_id="T1", url=url, version=version)
    assert [one.certainty for one in story.findings()][:1] == ["certain"]


def test_the_first_send_is_held_to_the_interface_it_chose() -> None:
    story = Story()
    fetch = story.fetch({**card(), "supportedInterfaces": [*LISTED]})
    story.capture(fetch, side="proxy", url="https://elsewhere.example/rpc")
    story.ask(url="https://elsewhere.example/rpc")
    assert [(one.rule, one.certainty) for one in story.findings()] == [("interface-drift", "certain")]
