"""Bundle and replay of answers that no well-built agent sends: secrets in a stream's head, bodies that break off."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from a2a_ledger.capture.import_file import import_file
from tests.capture.conftest import make_guard, only, open_ledger, request, tasks
from tests.capture.peer import ORIGIN, Chunks, Peer, card, event
from tests.evidence.test_real_traffic import check_all
from tests.importer.lines import BEARER, fetch, send, task, write
from tests.importer.lines import card as imported_card

if TYPE_CHECKING:
    from pathlib import Path

    from tests.capture.conftest import MakeGuard, OpenLedger

__all__ = ["make_guard", "open_ledger"]  # fixtures, found by their names

SSE = ("content-type", "text/event-stream")
COOKIE = ("set-cookie", "sid=COOKIEVALUE-1234; Path=/")
DEMAND = ("www-authenticate", 'Bearer scope="admin"')
GZIP = ("content-encoding", "gzip")
ECHO = event("COMPLETED", metadata={"seen": "COOKIEVALUE-1234"})
RESET = httpx.ReadError("reset by COOKIEVALUE-1234")


@pytest.mark.parametrize(
    ("status", "head", "pieces", "rules"),
    [
        (200, [SSE, COOKIE], [event("WORKING"), ECHO], []),
        (200, [SSE, COOKIE], [], []),
        (200, [SSE, COOKIE], [event("WORKING"), ECHO[:60], RESET], []),
        (200, [COOKIE], [ECHO.removeprefix(b"data: ")[:-20], RESET], []),
        (200, [GZIP], [b"no gzip"], []),
        (401, [DEMAND, COOKIE], [b'{"e": "COOKIEVALUE-12', RESET], ["auth-demand"]),
        (401, [DEMAND, GZIP], [b"no gzip"], ["auth-demand"]),
        (401, [DEMAND, SSE], [b"data: {}\n\n"], ["auth-demand"]),
        (200, [SSE], [event("COMPLETED").removeprefix(b"data: ")], []),
        (200, [SSE], [b"data: " + event("COMPLETED")], []),
        (200, [SSE], [b": wait\n\n", b"event: x\n\n", event("COMPLETED")], []),
    ],
)
async def test_odd_answers_replay_and_verify(
    open_ledger: OpenLedger,
    make_guard: MakeGuard,
    status: int,
    head: list[tuple[str, str]],
    pieces: list[bytes | Exception],
    rules: list[str],
) -> None:
    ledger = open_ledger(mode="observe")
    peer = Peer(card(), lambda _: httpx.Response(status, headers=head, stream=Chunks(*pieces)))
    client = await make_guard(ledger).create_client(
        ORIGIN, transport=peer, headers={"authorization": "Bearer caller-token-0001"}
    )
    with suppress(Exception):  # what the SDK makes of it is not the question here
        async for _ in client.send_message(request("hello")):
            pass
    assert check_all(ledger) == 1
    assert [record.data["rule"] for record in only(ledger, "violation.detected")] == rules


def test_what_is_imported_of_odd_answers_replays_and_verifies(open_ledger: OpenLedger, tmp_path: Path) -> None:
    ledger = open_ledger()
    answers: list[dict[str, Any]] = [
        {"status": 200, "headers": [list(SSE), list(COOKIE)], "body": (event("WORKING") + ECHO).decode()},
        {"status": 200, "headers": [list(SSE), list(COOKIE)], "body": ""},
        {"status": 401, "headers": [list(SSE), list(DEMAND)], "body": '{"e": "CO'},
        {"status": 200, "headers": [list(SSE)], "body": event("COMPLETED").decode().removeprefix("data: ")},
        {"status": 200, "headers": [list(SSE)], "body": "data: " + event("COMPLETED").decode()},
    ]
    lines = [
        {**send(f"m{n}", {"task": task("WORKING")}, headers=BEARER, error="reset" if n == 2 else None), "response": one}
        for n, one in enumerate(answers)
    ]
    import_file(ledger, write(tmp_path, fetch(imported_card()), *lines))
    assert check_all(ledger) == 0
    assert len(tasks(ledger)) == len(answers)
