"""A client and an agent, told by each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.reconcile.sides import Dispute

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def two() -> Iterator[Dispute]:
    dispute = Dispute()
    yield dispute
    dispute.close()
