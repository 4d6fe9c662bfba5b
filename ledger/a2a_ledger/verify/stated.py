"""What a bundle's own files repeat of the facts that it shows, held against these facts (docs/format.md section 11).

`claims.json`, `bag-info.txt`, the keys for comparison, `custody.json` and `expected.jsonl` are made for
people and for tools that cannot judge. None of them proves anything, so none of them may say anything
that the shown events do not say: a reader who sees only these files is told the same.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

from a2a_ledger.bundle import BAG_INFO, CLAIMS, CUSTODY, EXPECTED, KEYS, WITHHELD
from a2a_ledger.codec import canonical
from a2a_ledger.errors import FormatError, LedgerError
from a2a_ledger.keys import parse_vkey
from a2a_ledger.verify.report import LETTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from a2a_ledger.bundle import Bundle
    from a2a_ledger.checkpoint import Checkpoint
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.verify.blobs import LeftOut
    from a2a_ledger.verify.scope import Scope
    from a2a_ledger.verify.shown import Shown

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_OUTCOME = ("decision", "reason", "rule", "about", "certainty")
_JUDGED = frozenset({"freshness.decided.v1", "violation.detected.v1"})
_CUSTODY = frozenset({"acquired_by", "clock", "custodian", "exported_at", "hand_overs"})


def check_claims(claimed: JsonObject, shown: Shown, checkpoint: Checkpoint, scope: Scope) -> list[str]:
    """Return one sentence for each member of `data/claims.json` that is not what the bundle shows.

    `withheld` is a claim of its own (X) and is not judged here; what cannot be seen in a bundle
    (`later_events`, `signed`) is judged as to its form.
    """
    later, signed = claimed.get("later_events"), claimed.get("signed")
    if type(later) is not int or later < 0 or not isinstance(signed, bool):
        return [f"{CLAIMS}: later_events is a number from 0 on, and signed true or false"]
    expected: JsonObject = {
        "checkpoint": {"root": checkpoint.root.hex(), "size": checkpoint.size},
        "claims": list(LETTERS),
        "ends": [{"stream": stream, "ver": shown.end(stream)} for stream in scope.ends],
        "events": len(shown.records),
        "form": scope.profile,
        "later_events": later,
        "log": checkpoint.origin,
        "not_claimed": scope.not_claimed,
        "signed": signed,
        "withheld": [],
        **scope.members([shown.peer_of(task) for task in scope.tasks]),
    }
    faults = [
        f"{CLAIMS}: its {name} is not what the bundle shows"
        for name in sorted(expected.keys() | claimed.keys())
        if name != "withheld" and _other(name, expected, claimed)
    ]
    return faults + [f"{CLAIMS}: {fault}" for fault in scope.strangers(shown)]


def listed(bundle: Bundle, withheld: Json, left_out: LeftOut) -> bool:
    """Say whether the bundle lists just these parts: in its claims, or in a file that these name by its digest."""
    if bundle.packed is None:
        return canonical(withheld) == canonical([*left_out.first]) and len(left_out.first) == left_out.count
    digest = sha256(bundle.files[WITHHELD]).hexdigest() if WITHHELD in bundle.files else ""
    expected: JsonObject = {"parts": left_out.count, "sha256": digest}
    return digest == left_out.digest and canonical(withheld) == canonical(expected)


def _other(name: str, expected: JsonObject, claimed: JsonObject) -> bool:
    return name not in expected or name not in claimed or canonical(expected[name]) != canonical(claimed[name])


def check_repeated(bundle: Bundle, shown: Shown, checkpoint: Checkpoint, scope: Scope, *, at: str) -> list[str]:
    """Return faults of the other files that repeat facts; `at`: when the export's statement says that it was made."""
    checks: tuple[Callable[[], list[str]], ...] = (
        lambda: _check_keys(bundle, shown),
        lambda: _check_expected(bundle, shown),
        lambda: _check_custody(bundle, checkpoint.origin, at),
        lambda: _check_info(bundle, checkpoint, scope),
    )
    faults: list[str] = []
    for check in checks:
        try:
            faults += check()
        except LedgerError as problem:
            faults.append(str(problem))
    return faults


