"""What was recorded over gRPC as evidence: replayed, exported and verified like every other traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from a2a.client import ClientConfig

from tests.capture.all_bindings import EveryBinding
from tests.capture.conftest import make_guard, open_ledger
from tests.capture.test_honest_bindings import every_method
from tests.evidence.test_real_traffic import check_all

if TYPE_CHECKING:
    from tests.capture.conftest import MakeGuard, OpenLedger

__all__ = ["make_guard", "open_ledger"]  # fixtures, found by their names


@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_honest_traffic_over_grpc_replays_and_verifies(
    open_ledger: OpenLedger, make_guard: MakeGuard, version: str
) -> None:
    ledger = open_ledger()
    with EveryBinding("GRPC", version) as agent:
        config = ClientConfig(supported_protocol_bindings=["GRPC"])
        client = await make_guard(ledger).create_client(agent.url, config=config)
        await every_method(client, version, streaming=True)
        await client.close()
    assert check_all(ledger) == 8  # one decision a send
