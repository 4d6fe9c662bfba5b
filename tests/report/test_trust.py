"""What the reader trusts, in the page as in the package: hand-overs, ended keys, witnesses, earlier heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.bundle import CHECKPOINT
from a2a_ledger.checkpoint import Checkpoint, sign_checkpoint
from a2a_ledger.events import KeyRetired, KeyRevoked
from a2a_ledger.export import export_task
from a2a_ledger.keys import Signer, generate
from a2a_ledger.policy import parse_policy
from a2a_ledger.report import filled_page
from a2a_ledger.verify import verify
from tests.evidence.conftest import reopened
from tests.evidence.forging import files_of, statuses
from tests.evidence.recorded import entropy
from tests.evidence.test_earlier import head
from tests.evidence.test_verify_keys import added, bundle_of, cosigned_bundle, cosigner
from tests.report.agreeing import disagreements

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.events import Event
    from tests.evidence.conftest import Case
    from tests.report.browser import Browser


def test_hand_overs_retirements_and_revocations(browser: Browser, tmp_path: Path) -> None:
    new = generate("placeholder", entropy())

    def follow(first: Signer, *, honest: bool) -> list[Event]:
        nonlocal new
        new = generate(first.name, entropy())
        retired = KeyRetired(key_id=first.key_id, role="log", vkey=first.vkey)
        return [added(first, new, signed_by=first if honest else new), retired]

    def revoke(first: Signer) -> list[Event]:
        return [KeyRevoked(key_id=first.key_id, role="log", vkey=first.vkey, size=3)]

    signed_over = bundle_of(tmp_path / "a", lambda first: follow(first, honest=True), lambda _: new)
    stolen = bundle_of(tmp_path / "b", lambda first: follow(first, honest=False), lambda _: new)
    revoked = bundle_of(tmp_path / "c", revoke, lambda ledger: ledger.signers["log"])
    for (bundle, first, _), status in ((signed_over, "VALID"), (stolen, "INVALID"), (revoked, "INVALID")):
        expected = verify(bundle, trust=[first])
        assert statuses(expected)["L"] == status
        assert disagreements(browser, tmp_path, bundle, expected, first) == []


def test_witnesses_and_their_quorum(browser: Browser, tmp_path: Path) -> None:
    bundle, log, key = cosigned_bundle(tmp_path / "audit")
    other = cosigner(generate("witness.example/w2", lambda size: bytes(range(size))))
    for quorum, status in (
        ("quorum w1", "VALID"),
        ("group some any w1 w2\nquorum some", "VALID"),
        ("group both all w1 w2\nquorum both", "NOT PROVEN"),
        ("quorum none", "NOT PROVEN"),
    ):
        policy = f"log {log}\nwitness w1 {key.vkey}\nwitness w2 {other.vkey}\n{quorum}\n"
        expected = verify(bundle, policy=parse_policy(policy))
        assert statuses(expected)["W"] == status
        assert disagreements(browser, tmp_path, bundle, expected, policy) == []
        assert "2026-09-14T09:00:09Z" in str(browser.run("document.getElementById('claims').textContent"))


def test_an_earlier_head_that_the_reader_holds(browser: Browser, case: Case, tmp_path: Path) -> None:
    page, file = tmp_path / "page.html", tmp_path / "head"
    page.write_text(filled_page(case.bundle, name="case.zip"), "utf-8")
    now = files_of(case.bundle)[CHECKPOINT].decode()
    size = int(now.split("\n")[1])
    for number, note in enumerate((now, head(case, size), head(case, size - 1), head(case, size + 1))):
        expected = verify(case.bundle, trust=[case.log_key], earlier=[note])
        browser.open(page)
        browser.judged(case.log_key)
        (held := file.with_name(f"head-{number}")).write_text(note, "utf-8")
        browser.run("document.getElementById('verdict-title').textContent = ''")
        browser.choose("#earlier-file", held)
        browser.until("document.getElementById('verdict-title').textContent")
        status = browser.run("document.querySelector('#claims tbody').rows[3].cells[2].textContent")
        assert status == statuses(expected)["A"]


def test_what_is_no_head_is_the_reader_s_mistake(browser: Browser, case: Case, tmp_path: Path) -> None:
    page, held = tmp_path / "page.html", tmp_path / "head"
    page.write_text(filled_page(case.bundle, name="case.zip"), "utf-8")
    held.write_text("garbage")
    browser.open(page)
    browser.judged(case.log_key)
    browser.choose("#earlier-file", held)
    browser.until("document.getElementById('trust-problem').textContent.includes('cannot be used')")


def test_growth_since_earlier_heads_is_proven_in_the_page(
    browser: Browser, copy: Path, case: Case, tmp_path: Path
) -> None:
    origin = case.log_key.split("+")[0]
    sizes = (1, 2, 7, 8, 16, 33)
    with reopened(copy, read_only=False) as ledger:
        signer = ledger.signers["log"]
        heads = [sign_checkpoint(Checkpoint(origin, size, ledger.store.root(size)), signer) for size in sizes]
        bundle = export_task(ledger, case.task, since=sizes).data
    page = tmp_path / "page.html"
    page.write_text(filled_page(bundle, name="case.zip"), "utf-8")
    files = [tmp_path / f"head-{size}" for size in sizes]
    for file, note in zip(files, heads, strict=True):
        file.write_text(note, "utf-8")
    assert statuses(verify(bundle, trust=[case.log_key], earlier=heads))["A"] == "VALID"
    browser.open(page)
    browser.judged(case.log_key)
    browser.choose("#earlier-file", *files)
    browser.until("document.querySelector('#claims tbody').rows[3].cells[2].textContent === 'VALID'")
    rewritten = sign_checkpoint(Checkpoint(origin, 7, bytes(32)), signer)
    files[0].write_text(rewritten, "utf-8")
    browser.choose("#earlier-file", files[0])
    browser.until("document.querySelector('#claims tbody').rows[3].cells[2].textContent === 'INVALID'")
