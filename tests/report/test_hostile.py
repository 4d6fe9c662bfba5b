"""Strings and zips of a hostile author: nothing runs, nothing breaks, nothing hangs; what misleads is made visible."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.archive import write_archive
from a2a_ledger.events import TaskBound
from a2a_ledger.export import export_task
from a2a_ledger.report import filled_page
from a2a_ledger.verify import verify
from tests.divergence.story import PEER, card, task
from tests.evidence.forging import files_of
from tests.evidence.recorded import LedgerStory, opened
from tests.report.agreeing import disagreements

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.evidence.conftest import Case
    from tests.report.browser import Browser

ATTACKS = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    "javascript:alert(4)",
    "\u202egnp.exe\u202c \u2066hidden\u2069 \u200b\u00ad\ufeff",
    "\x00\x07\x1b[31mred",
    "${alert(5)} {{alert(6)}}",
    "\ue0005\ue001 \U000e0041 \u0085",
)
HOSTILE = " ".join(ATTACKS)
HUGE = HOSTILE * 3000


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str]:
    """Return a bundle with such text wherever a peer can put any, and the log's key."""
    with opened(tmp_path_factory.mktemp("hostile") / "audit") as ledger:
        story = LedgerStory(ledger)
        fetch = story.fetch({**card(), "description": HOSTILE, "__proto__": {"constructor": HOSTILE}}, etag=HOSTILE)
        story.decide(fetch)
        story.capture(fetch)
        request = story.ask(message_id=HOSTILE[:200])
        answer = story.answer(request, task("working", task_id=HOSTILE[:200], text=HUGE))
        story.add(TaskBound(peer=PEER, task_id=HOSTILE[:200], answers=request.ref, context_id=HOSTILE), "task:t1")
        assert answer.n > request.n
        story.fetch(
            {**card(schemes={HOSTILE: {"httpAuthSecurityScheme": {"scheme": HOSTILE}}}, required=()), HOSTILE: HOSTILE},
            etag='"b"',
        )
        poll = story.ask("GetTask")
        story.failure(poll, tls_alert=HOSTILE[:200])
        ledger.catch_up()
        ledger.sign_checkpoint()
        return export_task(ledger, story.tasks["t1"]).data, ledger.signers["log"].vkey


def test_nothing_of_the_peer_runs_or_is_taken_for_markup(
    browser: Browser, hostile: tuple[bytes, str], tmp_path: Path
) -> None:
    bundle, key = hostile
    assert disagreements(browser, tmp_path, bundle, verify(bundle, trust=[key]), key) == []
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    browser.until("[...document.querySelectorAll('#report details[open]')].every((one) => one.childElementCount > 1)")
    browser.run("document.querySelectorAll('details details').forEach((one) => { one.open = true; })")
    assert browser.run("document.querySelectorAll('script').length") == 2
    assert (
        browser.run(
            "document.querySelectorAll('img, iframe, object, embed, form:not(#trust-form), a[href^=javascript]').length"
        )
        == 0
    )
    assert browser.run("window.__attacked") == 0
    assert browser.run("window.__refused") == []
    assert browser.complaints() == []
    said = cast("str", browser.run("document.getElementById('report').textContent"))
    assert "<img src=x onerror=alert(3)>" in said
    assert "U+202E" in said
    assert "U+2066" in said
    raw = [char for char in "\x00\x07\x1b\x85\xad\u200b\u202e\u202c\u2066\u2069\ufeff\U000e0041" if char in said]
    assert raw == [], "these mislead a reader and are spelled out"


def test_a_name_and_a_suggestion_of_the_page_s_maker_are_text(browser: Browser, case: Case, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(filled_page(case.bundle, name=HOSTILE[:200], suggested=HOSTILE), "utf-8")
    browser.open(page)
    browser.judged()
    assert browser.run("window.__attacked") == 0
    assert browser.complaints() == []
    assert ATTACKS[0] in cast("str", browser.run("document.getElementById('suggested-text').textContent"))
    assert browser.run("document.getElementById('policy').value") == ""


# ---- zips


def cut(bundle: bytes) -> bytes:
    return bundle[: len(bundle) // 2]


def twice(bundle: bytes) -> bytes:
    return bundle + bundle


def of_python(files: dict[str, bytes], method: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


def bomb(bundle: bytes) -> bytes:
    return of_python({**files_of(bundle), "data/replay/expected.jsonl": bytes(50 << 20)}, zipfile.ZIP_DEFLATED)


def slipping(bundle: bytes) -> bytes:
    return of_python({**files_of(bundle), "../evil.txt": b"x"}, zipfile.ZIP_STORED)


def understated(bundle: bytes) -> bytes:
    """A deflated entry whose directory and header say fewer octets than come out."""
    raw = bytearray(of_python({"bagit.txt": b"a" * 1000}, zipfile.ZIP_DEFLATED))
    size = (1000).to_bytes(4, "little")
    return bytes(raw.replace(size, (999).to_bytes(4, "little"))) if bundle else b""


ZIPS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "no zip": lambda _: b"PK" * 400,
    "cut": cut,
    "twice": twice,
    "in front": lambda bundle: b"x" + bundle,
    "behind": lambda bundle: bundle + b"x",
    "bomb": bomb,
    "path": slipping,
    "understated": understated,
    "deflated": lambda bundle: of_python(files_of(bundle), zipfile.ZIP_DEFLATED),
    "no bag": lambda _: write_archive({"a.txt": b"x"}),
    "flipped": lambda bundle: bundle[:40] + bytes([bundle[40] ^ 1]) + bundle[41:],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ZIPS)
def test_a_hostile_zip_has_the_package_s_answer(browser: Browser, case: Case, tmp_path: Path, name: str) -> None:
    bundle = ZIPS[name](case.bundle)
    expected = verify(bundle, trust=[case.log_key])
    assert (expected.verdict == "invalid") == (name != "deflated")
    assert disagreements(browser, tmp_path, bundle, expected, case.log_key) == []
