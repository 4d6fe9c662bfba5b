"""The openssl command line as an independent verifier; its absence is said, not passed over."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def openssl_accepts(folder: Path, pem: str, message: bytes, signature: bytes) -> bool:
    """Ask `openssl pkeyutl` whether this is a good Ed25519 signature."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed: this signature was not checked independently")
    for name, content in (("key.pem", pem.encode()), ("message", message), ("signature", signature)):
        (folder / name).write_bytes(content)
    command = [program, "pkeyutl", "-verify", "-pubin", "-inkey", "key.pem", "-rawin", "-in", "message"]
    done = subprocess.run([*command, "-sigfile", "signature"], cwd=folder, capture_output=True, check=False)
    if done.returncode == 0:
        return True
    assert b"Verification Failure" in done.stdout + done.stderr, done.stderr
    return False
