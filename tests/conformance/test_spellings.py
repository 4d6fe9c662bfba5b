"""Every text of a bundle in a spelling that a lenient reader would take: nobody reads it otherwise than the others.

A number, a hash, a key or a time has one spelling. Were one verifier to take a second one, two readers of one bundle
would see two things. So each text is respelled in turn, all else is made to fit, and the answers are laid together.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.archive import write_archive
from a2a_ledger.codec import canonical, parse_canonical
from a2a_ledger.policy import parse_policy
from a2a_ledger.verify import verify
from tests.conformance.key_cases import add_key, handed_over
from tests.conformance.material import log
from tests.conformance.remaking import Remaking, enveloped, payload_of
from tests.conformance.sealing import SIGNATURE, TAGS, manifest, sealed, tagged
from verifier import a2a_verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.events import Json

_WAYS: dict[str, Callable[[str], str]] = {
    "capitals": str.upper,
    "space before": lambda text: f" {text}",
    "space behind": lambda text: f"{text} ",
    "space within": lambda text: f"{text[:2]} {text[2:]}",
    "line feed behind": lambda text: f"{text}\n",
    "zero before": lambda text: f"0{text}",
    "plus before": lambda text: f"+{text}",
    "padding": lambda text: f"{text}=",
    "no padding": lambda text: text.rstrip("="),
    "underscore": lambda text: re.sub(r"([0-9])([0-9])", r"\1_\2", text, count=1),
    "arabic digits": lambda text: text.translate({48 + digit: 0x660 + digit for digit in range(10)}),
    "wide digits": lambda text: text.translate({48 + digit: 0xFF10 + digit for digit in range(10)}),
    "url-safe": lambda text: text.replace("+", "-").replace("/", "_"),
}
"""How a text may be spelled that a reader with too much patience would read as the same."""


_LINE_WAYS: dict[str, Callable[[bytes], bytes]] = {
    "empty line first": lambda data: b"\n" + data,
    "empty line last": lambda data: data + b"\n",
    "empty line first, none last": lambda data: b"\n" + data.removesuffix(b"\n"),
    "empty line within, none last": lambda data: data.replace(b"\n", b"\n\n", 1).removesuffix(b"\n"),
    "empty line within": lambda data: data.replace(b"\n", b"\n\n", 1),
    "no line feed at the end": lambda data: data.removesuffix(b"\n"),
    "carriage returns": lambda data: data.replace(b"\n", b"\r\n"),
    "one carriage return": lambda data: data.replace(b"\n", b"\r", 1),
    "form feed": lambda data: data.replace(b"\n", b"\n\x0c", 1),
    "next line": lambda data: data.replace(b"\n", b"\xc2\x85\n", 1),
    "line separator": lambda data: data.replace(b"\n", b"\xe2\x80\xa8", 1),
    "byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "space before": lambda data: b" " + data,
    "space behind each": lambda data: data.replace(b"\n", b" \n"),
    "tab behind each": lambda data: data.replace(b"\n", b"\t\n"),
    "capitals": bytes.upper,
    "zero before": lambda data: re.sub(rb"(?<![0-9a-zA-Z+/])([1-9][0-9]*)", rb"0\1", data, count=1),
    "plus before": lambda data: re.sub(rb"(?<![0-9a-zA-Z+/])([1-9][0-9]*)", rb"+\1", data, count=1),
    "underscore": lambda data: re.sub(rb"([0-9])([0-9])", rb"\1_\2", data, count=1),
    "arabic digit": lambda data: re.sub(rb"(?<=[ \t\n])[0-9]", "\u0663".encode(), data, count=1),
    "padding": lambda data: re.sub(rb"=\n", b"==\n", data, count=1),
    "no padding": lambda data: re.sub(rb"=+\n", b"\n", data, count=1),
    "upside down": lambda data: b"".join(reversed(data.splitlines(keepends=True))),
    "last line twice": lambda data: data + (data.splitlines(keepends=True) or [b""])[-1],
}
"""How a file of lines may be spelled that a reader with too much patience would read as the same."""

_MADE_AGAIN = {"manifest-sha256.txt", "tagmanifest-sha256.txt"}


def statuses(bundle: bytes, policy: str) -> dict[str, tuple[str, str]]:
    """Return where package and one file part; of R, which the one file does not judge again, it may know less."""
    package = verify(bundle, policy=parse_policy(policy))
    alone = a2a_verify.verify(bundle, a2a_verify.read_policy(policy.encode()))
    parted: dict[str, tuple[str, str]] = {
        claim.claim: (claim.status, alone.claims[claim.claim].status)
        for claim in package.claims
        if claim.status != alone.claims[claim.claim].status
    }
    if parted.get("R") in {("VALID", "NOT PROVEN"), ("INVALID", "NOT PROVEN")}:
        del parted["R"]
    return parted


def texts(value: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every text with a digit in a value, and the way to it; of a list the first alone. A word has no value."""
    if isinstance(value, str):
        if re.search("[0-9]", value):
            yield path, value
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from texts(member, (*path, name))
    elif isinstance(value, list):
        for member in value[:1]:
            yield from texts(member, (*path, 0))


