"""Kills the primary again and again under load and counts what came of it: `make chaos`.

Exit 0: every acknowledged event is there once and in its place, every head that was let out is a beginning of the
log, every finding was recorded once, and the audit is clean.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.checkpoint import checkpoint_of
from tests.chaos.cluster import Cluster, missing
from tests.chaos.scene import CLIENTS, COMMAND, Scene

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_SETTLE = 2.0  # seconds of load between two faults
_IN_FLIGHT = 0.5  # seconds after a fault in which an acknowledgement from before it may still be written down
_TTL = 6.0  # seconds after which what the nodes say of themselves is no older than the fault
_OURS = re.compile("[0-9a-f]{40}-[0-9]+")  # message ids of the clients


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Hit(NamedTuple):
    """What one fault did; seconds from the fault."""

    fault: str
    promoted: float
    acknowledged: float
    whole: float


def main() -> int:
    """Run the drill and print what it found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=5, help="how often the primary is killed")
    waking = "how often the primary is stopped, and wakes when another one leads"
    parser.add_argument("--freezes", type=int, default=1, help=waking)
    parser.add_argument("--followers", type=int, default=1, help="how often the follower at work is killed")
    chosen = parser.parse_args()
    absent = missing()
    if absent:
        _say(f"SKIPPED: {', '.join(absent)} not installed; the loss of a primary was not rehearsed")
        return int(os.environ.get("A2A_LEDGER_CHAOS") == "must")
    signal.signal(signal.SIGTERM, _end)
    cluster = Cluster()
    with tempfile.TemporaryDirectory(prefix="a2a-ledger-chaos-") as place:
        os.environ["XDG_STATE_HOME"] = place
        try:
            begun = time.monotonic()
            cluster.up()
            _say(f"A cluster of three is up after {time.monotonic() - begun:.0f} s.")
            scene = Scene(cluster, Path(place))
            with closing(scene.ledger):
                return _drill(scene, chosen.kills, chosen.freezes, chosen.followers)
        finally:
            cluster.down()


def _end(_number: int, _frame: FrameType | None) -> None:
    """End in such a way that everything is taken down again."""
    sys.exit(1)


def _drill(scene: Scene, kills: int, freezes: int, followers: int) -> int:
    hits = list[Hit]()
    takeovers: list[float] = []
    with scene.at_work():
        scene.wait_for_news(0)
        scene.wait_holder()
        cluster = scene.cluster
        hits += [_hit(scene, "kill -9", cluster.kill, cluster.start) for _ in range(kills)]
        hits += [_hit(scene, "stopped, wakes deposed", cluster.freeze, cluster.wake_deposed) for _ in range(freezes)]
        for _ in range(followers):
            begun = time.monotonic()
            scene.kill_follower(scene.wait_holder())
            takeovers.append(time.monotonic() - begun)
        scene.tell()
        scene.stop_clients()
        _say("The clients have ended; the verifier reads on.")
        scene.wait_judged()
    return _report(scene, hits, takeovers)


def _hit(scene: Scene, fault: str, strike: Callable[[int], None], heal: Callable[[int], None]) -> Hit:
    scene.tell()
    time.sleep(_SETTLE)
    node = scene.cluster.wait_primary()
    strike(node)
    begun = time.time()
    scene.cluster.wait_primary(but=node)
    promoted = time.time() - begun
    acknowledged = scene.wait_for_news(begun + _IN_FLIGHT) - begun
    healed = time.time()
    heal(node)
    time.sleep(_TTL)
    scene.cluster.wait_healthy()
    hit = Hit(fault, promoted, acknowledged, time.time() - healed)
    _say(f"{fault}: promoted after {promoted:.1f} s, first acknowledged after {acknowledged:.1f} s")
    return hit


def _report(scene: Scene, hits: list[Hit], takeovers: list[float]) -> int:
    store = scene.ledger.store
    acknowledged = scene.acknowledged()
    there: Counter[str] = Counter()
    places: dict[int, str] = {}
    findings: Counter[str] = Counter()
    for start in range(0, store.size(), 1000):
        for record in store.read(start, 1000):
            places[record.n] = record.c
            if record.type == "message.recorded.v1":
                there[str(record.data.get("message_id"))] += 1
            elif record.type == "violation.detected.v1":
                findings[f"{record.stream} {record.data['rule']} {record.data['trigger']}"] += 1
    told = {one.message_id for one in acknowledged}
    kept = sum(places.get(one.n) == one.c for one in acknowledged)
    twice = sum(there[one.message_id] > 1 for one in acknowledged)
    forks = sum(store.root(checkpoint_of(note).size) != checkpoint_of(note).root for note in scene.notes)
    audit = subprocess.run(
        [*COMMAND, "--ledger", str(scene.place / "audit"), "audit"],
        check=False,
        capture_output=True,
        text=True,
    )
    _say("\n| fault | promoted, s | first acknowledged, s | whole again, s |\n|---|---|---|---|")
    for hit in hits:
        _say(f"| {hit.fault} | {hit.promoted:.1f} | {hit.acknowledged:.1f} | {hit.whole:.1f} |")
    for takeover in takeovers:
        _say(f"| follower kill -9 | | another one at work: {takeover:.1f} | |")
    rows = {
        "clients": CLIENTS,
        "acknowledged": len(acknowledged),
        "asked for more than once": sum(one.asked > 1 for one in acknowledged),
        "kept in their place": kept,
        "recorded twice": twice,
        "recorded, never acknowledged": sum(map(bool, map(_OURS.fullmatch, there.keys() - told))),
        "heads let out": len(scene.notes),
        "heads that are no beginning of the log": forks,
        "findings": sum(findings.values()),
        "findings recorded twice": sum(count > 1 for count in findings.values()),
        "audit": audit.stdout.strip().splitlines()[-1] if audit.stdout.strip() else audit.stderr.strip(),
    }
    _say("\n| counted | |\n|---|---|")
    for name, value in rows.items():
        _say(f"| {name} | {value} |")
    good = (
        kept == len(acknowledged) > 0
        and not twice
        and not forks
        and sorted(findings.values()) == [1] * (2 * scene.stories)
        and audit.returncode == 0
    )
    _say(f"\n{'Nothing acknowledged was lost.' if good else audit.stdout + audit.stderr + 'FAILED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
