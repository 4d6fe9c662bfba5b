"""Run the A2A conformance suite against an agent with and without the proxy in front, and compare its verdicts.

    python -m tests.tck.compare --tck ../a2a-tck --server http://127.0.0.1:9999 -- python -m pytest tests -q

Fetches nothing. What follows `--` is run twice in the checkout, with the url to test in `TCK_SERVER` (and wherever
`{url}` and `{report}` stand in it); it must write a JUnit XML report, `--junitxml={report}` for pytest, which is
added when no `{report}` is there. Exit 0: the same verdicts; 1: others; 2: a run left no report.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET  # reports of a run that was started here
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

_WORDS = {"failure": "failed", "error": "error", "skipped": "skipped"}


def verdicts(report: str) -> dict[str, str]:
    """Return the verdict of each test of a JUnit report: passed, failed, error or skipped."""
    found: dict[str, str] = {}
    for case in ET.fromstring(report).iter("testcase"):  # noqa: S314 - see above
        name = f"{case.get('classname', '')}::{case.get('name', '')}"
        found[name] = next((word for tag, word in _WORDS.items() if case.find(tag) is not None), "passed")
    return found


def differences(direct: Mapping[str, str], through: Mapping[str, str]) -> list[str]:
    """Return a line for each test that did not end alike, by name."""
    names = sorted({*direct, *through})
    told = [(name, direct.get(name, "not run"), through.get(name, "not run")) for name in names]
    return [
        f"{name}: {alone} without the proxy, {proxied} with it" for name, alone, proxied in told if alone != proxied
    ]


def command(words: Sequence[str], url: str, report: Path) -> list[str]:
    """Return the command of one run."""
    if not any("{report}" in word for word in words):
        words = [*words, "--junitxml={report}"]
    return [word.replace("{url}", url).replace("{report}", str(report)) for word in words]


def run(tck: Path, words: Sequence[str], url: str, report: Path) -> dict[str, str] | None:
    """Run the suite once; None: it left no report."""
    subprocess.run(command(words, url, report), cwd=tck, env={**os.environ, "TCK_SERVER": url}, check=False)
    return verdicts(report.read_text(encoding="utf-8")) if report.exists() else None


@contextmanager
def proxy(upstream: str, folder: Path) -> Generator[str]:
    """Run the proxy in front of an agent; gives its url."""
    entry = "from a2a_ledger.cli import main; main()"
    base = [sys.executable, "-c", entry, "--ledger", str(folder / "ledger"), "--format", "json"]
    subprocess.run([*base, "init"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    words = [*base, "proxy", "--upstream", upstream, "--rewrite-card"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield line.split('"listening":')[1].split('"')[1]
        finally:
            process.terminate()


def main() -> int:
    """Run both and say what differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tck", type=Path, required=True, help="a checkout of the conformance suite")
    parser.add_argument("--server", required=True, help="base url of the agent")
    parser.add_argument("command", nargs="+", help="how the suite is run, after --")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        direct = run(asked.tck, asked.command, asked.server, folder / "direct.xml")
        with proxy(asked.server, folder) as url:
            through = run(asked.tck, asked.command, url, folder / "through.xml")
    if direct is None or through is None:
        sys.stderr.write("a run left no report: see what the suite said above\n")
        return 2
    for line in (told := differences(direct, through)):
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"{len(direct)} tests, {len(told)} with another verdict behind the proxy\n")
    return 1 if told or not direct else 0


if __name__ == "__main__":
    raise SystemExit(main())
