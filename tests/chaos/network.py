"""Where the nodes are: all on loopback, or each in a network namespace of its own, which can be cut off.

In namespaces every packet between two nodes, and between a node and the clients, goes by way of the namespace that this
process is in. A cut drops packets without a word, in both directions, as a broken line does: what is on its way is
lost, nothing is refused, and connections stay open. Nothing of it is in the machine's own network, and all of it is
gone when the processes are.
"""

from __future__ import annotations

import subprocess
from typing import Protocol

_WHOLE, _LOCAL, _MEMBERS = "5", "10", "20"  # rules of the routing policy: the smaller number is asked first


class Network(Protocol):
    """Gives each node its address, and a place to run at."""

    trusted: str
    """Whose connections a node's server lets in, as `pg_hba.conf` says it."""

    def address(self, node: int) -> str:
        """Return a node's address."""
        ...

    def at(self, node: int) -> list[str]:
        """Return what has to stand before a command so that it runs at a node."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class Loopback:
    """All nodes on this machine's loopback: nothing can be cut off."""

    trusted = "127.0.0.0/8"

    def address(self, node: int) -> str:
        """Return a node's address."""
        return f"127.0.0.{10 + node}"

    def at(self, node: int) -> list[str]:
        """Return nothing: commands run where this process does."""
        del node
        return []

    def close(self) -> None:
        """Do nothing."""


class Namespaces:
    """A network namespace for each node; this process has to be in one of its own (`unshare --net`), as root."""

    trusted = "10.77.0.0/16"

    def __init__(self, nodes: tuple[int, ...]) -> None:
        self._nodes = nodes
        self._holders: dict[int, subprocess.Popen[bytes]] = {}
        _route_by_rules([])
        for node in nodes:
            command = ["setpriv", "--pdeathsig=KILL", "unshare", "--net", "sh", "-c", "echo; exec sleep infinity"]
            holder = self._holders[node] = subprocess.Popen(command, stdout=subprocess.PIPE)
            assert holder.stdout is not None
            holder.stdout.readline()  # it is in its namespace now
            _run("ip", "link", "add", f"p{node}", "type", "veth", "peer", "name", "e0", "netns", str(holder.pid))
            _run("ip", "addr", "add", f"10.77.{node}.254/24", "dev", f"p{node}")
            _run("ip", "link", "set", f"p{node}", "up")
            inside = self.at(node)
            _run(*inside, "ip", "addr", "add", f"{self.address(node)}/24", "dev", "e0")
            _run(*inside, "ip", "link", "set", "e0", "up")
            _run(*inside, "ip", "route", "add", "default", "via", f"10.77.{node}.254")
            _route_by_rules(inside)

    def address(self, node: int) -> str:
        """Return a node's address."""
        return f"10.77.{node}.1"

    def at(self, node: int) -> list[str]:
        """Return what has to stand before a command so that it runs at a node."""
        return ["nsenter", f"--net=/proc/{self._holders[node].pid}/ns/net"]

    def cut_off(self, node: int) -> None:
        """Cut a node off from the other nodes and from the clients."""
        _run("ip", "rule", "add", "pref", _WHOLE, "iif", f"p{node}", "blackhole")
        _run(*self.at(node), "ip", "rule", "add", "pref", _WHOLE, "iif", "e0", "blackhole")

    def cut_from_members(self, node: int) -> None:
        """Cut a node off from the other nodes; clients reach it still."""
        _run("ip", "rule", "add", "pref", _MEMBERS, "iif", f"p{node}", "blackhole")
        for other in self._nodes:
            if other != node:
                way = ["iif", f"p{other}", "to", self.address(node)]
                _run("ip", "rule", "add", "pref", _MEMBERS, *way, "blackhole")

    def heal(self, node: int) -> None:
        """Mend whatever was cut."""
        for place in ([], self.at(node)):
            for pref in (_WHOLE, _MEMBERS):
                while not _run(*place, "ip", "rule", "del", "pref", pref, may_fail=True):
                    pass

    def close(self) -> None:
        """Let go of the namespaces."""
        for holder in self._holders.values():
            holder.kill()
            holder.communicate()


def _route_by_rules(place: list[str]) -> None:
    """Have a namespace forward what is not its own, and ask for rules of ours before it takes what is."""
    _run(*place, "ip", "link", "set", "lo", "up")
    _run(*place, "ip", "rule", "add", "pref", _LOCAL, "lookup", "local")
    _run(*place, "ip", "rule", "del", "pref", "0")
    _run(*place, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")


def _run(*command: str, may_fail: bool = False) -> int:
    return subprocess.run(command, check=not may_fail, capture_output=may_fail).returncode
