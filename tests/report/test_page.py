"""The page as a file: its policy, what it is made of, how it is filled and put into a bundle. No browser."""

from __future__ import annotations

import base64
import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING, cast

import pytest
from click.testing import CliRunner

from a2a_ledger.archive import write_archive
from a2a_ledger.archive.form import MAX_FILE
from a2a_ledger.bundle import read_bundle
from a2a_ledger.cli import cli
from a2a_ledger.errors import BundleError
from a2a_ledger.events import EVENT_TYPES
from a2a_ledger.export import export_task
from a2a_ledger.report import SCRIPTS, filled_page, viewer_page
from a2a_ledger.report.in_bundle import REPORT, add_report
from a2a_ledger.report.tables import tables
from a2a_ledger.verify import verify
from tests.evidence.conftest import reopened
from tests.evidence.forging import files_of, flipped, statuses
from tests.report.files import FOLDER

if TYPE_CHECKING:
    from pathlib import Path

    from tests.evidence.conftest import Case


def element(page: str, pattern: str) -> str:
    (found,) = re.findall(pattern, page, re.DOTALL)
    return cast("str", found)


def filled(page: str) -> dict[str, str] | None:
    return cast(
        "dict[str, str] | None",
        json.loads(element(page, r'<script type="application/json" id="filled">(.*?)</script>')),
    )


def test_the_policy_lets_nothing_run_but_the_script_and_the_style_of_the_page() -> None:
    page = viewer_page()
    policy = element(page, r'<meta http-equiv="Content-Security-Policy" content="(.*?)">')
    hashes = {
        kind: base64.b64encode(sha256(element(page, f"<{kind}>(.*?)</{kind}>").encode()).digest()).decode()
        for kind in ("script", "style")
    }
    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src 'sha256-{hashes['script']}'",
        f"style-src 'sha256-{hashes['style']}'",
        "connect-src 'none'",
        "img-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert page.index("Content-Security-Policy") < page.index("<style>") < page.index("<script>")


def test_every_source_is_in_the_page_once_and_none_makes_markup_of_data() -> None:
    assert sorted(f"{name}.js" for name in SCRIPTS) == sorted(path.name for path in FOLDER.glob("*.js"))
    for name in SCRIPTS:
        source = (FOLDER / f"{name}.js").read_text("utf-8")
        assert source.strip() in viewer_page()
        made = re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\bfetch\(", source
        )
        assert made == [], name
        assert len(source.splitlines()) <= 400, name


def test_the_empty_page_holds_no_bundle_and_says_the_same_each_time() -> None:
    assert filled(viewer_page()) is None
    assert viewer_page() == viewer_page()


def test_a_filled_page_gives_the_bundle_s_octets_back(case: Case) -> None:
    found = filled(filled_page(case.bundle, name="case-17.zip", suggested="quorum none\n"))
    assert found is not None
    assert base64.b64decode(found["bundle"]) == case.bundle
    assert (found["name"], found["suggested"]) == ("case-17.zip", "quorum none\n")


def test_a_name_cannot_end_the_element_that_holds_it() -> None:
    hostile = "</script><script>alert(1)</script><!--"
    page = filled_page(b"", name=hostile, suggested=hostile)
    assert page.count("<script") == viewer_page().count("<script")
    found = filled(page)
    assert found is not None
    assert found["name"] == found["suggested"] == hostile


def test_the_page_s_table_of_events_has_every_event_and_says_what_is_required() -> None:
    events = cast("dict[str, dict[str, list[object]]]", tables()["events"])
    assert events.keys() == EVENT_TYPES.keys()
    assert events["task.bound.v1"]["task_id"] == ["text", True]
    assert events["task.bound.v1"]["context_id"] == ["text", False]
    assert events["violation.detected.v1"]["evidence_index"] == [["integer"], True]
    interface = {"binding": "text", "tenant": "text", "url": "text", "version": "text?"}
    assert events["contract.captured.v1"]["interface"] == [interface, True]


