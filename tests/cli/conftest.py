"""A ledger with one stuck, one finished and one stopped task, and the command line in this process."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from a2a_ledger.cli import cli
from a2a_ledger.ledger import ContractLedger
from tests.projections.logbook import CARD, MTLS, Logbook

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

Run = "Callable[..., Result]"


@contextmanager
def opened(place: Path) -> Generator[tuple[ContractLedger, Logbook]]:
    """Open a ledger to fill it by hand; nothing follows it but what a test asks for."""
    with ContractLedger.open(place, origin="acme/audit", follow=False) as ledger:
        yield ledger, Logbook(store=ledger.store)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a home and a working directory of its own, and no ledger from outside."""
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("A2A_LEDGER", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make, once, the ledger that tests get copies of, and the home that holds the second copy of its mark."""
    root = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "XDG_STATE_HOME"):
            patch.setenv(name, str(root / "home"))
        with opened(root / "audit") as (service, log):
            log.stuck()
            task, _, request = log.sent(body=CARD)
            log.bind(task, request, task_id="T2")
            log.answer(task, "completed", answers=request, task_id="T2")
            log.fetch(MTLS, etag='"b"', purpose="pre-send", body=CARD)
            stopped = log.task()
            log.decide(stopped)
            log.abort(stopped)
            service.catch_up()
    return root


@pytest.fixture
def ledger(made: Path, home: Path) -> Path:
    """Return the directory of a ledger that knows the stuck case, a finished task and a stopped one."""
    for part in ("audit", "home"):
        shutil.copytree(made / part, home / part)
    return home / "audit"


@pytest.fixture
def run() -> Callable[..., Result]:
    """Return a call of the command line: words in, result out."""
    runner = CliRunner()

    def call(*words: object, stdin: bytes | None = None) -> Result:
        return runner.invoke(cli, [str(word) for word in words], input=stdin, prog_name="a2a-ledger")

    return call


def objects(result: Result) -> list[dict[str, Any]]:
    """Read one JSON object a line."""
    return [json.loads(line) for line in result.stdout.splitlines()]
