"""Takes the primary away again and again under load and counts what came of it: `make chaos`.

Exit 0: every acknowledged event is there once and in its place, every head that was let out is a beginning of the
log, every finding was recorded once, and the audit is clean.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
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
from tests.chaos import disks
from tests.chaos.cluster import NODES, Cluster, missing
from tests.chaos.network import Loopback, Namespaces
from tests.chaos.scene import CLIENTS, COMMAND, Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    Fault = tuple[str, Callable[[int], None], Callable[[int], None]]

_SETTLE = 2.0  # seconds of load between two faults
_IN_FLIGHT = 0.5  # seconds after a fault in which an acknowledgement from before it may still be written down
_FULL = 15.0  # seconds for which a disk stays full
_TTL = 6.0  # seconds after which what the nodes say of themselves is no older than the fault
_OURS = re.compile("[0-9a-f]{40}-[0-9]+")  # message ids of the clients


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Hit(NamedTuple):
    """What one fault did; seconds from the fault. `promoted` is None where the primary stayed what it was."""

    fault: str
    promoted: float | None
    acknowledged: float
    whole: float


def main() -> int:
    """Run the drill and print what it found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=5, help="how often the primary is killed")
    waking = "how often the primary is stopped, and wakes when another one leads"
    parser.add_argument("--freezes", type=int, default=1, help=waking)
    parser.add_argument("--followers", type=int, default=1, help="how often the follower at work is killed")
    parser.add_argument("--cuts", type=int, default=1, help="how often it is cut off: from all, and from the members")
    parser.add_argument("--full-disks", type=int, default=1, help="how often its disk is full")
    parser.add_argument("--apart", action="store_true", help=argparse.SUPPRESS)  # what this program tells itself
    chosen = parser.parse_args()
    absent = missing()
    if absent:
        _say(f"SKIPPED: {', '.join(absent)} not installed; the loss of a primary was not rehearsed")
        return int(os.environ.get("A2A_LEDGER_CHAOS") == "must")
    apart = bool(chosen.apart)
    if not apart and (chosen.cuts or chosen.full_disks):
        _go_apart()
        _say("SKIPPED: cutting nodes off and filling their disks takes root, iproute2 and util-linux, and the right to")
        _say("make namespaces; the rest is rehearsed on loopback")
        chosen.cuts = chosen.full_disks = 0
    signal.signal(signal.SIGTERM, _end)
    network = Namespaces(NODES) if apart else Loopback()
    cluster = Cluster(network, own_disks=apart and chosen.full_disks > 0)
    with tempfile.TemporaryDirectory(prefix="a2a-ledger-chaos-") as place:
        os.environ["XDG_STATE_HOME"] = place
        try:
            begun = time.monotonic()
            cluster.up()
            _say(f"A cluster of three is up after {time.monotonic() - begun:.0f} s.")
            scene = Scene(cluster, Path(place))
            faults: list[Fault] = [("kill -9", cluster.kill, cluster.start)] * chosen.kills
            faults += [("stopped, wakes deposed", cluster.freeze, cluster.wake_deposed)] * chosen.freezes
            if isinstance(network, Namespaces):
                faults += [("cut off", network.cut_off, network.heal)] * chosen.cuts
                faults += [("cut off from the members only", network.cut_from_members, network.heal)] * chosen.cuts
            with closing(scene.ledger):
                return _drill(scene, faults, chosen.full_disks, chosen.followers)
        finally:
            cluster.down()


def _go_apart() -> None:
    """Start this program again in namespaces of its own, where that is possible; nothing outside changes then."""
    apart = ["unshare", "--net", "--mount", "--propagation", "private"]
    tools = all(map(shutil.which, ("unshare", "nsenter", "ip", "mount")))
    if os.geteuid() or not tools or subprocess.run([*apart, "true"], check=False).returncode:
        return
    again = [*apart, sys.executable, "-m", "tests.chaos.drill", "--apart", *sys.argv[1:]]
    os.execvp(apart[0], again)  # noqa: S606 - the same program, with the same words


def _end(_number: int, _frame: FrameType | None) -> None:
    """End in such a way that everything is taken down again."""
    sys.exit(1)


def _drill(scene: Scene, faults: Sequence[Fault], full_disks: int, followers: int) -> int:
    hits = list[Hit]()
    takeovers: list[float] = []
    with scene.at_work():
        scene.wait_for_news(0)
        scene.wait_holder()
        hits += [_hit(scene, *fault) for fault in faults]
        hits += [_fill(scene) for _ in range(full_disks)]
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
    """Strike the primary, wait until another node has taken its place and acknowledges, and heal it."""
    scene.tell()
    time.sleep(_SETTLE)
    node = scene.cluster.wait_primary()
    strike(node)
    begun = time.time()
    scene.cluster.wait_primary(but=node)
    promoted = time.time() - begun
    acknowledged = scene.wait_for_news(begun + _IN_FLIGHT) - begun
    return _healed(scene, Hit(fault, promoted, acknowledged, 0), lambda: heal(node))


def _fill(scene: Scene) -> Hit:
    """Fill the primary's disk and leave it so for a while: it refuses, or stops and another node takes its place."""
    scene.tell()
    time.sleep(_SETTLE)
    node = scene.cluster.wait_primary()
    place = scene.cluster.disk(node)
    disks.fill(place)
    begun = time.time()
    promoted = None
    while time.time() < begun + _FULL:
        if promoted is None and scene.cluster.primary(but=node) is not None:
            promoted = time.time() - begun
        time.sleep(0.2)
    healed = time.time()
    disks.widen(place)
    since = begun + _IN_FLIGHT if promoted is not None else healed
    acknowledged = scene.wait_for_news(since) - begun
    return _healed(scene, Hit("disk full", promoted, acknowledged, 0), lambda: None)


def _healed(scene: Scene, hit: Hit, heal: Callable[[], None]) -> Hit:
    healed = time.time()
    heal()
    time.sleep(_TTL)
    scene.cluster.wait_healthy()
    promoted = "none promoted" if hit.promoted is None else f"promoted after {hit.promoted:.1f} s"
    _say(f"{hit.fault}: {promoted}, first acknowledged after {hit.acknowledged:.1f} s")
    return hit._replace(whole=time.time() - healed)


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
        promoted = "-" if hit.promoted is None else f"{hit.promoted:.1f}"
        _say(f"| {hit.fault} | {promoted} | {hit.acknowledged:.1f} | {hit.whole:.1f} |")
    for takeover in takeovers:
        _say(f"| follower kill -9 | | another one at work: {takeover:.1f} | |")
    rows = {
        "clients": CLIENTS,
        "acknowledged": len(acknowledged),
        "asked for more than once": sum(one.asked > 1 for one in acknowledged),
        "refused before, as a disk was full": sum(one.refused > 0 for one in acknowledged),
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
