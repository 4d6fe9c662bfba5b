"""A key that a signer process holds gives way to a new one: by hand, at the signer, and nowhere half-way for good."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from a2a_ledger import rotation
from a2a_ledger.audit import audit_ledger
from a2a_ledger.cli import cli
from a2a_ledger.errors import StoreError, UsageError
from a2a_ledger.export import export_task
from a2a_ledger.keys import load_pem
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.policy import parse_policy
from a2a_ledger.report import filled_page
from a2a_ledger.rotation import rotate
from a2a_ledger.verify import verify
from tests.evidence.recorded import dispute
from tests.report.conftest import browser
from tests.signing.serving import serving
from verifier import a2a_verify

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.report.browser import Browser

__all__ = ["browser"]

ROLES = ("log", "statement", "export")


class CrashError(BaseException):
    """The process ends here."""


def open_at(tmp_path: Path) -> ContractLedger:
    marks = str(tmp_path / "mark")
    return ContractLedger.open(tmp_path / "audit", origin="acme/audit", follow=False, mark_dir=marks)


def run(tmp_path: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["--ledger", str(tmp_path / "audit"), *words])


@contextmanager
def served(tmp_path: Path, origin: str) -> Generator[None]:
    """Serve the keys that lie with the signer, in a thread."""
    files = {role: tmp_path / "held" / f"{role}.pem" for role in ROLES}
    signers = {role: load_pem(path, origin) for role, path in files.items() if path.exists()}
    with serving(tmp_path / "held", signers["log"], others=signers):
        yield


def use(tmp_path: Path) -> Result:
    return run(tmp_path, "keys", "use", f"unix:{tmp_path / 'held' / 'socket'}")


def move(tmp_path: Path, role: str, *, back: bool = False) -> None:
    places = [tmp_path / "audit" / "keys" / f"{role}.pem", tmp_path / "held" / f"{role}.pem"]
    source, target = reversed(places) if back else places
    source.rename(target)


@pytest.fixture
def origin(tmp_path: Path) -> str:
    """Make a ledger with one disputed task, whose keys a signer holds; return its origin."""
    with open_at(tmp_path) as ledger:
        name = ledger.origin
    (tmp_path / "audit" / "config.toml").write_text(f'mark_dir = "{tmp_path / "mark"}"\n')
    (tmp_path / "held").mkdir()
    for role in ROLES:
        move(tmp_path, role)
    with served(tmp_path, name):
        assert use(tmp_path).exit_code == 0
        with open_at(tmp_path) as ledger:
            dispute(ledger)
            ledger.catch_up()
            ledger.sign_checkpoint()
    return name


def test_the_error_says_the_steps(tmp_path: Path, origin: str) -> None:
    with served(tmp_path, origin):
        done = run(tmp_path, "keys", "rotate", "--role", "log")
    assert done.exit_code == 2
    assert "signs no hand-over" in done.stderr
    for step in ("stop the signer", "move log.pem", "keys rotate --role log", "start it", "keys use unix:"):
        assert step in " ".join(done.stderr.split())
    with open_at(tmp_path) as ledger, pytest.raises(UsageError, match="signs no hand-over"):
        rotate(ledger, "log", sleep=lambda _: None)


@pytest.mark.usefixtures("origin")
def test_by_these_steps_a_key_is_replaced_though_the_log_key_is_with_the_signer(tmp_path: Path) -> None:
    """The signer has been stopped, so that nobody can sign a head: the new key is there, and that is said."""
    move(tmp_path, "statement", back=True)
    done = run(tmp_path, "--format", "json", "keys", "rotate", "--role", "statement")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["role"], len(told["old"])) == (0, "statement", 1)
    assert "gives no answer" in told["unsigned"]
    listed = run(tmp_path, "--format", "json", "keys", "list")
    assert told["new"] in listed.stdout
    said = run(tmp_path, "keys", "rotate", "--role", "statement")
    assert said.exit_code == 0
    assert "no head covers it yet" in said.stderr


@pytest.mark.slow
@pytest.mark.parametrize("crash", [None, "save_whole", "_append", "_put_in_place"])
def test_by_these_steps_every_verifier_follows_the_hand_over(
    tmp_path: Path, origin: str, monkeypatch: pytest.MonkeyPatch, crash: str | None, browser: Browser
) -> None:
    """The first log key is all that the reader trusts; a crash in the middle of the rotation is made up for."""
    with open_at(tmp_path) as ledger:
        first = ledger.signers["log"].vkey
    move(tmp_path, "log", back=True)  # the signer has been stopped
    if crash is not None:
        whole = getattr(rotation, crash)

        def ending(*args: Any) -> None:  # noqa: ANN401 - handed on
            whole(*args)
            raise CrashError

        with monkeypatch.context() as patch, open_at(tmp_path) as ledger:
            patch.setattr(rotation, crash, ending)
            with pytest.raises(CrashError):
                rotate(ledger, "log", sleep=lambda _: None)
    with open_at(tmp_path) as ledger:
        if ledger.signers["log"].vkey == first:
            rotate(ledger, "log", sleep=lambda _: None)
        new = ledger.signers["log"].vkey
    assert new != first
    move(tmp_path, "log")
    with served(tmp_path, origin):
        assert use(tmp_path).exit_code == 0
        with open_at(tmp_path) as ledger:
            story = dispute(ledger, name="t2")
            ledger.catch_up()
            ledger.sign_checkpoint()
            assert ledger.signers["log"].vkey == new
            bundle = export_task(ledger, story.tasks["t2"]).data
            assert audit_ledger(ledger).faults == ()
    newest = json.loads((tmp_path / "held" / "newest-head.json").read_text())
    assert newest["origin"] == origin, "the signer went on from the head that it had signed by the old key"

    policy = f"log {first}\nquorum none\n"
    report = verify(bundle, policy=parse_policy(policy))
    assert report.verdict == "verified"
    alone = a2a_verify.verify(bundle, a2a_verify.read_policy(policy.encode()), [])
    assert {letter: alone.claims[letter].status for letter in "ILP"} == {"I": "VALID", "L": "VALID", "P": "VALID"}
    page = tmp_path / "page.html"
    page.write_text(filled_page(bundle, name="case.zip"), "utf-8")
    browser.open(page)
    claims = browser.judged(policy)["claims"]
    assert isinstance(claims, dict)
    assert [claims[letter] for letter in "ILP"] == ["VALID"] * 3


def test_half_way_it_says_what_is_missing_and_goes_on(tmp_path: Path, origin: str) -> None:
    """Each step is a place to stop at: what can be recorded is, and no head is signed by a key that has ended."""
    old = load_pem(tmp_path / "held" / "log.pem", origin)
    move(tmp_path, "log", back=True)
    with open_at(tmp_path) as ledger:
        rotate(ledger, "log", sleep=lambda _: None)
        size = ledger.store.size()
    with serving(tmp_path / "stale", old):  # the signer was not stopped, and has the old key still
        done = run(tmp_path, "keys", "use", f"unix:{tmp_path / 'stale' / 'socket'}")
        assert done.exit_code == 2
        assert "a log key that the log does not name now" in done.stderr
    move(tmp_path, "log")  # and nobody is told yet
    with open_at(tmp_path) as ledger:
        dispute(ledger, name="t3")
        assert ledger.store.size() > size
        with pytest.raises(StoreError, match="log key"):
            ledger.sign_checkpoint()
    with served(tmp_path, origin):
        assert use(tmp_path).exit_code == 0
        with open_at(tmp_path) as ledger:
            ledger.sign_checkpoint()
            assert audit_ledger(ledger).faults == ()
