"""An error about what stands in a file names the file, whatever option it was given to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]

CASES = [
    *(
        (["replay", "T1", "--profile"], octets)
        for octets in (b"a = [\n", b"\xff\xfe", b"surprise = 1\n", b"name = 1\n")
    ),
    *(
        (["card", "diff", "card.json", "card.json", "--profile"], octets)
        for octets in (b"a = [\n", b"\xff", b"x = 1\n")
    ),
    *((["decide", "--inputs"], octets) for octets in (b"[]", b"{", b"\xff", b'{"now": 1}', b'{"card": []}', b'"x"')),
    *((["verify", "bundle.zip", "--policy"], octets) for octets in (b"trust me\n", b"\xff\n", b"")),
    *((["report", "bundle.zip", "-o", "x.html", "--policy"], octets) for octets in (b"trust me\n", b"\xff\n", b"")),
    *((["reconcile", "bundle.zip", "bundle.zip", "--policy-a"], octets) for octets in (b"trust me\n", b"\xff\n", b"")),
    *((["reconcile", "bundle.zip", "bundle.zip", "--policy-b"], octets) for octets in (b"trust me\n", b"\xff\n", b"")),
    *((["anchor", "witness", "--policy"], octets) for octets in (b"trust me\n", b"\xff\n", b"quorum none\n")),
    *((["anchor", "timestamp", "--url", "https://t.example", "--roots"], octets) for octets in (b"x", b"\xff", b"")),
]


@pytest.mark.parametrize(("words", "octets"), CASES)
def test_a_file_of_the_wrong_content_is_named(run: Run, home: Path, words: list[str], octets: bytes) -> None:
    assert run("--ledger", "audit", "init").exit_code == 0
    (home / "wrong-one.file").write_bytes(octets)
    for name in ("card.json", "bundle.zip"):
        (home / name).write_text("{}")
    result = run("--ledger", "audit", *words, "wrong-one.file")
    assert (result.exit_code, "Traceback" in result.stderr) == (2, False)
    [first] = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert first.startswith("Error: wrong-one.file: ")
    assert first.count("wrong-one.file") == 1


@pytest.mark.parametrize("version", ["x", "", "1", "1.", ".3", "v1.0", "1.0 ", "1.0.x", "-1.0", "\u0661.\u0660"])
def test_what_is_no_version_is_refused(run: Run, version: str) -> None:
    for peer in (["https://vendor.example"], ["--inputs", "-"]):
        result = run("decide", *peer, "--client-version", "1.0", "--client-version", version)
        assert result.exit_code == 2
        assert result.stderr.startswith("Error: --client-version: expected a protocol version such as 1.0, found ")
