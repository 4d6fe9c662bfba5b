"""How the page reads: offline, on a phone, by keyboard, with a screen reader, dark, and as a viewer of any file."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.export import export_task
from a2a_ledger.report import filled_page, viewer_page
from tests.evidence.conftest import reopened
from tests.evidence.forging import files_of, flipped, repacked

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.events import Json
    from tests.evidence.conftest import Case
    from tests.report.browser import Browser


@pytest.fixture
def page(case: Case, tmp_path: Path) -> Path:
    """Return a filled page as a file."""
    out = tmp_path / "case.html"
    out.write_text(filled_page(case.bundle, name="case-17.zip", suggested=f"{case.log_key}\n"), "utf-8")
    return out


def test_the_viewer_opens_a_file_and_then_another(browser: Browser, case: Case, tmp_path: Path) -> None:
    viewer, good, bad = tmp_path / "viewer.html", tmp_path / "good.zip", tmp_path / "bad.zip"
    viewer.write_text(viewer_page(), "utf-8")
    good.write_bytes(case.bundle)
    files = files_of(case.bundle)
    record = next(name for name in sorted(files) if name.startswith("data/records/") and name.endswith(".json"))
    files[record] = flipped(files[record])
    bad.write_bytes(repacked(files))
    browser.open(viewer)
    assert browser.run("document.getElementById('report').hidden") is True
    assert browser.run("document.getElementById('origin-notice').hidden") is True
    browser.choose("#file", good)
    found = browser.judged(case.log_key)
    assert found["verdict"] == "not proven"
    assert found["title"] == "Everything that this page checks holds, under the key that you named"
    browser.run("document.documentElement.dataset.state = 'asked'")
    browser.choose("#file", bad)
    found = browser.judged()
    assert found["verdict"] == "invalid"
    assert str(found["title"]).startswith("Do not rely on this bundle")
    assert browser.complaints() == []


def test_a_suggestion_gives_no_trust_until_the_reader_enters_it(browser: Browser, page: Path, case: Case) -> None:
    browser.open(page)
    assert browser.judged()["verdict"] == "self-consistent only"
    assert browser.run("document.getElementById('origin-notice').hidden") is False
    assert case.log_key in cast("str", browser.run("document.getElementById('suggested-text').textContent"))
    assert browser.judged(case.log_key)["verdict"] == "not proven"


def test_what_cannot_be_used_as_trust_is_refused_by_name(browser: Browser, page: Path) -> None:
    browser.open(page)
    found = browser.judged("quorum nobody")
    assert found["problem"] == "What you entered cannot be used: line 1: nobody is no witness or group of a line above"
    assert found["verdict"] == "self-consistent only"


def test_it_asks_for_nothing_but_itself_and_could_not(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.judged()
    assert browser.requests() == [page.as_uri()]
    tried = browser.run("fetch('http://127.0.0.1:9/').then(() => 'left', () => 'refused')")
    assert tried == "refused"
    assert "connect-src" in cast("list[str]", browser.run("window.__refused"))
    browser.run("document.body.append(Object.assign(document.createElement('script'), {textContent: 'alert(1)'}))")
    assert browser.run("window.__attacked") == 0
    assert "script-src-elem" in cast("list[str]", browser.run("window.__refused"))


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_narrow_screen_needs_no_scrolling_to_the_side(browser: Browser, page: Path, case: Case, width: int) -> None:
    browser.open(page, width=width, height=844)
    browser.judged(case.log_key)
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    browser.until("[...document.querySelectorAll('#report details[open]')].every((one) => one.childElementCount > 1)")
    assert browser.run("document.documentElement.scrollWidth") == width


_BROKEN_WORDS = """(() => {
  const found = [];
  for (const one of document.querySelectorAll("#report :is(th, .claims td:nth-child(2), td .tag)")) {
    if (one.closest("thead")?.getBoundingClientRect().width <= 1) continue;  // there for screen readers alone
    const walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      for (const word of walker.currentNode.data.matchAll(/[A-Za-z.]{2,20}/g)) {
        const range = document.createRange();
        range.setStart(walker.currentNode, word.index);
        range.setEnd(walker.currentNode, word.index + word[0].length);
        if (range.getClientRects().length > 1) found.push(word[0]);
      }
    }
  }
  return found;
})()"""


@pytest.mark.parametrize(("width", "media"), [(320, "screen"), (390, "screen"), (700, "screen"), (700, "print")])
def test_no_column_is_so_narrow_that_its_words_break(
    browser: Browser, case: Case, copy: Path, tmp_path: Path, width: int, media: str
) -> None:
    with reopened(copy, read_only=False) as ledger:
        bundle = export_task(ledger, case.task, withhold=["blobs"]).data  # so that every table has its rows
    page = tmp_path / "withheld.html"
    page.write_text(filled_page(bundle, name="case-17.zip"), "utf-8")
    browser.open(page, width=width, height=990)
    browser.judged(case.log_key)
    browser.ask("Emulation.setEmulatedMedia", media=media)
    try:
        assert browser.run("document.querySelectorAll('#report table').length") == 4
        assert browser.run(_BROKEN_WORDS) == []
        assert browser.run("document.documentElement.scrollWidth") == width
    finally:
        browser.ask("Emulation.setEmulatedMedia", media="")


def test_without_the_browser_s_cryptography_hashes_are_checked_and_signatures_said_to_be_open(
    browser: Browser, page: Path, case: Case
) -> None:
    off = browser.ask(
        "Page.addScriptToEvaluateOnNewDocument", source="Object.defineProperty(crypto, 'subtle', {value: undefined})"
    )
    browser.open(page)
    found = browser.judged(case.log_key)
    browser.ask("Page.removeScriptToEvaluateOnNewDocument", identifier=off["identifier"])
    assert found["title"] == "Hashes fit; signatures not checked"
    statuses = cast("dict[str, str]", found["claims"])
    assert [letter for letter, status in statuses.items() if status == "VALID"] == ["P", "C1", "X"]
    assert "INVALID" not in statuses.values()


# ---- for everybody


def test_the_timeline_tells_the_dispute(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.judged()
    said = cast("str", browser.run("document.getElementById('report').innerText"))
    for words in (
        "contract frozen",
        "offers oauth",
        "proceed, since the card was fresh enough",
        "TLS alert certificate_required",
        "Who left the contract: the peer",
    ):
        assert words in said
    for words in ("that the demand was unjustified", "auth-demand", "signature and statement hold"):
        assert words in said


STRUCTURE = {
    "language": "document.documentElement.lang === 'en'",
    "landmarks": "['header', 'main', 'footer', 'nav'].every((one) => document.querySelectorAll(one).length === 1)",
    "one title": "document.querySelectorAll('h1').length === 1",
    "heads of tables": "all('th').every((one) => ['col', 'row'].includes(one.scope))",
    "captions": "all('table').every((one) => one.caption.textContent !== '')",
    "labels": "all('input, textarea').every((one) => one.labels.length > 0)",
    "named sections": "all('section').every((one) => there(one.getAttribute('aria-labelledby')))",
    "links lead somewhere": "all('a[href^=\"#\"]').every((one) => there(one.hash.slice(1)))",
    "each id once": "new Set(ids).size === ids.length",
    "said aloud": "there('live').ariaLive === 'polite' && there('live').textContent.startsWith('Verdict: ')",
}
_WORDS = """
const there = (id) => document.getElementById(id);
const all = (selector) => [...document.querySelectorAll(selector)];
const ids = all('[id]').map((one) => one.id);
"""


def test_structure_for_a_screen_reader(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.judged()
    wrong = [
        what
        for what, check in STRUCTURE.items()
        if browser.run(f"(() => {{ {_WORDS} return {check}; }})()") is not True
    ]
    assert wrong == []
    seen = "[...document.querySelectorAll('h1,h2,h3,h4')].filter((one) => one.checkVisibility())"
    levels = cast("list[int]", browser.run(f"{seen}.map((one) => Number(one.tagName[1]))"))
    assert all(after - before <= 1 for before, after in pairwise(levels)), "no level of headings is jumped over"


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_has_enough_contrast(browser: Browser, page: Path, case: Case, *, dark: bool) -> None:
    browser.open(page, dark=dark)
    browser.judged(case.log_key)
    browser.run("document.querySelectorAll('#report details').forEach((one) => { one.open = true; })")
    weak = browser.run(_CONTRAST)
    assert weak == []


def test_focus_can_be_seen_and_comes_to_the_verdict(browser: Browser, page: Path, case: Case) -> None:
    browser.open(page)
    browser.judged()
    browser.ask("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
    assert browser.run("document.activeElement.className") == "skip"
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.judged(case.log_key)
    browser.until("document.activeElement.id === 'verdict-title'")


def test_nothing_moves_for_who_asked_for_no_motion_and_print_shows_the_claims(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.judged()
    features: list[Json] = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    browser.ask("Emulation.setEmulatedMedia", media="print", features=features)
    assert browser.run("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    assert browser.run("getComputedStyle(document.getElementById('trust')).display") == "none"
    assert browser.run("document.getElementById('claims').checkVisibility()") is True
    browser.ask("Emulation.setEmulatedMedia", media="", features=[])
    printed = browser.ask("Page.printToPDF")
    assert re.match("JVBER", cast("str", printed["data"])), "a PDF, in base64"


_CONTRAST = """(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (part) => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const back = (one) => {
    for (; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const weak = new Set();
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own || !one.checkVisibility() || one.matches("script, input")) continue;
    const style = getComputedStyle(one);
    const [a, b] = [light(parse(style.color)), light(back(one))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) weak.add(`${one.tagName}.${one.className} ${ratio.toFixed(2)}`);
  }
  return [...weak];
})()"""
