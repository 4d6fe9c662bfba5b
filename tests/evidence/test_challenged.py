"""A task whose credential the peer asked for first: recorded, judged, replayed and verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger import ContractChangedError, guard
from a2a_ledger.divergence import VERIFIER
from a2a_ledger.export import export_task
from a2a_ledger.replay import replay_task
from a2a_ledger_projections.verifier import follower
from tests.divergence.story import task
from tests.divergence.test_challenged import DIGEST_ONLY, EITHER, sent, stale_story
from tests.evidence.forging import judged, statuses
from tests.evidence.recorded import LedgerStory, opened
from tests.evidence.test_rule_sets import OLD_VERIFIER, as_set_1_did

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.events import JsonObject
    from a2a_ledger.ledger import ContractLedger

URL = "https://vendor.example"


def told(ledger: ContractLedger) -> list[tuple[str, str]]:
    """Return (rule, about) of what is recorded."""
    return [
        (str(record.data["rule"]), str(record.data["about"]))
        for record in ledger.store.read(0, 1000)
        if record.type == "violation.detected.v1"
    ]


def hold(ledger: ContractLedger, name: str) -> None:
    """Replay and verify one task: nothing differs."""
    report = replay_task(ledger, name)
    assert (report.verdict, report.notes) == ("same", ())
    ledger.sign_checkpoint()
    verified = judged(export_task(ledger, name).data, ledger.signers["log"].vkey)
    assert statuses(verified)["R"] == "VALID", verified.claim("R").detail


@pytest.mark.parametrize(
    ("then", "found"), [("d", []), ("k", [("weaker-authorization", "peer")])], ids=["enough", "too little"]
)
def test_it_replays_and_verifies(tmp_path: Path, then: str, found: list[tuple[str, str]]) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = LedgerStory(ledger)
        sent(story, "t1", story.fetch(EITHER), (), (then,))
        story.fetch(DIGEST_ONLY)
        follower(ledger).catch_up()
        assert told(ledger) == found
        hold(ledger, story.tasks["t1"])


def test_a_task_from_a_replaced_card_replays_and_verifies(tmp_path: Path) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = LedgerStory(ledger)
        stale_story(story, ())
        follower(ledger).catch_up()
        assert told(ledger) == [("weaker-authorization", "client")]
        hold(ledger, story.tasks["t1"])
        hold(ledger, story.tasks["t2"])


@pytest.mark.parametrize("replaced", [False, True])
def test_what_set_1_recorded_stays_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, replaced: bool
) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = LedgerStory(ledger)
        if replaced:
            stale_story(story, (), ("d",))
        else:
            sent(story, "t1", story.fetch(EITHER), (), ("d",))
            story.fetch(DIGEST_ONLY)
        as_set_1_did(story, ledger)
        (recorded,) = told(ledger)
        assert recorded == ("weaker-authorization", "client" if replaced else "peer")
        hold_as_then(ledger, story.tasks["t1"], monkeypatch)
        follower(ledger).catch_up()
        assert told(ledger) == [recorded]
        hold(ledger, story.tasks["t1"])


def hold_as_then(ledger: ContractLedger, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify a bundle that was made under rule set 1."""
    ledger.sign_checkpoint()
    with monkeypatch.context() as then:
        then.setattr("a2a_ledger.export.making.RULE_SET", "1")
        then.setattr("a2a_ledger.export.making.VERIFIER", OLD_VERIFIER)
        bundle = export_task(ledger, name).data
    report = judged(bundle, ledger.signers["log"].vkey)
    assert statuses(report)["R"] == "VALID", report.claim("R").detail
    assert "1 findings again" in report.claim("R").detail


async def test_digest_authentication_through_the_guard(tmp_path: Path) -> None:
    """The client of httpx: the first send is refused, the second answers the challenge, then the card asks for it."""
    served: list[JsonObject] = [EITHER, DIGEST_ONLY]

    def agent(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json=served.pop(0))
        if "authorization" not in request.headers:
            return httpx.Response(401, headers={"www-authenticate": 'Digest realm="r", nonce="n", qop="auth"'})
        return httpx.Response(200, json={"jsonrpc": "2.0", "id": 1, "result": {"task": task("completed")}})

    message: JsonObject = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "go"}]}
    call: JsonObject = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    with opened(tmp_path / "audit") as ledger:
        guarded = guard(ledger)
        auth = httpx.DigestAuth("u", "p")
        async with guarded.httpx_client(transport=httpx.MockTransport(agent), auth=auth) as client:
            place = URL + "/.well-known/agent-card.json"
            await client.get(place, auth=None)
            answer = await client.post(URL + "/a2a", json=call, headers={"A2A-Version": "1.0"})
            assert answer.status_code == 200
            with pytest.raises(ContractChangedError):
                await client.get(place, auth=None, headers={"cache-control": "no-cache"})
        follower(ledger).catch_up()
        assert ledger.store.position(VERIFIER) == ledger.store.size()
        assert told(ledger) == []
        (captured,) = [item for item in ledger.store.read(0, 1000) if item.type == "contract.captured.v1"]
        assert captured.data["credential"] == []
        hold(ledger, captured.stream.removeprefix("task:"))
