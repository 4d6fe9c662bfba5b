"""Processes of the cluster: started under the right user, found by their parents, waited for until they are gone."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path


def started(command: list[str], log: Path, home: Path, at: list[str]) -> subprocess.Popen[bytes]:
    """Start a server that ends when this process does: as user postgres where this one is root.

    Args:
        command: The server.
        log: The file for what it says.
        home: Its home directory.
        at: What has to stand before the command so that it runs in the right place.
    """
    front = [*at, "setpriv", "--pdeathsig=TERM"]
    if not os.geteuid():
        front += ["--reuid=postgres", "--regid=postgres", "--init-groups"]
    with log.open("ab") as out:
        return subprocess.Popen(
            [*front, *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd="/",
            start_new_session=True,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(home), "LC_ALL": "C.UTF-8"},
        )


def alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended and was not waited for does not."""
    return _stat(pid)[:1] not in {"", "Z", "X"}


def ended(pids: list[int], patience: float) -> bool:
    """Wait until none of these runs; return whether that came about."""
    deadline = time.monotonic() + patience
    while any(alive(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def tree(pid: int) -> list[int]:
    """Return the children of a process, and theirs."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        fields = _stat(int(entry.name)).split() if entry.name.isdigit() else []
        if fields:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = list[int](), [pid]
    while todo:
        young = children.get(todo.pop(), [])
        found += young
        todo += young
    return found


def _stat(pid: int) -> str:
    """Return what the kernel says of a process behind its name: state, parent, …; "" where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2]
    except OSError:
        return ""