# ---- in a bundle


def test_an_export_with_the_page_holds_the_bundle_without_it_and_verifies(case: Case, copy: Path) -> None:
    with reopened(copy, read_only=False) as ledger:
        made = export_task(ledger, case.task, report=True).data
        plain = export_task(ledger, case.task).data
    assert statuses(verify(made, trust=[case.log_key])) == statuses(verify(plain, trust=[case.log_key]))
    assert verify(made, trust=[case.log_key]).verdict == "verified"
    files = read_bundle(made).files
    inside = filled(files[REPORT].decode())
    assert inside is not None
    held = read_bundle(base64.b64decode(inside["bundle"]))
    assert REPORT not in held.files
    assert {name: held.files[name] for name in held.files if name.startswith("data/log/")} == {
        name: files[name] for name in files if name.startswith("data/log/")
    }
    assert verify(held, trust=[case.log_key]).verdict == "verified"


def test_a_changed_page_in_a_bundle_is_a_changed_file_and_nothing_else(case: Case, copy: Path) -> None:
    with reopened(copy, read_only=False) as ledger:
        made = files_of(export_task(ledger, case.task, report=True).data)
    made[REPORT] = flipped(made[REPORT])
    found = statuses(verify(write_archive(made), trust=[case.log_key]))
    assert [letter for letter, status in found.items() if status == "INVALID"] == ["I"]


def test_a_page_too_large_for_a_bundle_is_refused(case: Case) -> None:
    with pytest.raises(BundleError, match=r"report\.html has \d+ bytes"):
        add_report(case.bundle, "x" * (MAX_FILE + 1), None)


# ---- the verb


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["report", *arguments])
    return done.exit_code, done.output


def test_the_verb_writes_the_viewer_and_the_filled_page(case: Case, tmp_path: Path) -> None:
    assert run("-o", str(tmp_path / "viewer.html"))[0] == 0
    assert (tmp_path / "viewer.html").read_text("utf-8") == viewer_page()
    (tmp_path / "case.zip").write_bytes(case.bundle)
    code, said = run(str(tmp_path / "case.zip"), "-o", str(tmp_path / "case.html"), "--trust", case.log_key)
    assert (code, said) == (0, f"{tmp_path / 'case.html'}: open it in a browser\n")
    expected = filled_page(case.bundle, name="case.zip", suggested=f"{case.log_key}\n")
    assert (tmp_path / "case.html").read_text("utf-8") == expected


def test_the_verb_overwrites_nothing_unasked_and_takes_no_broken_policy(case: Case, tmp_path: Path) -> None:
    page, bundle = tmp_path / "case.html", tmp_path / "case.zip"
    bundle.write_bytes(case.bundle)
    page.write_text("mine")
    assert run(str(bundle), "-o", str(page))[0] == 2
    assert page.read_text() == "mine"
    assert run(str(bundle), "-o", str(page), "--force")[0] == 0
    (tmp_path / "policy.txt").write_text("log nobody\n")
    code, said = run(str(bundle), "-o", str(tmp_path / "b.html"), "--policy", str(tmp_path / "policy.txt"))
    assert code == 2
    assert "policy line 1" in said
    assert run("-o", str(tmp_path / "c.html"), "--trust", case.log_key)[0] == 2
    assert not (tmp_path / "b.html").exists()
    assert not (tmp_path / "c.html").exists()


def test_the_verb_says_that_a_file_is_no_bundle_and_makes_the_page_that_says_why(tmp_path: Path) -> None:
    (tmp_path / "case.zip").write_bytes(b"no zip")
    done = CliRunner().invoke(cli, ["report", str(tmp_path / "case.zip"), "-o", str(tmp_path / "case.html")])
    assert done.exit_code == 0
    assert "not a bundle that can be read" in done.stderr
    assert (tmp_path / "case.html").exists()
