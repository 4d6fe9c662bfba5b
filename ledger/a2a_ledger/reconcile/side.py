"""One side of a dispute: whose records they are, how far they are verified, and what they hold.

A side is a bundle or a ledger read directly. It gives the records of one task at a time, so that a
ledger of a million events is laid beside one bundle without being read into memory.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias
from urllib.parse import urlsplit

from a2a_ledger.bundle import Bundle, read_bundle
from a2a_ledger.divergence.reading import ADOPTED, BOUND, CAPTURED, CARD_FETCHED, MESSAGE, RECONSTRUCTED, ref, text
from a2a_ledger.errors import LedgerError
from a2a_ledger.reconcile.rewritten import unplaced_of_card
from a2a_ledger.verify import verify
from a2a_ledger.verify.leaves import read_leaves
from a2a_ledger.verify.proven import read_checkpoint
from a2a_ledger.verify.reread import CARD_SERVED
from a2a_ledger.verify.shown import Shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.policy import Policy

SERVED_STREAM = "peer:self"

Stance: TypeAlias = Literal["client", "agent"]

_NOT_VERIFIED = "not verified"


class SideReport(NamedTuple):
    """What is said of a side as such.

    Attributes:
        kind: bundle, or ledger.
        origin: the log's name, "" where none can be read.
        verdict: that of `verify` over the bundle; `not verified` for a ledger that is read directly.
        detail: in one sentence what that is worth.
        vouched_for: False: keys were given for this side, and none of them signed its checkpoint.
    """

    kind: str
    origin: str
    verdict: str
    detail: str
    vouched_for: bool = True

    @property
    def usable(self) -> bool:
        """Say whether its records decide anything: a bundle that does not hold together, or is another's, does not."""
        return self.verdict != "invalid" and self.vouched_for

    def to_json(self) -> JsonObject:
        """Return one member of `sides`."""
        return {"kind": self.kind, "origin": self.origin, "verdict": self.verdict, "detail": self.detail}


class CardSeen(NamedTuple):
    """A card that was fetched from the peer, or served by us, as far as contracts are compared."""

    n: int
    ref: tuple[str, int]  # stream and version
    place: tuple[str, ...]  # which of the peer's cards
    version: str  # A2A-Version that it was asked for with; "": none
    raw_hash: str | None
    contract: str | None
    form: str
    etag: str | None
    served: bool
    made_from: tuple[str, int] | None = None  # of a card that a proxy served: the fetch of the agent's
    unplaced: JsonObject | None = None  # of a card that was served: its contract without the urls of interfaces


class Side(Protocol):
    """The records of one side."""

    report: SideReport
    whole: bool
    """All that this side recorded of cards is here, so that what is missing was never recorded."""

    def tasks(self) -> Iterable[str]:
        """Return the local ids of its tasks."""
        ...

    def events(self, task: str) -> Sequence[Record]:
        """Return the stream of one task."""
        ...

    def cards(self, peer: str) -> Sequence[CardSeen]:
        """Return the cards of one peer that were fetched, and those that were served here, in log order."""
        ...


@dataclass(slots=True)
class BundleSide:
    """A side that is given as a bundle; its records are those that fit their leaves."""

    report: SideReport
    whole: bool
    _records: dict[int, Record]

    def tasks(self) -> list[str]:
        """Return the local ids of its tasks."""
        streams = dict.fromkeys(record.stream for record in self._records.values())
        return [stream.removeprefix("task:") for stream in streams if stream.startswith("task:")]

    def events(self, task: str) -> list[Record]:
        """Return the stream of one task."""
        return [record for record in self._records.values() if record.stream == f"task:{task}"]

    def cards(self, peer: str) -> list[CardSeen]:
        """Return the cards that the bundle shows of one peer, or that it shows to have been served."""
        streams = {f"peer:{peer}", SERVED_STREAM}
        return [seen for record in self._records.values() if record.stream in streams and (seen := card_seen(record))]


