"""Three PostgreSQL servers under Patroni with etcd, thrown away at the end.

Everything runs as user postgres, as PostgreSQL refuses root, or as whoever runs this if that is not root. Ports are
free ones. A failover takes some five seconds: Patroni's times are as short as they work.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.chaos import disks
from tests.chaos.processes import alive, ended, started, tree
from tests.postgres_server import programs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.chaos.network import Network

NODES = (1, 2, 3)
WAIT = 180.0
"""Seconds for whatever is to happen: far more than it takes, for a machine that is busy."""

_TIMES = {"ttl": 5, "loop_wait": 1, "retry_timeout": 2}  # a smaller retry_timeout loses the leader for good
_DEPOSED = 3.0  # seconds for which a deposed primary takes connections
_SUPERUSER, _REPLICATOR = "postgres", "replicator"
_http = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never by way of a proxy


def missing() -> list[str]:
    """Return which programs are not installed here."""
    found = {"patroni": shutil.which("patroni"), "etcd": shutil.which("etcd"), "PostgreSQL": programs()}
    return [name for name, place in found.items() if place is None]


class Cluster:
    """One cluster; `up` starts it, `down` leaves nothing behind.

    Args:
        network: Where its nodes are.
        own_disks: Whether each server's files lie on a file system of their own, which can be filled.
    """

    def __init__(self, network: Network, *, own_disks: bool) -> None:
        self._network = network
        self._own_disks = own_disks
        self.folder = Path(tempfile.mkdtemp(prefix="a2a-ledger-ha-"))
        self._postgres, self._rest, self._etcd, self._peers = _free_ports(4)
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """Return the url by which clients find whichever server takes writes."""
        hosts = ",".join(map(self._network.address, NODES))
        return f"postgresql:///postgres?user={_SUPERUSER}&host={hosts}&port={self._postgres}&connect_timeout=2"

    # ---- from the beginning to the end

    def up(self) -> None:
        """Start everything; return when one server leads, the others follow, and one of them confirms commits."""
        for node in NODES:
            place = self._place(node)
            (place / "disk").mkdir(parents=True)
            if self._own_disks:
                disks.mount(place / "disk")
            (place / "patroni.yml").write_text(json.dumps(self._settings(node)))  # JSON is YAML
        if not os.geteuid():
            owner = pwd.getpwnam("postgres")
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        for node in NODES:
            self._start_etcd(node)
        for node in NODES:
            self.start(node)
        self.wait_healthy()

    def down(self) -> None:
        """Stop everything and remove its files."""
        for name in sorted(self._running, reverse=True):  # the Patronis stop their servers; then the etcds
            process = self._running[name]
            for pid in self._with_children(name):
                _signal(pid, signal.SIGCONT)
            process.send_signal(signal.SIGTERM if process.poll() is None else 0)
        for process in self._running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=30)
            process.kill()
            process.wait()
        for node in NODES:
            left = self._postmaster(node)
            if left is not None:
                _signal(left, signal.SIGQUIT)
                ended([left], 30)
        self._network.close()
        for node in NODES if self._own_disks else ():
            subprocess.run(["umount", "--lazy", self.disk(node)], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, node: int) -> None:
        """Start a node that was killed, or for the first time."""
        place = self._place(node)
        self._running[f"patroni{node}"] = started(
            ["patroni", str(place / "patroni.yml")], place / "patroni.log", self.folder, self._network.at(node)
        )

    def disk(self, node: int) -> Path:
        """Return the folder in which the files of a node's server lie, and nothing else."""
        return self._place(node) / "disk"

    # ---- faults

    def kill(self, node: int) -> None:
        """Kill a node as if its machine had lost power: Patroni first, which is not to react, then the server."""
        server = self._postmaster(node)
        backends = [server, *tree(server)] if server is not None else []
        process = self._running[f"patroni{node}"]
        process.kill()
        process.wait()
        if server is not None:
            _signal(server, signal.SIGKILL)
            assert ended(backends, WAIT), "backends outlived their server"

    def freeze(self, node: int) -> None:
        """Stop every process of a node where it stands: for all others it is gone, and its connections stay open."""
        for pid in self._with_children(f"patroni{node}"):
            _signal(pid, signal.SIGSTOP)

    def wake_deposed(self, node: int) -> None:
        """Wake the server of a frozen node, which takes itself for the primary still; then reset the node.

        Its Patroni does not wake: a watchdog ends it. Without one, Patroni 3.0.2 takes the lead back from the new
        primary, and what was acknowledged there is lost.
        """
        process = self._running[f"patroni{node}"]
        process.kill()
        process.wait()
        server = self._postmaster(node)
        assert server is not None
        for pid in (server, *tree(server)):
            _signal(pid, signal.SIGCONT)
        time.sleep(_DEPOSED)
        self.kill(node)
        self.start(node)

    # ---- looking

    def primary(self, *, but: int | None = None) -> int | None:
        """Return the node that leads, as it says itself; None: none does."""
        return next((node for node in NODES if node != but and self._ask(node, "/primary")[0] == 200), None)

    def wait_primary(self, *, but: int | None = None) -> int:
        """Wait until a node leads."""
        for _ in _until("a primary"):
            found = self.primary(but=but)
            if found is not None:
                return found
        raise AssertionError

    def wait_healthy(self) -> None:
        """Wait until one leads, all others stream from it, and one of those confirms commits."""
        for _ in _until("a whole cluster"):
            lead = self.primary()
            if lead is None:
                continue
            members = self._ask(lead, "/cluster")[1].get("members", [])
            leads = [member for member in members if member["role"] == "leader" and member["state"] == "running"]
            follow = [
                member
                for member in members
                if member["role"] != "leader"
                and member["state"] in {"running", "streaming"}
                and leads
                and member.get("timeline") == leads[0].get("timeline")
            ]
            if len(leads) == 1 and len(follow) == len(NODES) - 1 and any(m["role"] == "sync_standby" for m in follow):
                return

    # ---- inside

    def _place(self, node: int) -> Path:
        return self.folder / f"n{node}"

    def _postmaster(self, node: int) -> int | None:
        """Return the process of a node's server; its file may name one that is long gone, so it is looked at."""
        data = self.disk(node) / "data"
        with suppress(OSError, ValueError, IndexError):
            pid = int((data / "postmaster.pid").read_text().split()[0])
            if Path(f"/proc/{pid}/cwd").readlink() == data and alive(pid):
                return pid
        return None

    def _with_children(self, name: str) -> list[int]:
        process = self._running[name]
        found = [process.pid, *tree(process.pid)] if process.poll() is None else []
        server = self._postmaster(int(name[-1])) if name.startswith("patroni") else None
        return found if server is None else [*found, server, *tree(server)]

    def _ask(self, node: int, path: str) -> tuple[int, dict[str, Any]]:
        """Return status and answer of a node's Patroni; 0 where it does not answer."""
        try:
            with _http.open(f"http://{self._network.address(node)}:{self._rest}{path}", timeout=1) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, {}
        except (OSError, ValueError):
            return 0, {}

    def _start_etcd(self, node: int) -> None:
        here, peer = (f"http://{self._network.address(node)}:{port}" for port in (self._etcd, self._peers))
        everyone = ",".join(f"e{other}=http://{self._network.address(other)}:{self._peers}" for other in NODES)
        command = ["etcd", "--name", f"e{node}", "--data-dir", str(self.folder / f"etcd{node}")]
        command += ["--listen-client-urls", here, "--advertise-client-urls", here]
        command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", everyone]
        command += ["--heartbeat-interval", "100", "--election-timeout", "1000", "--pre-vote", "--logger", "zap"]
        log = self.folder / f"etcd{node}.log"
        self._running[f"etcd{node}"] = started(command, log, self.folder, self._network.at(node))

    def _settings(self, node: int) -> dict[str, Any]:
        here, place, bin_dir = self._network.address(node), self._place(node), programs()
        return {
            "scope": "ledger",
            "name": f"n{node}",
            "etcd3": {"hosts": [f"{self._network.address(other)}:{self._etcd}" for other in NODES]},
            "restapi": {"listen": f"{here}:{self._rest}", "connect_address": f"{here}:{self._rest}"},
            "bootstrap": {
                "dcs": {
                    **_TIMES,
                    "primary_start_timeout": 0,  # a server that crashed is not waited for
                    "synchronous_mode": True,
                    "synchronous_mode_strict": True,  # without it acknowledged rows were seen to be lost
                    "postgresql": {"use_pg_rewind": True, "use_slots": True, "parameters": _PARAMETERS},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "data-checksums"],
            },
            "postgresql": {
                "listen": f"{here}:{self._postgres}",
                "connect_address": f"{here}:{self._postgres}",
                "data_dir": str(self.disk(node) / "data"),
                "bin_dir": str(bin_dir),
                "pgpass": str(place / "pgpass"),
                "basebackup": [{"checkpoint": "fast"}],
                "remove_data_directory_on_rewind_failure": True,
                "remove_data_directory_on_diverged_timelines": True,
                "pg_hba": [f"host {kind} all {self._network.trusted} trust" for kind in ("all", "replication")],
                "authentication": {
                    "superuser": {"username": _SUPERUSER},
                    "replication": {"username": _REPLICATOR},
                },
                "parameters": {"unix_socket_directories": str(place)},
            },
        }


_PARAMETERS = {
    "wal_level": "replica",
    "hot_standby": "on",
    "wal_log_hints": "on",
    "max_connections": 100,
    "max_wal_senders": 8,
    "max_replication_slots": 8,
    "wal_keep_size": "256MB",
    "shared_buffers": "32MB",
    "synchronous_commit": "on",
    "fsync": "on",
    "wal_sender_timeout": "3s",
    "wal_receiver_timeout": "3s",
    "wal_retrieve_retry_interval": "200ms",
    "wal_receiver_status_interval": "1s",
}


def _free_ports(count: int) -> list[int]:
    """Return ports that nobody has on any of the nodes' addresses."""
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("0.0.0.0", 0))  # noqa: S104 - bound for a moment, never listened on
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _until(what: str) -> Iterator[None]:
    """Yield again and again for as long as something may take."""
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        yield
        time.sleep(0.05)
    raise TimeoutError(f"expected {what} within {WAIT:g} s, found none")
