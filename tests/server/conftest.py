"""A real agent and ledgers: the fixtures of the proxy's tests."""

from __future__ import annotations

from tests.proxy.conftest import agent, open_ledger

__all__ = ["agent", "open_ledger"]
