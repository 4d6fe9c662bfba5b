"""The comparing part, on reports that were made up, and a run of the whole on a suite of two tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.capture.agent import Agent
from tests.tck.compare import command, differences, verdicts

REPORT = """<testsuites><testsuite>
<testcase classname="a.b" name="one"/>
<testcase classname="a.b" name="two"><failure message="no">trace</failure></testcase>
<testcase classname="a.b" name="three[1.0]"><skipped/></testcase>
<testcase classname="a.b" name="four"><error/></testcase>
</testsuite></testsuites>"""


def test_a_report_is_read() -> None:
    assert verdicts(REPORT) == {
        "a.b::one": "passed",
        "a.b::two": "failed",
        "a.b::three[1.0]": "skipped",
        "a.b::four": "error",
    }


def test_the_same_verdicts_differ_in_nothing() -> None:
    assert differences(verdicts(REPORT), verdicts(REPORT)) == []


def test_other_verdicts_and_tests_that_did_not_run_are_named() -> None:
    through = {**verdicts(REPORT), "a.b::two": "passed"}
    del through["a.b::one"]
    assert differences(verdicts(REPORT), through) == [
        "a.b::one: passed without the proxy, not run with it",
        "a.b::two: failed without the proxy, passed with it",
    ]


def test_a_command_gets_url_and_report() -> None:
    assert command(["run", "--at={url}"], "http://x", Path("r.xml")) == ["run", "--at=http://x", "--junitxml=r.xml"]
    assert command(["run", "-o", "{report}"], "http://x", Path("r.xml")) == ["run", "-o", "r.xml"]


def test_a_suite_is_run_twice_and_ends_alike(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(
        "import json, os, urllib.request\n"
        "def card():\n"
        "    url = os.environ['TCK_SERVER'] + '/.well-known/agent-card.json'\n"
        "    return json.load(urllib.request.urlopen(url))\n"
        "def test_it_has_a_name(): assert card()['name'] == 'Echo'\n"
        "def test_it_is_signed(): assert card()['signatures']\n",
        encoding="utf-8",
    )
    with Agent() as agent:
        words = [sys.executable, "-m", "tests.tck.compare", "--tck", str(tmp_path), "--server", agent.url, "--"]
        suite = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_suite.py"]
        root = Path(__file__).parents[2]
        done = subprocess.run([*words, *suite], cwd=root, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "2 tests, 0 with another verdict behind the proxy"
