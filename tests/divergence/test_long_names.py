"""Two names that differ behind their 128th character stay two findings; under rule set 1 they were one."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from tests.divergence.story import Story, card, made, ours, said, task

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.divergence import Finding
    from a2a_ledger.events import Json

LONG = "x" * 200
PAIR = (f"{LONG}1", f"{LONG}2")


def states(story: Story) -> None:
    story.working()
    for name in PAIR:
        story.polled(name.upper())


def tasks(story: Story) -> None:
    story.working()
    for name in PAIR:
        story.answer(story.ask("GetTask", task_id="T1"), task("working", task_id=name))


def demands(story: Story) -> None:
    story.answer(story.begun(), task("auth-required", data={"schemes": [*PAIR]}))


def scopes(story: Story) -> None:
    served = card(required=({"oauth": ("tasks:read",)},))
    story.begun(served)
    for name in PAIR:
        challenge = f'Bearer error="insufficient_scope", scope="{name}"'
        request = story.ask("GetTask", task_id="T1")
        story.answer(request, status=403, headers=[("WWW-Authenticate", challenge)], body=b"")


def artifacts(story: Story) -> None:
    story.working()
    for text in ("x", "y"):
        listed: list[Json] = [one for name in PAIR for one in made(text, name=name)]
        story.polled("completed", artifacts=listed)


def messages(story: Story) -> None:
    story.working()
    for text in ("x", "y"):
        story.polled(history=[ours("m1"), *(said(name, text) for name in PAIR)])


def repeated_messages(story: Story) -> None:
    story.working()
    story.polled(history=[ours("m1"), *(said(name, text) for name in PAIR for text in ("x", "y"))])


def extensions(story: Story) -> None:
    uris = [f"urn:{name}{name}" for name in PAIR]
    story.capture(story.fetch(card()), extensions=uris)
    story.answer(story.ask(extensions=uris), task("working"))
    story.ask(task_id="T1", message_id="m2")


def tags(story: Story) -> None:
    for name in PAIR:
        tag = f'"{LONG}{name}"'
        story.fetch(card(), etag=tag)
        story.fetch(card(description="other"), etag=tag)


OF_BOTH_SETS: list[tuple[Callable[[Story], None], str]] = [
    (states, "unknown-state"),
    (tasks, "identity-swap"),
    (tags, "validator-lied"),
]
ALL: list[tuple[Callable[[Story], None], str]] = [
    *OF_BOTH_SETS,
    (demands, "auth-demand"),
    (scopes, "auth-demand"),
    (artifacts, "artifact-rewritten"),
    (messages, "history-divergence"),
    (repeated_messages, "duplicate-id"),
    (extensions, "extension-dropped"),
]


def told(tell: Callable[[Story], None], rule: str, rule_set: str) -> list[Finding]:
    story = Story()
    tell(story)
    return [one for one in story.findings(rule_set=rule_set) if one.rule == rule]


@pytest.mark.parametrize(("tell", "rule"), ALL, ids=lambda value: getattr(value, "__name__", ""))
def test_two_long_names_are_two_findings(tell: Callable[[Story], None], rule: str) -> None:
    found = told(tell, rule, "2")
    assert len({one.subject for one in found}) == len(found) == 2
    assert all(len(value) <= 256 for one in found for value in one.observed.values() if isinstance(value, str))


@pytest.mark.parametrize(("tell", "rule"), OF_BOTH_SETS, ids=lambda value: getattr(value, "__name__", ""))
def test_rule_set_1_found_one(tell: Callable[[Story], None], rule: str) -> None:
    (only,) = told(tell, rule, "1")
    assert "~" not in only.subject


def test_the_form_of_a_cut_name() -> None:
    """Its first 128 characters, `~`, and 32 hex digits of the SHA-256 of the whole (docs/format.md section 10.2)."""
    first, _ = told(states, "unknown-state", "2")
    name = PAIR[0].upper()
    assert first.subject == f"{'X' * 128}~{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    story = Story()
    story.answer(story.begun(), task("X" * 128))
    assert [one.subject for one in story.findings()] == ["X" * 128]
