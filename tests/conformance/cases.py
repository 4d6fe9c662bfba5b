"""All cases of the corpus: `all_cases()` makes them one by one, `all_rows()` says which there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance import (
    beside_cases,
    erasure_cases,
    export_cases,
    file_cases,
    finding_cases,
    head_cases,
    hostile_zips,
    key_cases,
    log_cases,
    packed_cases,
    record_cases,
    stream_cases,
    time_cases,
    unshown_cases,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conformance.table import Case, Row

_MODULES = (
    hostile_zips,
    file_cases,
    export_cases,
    record_cases,
    unshown_cases,
    erasure_cases,
    log_cases,
    stream_cases,
    key_cases,
    head_cases,
    time_cases,
    finding_cases,
    beside_cases,
    packed_cases,
)


def all_rows() -> list[Row]:
    """Return every case, not made yet."""
    return [row for module in _MODULES for row in module.rows()]


def all_cases() -> Iterator[Case]:
    """Make every case: name, bundle, policy text, earlier notes, expected table."""
    for row in all_rows():
        yield row.made()
