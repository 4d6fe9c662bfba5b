"""An event-sourced contract ledger for A2A (Agent2Agent) clients.

The door is `ContractLedger.open(path)`; `guard(ledger)` puts it under an a2a-sdk client. The
evidence side is `verify`, which needs none of the rest. Names are imported when first used, so
that importing the package costs next to nothing and needs no extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_ledger.capture.guard import Guard, guard
    from a2a_ledger.capture.manifests import add_manifest
    from a2a_ledger.contract.seed import AgentCard, Task, TaskState, capture_contract, verify_peer_message
    from a2a_ledger.errors import (
        CaptureError,
        ContractChangedError,
        ContractDivergenceError,
        ContractFrozenError,
        LedgerError,
        LedgerUnavailableError,
        SendRefusedError,
        SpentClientError,
        StoreError,
    )
    from a2a_ledger.ledger import ContractLedger

_HOME = {
    "AgentCard": "contract.seed",
    "CaptureError": "errors",
    "ContractChangedError": "errors",
    "ContractDivergenceError": "errors",
    "ContractFrozenError": "errors",
    "ContractLedger": "ledger",
    "Guard": "capture.guard",
    "LedgerError": "errors",
    "LedgerUnavailableError": "errors",
    "SendRefusedError": "errors",
    "SpentClientError": "errors",
    "StoreError": "errors",
    "Task": "contract.seed",
    "TaskState": "contract.seed",
    "add_manifest": "capture.manifests",
    "capture_contract": "contract.seed",
    "guard": "capture.guard",
    "verify_peer_message": "contract.seed",
}

__all__ = [
    "AgentCard",
    "CaptureError",
    "ContractChangedError",
    "ContractDivergenceError",
    "ContractFrozenError",
    "ContractLedger",
    "Guard",
    "LedgerError",
    "LedgerUnavailableError",
    "SendRefusedError",
    "SpentClientError",
    "StoreError",
    "Task",
    "TaskState",
    "add_manifest",
    "capture_contract",
    "guard",
    "verify_peer_message",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    except ModuleNotFoundError as e:
        if (e.name or "").startswith(__name__):
            raise
        raise ImportError(
            f"{name} needs {e.name}, which is not installed: run pip install 'a2a-ledger[a2a]'", name=e.name
        ) from e
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)
