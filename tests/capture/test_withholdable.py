"""What the profile names as withholdable is a part of its own in a body, and can be left out of a bundle alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from a2a_ledger.bundle import CLAIMS
from a2a_ledger.codec import Kept
from a2a_ledger.export import export_task
from a2a_ledger.verify import verify
from tests.capture.conftest import only, send, tasks
from tests.evidence.forging import files_of, statuses

if TYPE_CHECKING:
    from pathlib import Path

    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard, OpenLedger

WORDS = 'my name is "Ann" and this is private'
PROFILE = b'name = "private"\n[withhold]\npaths = ["/params/message/parts/*/text", "/result"]\n'


async def test_only_the_named_text_is_left_out_of_the_request(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, tmp_path: Path
) -> None:
    file = tmp_path / "private.toml"
    file.write_bytes(PROFILE)
    ledger = open_ledger(profile=str(file))
    client = await make_guard(ledger).create_client(agent.url)
    await send(client, WORDS)
    ledger.catch_up()
    [request] = [record for record in only(ledger, "message.recorded") if record.data["leg"] == "request"]
    parts = request.stored_parts("body") or ()
    quoted = json.dumps(WORDS)[1:-1].encode()
    assert [part.content for part in parts if isinstance(part, Kept)][1:-1] == [quoted]
    assert json.loads(request.content("body") or b"")["params"]["message"]["parts"][0]["text"] == WORDS

    [stream] = tasks(ledger)
    task = stream.removeprefix("task:")
    trust = [ledger.signers["log"].vkey]
    whole = export_task(ledger, task).data
    assert quoted in b"".join(files_of(whole).values())
    assert verify(whole, trust=trust).verdict == "verified"

    made = export_task(ledger, task, withhold=["cut"])
    assert quoted not in b"".join(files_of(made.data).values())
    [left_out] = [one for one in json.loads(files_of(made.data)[CLAIMS])["withheld"] if one["index"] == request.n]
    assert (left_out["role"], left_out["part"], left_out["size"]) == ("body", 1, len(quoted))
    found = statuses(verify(made.data, trust=trust))
    assert {letter: found[letter] for letter in ("I", "L", "P", "C1", "C2", "X", "R")} == {
        **dict.fromkeys(("I", "L", "P", "C1", "C2", "X"), "VALID"),
        "R": "NOT PROVEN",
    }


async def test_a_body_that_was_not_cut_at_recording_is_left_out_whole(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, tmp_path: Path
) -> None:
    file = tmp_path / "private.toml"
    file.write_bytes(b'name = "before"\n')
    ledger = open_ledger(profile=str(file))
    client = await make_guard(ledger).create_client(agent.url)
    await send(client, WORDS)
    [stream] = tasks(ledger)
    task = stream.removeprefix("task:")
    [request] = [record for record in only(ledger, "message.recorded") if record.data["leg"] == "request"]
    ledger.close()
    file.write_bytes(PROFILE)
    made = export_task(open_ledger(profile=str(file)), task, withhold=["cut"])
    assert json.dumps(WORDS)[1:-1].encode() not in b"".join(files_of(made.data).values())
    [left_out] = [one for one in json.loads(files_of(made.data)[CLAIMS])["withheld"] if one["index"] == request.n]
    assert (left_out["role"], left_out["part"], left_out["size"]) == ("body", 0, request.blobs["body"].size)
