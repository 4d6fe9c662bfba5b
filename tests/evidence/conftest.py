"""One ledger with two disputes, made once and copied for each test that changes it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest

from a2a_ledger.export import export_task
from a2a_ledger.ledger import ContractLedger
from tests.evidence.recorded import dispute, opened

if TYPE_CHECKING:
    from pathlib import Path

LARGE = b"x" * 70_000  # lies in a table of its own


class Case(NamedTuple):
    """A ledger's directory, what was told in it, and a bundle of the first task."""

    place: Path
    task: str
    other: str
    log_key: str
    bundle: bytes

    def __repr__(self) -> str:
        """Say which case it is; the bundle would fill pages."""
        return f"Case({self.place})"


def reopened(place: Path, *, read_only: bool = True) -> ContractLedger:
    """Open a copied ledger with the second copy of its mark beside it."""
    return ContractLedger.open(
        place, read_only=read_only, create=False, follow=False, mark_dir=str(place / "elsewhere")
    )


@pytest.fixture(scope="session")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Return the finished ledger; nobody may change it."""
    place = tmp_path_factory.mktemp("evidence") / "audit"
    with opened(place) as ledger:
        story = dispute(ledger)
        long = dispute(ledger, name="t2", polls=140)
        long.answer(long.ask("GetTask", task="t2", task_id="T-t2"), body=LARGE)
        ledger.store.keys.redaction_key("ab" * 16)
        ledger.catch_up()
        ledger.sign_checkpoint()
        bundle = export_task(ledger, story.tasks["t1"]).data
        return Case(place, story.tasks["t1"], long.tasks["t2"], ledger.signers["log"].vkey, bundle)


@pytest.fixture
def copy(case: Case, tmp_path: Path) -> Path:
    """Return a copy of the ledger's directory that a test may change."""
    return shutil.copytree(case.place, tmp_path / "copy")
