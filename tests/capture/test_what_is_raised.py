"""What a program catches: docs/errors.md names it, and attributes say what its text says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from a2a_ledger import ContractChangedError, SpentClientError
from a2a_ledger.errors import CaptureError
from tests.capture.conftest import STALE, send

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard, OpenLedger

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"


def kinds(error: type[Exception]) -> Iterator[str]:
    for kind in error.__subclasses__():
        yield kind.__name__
        yield from kinds(kind)


def test_the_page_has_all_that_stops_a_call() -> None:
    rows = [line.split("|")[1] for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert {kind for kind in kinds(CaptureError) if not any(f"`{kind}`" in row for row in rows)} == set()


async def test_a_program_that_starts_afresh_builds_again(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    await send(await make_guard(ledger).create_client(agent.url), "hello")
    agent.require_oauth()
    guard = make_guard(ledger)
    with pytest.raises(ContractChangedError, match=r"No client was built\. Build again to accept sha256:") as stopped:
        await guard.create_client(agent.url)
    assert (stopped.value.reason, stopped.value.retry_after, stopped.value.hint) == ("contract-changed", None, "")
    await send(await guard.create_client(agent.url), "hello")


async def test_who_catches_a_changed_contract_catches_every_later_send_too(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    guard = make_guard(open_ledger(limits=STALE))
    client = await guard.create_client(agent.url)
    await send(client, "hello")
    agent.require_oauth()
    came: list[tuple[type[ContractChangedError], str]] = []
    for _ in range(2):
        try:
            await send(client, "hello")
        except ContractChangedError as stopped:
            came.append((type(stopped), stopped.reason))
    assert came == [(ContractChangedError, "contract-changed"), (SpentClientError, "contract-changed")]
