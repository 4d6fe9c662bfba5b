"""A real PostgreSQL server for tests: in a temporary folder, over a Unix socket, durable, and stopped at the end."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

_WAIT = 30.0  # seconds for a server to start or to stop


class PostgresServer(NamedTuple):
    """A running server."""

    bin: Path
    folder: Path

    @property
    def url(self) -> str:
        """Return the url of a database whose superuser is `postgres`; no password is asked for."""
        return self.url_of("postgres")

    def url_of(self, role: str) -> str:
        """Return the url by which a role comes in."""
        return f"postgresql://{role}@/postgres?host={self.folder}"

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of the server's programs as its owner."""
        return subprocess.run(
            [*_owner(), self.bin / program, *arguments],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
            cwd="/",
        )


def programs() -> Path | None:
    """Return the folder of the newest server that is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


def _owner() -> list[str]:
    """Return what has to stand before a command: a server never runs as root, and ends with a run that is killed."""
    ends_with_us = ["setpriv", "--pdeathsig=INT"]
    return ends_with_us if os.geteuid() else [*ends_with_us, "--reuid=postgres", "--regid=postgres", "--init-groups"]


@contextmanager
def running() -> Generator[PostgresServer]:
    """Start a server; skip, or fail where `A2A_LEDGER_POSTGRES=must`, if there is none to start."""
    found = programs()
    if found is None:
        said = "no PostgreSQL server is installed (initdb): what it is tried with did not run"
        if os.environ.get("A2A_LEDGER_POSTGRES") == "must":
            pytest.fail(said)
        pytest.skip(said)
    folder = Path(tempfile.mkdtemp(prefix="a2a-ledger-pg-"))  # a short path: that of a socket has at most 107 octets
    server = PostgresServer(found, folder)
    try:
        if not os.geteuid():
            owner = pwd.getpwnam("postgres")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        data = folder / "data"
        made = server.run(
            "initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"
        )
        assert not made.returncode, made.stderr
        settings = ("listen_addresses=", f"unix_socket_directories={folder}", "max_connections=200", "fsync=on")
        command = [
            str(found / "postgres"),
            "-D",
            str(data),
            *(word for setting in settings for word in ("-c", setting)),
        ]
        with (
            (folder / "log").open("w") as log,
            subprocess.Popen([*_owner(), *command], stdout=log, stderr=log, cwd="/") as process,
        ):
            try:
                _wait_for(server, process)
                yield server
            finally:
                process.send_signal(signal.SIGQUIT)  # at once: nothing in it is needed any more
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(server: PostgresServer, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _WAIT
    while server.run("pg_isready", "-h", str(server.folder)).returncode:
        assert process.poll() is None, (server.folder / "log").read_text()
        assert time.monotonic() < deadline, (server.folder / "log").read_text()
        time.sleep(0.05)
