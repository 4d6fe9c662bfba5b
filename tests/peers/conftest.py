"""A client's ledger and an agent's, which know each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.peers.pair import Names, introduce, open_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2a_ledger.ledger import ContractLedger


class Two(NamedTuple):
    """Both ledgers, open, and their public keys."""

    client: ContractLedger
    agent: ContractLedger
    client_keys: Names
    agent_keys: Names


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Two]:
    keys = introduce(tmp_path / "client", tmp_path / "agent")
    with open_at(tmp_path / "client") as client, open_at(tmp_path / "agent") as agent:
        yield Two(client, agent, *keys)