def bundle_side(source: bytes, policy: Policy | None = None, trust: Sequence[str] = ()) -> BundleSide:
    """Verify a bundle and read what it shows; never raises for what the bundle holds.

    Args:
        source: the bundle's zip.
        policy: what the reader trusts for this side.
        trust: further vkeys that the reader trusts for this side.

    Raises:
        FormatError: a vkey of `trust` is malformed.
    """
    report = verify(source, policy=policy, trust=trust)
    trusting = policy is not None or bool(trust)
    log = next((claim for claim in report.claims if claim.claim == "L"), None)
    vouched_for = not trusting or (log is not None and log.status == "VALID")
    unsaid = "no key from outside was given for this side" if not trusting else log.detail if log else ""
    detail = report.about if trusting and vouched_for else f"{report.about}; {unsaid}"
    try:
        bundle: Bundle = read_bundle(source)
        checkpoint = read_checkpoint(bundle)
        read = read_leaves(bundle, checkpoint.origin)
        shown = Shown(bundle, read.rows(bundle), read.leaves, checkpoint.origin)
    except Exception as problem:  # noqa: BLE001 - nothing that a stranger wrote may end in a traceback; `verify` has said so
        why = str(problem) if isinstance(problem, LedgerError) else f"it cannot be read: {problem!r:.200}"
        return BundleSide(SideReport("bundle", "", "invalid", why), whole=False, _records={})
    whole = any(claim.claim == "C3" and claim.status == "VALID" for claim in report.claims)
    said = SideReport("bundle", checkpoint.origin, report.verdict, detail, vouched_for)
    return BundleSide(said, whole, dict(shown.records))


def ledger_report(origin: str) -> SideReport:
    """Return what is said of a ledger that is read directly."""
    return SideReport(
        "ledger", origin, _NOT_VERIFIED, "read directly; `audit` holds it against its own heads, a bundle against yours"
    )


def same_card(one: CardSeen, other: CardSeen) -> bool:
    """Say whether two looks were at one card of an agent, which may have several true ones at once (section 7.8).

    Who asks without a version did not ask for another card.
    """
    stated = {one.version, other.version} - {""}
    return one.served == other.served and one.place == other.place and len(stated) <= 1


def card_seen(record: Record) -> CardSeen | None:
    """Return what a card event shows; None for every other event."""
    data = record.data
    if record.type == CARD_FETCHED:
        place = tuple(text(data, name) or "" for name in ("url", "source", "variant", "caller"))
    elif record.type == CARD_SERVED:
        # By its path: the host that a server is asked for need not be one and the same.
        asked = tuple(text(data, name) or "" for name in ("variant", "caller"))
        place = (_path(text(data, "url") or ""), *asked)
    else:
        return None
    served = record.type == CARD_SERVED
    fetch = ref(data, "fetch") if served else None
    return CardSeen(
        n=record.n,
        ref=(record.stream, record.ver),
        place=place,
        version=text(data, "asked_version") or "",
        raw_hash=text(data, "raw_hash"),
        contract=text(data, "contract_hash"),
        form=text(data, "form") or "",
        etag=text(data, "etag"),
        served=served,
        made_from=None if fetch is None else (fetch["stream"], fetch["ver"]),
        unplaced=unplaced_of_card(record) if served else None,
    )


def _path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return url


@dataclass(frozen=True, slots=True)
class TaskSide:
    """One task as one side recorded it."""

    task: str
    log: str
    stance: Stance
    events: tuple[Record, ...]

    @property
    def capture(self) -> Record | None:
        """Return the event that froze the contract."""
        return next((record for record in self.events if record.type in {CAPTURED, RECONSTRUCTED}), None)

    @property
    def peer(self) -> str:
        """Return the peer id: that of the agent's public card, on both sides."""
        return next((found for record in self.events if (found := text(record.data, "peer"))), "")

    @property
    def messages(self) -> list[Record]:
        """Return the legs, in log order."""
        return [record for record in self.events if record.type == MESSAGE]

    @property
    def peer_task(self) -> str | None:
        """Return the id that the agent gave the task."""
        bound = (text(record.data, "task_id") for record in self.events if record.type in {BOUND, ADOPTED})
        told = (text(record.data, "task_id") for record in self.messages)
        return next((found for found in (*bound, *told) if found), None)

    @property
    def begins(self) -> int:
        """Return the log index of the task's first request; of its first event if there is none."""
        requests = (record.n for record in self.messages if record.data.get("leg") == "request")
        return next(requests, self.events[0].n)


def task_side(task: str, log: str, events: Sequence[Record]) -> TaskSide:
    """Read which side of the wire recorded a task: by what the records state, else by which way its requests went."""
    stated = any(record.data.get("side") == "server" for record in events)
    ways = Counter(
        record.data.get("direction")
        for record in events
        if record.type == MESSAGE and record.data.get("leg") == "request"
    )
    agent = stated or ways["in"] > ways["out"]
    return TaskSide(task, log, "agent" if agent else "client", tuple(events))


def contract_of_task(task: TaskSide) -> JsonObject | None:
    """Return hash, form and place of the contract that a side froze, None if it froze none."""
    record = task.capture
    if record is None:
        return None
    found: dict[str, Json] = {
        "hash": text(record.data, "contract_hash"),
        "form": text(record.data, "form"),
        "position": record.n,
        "reconstructed": record.type == RECONSTRUCTED,
    }
    return found
