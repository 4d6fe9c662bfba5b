"""A witness of somebody else's making as a process of its own: aics-witness, from PyPI."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from typing import TYPE_CHECKING

from tests.independent.tools import program

if TYPE_CHECKING:
    from pathlib import Path


class LiveWitness:
    """One aics-witness: its key, its state on disk, and the process while it runs."""

    def __init__(self, folder: Path, port: int) -> None:
        self.command = program("aics-witness")
        self._port = port
        self.url = f"http://127.0.0.1:{port}"
        self.name = f"witness.example/{port}"
        folder.mkdir()
        self._environment = {**os.environ, "AICS_WITNESS_CONFIG": str(folder / "witness.json")}
        out = self._run("init", "--name", self.name, "--listen", f"127.0.0.1:{port}")
        self.vkey = next(word for word in out.split() if word.startswith(f"{self.name}+"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def line(self) -> str:
        """Return the line of a policy that names this witness as `w`."""
        return f"witness w {self.vkey} {self.url}\n"

    def know(self, origin: str, vkey: str) -> None:
        """Make it accept a log."""
        self._run("add-log", "--origin", origin, "--vkey", vkey)

    def start(self) -> None:
        """Serve, and wait until it answers."""
        self._process = subprocess.Popen(
            [self.command, "serve", "--log-level", "ERROR"], env=self._environment, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=5).close()
            except OSError:
                assert time.monotonic() < end, "the witness did not come up"
                assert self._process.poll() is None, "the witness ended"
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        """End the process; its state stays on disk."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [self.command, *words], env=self._environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
