"""The verifier: one bundle in, one answer a claim out. Offline, in memory, no code of the recorder.

`verify` works through these steps (docs/format.md section 12); each claim is VALID, INVALID or NOT
PROVEN with what would settle it, and a step that fails stops none of the others that can still be done.

 1. Read the zip with suspicion (`archive`). What two readers could read differently is no bundle: I is INVALID.
 2. Hold every file against its greatest size and the BagIt manifests, both ways: nothing missing, changed, extra,
    or of a name that no bundle has (I).
 3. Read the checkpoint's text, and with its origin the leaves, which have one spelling each.
 4. Hold each record, salt and blob against its leaf (C1); list the parts that were left out (X).
 5. Hold each stream against its disclosed key: the name or version 0 commits to the key, versions run
    densely from 0, `prev` chains them, every leaf carries the stream's tag, no two leaves the same (C2).
 6. Learn from the shown `key.*` events which key speaks for which role at which sizes.
 7. Judge the checkpoint's signature (L). A VALID needs a key from the reader: from `policy` or `trust`, or one
    that follows such a key by hand-overs that both keys signed. Keys of small order are refused as keys.
 8. Check for each leaf a C2SP proof that leads to that very checkpoint (P).
 9. Check the exporter's signature over the manifest, the signed export statement, and every file that repeats
    facts (I). The statement's "stream S ends at version k as of size N" for the task, its findings and the
    log's keys must be what is shown; without it, or all leaves, C2 is not proven: anybody can cut off an end.
10. Cosignatures of the reader's witnesses (W); when their quorum was met, and time tokens of authorities that the
    reader trusts (T); earlier checkpoints that the reader holds (A).
11. Check each finding's place and signed statement, by the key that speaks for statements: its subjects are the
    shown leaves. Read the shown content again and hold it against what the records say of it. Then decide and
    judge again over the shown records and compare bytes (R); what is left out or not shown leaves R open.
12. Whether all leaves of the log are shown (C3), and what the peer itself signed (S): no message, in this form; whether
    a card is signed is said by the reader's keys for that peer, and proves nothing of a message.
13. One verdict: "invalid" if anything is; "self-consistent only" without trust from outside; "verified" if every
    required claim (I L P C2 R by default, A too if the reader gave an earlier checkpoint) is VALID; else
    "not proven".

What it never does: fetch anything, write anything, run or import anything that a bundle names, or take a key
from inside of a bundle for a reason to believe it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from a2a_ledger.bundle import CLAIMS, SIGNATURE, Bundle, foreign_files, oversize_files, read_bundle
from a2a_ledger.divergence.reading import CARD_FETCHED
from a2a_ledger.errors import BundleError, FormatError, UsageError
from a2a_ledger.key_events import KEY_EVENTS, read_keys
from a2a_ledger.keys import COSIGNATURE, parse_vkey
from a2a_ledger.policy import Policy
from a2a_ledger.verify.card_signatures import card_signatures
from a2a_ledger.verify.counts import Counts
from a2a_ledger.verify.elsewhere import rests_elsewhere, shown_by
from a2a_ledger.verify.files import file_faults
from a2a_ledger.verify.leaves import read_leaves
from a2a_ledger.verify.proven import (
    check_inclusion,
    judge_earlier,
    judge_head,
    read_checkpoint,
)
from a2a_ledger.verify.report import LETTERS, REQUIRED, Claim, Report, verdict_of
from a2a_ledger.verify.rerun import VIOLATION, Rerun
from a2a_ledger.verify.scope import Scope, scope_of
from a2a_ledger.verify.shown import Shown
from a2a_ledger.verify.signed import ExportStatement, check_export_signature, check_statements, read_claims
from a2a_ledger.verify.stated import check_claims, check_repeated, listed
from a2a_ledger.verify.times import judge_time, judge_witnesses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from a2a_ledger.checkpoint import Checkpoint
    from a2a_ledger.events import JsonObject
    from a2a_ledger.key_events import Keys
    from a2a_ledger.verify.leaves import ShownLeaf
    from a2a_ledger.verify.proven import Head

_MOST_NAMED = 3  # faults that a detail names before it counts the rest
_MOST_STREAMS = 9  # streams that it names


def verify(
    source: bytes | Path | Bundle,
    *,
    policy: Policy | None = None,
    trust: Sequence[str] = (),
    earlier: Sequence[bytes | str] = (),
    required: Sequence[str] = REQUIRED,
) -> Report:
    """Judge a bundle; never raises for what a bundle holds: what surprises the verifier makes the report INVALID.

    Args:
        source: the bundle: its zip as a file or as bytes, or already read.
        policy: what the reader trusts; see `policy.parse_policy`.
        trust: further vkeys that the reader trusts, of logs or (type 04) of witnesses.
        earlier: checkpoints that the reader got before and elsewhere, as signed notes; with them, "verified" needs
            claim A too.
        required: letters of the claims that "verified" needs.

    Raises:
        FormatError: a vkey of `trust` is malformed or may not be used.
        UsageError: one of `earlier` is no checkpoint, or no key that the reader trusts for it signed it.
    """
    trusted = _with_trust(policy, trust)
    asked = (*required, "A") if earlier else required
    try:
        bundle = source if isinstance(source, Bundle) else read_bundle(source)
        return _Examination(bundle, trusted, earlier).report(asked)
    except BundleError as problem:
        return _unreadable(str(problem), trusting=trusted is not None)
    except UsageError:
        raise  # the reader's own input, not the bundle's
    except Exception as problem:  # noqa: BLE001 - nothing that a stranger wrote may end in a traceback
        return _unreadable(
            f"it could not be judged, which is a defect of the verifier: {problem!r:.200}", trusting=trusted is not None
        )


def _with_trust(policy: Policy | None, trust: Sequence[str]) -> Policy | None:
    """Return the policy with further keys; None if the reader trusts nothing."""
    keys = [parse_vkey(vkey) for vkey in trust]
    if not keys:
        return policy
    known = policy or Policy()
    logs = tuple(key for key in keys if key.kind != COSIGNATURE)
    witnesses = {key.name: key for key in keys if key.kind == COSIGNATURE}
    return replace(known, logs=known.logs + logs, witnesses={**witnesses, **known.witnesses})


def _unreadable(problem: str, *, trusting: bool) -> Report:
    """Return the report on what is no bundle at all."""
    nothing = "nothing can be read"
    claims = tuple(
        Claim("I", "INVALID", problem) if letter == "I" else Claim(letter, "NOT PROVEN", nothing, "an intact bundle")
        for letter in LETTERS
    )
    return Report(verdict_of(claims, trusting=trusting), "unilateral", claims, "not a bundle")


class _Examination:
    """The state of one verification: what the steps have found so far."""

    def __init__(self, bundle: Bundle, policy: Policy | None, earlier: Sequence[bytes | str]) -> None:
        self.bundle = bundle
        self.policy = policy
        self.earlier = earlier
        self.claims: dict[str, Claim] = {}
        self.size: int | None = None
        self.anchored_size = 0

    def report(self, required: Sequence[str]) -> Report:
        """Do all steps and return the answer."""
        bundle = self.bundle
        packed = bundle.packed is not None
        faults = oversize_files(bundle.sizes(), packed=packed)
        about, not_established = "", tuple[str, ...]()
        if not faults:
            faults = [*file_faults(bundle), *foreign_files(bundle.zipped, packed=packed)]  # step 2
            try:
                checkpoint = read_checkpoint(bundle)  # step 3
                claimed = read_claims(bundle)
            except FormatError as problem:
                faults = faults or [str(problem)]
            else:
                self.size = checkpoint.size
                about, not_established = self._judge_log(checkpoint, claimed, faults)
        by = "" if SIGNATURE in bundle.files else "; nobody signed for them, so anybody may have left parts out"
        self._say("I", faults, f"{len(bundle.zipped)} files are what the manifests say{by}")
        self._say_the_rest()
        claims = tuple(self.claims[letter] for letter in LETTERS)
        verdict = verdict_of(claims, trusting=self.policy is not None, required=required)
        # The form has no place yet for anything that a peer signs, so every bundle is one side's account.
        return Report(verdict, "unilateral", claims, about, not_established, self.size, self.anchored_size)

    def _judge_log(self, checkpoint: Checkpoint, claimed: JsonObject, faults: list[str]) -> tuple[str, tuple[str, ...]]:
        """Do steps 3 to 12; add to `faults` what is wrong with files as such (claim I)."""
        read = read_leaves(self.bundle, checkpoint.origin)
        leaves, leaf_faults = read.leaves, read.faults
        shown = Shown(self.bundle, read.rows(self.bundle), leaves, checkpoint.origin)
        keys = read_keys(shown.of_type(*KEY_EVENTS), checkpoint.origin)
        head = judge_head(self.bundle, checkpoint, self.policy, keys)
        self.claims["L"] = head.claim
        leaf_faults += check_inclusion(self.bundle, leaves, checkpoint)
        if not leaves and not leaf_faults:
            leaf_faults.append("data/log/events.jsonl shows no event")
        self._say("P", leaf_faults, f"{len(leaves)} events are under checkpoint {checkpoint.size}")
        scope = scope_of(claimed, self.bundle.profile)
        if scope is None:
            faults.append(f"{CLAIMS}: does not say what the bundle is about as its form has it")
            scope = Scope(self.bundle.profile, "task", str(claimed.get("task")), ())
        export = ExportStatement(self.bundle, keys, leaves, checkpoint, claimed, scope)
        promised = claimed.get("signed") is True
        faults += check_export_signature(self.bundle, keys, checkpoint.size, promised=promised)
        faults += export.faults
        faults += keys.faults
        faults += check_claims(claimed, shown, checkpoint, scope)
        faults += check_repeated(self.bundle, shown, checkpoint, scope, at=export.at)
        self.claims["W"] = judge_witnesses(head, self.policy)
        self.claims["T"], self.anchored_size = judge_time(self.bundle, head, self.policy, _task_size(shown, leaves))
        self.claims["A"] = judge_earlier(self.bundle, head, self.earlier)
        self._say("C1", shown.faults, f"{len(shown.records)} records and their blobs are what their leaves commit to")
        self._judge_all_leaves(shown, leaves, checkpoint)
        self._judge_streams(shown, export, head, scope)
        self._judge_gaps(shown, claimed)
        not_established = self._judge_replay(shown, leaves, keys, checkpoint)
        return self._judge_peer(shown, checkpoint, scope), not_established

    def _judge_streams(self, shown: Shown, export: ExportStatement, head: Head, scope: Scope) -> None:
        """Say whether the task's streams, and that of the log's keys, are whole (claim C2).

        Where a stream ends nobody can see but who has all leaves. So it is the word of an export key of a log that
        the reader trusts, or all leaves.
        """
        faults = list(shown.stream_faults)
        for stream, ver in export.ends.items():
            if shown.end(stream) != ver:
                faults.append(
                    f"{stream}: the exporter signed that it ends at version {ver}, shown is {shown.end(stream)}"
                )
        whole = self.claims["C3"].status == "VALID"
        by = "all leaves of the log are shown" if whole else "which the exporter signed"
        ends = ", ".join(
            f"{stream} versions 0..{shown.end(stream)}" if shown.end(stream) >= 0 else f"no {stream}"
            for stream in scope.ends[:_MOST_STREAMS]
        )
        more = len(scope.ends) - _MOST_STREAMS
        ends += f" and {more} more streams" if more > 0 else ""
        self._say("C2", faults, f"{ends}, up to checkpoint {head.checkpoint.size}; {by}")
        if faults:
            return
        why, settle = "", ""
        without = [
            stream for stream in scope.ends if stream.startswith(("task:", "peer:")) and stream not in shown.keyed
        ]
        if without or not scope.ends[1:]:
            why, settle = "the bundle discloses no task's stream key", "data/streams/task.<id>.key from the exporter"
        elif "ledger" not in shown.keyed:
            why, settle = "the stream of the log's own keys is not disclosed", "data/streams/ledger.key"
        elif not whole and not export.ends:
            why = "no exporter signed where the streams end: anybody may have left out their last events"
            settle = "a bundle signed by the log's export key, or all leaves of the log"
        elif not whole and not head.trusted:
            why = "the exporter who signed where the streams end is not known to belong to a log that you trust"
            settle = "the log's key, by another way"
        if why:
            self.claims["C2"] = Claim("C2", "NOT PROVEN", why, settle)

    def _judge_gaps(self, shown: Shown, claimed: JsonObject) -> None:
        """Say whether what was left out is listed (claim X)."""
        count = shown.left_out.count
        faults: list[str] = []
        if not shown.faults and not listed(self.bundle, claimed.get("withheld"), shown.left_out):
            faults.append(f"data/claims.json: its list of parts left out is not what is left out ({count} parts)")
        if shown.faults:
            self.claims["X"] = Claim("X", "NOT PROVEN", "not all records could be read", "an intact bundle")
            return
        good = (
            f"{count} parts are left out; length and commitment of each are intact" if count else "nothing is left out"
        )
        later = [*shown.later.unread, *shown.later.still]
        self._say("X", faults, f"{good}; since recorded: {_some(later)}" if later else good)

    def _judge_all_leaves(self, shown: Shown, leaves: Mapping[int, ShownLeaf], checkpoint: Checkpoint) -> None:
        """Say whether the whole log is here, so that no leaf elsewhere can belong to the task (claim C3)."""
        whole = len(leaves) == checkpoint.size and self.claims["P"].status == "VALID"
        if whole and not shown.stream_faults:
            detail = f"all {checkpoint.size} leaves of the log are shown; no other carries the task's tag"
            self.claims["C3"] = Claim("C3", "VALID", detail)
        else:
            detail = f"{len(leaves)} of the log's {checkpoint.size} leaves are shown"
            self.claims["C3"] = Claim("C3", "NOT PROVEN", detail, "all leaves of the log, searched for the task's tag")

    def _judge_replay(
        self, shown: Shown, leaves: Mapping[int, ShownLeaf], keys: Keys, checkpoint: Checkpoint
    ) -> tuple[str, ...]:
        """Read again, decide and judge again (claim R); return what the findings do not establish."""
        faults, left = check_statements(self.bundle, shown, leaves, keys)
        shown.content.finish(shown)
        rerun = Rerun.of_bundle(self.bundle, shown, checkpoint.size)
        faults += [*shown.content.faults, *rerun.differences]
        left = [
            *([rerun.missing] if rerun.missing else []),
            *shown.later.unread,
            *shown.content.left,
            *shown.unresolved,
            *left,
        ]
        self._say("R", faults, rerun.summary())
        if left and not faults:
            detail = f"{_some(left)}; as far as it goes: {rerun.summary()}"
            settle = "a bundle with these events and parts"
            if peer := shown_by(rests_elsewhere(shown.of_type(VIOLATION), leaves.__contains__)):
                settle += f", those of other tasks by {peer}"
            if any(keys.lapsed("statement", record.n) for record in shown.of_type(VIOLATION)):
                settle += "; of a signer revoked since, a bundle of before under an anchored checkpoint"
            self.claims["R"] = Claim("R", "NOT PROVEN", detail, settle)
        return rerun.not_established

    def _judge_peer(self, shown: Shown, checkpoint: Checkpoint, scope: Scope) -> str:
        """Say what the peer signed (claim S); return in one line what this bundle is."""
        trusted = [card.key for card in self.policy.cards] if self.policy else []
        cards = card_signatures(shown.of_type(CARD_FETCHED), trusted)
        self.claims["S"] = Claim(
            "S",
            "NOT PROVEN",
            _some([f"{shown.received} messages are shown as received; the peer signed none of them", *cards]),
            "the peer's own ledger (`reconcile`), or message signatures",
        )
        several = "" if scope.kind == "task" else f" of {len(scope.tasks)} tasks"
        counts = Counts.of((stream, len(events)) for stream, events in shown.streams.items()).words(scope.kind)
        return (
            f"{scope}: {len(shown.records)} events{several} recorded by {checkpoint.origin}: {counts}; "
            f"{', '.join(sorted(shown.peer_urls)) or 'the peer'} signed none of them"
        )

    def _say(self, letter: str, faults: Sequence[str], good: str) -> None:
        """Make a claim INVALID by its faults, or VALID."""
        if not faults:
            self.claims[letter] = Claim(letter, "VALID", good)
            return
        self.claims[letter] = Claim(letter, "INVALID", _some(faults))

    def _say_the_rest(self) -> None:
        """Answer the claims that no step could reach."""
        for letter in LETTERS:
            self.claims.setdefault(
                letter, Claim(letter, "NOT PROVEN", "the checkpoint or the claims cannot be read", "an intact bundle")
            )


def _some(sentences: Sequence[str]) -> str:
    """Name the first few and count the rest."""
    more = f"; and {len(sentences) - _MOST_NAMED} more" if len(sentences) > _MOST_NAMED else ""
    return "; ".join(sentences[:_MOST_NAMED]) + more


def _task_size(shown: Shown, leaves: Mapping[int, ShownLeaf]) -> int:
    """Return the smallest size of the log that has every shown event but those of the log's own stream."""
    own = {place.n for place in shown.streams.get("ledger", ())}
    return max((n + 1 for n in leaves if n not in own), default=0)
