"""A real agent, ledgers, and a proxy between them and the client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from a2a_ledger import ContractLedger
from a2a_ledger.capture.proxy import proxy_app
from tests.capture.agent import Agent
from tests.proxy.serving import Serving, free_port

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.codec import Record

OpenLedger = Callable[..., ContractLedger]
StartProxy = Callable[..., Serving]


@pytest.fixture
def agent() -> Iterator[Agent]:
    """Return a running agent."""
    with Agent(extended=True) as running:
        yield running


@pytest.fixture
def open_ledger(tmp_path: Path) -> Iterator[OpenLedger]:
    """Return a way to open ledgers; all are closed at the end."""
    opened: list[ContractLedger] = []

    def _open(name: str = "audit", **options: Any) -> ContractLedger:  # noqa: ANN401 - for ContractLedger.open
        options.setdefault("follow", False)
        opened.append(ContractLedger.open(tmp_path / name, mark_dir=str(tmp_path / f"{name}-mark"), **options))
        return opened[-1]

    yield _open
    for ledger in opened:
        ledger.close()


@pytest.fixture
def start_proxy() -> Iterator[StartProxy]:
    """Return a way to put a proxy in front of an agent."""
    with ExitStack() as stack:

        def _start(ledger: ContractLedger, upstream: str, **options: Any) -> Serving:  # noqa: ANN401 - for proxy_app
            port = free_port()
            app = proxy_app(ledger, upstream, public=f"http://127.0.0.1:{port}", **options)
            return stack.enter_context(Serving(app, port))

        yield _start


def only(ledger: ContractLedger, kind: str) -> list[Record]:
    """Return all records of one event name."""
    return [record for record in ledger.store.read(0, 100_000) if record.type == f"{kind}.v1"]
