"""Under which profile: said by every capture, live and imported, by every comparison, and by the bundle."""

from __future__ import annotations

import hashlib
import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from a2a_ledger import ContractChangedError, ContractLedger
from a2a_ledger.capture.import_file import import_file
from a2a_ledger.contract import default_profile
from a2a_ledger.export import export_task
from tests.capture.conftest import STALE, only, send
from tests.importer import lines

if TYPE_CHECKING:
    from pathlib import Path

    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard, OpenLedger

MINE = b'name = "mine"\n[terms]\npaths = ["/sla"]\n'
MINE_HASH = "sha256:" + hashlib.sha256(MINE).hexdigest()


@pytest.fixture
def mine(tmp_path: Path) -> str:
    file = tmp_path / "mine.toml"
    file.write_bytes(MINE)
    return str(file)


async def test_a_live_capture_and_an_acceptance_say_their_profile(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, mine: str, tmp_path: Path
) -> None:
    ledger = open_ledger(limits=STALE, profile=mine)
    guard = make_guard(ledger)
    client = await guard.create_client(agent.url)
    await send(client, "hello")
    agent.require_oauth()
    with pytest.raises(ContractChangedError):
        await send(client, "hello")
    await send(await guard.create_client(agent.url), "hello")

    captured = only(ledger, "contract.captured")
    assert [record.data["profile_hash"] for record in captured] == [MINE_HASH, MINE_HASH]
    for record in captured:
        assert json.loads(record.content("terms") or b"")["profile"] == MINE_HASH
    [accepted] = only(ledger, "contract.accepted")
    assert json.loads(accepted.content("diff") or b"")["profile"] == MINE_HASH

    bundle = tmp_path / "bundle.zip"
    export_task(ledger, captured[0].stream.removeprefix("task:"), bundle)
    with zipfile.ZipFile(bundle) as shown:
        [profile] = [name for name in shown.namelist() if name.endswith("replay/profile.toml")]
        assert shown.read(profile) == MINE


def test_an_imported_contract_says_its_profile(mine: str, tmp_path: Path) -> None:
    card = {**lines.card(), "sla": {"hours": 4}}
    answer = {"task": lines.task("WORKING")}
    file = lines.write(tmp_path, lines.fetch(card), lines.send("m1", answer))
    for named, profile, paths in ((mine, MINE_HASH, {"/sla": {"hours": 4}}), (None, default_profile().hash, {})):
        with ContractLedger.open(":memory:", follow=False, profile=named) as ledger:
            import_file(ledger, file)
            [record] = only(ledger, "contract.reconstructed")
            assert record.data["profile_hash"] == profile
            terms = json.loads(record.content("terms") or b"")
            assert (terms["profile"], terms["paths"]) == (profile, paths)
