"""Every python and console snippet of README.md and docs/ runs and prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.snippets import Command, Reader, blocks, commands, matches

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_SNIPPETS = [page for page in PAGES if any(not block.not_run for block in blocks(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_SNIPPETS, ids=lambda page: page.relative_to(ROOT).as_posix())
async def test_snippets_of(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent_url: str) -> None:
    reader = Reader(tmp_path, {"https://vendor.example": agent_url})
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, reader.environment[name])
    for block in blocks(page):
        if block.not_run:
            continue
        if block.language == "python":
            await reader.python(block, page)
        else:
            reader.console(block)


def test_the_readme_has_snippets_of_both_kinds() -> None:
    assert {block.language for block in blocks(ROOT / "README.md") if not block.not_run} == {"python", "console"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_snippet_that_is_not_run_says_why(page: Path) -> None:
    assert [block.line for block in blocks(page) if block.not_run and " " not in block.not_run] == []
    fences = re.findall(r"^```(\w*)$", page.read_text("utf-8"), re.MULTILINE)
    # An opening fence names its language or nothing; shells go by the one name that is run.
    assert not {"sh", "bash", "shell", "py", "pycon"} & set(fences)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    targets = re.findall(r"\]\((?!https?://)([^)#]*)(#[^)]*)?\)", text)
    broken = [target for target, _ in targets if target and not (page.parent / target).exists()]
    anchors = {
        "#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    }
    broken += [anchor for target, anchor in targets if anchor and not target and anchor not in anchors]
    assert broken == []


def test_the_readme_is_short_enough_to_be_read() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) < 150


def test_format_sections_are_numbered_as_fixed() -> None:
    found = re.findall(r"^## (.*)$", (ROOT / "docs" / "format.md").read_text("utf-8"), re.MULTILINE)
    assert found == [
        "1 Conventions",
        "2 Events",
        "3 Record, canonical JSON and blobs",
        "4 Streams, keys and tags",
        "5 Leaf and tree",
        "6 Checkpoint, high-water mark and keys",
        "7 Card and contract",
        "8 The pin",
        "9 Freshness",
        "10 Findings and statements",
        "11 Bundle",
        "12 Verification",
        "13 Container and store",
        "14 The agent's side, and the proxy",
    ]


# The harness itself: a snippet test that cannot fail is worth nothing.


def test_commands_are_split_from_what_they_print() -> None:
    assert commands("$ a --x \\\n>   --y\none\n$ b\nexit 3\n") == [
        Command("a --x \\\n  --y", ["one"], None),
        Command("b", [], 3),
    ]


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (["a"], ["a"], True),
        (["a"], ["b"], False),
        (["a"], ["a", "b"], False),
        (["a … c"], ["a bbb c"], True),
        (["a … c"], ["a", "c"], False),
        (["…", "z"], ["x", "y", "z"], True),
        (["…", "z"], ["x", "y"], False),
        (["a", "…"], ["a"], True),
        ([], ["a"], False),
    ],
)
def test_what_is_printed_must_match(expected: list[str], printed: list[str], same: bool) -> None:
    assert matches(expected, printed) is same


async def test_a_wrong_snippet_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nassert 1 == 2\n```\n```console\n$ echo a\nb\n```\n", "utf-8")
    first, second = blocks(page)
    reader = Reader(tmp_path)
    with pytest.raises(AssertionError):
        await reader.python(first, page)
    with pytest.raises(AssertionError, match="printed:\na"):
        reader.console(second)
