"""A real ledger: the same recorder, in memory, since most of these tests ask what was recorded and not where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger.ledger import ContractLedger

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def ledger() -> Iterator[ContractLedger]:
    with ContractLedger.open(":memory:", follow=False) as opened:
        yield opened
