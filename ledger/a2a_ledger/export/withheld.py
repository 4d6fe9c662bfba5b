"""What an exporter leaves out of a bundle: kept headers, contents, or what the profile cut at recording.

A part that is left out becomes a hole: the blob's id and with it every commitment stay as they are, and the
bundle lists the hole (docs/format.md sections 3.3 and 11.2). What this software made itself is never left out:
contract, terms, statement, diff, note and manifest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.codec import NEVER_CUT, Hole, Kept, part_hash
from a2a_ledger.errors import FormatError, UsageError
from a2a_ledger.wire.string_places import string_places

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from a2a_ledger.codec import Part, Record

HEADERS, CONTENTS, CUT = "headers", "blobs", "cut"
_KINDS = (HEADERS, CONTENTS, CUT)
_DIGEST = re.compile("[0-9a-f]{64}")
_WITH_A_BODY_OF_THE_APPLICATION = frozenset({"message.recorded.v1", "task.snapshot.v1"})


class Withheld(NamedTuple):
    """What is to be left out.

    Attributes:
        kinds: of `headers` (all that are kept), `blobs` (all that came over the wire, headers too), `cut` (of each
            body the parts that hold what the profile names as withholdable).
        blobs: ids of single blobs.
        paths: the profile's patterns, for `cut`.
    """

    kinds: frozenset[str] = frozenset()
    blobs: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()

    @classmethod
    def of(cls, named: Iterable[str], paths: Sequence[str]) -> Withheld:
        """Read what was asked for: kinds, and ids of blobs.

        Raises:
            UsageError: one is neither, or the profile names nothing that could be cut.
        """
        asked = frozenset(named)
        for name in sorted(asked):
            if name not in _KINDS and not _DIGEST.fullmatch(name):
                raise UsageError(
                    f"cannot withhold {name[:80]!r}: expected headers, blobs, cut, or the id of a blob, 64 hex digits "
                    "as data/claims.json and data/log/index.tsv of a bundle have them"
                )
        if CUT in asked and not paths:
            raise UsageError("cannot withhold cut: the ledger's profile names no [withhold] paths")
        return cls(asked & set(_KINDS), asked - set(_KINDS), tuple(paths))

    def check(self, there: Container[str]) -> None:
        """See that every blob that was named by its id is among those that are there.

        Raises:
            UsageError: one is not.
        """
        for blob in sorted(self.blobs):
            if blob not in there:
                raise UsageError(f"cannot withhold blob {blob}: nothing in this bundle has it")

    def parts_of(self, record: Record, role: str, parts: Sequence[Part]) -> list[Part]:
        """Return the parts of a blob as the bundle shows them.

        Raises:
            UsageError: the blob was named by its id, and is one that is never left out.
        """
        named = record.blobs[role].id in self.blobs
        if named and role in NEVER_CUT:
            raise UsageError(
                f"cannot withhold blob {record.blobs[role].id}: it is the {role} of event {record.n}, without which "
                "nothing in the bundle can be judged"
            )
        if role in NEVER_CUT:
            return list(parts)
        if named or CONTENTS in self.kinds or (HEADERS in self.kinds and role.startswith("header.")):
            return without_content(parts)
        if CUT in self.kinds and role in {"body", "wire"} and record.type in _WITH_A_BODY_OF_THE_APPLICATION:
            return self._without_cut(record, role, parts)
        return list(parts)

    def _without_cut(self, record: Record, role: str, parts: Sequence[Part]) -> list[Part]:
        """Leave out each part that has something of what the profile names: of a body cut before, these alone.

        A body that was recorded under another profile is not cut there, and then all of it is left out; so are the
        octets of a gRPC message, which say the same as its body.
        """
        try:
            places = string_places(record.content("body") or b"", self.paths)
        except FormatError:  # a hole in it is so long that nobody fills it: where something stands cannot be told
            return without_content(parts)
        if role == "wire":
            return [_hole(part) if places else part for part in parts]
        found: list[Part] = []
        start = 0
        for part in parts:
            end = start + (part.length if isinstance(part, Hole) else len(part.content))
            touched = any(begin < end and start < until for begin, until in places)
            found.append(_hole(part) if touched else part)
            start = end
        return found


def without_content(parts: Sequence[Part]) -> list[Part]:
    """Return a blob's parts, each of them a hole."""
    return [_hole(part) for part in parts]


def _hole(part: Part) -> Hole:
    return Hole(len(part.content), part_hash(part.salt, part.content)) if isinstance(part, Kept) else part