def _check_keys(bundle: Bundle, shown: Shown) -> list[str]:
    """The keys that people compare over the telephone are those that the log's events name."""
    expected = key_files(shown.stream("ledger"))
    found = {name: bundle.files[name] for name in bundle.under(KEYS)}
    return [
        f"{name}: not the key that the log's own events name there"
        for name in sorted(expected.keys() | found.keys())
        if expected.get(name) != found.get(name)
    ]


def key_files(records: Iterable[Record]) -> dict[str, bytes]:
    """Return the files of the keys that these events add."""
    files: dict[str, bytes] = {}
    for record in records:
        if record.type == "key.added.v1":
            role, vkey = str(record.data["role"]), str(record.data["vkey"])
            files[f"{KEYS}{role}-{parse_vkey(vkey).key_id}.vkey"] = f"{vkey}\n".encode()
    return files


def _check_expected(bundle: Bundle, shown: Shown) -> list[str]:
    if bundle.read(EXPECTED) == expected_of(shown.of_type(*_JUDGED)):
        return []
    return [f"{EXPECTED}: not the outcome of the decisions and findings that are shown"]


def expected_of(records: Iterable[Record]) -> bytes:
    """Return `data/replay/expected.jsonl`: the outcome of each decision and finding of these, one a line."""
    return b"".join(
        canonical(
            {
                "index": record.n,
                "type": record.type,
                **{name: record.data[name] for name in _OUTCOME if name in record.data},
            }
        )
        + b"\n"
        for record in records
        if record.type in _JUDGED
    )


def _check_custody(bundle: Bundle, origin: str, at: str) -> list[str]:
    custody = bundle.json(CUSTODY)
    if not isinstance(custody, dict) or custody.keys() != _CUSTODY:
        raise FormatError(f"{CUSTODY}: expected exactly the members {sorted(_CUSTODY)}")
    exported = custody["exported_at"]
    texts = all(isinstance(custody[name], str) for name in ("acquired_by", "clock"))
    if not texts or not isinstance(exported, str) or not _TIME.fullmatch(exported) or custody["hand_overs"] != []:
        raise FormatError(f"{CUSTODY}: expected texts, a time of export, and no hand-overs")
    if custody["custodian"] != origin or (at and exported != at):
        raise FormatError(f"{CUSTODY}: names another custodian, or another time of export, than the bundle")
    return []


def _check_info(bundle: Bundle, checkpoint: Checkpoint, scope: Scope) -> list[str]:
    """BagIt's own labels say nothing else about the bundle than it shows."""
    *lines, end = bundle.text(BAG_INFO).split("\n")
    if end:
        return [f"{BAG_INFO}: the last line does not end in a line feed"]
    payload = [len(content) for name, content in bundle.zipped.items() if name.startswith("data/")]
    expected = [
        f"BagIt-Profile-Identifier: {scope.profile}",
        f"External-Identifier: {checkpoint.origin}#{scope.identifier}",
        f"Log-Size: {checkpoint.size}",
        f"Payload-Oxum: {sum(payload)}.{len(payload)}",
    ]
    dates = [line for line in lines if re.fullmatch(r"Bagging-Date: \d{4}-\d\d-\d\d", line, re.ASCII)]
    faults = [f"{BAG_INFO}: expected the line {line!r} once" for line in expected if lines.count(line) != 1]
    faults += [f"{BAG_INFO}: expected one Bagging-Date, found {len(dates)}"] if len(dates) != 1 else []
    return faults + [
        f"{BAG_INFO}: {line[:80]!r} has no place there" for line in lines if line not in expected and line not in dates
    ]
