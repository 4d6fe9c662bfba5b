"""Writes the corpus as folders, for a verifier in any language: `python -m tests.conformance FOLDER`.

A folder a case: `bundle.zip`; `policy.txt`, where the reader trusts somebody; `earlier-0.note` and so on, heads that he
holds; `expected.json` with the status of each claim, `without_judging` (R by a verifier that does not judge again), and
the `section` of docs/format.md that decides.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.conformance.cases import all_cases


def write(place: Path) -> int:
    """Write all cases below a folder; return how many."""
    count = 0
    for case in all_cases():
        folder = place / case.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "bundle.zip").write_bytes(case.bundle)
        if case.policy:
            (folder / "policy.txt").write_text(case.policy, "utf-8")
        for number, note in enumerate(case.earlier):
            (folder / f"earlier-{number}.note").write_bytes(note)
        expected = {"claims": case.expected, "section": case.section, "without_judging": case.without_judging}
        (folder / "expected.json").write_text(json.dumps(expected, indent=2) + "\n", "utf-8")
        count += 1
    return count


if __name__ == "__main__":
    sys.stdout.write(f"{write(Path(sys.argv[1]))} cases\n")