def put(value: Json, path: tuple[str | int, ...], new: str) -> None:
    """Put a text where another one stands."""
    for step in path[:-1]:
        value = cast("dict[str | int, Json]", value)[step]
    cast("dict[str | int, Json]", value)[path[-1]] = new


def handed() -> Remaking:
    """Return a log whose key has handed over to another one."""
    made = Remaking(log())
    add_key(made, handed_over())
    return made


@pytest.mark.slow
@pytest.mark.parametrize("way", [way for way in _WAYS if way != "no padding"])
def test_a_text_of_a_record(way: str) -> None:
    seen: set[tuple[object, ...]] = set()
    for n in sorted(handed().records):
        record = handed().record(n)
        for path, text in texts(record):
            key = (record["type"], *path)
            if key in seen or _WAYS[way](text) == text or path[0] in {"prev", "log"}:
                continue
            seen.add(key)
            made = handed()
            put(record, path, _WAYS[way](text))
            made.records[n] = canonical(record)
            put(record, path, text)
            assert statuses(made.bundle(), log().policy) == {}, (n, path)
    assert len(seen) > 10


@pytest.mark.slow
@pytest.mark.parametrize("way", _WAYS)
def test_a_text_of_a_file(way: str) -> None:
    """Of a file of JSON, or of what a statement states; the exporter seals it all again."""
    for name, content in log().files.items():
        if not name.endswith(".json") or name.startswith("data/records/"):
            continue
        stated = name.endswith(".dsse.json")
        role = "export" if "export" in name else "statement"
        for payload in (True, False) if stated else (False,):
            value = parse_canonical(payload_of(content) if payload else content)
            for path, text in texts(value):
                if _WAYS[way](text) == text:
                    continue
                put(value, path, _WAYS[way](text))
                changed = canonical(value)
                put(value, path, text)
                again = enveloped(changed, log().signers[role]) if payload else changed
                bundle = sealed({**log().files, name: again}, log().signers["export"])
                assert statuses(bundle, log().policy) == {}, (name, path)


def lines_files() -> dict[str, bytes]:
    """Return the files of lines, one of each kind."""
    files = log().files
    kinds = {re.sub("[0-9a-f]{8}|[0-9]+", "*", name): name for name in sorted(files) if not name.endswith(".salt")}
    spelled = (".txt", ".tsv", ".jsonl", ".tlog-proof", ".vkey", ".toml", "checkpoint")
    return {
        name: files[name]
        for name in kinds.values()
        if name.endswith(spelled) or name.startswith("data/log/consistency/")
    }


@pytest.mark.slow
@pytest.mark.parametrize("way", _LINE_WAYS)
def test_a_file_of_lines(way: str) -> None:
    for name, content in lines_files().items():
        changed = _LINE_WAYS[way](content)
        if changed == content:
            continue
        files = {**log().files, name: changed}
        made = [write_archive(files)]
        if name not in _MADE_AGAIN:
            made.append(sealed(files, log().signers["export"]))
        elif name == "manifest-sha256.txt":
            tags = [one for one in files if not one.startswith("data/") and one not in {TAGS, SIGNATURE}]
            made.append(tagged({**files, TAGS: manifest(files, tags)}, log().signers["export"]))
        else:
            made.append(tagged(files, log().signers["export"]))
        for bundle in made:
            assert statuses(bundle, log().policy) == {}, name
