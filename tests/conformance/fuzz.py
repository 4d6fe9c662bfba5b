"""Coverage-guided fuzzing of the file that stands alone: `python -m tests.conformance.fuzz -runs=100000` (atheris).

The octets say which files of a good bundle are edited, where and how; the exporter seals what comes out. What is looked
for is an exception, and a table that has not all claims.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from tests.conformance.material import log
from tests.conformance.sealing import sealed

atheris: Any = import_module("atheris")  # optional, untyped, and built for few platforms
with atheris.instrument_imports(include=["verifier"]):
    from verifier import a2a_verify


_FILES = log().files
_NAMES = sorted(_FILES)
_POLICY = a2a_verify.read_policy(log().policy.encode())


def once(octets: bytes) -> None:
    """Edit one file of a bundle, and judge it."""
    given = atheris.FuzzedDataProvider(octets)
    files = dict(_FILES)
    name = given.PickValueInList(_NAMES)
    start = given.ConsumeIntInRange(0, len(files[name]))
    stop = given.ConsumeIntInRange(start, len(files[name]))
    files[name] = files[name][:start] + given.ConsumeBytes(given.remaining_bytes()) + files[name][stop:]
    report = a2a_verify.verify(sealed(files, log().signers["export"]), _POLICY)
    if len(report.claims) != len(a2a_verify.LETTERS):
        raise AssertionError(report)


if __name__ == "__main__":
    atheris.Setup(sys.argv, once)
    atheris.Fuzz()
