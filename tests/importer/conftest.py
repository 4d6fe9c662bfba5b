"""A real ledger in a directory, and what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger.ledger import ContractLedger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[ContractLedger]:
    with ContractLedger.open(tmp_path / "audit", follow=False) as opened:
        yield opened
