"""`import`: one file of recorded traffic, whatever its format, into a ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.address import is_http_url
from a2a_ledger.capture.formats import FORMATS, opened
from a2a_ledger.capture.import_exchanges import Importer
from a2a_ledger.capture.import_held import Held
from a2a_ledger.capture.import_report import ImportReport
from a2a_ledger.capture.import_source import WithoutEarlierRun, digest_of, newest_of, request_of, run_of, start_of
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from a2a_ledger.capture.formats import Entry
    from a2a_ledger.capture.import_source import Source, Start
    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.ledger import ContractLedger


def import_file(  # noqa: PLR0913 - all that can be said about a file, each named at the call
    ledger: ContractLedger,
    path: str | os.PathLike[str],
    *,
    form: str | None = None,
    url: str = "",
    again: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ImportReport:
    """Import a file of recorded traffic (docs/format.md section 13.4).

    Args:
        ledger: where it goes; the verifier runs over it as over everything else.
        path: the file.
        form: one of `formats.FORMATS`; None: told by the content.
        url: where a message was sent, or whose tasks a dump holds, for a file that does not say.
        again: import a file that was imported before once more, from its first entry.
        progress: called after each entry with the octets done and the octets in all.

    Raises:
        UsageError: the file cannot be read, is not of the format that was named, or was imported before; or `url`
            is none.
        ReadOnlyError: the ledger cannot be written.
        StoreError: it could not be recorded; what was reported is there, and the same call goes on.
    """
    if form is not None and form not in FORMATS:
        raise UsageError(f"expected a format out of {', '.join(FORMATS)}, found {form}")
    if url and not _is_address(url):
        raise UsageError(  # without what was found: it may hold a password
            "--url: expected an http or https url with its host, such as https://agent.example/a2a, found none"
        )
    source = digest_of(path)
    with opened(path, form, url) as (found, entries):
        last = newest_of(ledger, source)
        start = start_of(last, source, entries, path) if last is not None and not again else None
        run = run_of(last) + 1 if start is None else run_of(start.last)
        held = Held(ledger, source.sha256, all_anew=run > 1)
        reader: LogReader = ledger.store
        if run > 1:
            reader = WithoutEarlierRun(ledger.store, source.sha256, run, held.overlapped(entries()))
        else:
            held.begin(entries())
        job = Importer(ledger, reader, ImportReport(source.sha256, form=found), held, run, url=url)
        steps = entries()
        if start is not None:
            job.report.resumed = True
            _go_on(job, start, steps, ledger, source)
        for entry in steps:
            job.take(entry)
            if progress is not None:
                progress(entry.done, source.octets)
        job.flush()
    return job.report


def _is_address(url: str) -> bool:
    """Say whether a message can be sent there: what is no url has no place in which a password is looked for."""
    return is_http_url(url) and not any(sign.isspace() or sign in "\\\x00" for sign in url)


def _go_on(job: Importer, start: Start, steps: Iterator[Entry], ledger: ContractLedger, source: Source) -> None:
    """Pass over what an earlier run has recorded, and take up what it left half done."""
    unanswered: dict[int, Entry] = {}
    for entry in steps:
        if entry.part == "asked":
            unanswered[entry.number] = entry
        elif entry.part == "answered":
            unanswered.pop(entry.number, None)
        if not start.is_at(entry):
            job.pass_over(entry)
            continue
        for number, asked in unanswered.items():
            if request := request_of(ledger, source, number, run_of(start.last)):
                job.reopen(asked, request)
        if start.goes_on and entry.part != "asked":
            job.take(entry, start.last)
        else:
            job.pass_over(entry)
        return
