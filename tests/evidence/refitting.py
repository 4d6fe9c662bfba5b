"""Bundles from which events were taken so that everything else fits again, as a careful forger would do it."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, cast

from a2a_ledger.bundle import (
    BLOBS,
    CLAIMS,
    CUSTODY,
    EXPECTED,
    EXPORT_STATEMENT,
    INDEX,
    LEAVES,
    STREAMS,
    Bundle,
    index_text,
    proof_file,
    record_file,
    salt_file,
    statement_file,
    stream_key_file,
)
from a2a_ledger.codec import canonical, parse_canonical
from a2a_ledger.keys import parse_vkey
from a2a_ledger.statement import Subject, sign_envelope, statement
from a2a_ledger.verify.signed import EXPORT
from tests.evidence.forging import repacked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_ledger.bundle import IndexRow
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.keys import Signer
    from tests.evidence.forging import Files


def claims(files: Files) -> JsonObject:
    return cast("JsonObject", parse_canonical(files[CLAIMS]))


def claim(files: Files, **members: Json) -> None:
    files[CLAIMS] = canonical({**claims(files), **members})


def without(files: Files, gone: Callable[[IndexRow], bool]) -> None:
    """Take events out; claims, index, outcome, keys and blobs say what is left."""
    bundle = Bundle(dict(files), ())
    rows, leaves = list(bundle.index()), list(bundle.leaves())
    left = [(row, leaf) for row, leaf in zip(rows, leaves, strict=True) if not gone(row)]
    files[LEAVES] = b"".join(leaf + b"\n" for _, leaf in left)
    files[INDEX] = index_text(row._replace(line=line) for line, (row, _) in enumerate(left, start=1))
    for row in rows:
        if gone(row):
            for named in (record_file, salt_file, proof_file, statement_file):
                files.pop(named(row.n), None)
    kept = [cast("JsonObject", parse_canonical(files[row.record])) for row, _ in left]
    used = {blob["id"] for record in kept for blob in cast("dict[str, dict[str, str]]", record["blobs"]).values()}
    for name in [name for name in files if name.startswith(BLOBS) and name.split("/")[2] not in used]:
        del files[name]
    ends = {row.stream: row.ver for row, _ in left}
    for name in [name for name in files if name.startswith(STREAMS)]:
        if name not in {stream_key_file(stream) for stream in ends}:
            del files[name]
    numbers = {row.n for row, _ in left}
    outcomes = [line for line in files[EXPECTED].splitlines(keepends=True) if _index(line) in numbers]
    files[EXPECTED] = b"".join(outcomes)
    said = claims(files)
    claim(
        files,
        events=len(left),
        ends=[{**end, "ver": ends.get(str(end["stream"]), -1)} for end in cast("list[JsonObject]", said["ends"])],
        withheld=[part for part in cast("list[JsonObject]", said["withheld"]) if part["index"] in numbers],
    )


def _index(line: bytes) -> int:
    return cast("int", cast("JsonObject", parse_canonical(line.rstrip(b"\n")))["index"])


def signed_again(files: Files, signer: Signer, said: Mapping[str, Json] | None = None) -> bytes:
    """Sign what is left as an exporter would; `said` replaces members of the statement."""
    stated = claims(files)
    custody = cast("JsonObject", parse_canonical(files[CUSTODY]))
    names = ("checkpoint", "ends", "later_events", "peer", "task", "withheld")
    payload = statement(
        [Subject(LEAVES, sha256(files[LEAVES]).hexdigest())],
        EXPORT,
        {
            **{name: stated[name] for name in names},
            "at": custody["exported_at"],
            "exporter": parse_vkey(signer.vkey).vkey,
            "tool": "a forger",
            **(said or {}),
        },
    )
    files[EXPORT_STATEMENT] = sign_envelope(payload, signer)
    return repacked(files, signer)
