"""The audit of signed heads: kept checkpoints and both copies of the high-water mark, held against the tree."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.anchors import Anchor, read_anchor, why_unverified
from a2a_ledger.audit.fault import Fault, said
from a2a_ledger.checkpoint import checkpoint_of, open_checkpoint, parse_checkpoint
from a2a_ledger.errors import FormatError, LedgerError
from a2a_ledger.key_events import KEY_EVENTS, Keys, take_key_event
from a2a_ledger.note import parse_note
from a2a_ledger.store.schema import CHECKPOINTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from a2a_ledger.audit.tree import TreePass
    from a2a_ledger.checkpoint import Checkpoint
    from a2a_ledger.codec import Record
    from a2a_ledger.keys import Verifier
    from a2a_ledger.store import RawTables
    from a2a_ledger.store.mark import HighWaterMark
    from a2a_ledger.time_token import Certificate

_ALL = 1 << 62  # as a size: beyond every head
_IF_UNKNOWN = "If another key signed for the log then: get it from its owner, and give it as --trust"
_IF_ENDED = (
    "Whoever has that key since can have made this head; if you know that it was made before, give the key as --trust"
)
_GONE = (
    "the database does not keep that head: somebody removed it, or the signer crashed right there, and opening the "
    "ledger for writing puts it back"
)


class Outside(NamedTuple):
    """A signed head that lies outside of the database: a copy of the mark, or one that the reader kept."""

    kind: str  # of the fault, if it does not fit
    what: str
    size: int
    note: str


class Heads:
    """Meets every signed head at the size that it speaks of, while the tree grows past it.

    Attributes:
        due: the size of the next head; the tree calls `meet` when it gets there.
        newest: size and root (hex) of the newest head that fits.
        signed: the largest size of a head that a key of the log signed, whether or not it fits.
        anchored: the largest size over which the signature of somebody else verifies.
        keys: what the log says of its keys, as far as it was read.
        notes: what is no fault and worth saying.
        unproven: heads from elsewhere that no key signed which speaks for them: anybody can write such a file, it
            accuses no log.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what is audited, and what the reader brings
        self,
        raw: RawTables,
        mark: HighWaterMark | None,
        origin: str,
        faults: list[Fault],
        earlier: Mapping[str, bytes | str] = MappingProxyType({}),
        trust: Sequence[Verifier] = (),
        roots: Sequence[Certificate] = (),
    ) -> None:
        self._origin = origin
        self._trust = trust
        self._roots = roots
        self._faults = faults
        self._rows = iter(raw.rows(CHECKPOINTS))
        self._kept: tuple[int, object] | None = None
        self._raw = raw
        self._anchors: list[Anchor] = []
        self._differing: list[int] = []
        self._named: dict[int, str] = {}  # sizes of heads that fit and have to be kept, and who names them
        self.keys = Keys()
        self.newest: tuple[int, str] | None = None
        self.signed = 0
        self.anchored = 0
        self.notes: list[str] = []
        self.unproven: list[str] = []
        self._outside: list[Outside] = []
        self._met: list[tuple[Outside, bytes | None]] = []  # of the reader's heads: what the log's root is there
        self.due = 0
        with mark.standing() if mark is not None else nullcontext():  # a signer writes first the one, then the other
            if mark is not None:
                self._outside += _read_marks(mark, faults, self.notes)
            self._next_kept()  # the first look at the database: what is seen of it is as of now
        if mark is not None and not (mark.beside.exists() or mark.apart.exists()):
            self._say_no_mark(mark)
        self._outside += self._read_earlier(earlier)
        self._set_due()

    def learn(self, record: Record, content: Callable[[str], bytes]) -> None:
        """Take in a key event or an anchor, whose blobs are read only if it is one."""
        if record.type in KEY_EVENTS:
            fault = take_key_event(self.keys, record.type, record.data, record.n, self._origin)
            if fault:
                self._faults.append(Fault("key", record.n, f"event {record.n}, {record.type}: {fault}"))
        elif record.type == "checkpoint.anchored.v1":
            anchor = read_anchor(record, self._origin, content)
            if anchor is not None:
                self._anchors.append(anchor)

    def meet(self, size: int, tree: TreePass) -> None:
        """Hold every head of this size against the tree."""
        while self._kept is not None and self._kept[0] <= size:
            at, note = self._kept
            if at < size:  # only a size below 1 is passed by
                self._faults.append(Fault("checkpoint", None, f"a kept head has the impossible size {at}"))
            else:
                self._check(size, note, _root(tree))
            self._next_kept()
        for outside in [outside for outside in self._outside if outside.size <= size]:
            if outside.kind == "earlier":  # whether its key speaks for it, a later event may say
                self._met.append((outside, _root(tree)))
            else:
                self._check(outside.size, outside.note, _root(tree), outside)
            self._outside.remove(outside)
        self._set_due()

    def finish(self, size: int) -> list[Fault]:
        """Return which heads cover events that are not there, and from which one on the roots differ."""
        faults: list[Fault] = []
        while self._kept is not None:
            at, note = self._kept
            with suppress(LedgerError):  # who forged it does not make it cover anything
                self._open(note, at)
            faults.append(Fault("truncated", size, f"a signed head covers {at} events, the log ends at {size}"))
            self._next_kept()
        for outside, root in self._met:
            self._check(outside.size, outside.note, root, outside)
        for outside in self._outside:
            if outside.kind == "earlier" and not self._is_proven(outside):
                continue
            with suppress(LedgerError):
                self._open(outside.note, outside.size)
            gone = outside.size - size
            last = "the last one of them is" if gone == 1 else f"the last {gone} of them are"
            detail = f"{outside.what} covers {outside.size} events; {last} not here: the database is an old copy"
            faults.append(Fault("truncated", size, detail))
        if self._differing:
            first, more = self._differing[0], len(self._differing) - 1
            detail = f"the head signed at size {first} has another root than these leaves"
            if more:
                detail += f"; so have {more} later ones"
            faults.append(Fault("checkpoint", first - 1, detail))
        for anchor in self._anchors:
            faults += self._judge(anchor)
        for at, what in self._named.items():
            if self._raw.head(at) is None:
                faults.append(Fault("checkpoint", at - 1, f"{what} is over {at} events; {_GONE}"))
        return faults

    def _judge(self, anchor: Anchor) -> list[Fault]:
        """Hold an anchor against the head that it names; one that does not verify counts as none, and is said."""
        if not 0 < anchor.size <= anchor.n:
            return [Fault("checkpoint", anchor.n, f"{anchor.what} covers more than the {anchor.n} events before it")]
        kept = self._raw.head(anchor.size)
        if kept is None:
            self._named.setdefault(anchor.size, anchor.what)
            return []
        try:
            root = self._open(kept, anchor.size).root.hex()
        except LedgerError:
            return []  # the head itself was said to be at fault
        if root != anchor.root:
            return [Fault("checkpoint", anchor.n, f"{anchor.what} has another root than the head that was signed")]
        why = why_unverified(anchor, self.keys, self._origin, self._roots)
        if why:
            self.notes.append(f"{anchor.what} counts as none: {why}")
        elif not any(size <= anchor.size for size in self._differing):
            self.anchored = max(self.anchored, anchor.size)
        return []

    def _say_no_mark(self, mark: HighWaterMark) -> None:
        if self._kept is None:
            self.notes.append("no signed head lies here: either none was signed yet, or all are gone")
            return
        detail = (
            f"both copies of the high-water mark are missing ({mark.beside} and {mark.apart}), and heads were signed: "
            "nothing shows that this database is no old copy"
        )
        self._faults.append(Fault("mark", None, detail))

    def _check(self, size: int, note: object, root: bytes | None, outside: Outside | None = None) -> None:
        """Hold a head against the root of the log at its size; None: the leaves up to there are broken."""
        kind, what = (outside.kind, outside.what) if outside else ("checkpoint", f"the head kept for size {size}")
        if outside is not None and kind == "earlier" and not self._is_proven(outside):
            return
        try:
            head = self._open(note, size)
        except Exception as problem:  # noqa: BLE001 - whatever stands in a row, the audit goes on to the next
            self._faults.append(Fault(kind, size - 1, f"{what}: {said(problem)}"))
            return
        if head.root != root:
            if outside is None:
                self._differing.append(size)
            elif size not in self._differing:
                detail = f"the first {size} events are not those that {what} was signed over"
                self._faults.append(Fault(kind, size - 1, detail))
        else:
            self.newest = max(self.newest or (0, ""), (size, head.root.hex()))
            if outside is not None:
                self._named.setdefault(size, what)

    def _is_proven(self, outside: Outside) -> bool:
        """Say whether a key signed a head from elsewhere that speaks for it, and note it if none did."""
        try:
            self._open(outside.note, outside.size)
        except LedgerError as problem:
            ended = self._ended(outside)
            why = f"{ended}. {_IF_ENDED}" if ended else f"{problem}. {_IF_UNKNOWN}"
            self.unproven.append(f"{outside.what}: this head proves nothing about the log: {why}")
            return False
        return True

    def _ended(self, outside: Outside) -> str:
        """Say how a key of the log that signed a head has ended before it; "" where none signed it."""
        terms = [term for term in self.keys.terms if term.role == "log"]
        try:
            signed = open_checkpoint(outside.note, [term.key for term in terms])
        except LedgerError:
            return ""
        return "; ".join(
            term.why_not(outside.size) for term in terms if any(term.key == key for key, _ in signed.verified)
        )

    def _open(self, note: object, size: int) -> Checkpoint:
        """Read a head and check its signature by a log key of its size, or by one that the reader trusts."""
        if not isinstance(note, str):
            raise FormatError("is not a text")
        head = open_checkpoint(note, [*self.keys.speaking("log", size), *self._trust]).checkpoint
        if head.size != size or head.origin != self._origin:
            raise FormatError(f"speaks of size {head.size} of {head.origin}")
        self.signed = max(self.signed, size)
        return head

    def _read_earlier(self, earlier: Mapping[str, bytes | str]) -> list[Outside]:
        """Return the heads that the reader kept, as far as they can be read and are of this log."""
        found: list[Outside] = []
        for what, raw in earlier.items():
            try:
                note = parse_note(raw)
                head = parse_checkpoint(note.text)
            except LedgerError as problem:
                self._faults.append(Fault("earlier", None, f"{what} cannot be read: {problem}"))
                continue
            if head.origin == self._origin:
                found.append(Outside("earlier", what, head.size, str(note)))
            else:
                wrong = f"expected a head of {self._origin}, found one of {head.origin[:80]}"
                self.unproven.append(f"{what}: {wrong}: it says nothing about this log. Find out who put it there")
        return found

    def _next_kept(self) -> None:
        try:
            row = next(self._rows, None)
        except LedgerError as problem:
            self._faults.append(Fault("database", None, f"the kept heads cannot be read: {problem}"))
            row = None
        self._kept = None if row is None else cast("tuple[int, object]", row)
        self._set_due()

    def _set_due(self) -> None:
        sizes = [outside.size for outside in self._outside]
        self.due = min([*sizes, self._kept[0] if self._kept is not None else _ALL], default=_ALL)


def _read_marks(mark: HighWaterMark, faults: list[Fault], notes: list[str]) -> list[Outside]:
    """Return the copies of the mark that can be read."""
    found: list[Outside] = []
    for path in (mark.beside, mark.apart):
        what = f"the high-water mark {path}"
        try:
            note = path.read_text(encoding="utf-8")
            found.append(Outside("mark", what, checkpoint_of(note).size, note))
        except FileNotFoundError:
            notes.append(f"one copy of the high-water mark is missing: {path}")
        except (OSError, ValueError, LedgerError) as problem:
            faults.append(Fault("mark", None, f"{what} cannot be read: {problem}"))
    return found


def _root(tree: TreePass) -> bytes | None:
    return None if tree.broken else tree.root()
