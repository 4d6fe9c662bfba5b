"""A signer process: who is answered, how, and a ledger that lives without its keys."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from a2a_ledger.errors import StoreError, UsageError
from a2a_ledger.keys import Signer, generate
from a2a_ledger.signing import server as server_module
from a2a_ledger.signing.away import SocketSigner, keys_at
from a2a_ledger.signing.rules import Rules
from a2a_ledger.signing.server import MAX_LINE, MOST_WAITING, SECONDS, SignerServer, read_line
from tests.evidence.recorded import entropy
from tests.signing.serving import serving

if TYPE_CHECKING:
    from a2a_ledger.keys import Verifier

ORIGIN = "acme/audit-1b9e04c7"
HEAD = f"{ORIGIN}\n5\n{'A' * 43}=\n".encode()


def ask(place: Path, line: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(10)
        asking.connect(str(place / "socket"))
        asking.sendall(line)
        asking.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: asking.recv(65536), b""))


def test_a_signature_is_that_of_the_key(tmp_path: Path) -> None:
    signer = generate(ORIGIN, entropy())
    with serving(tmp_path / "at", signer) as refused:
        path = str(tmp_path / "at" / "socket")
        assert keys_at(path) == {"log": signer.vkey}
        asked = SocketSigner(path, "log", signer.verifier)
        assert asked.sign(HEAD) == signer.sign(HEAD)
        assert asked.vkey == signer.vkey
        assert (tmp_path / "at" / "socket").stat().st_mode & 0o777 == 0o600
        with pytest.raises(UsageError, match="and not here"):
            asked.pem()
    assert refused == []
    assert not (tmp_path / "at" / "socket").exists()


def test_another_user_gets_no_answer(tmp_path: Path) -> None:
    with serving(tmp_path / "at", generate(ORIGIN, entropy()), users={os.geteuid() + 1}) as refused:
        with suppress(ConnectionError):  # it may be ended before all of the question is sent
            assert ask(tmp_path / "at", b'{"op": "keys"}\n') == b""
        assert (tmp_path / "at" / "socket").stat().st_mode & 0o777 == 0o666
    assert refused == [f"user {os.geteuid()} asked, who is not among those that may"]


_ASK_AS_ANOTHER = """
import os, socket, sys
os.setgroups([])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
with socket.socket(socket.AF_UNIX) as asking:
    asking.connect(sys.argv[1])
    try:
        asking.sendall(b'{"op": "keys"}\\n')
        sys.stdout.buffer.write(asking.recv(65536))
    except ConnectionError:
        pass
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="to ask as another user takes root")
def test_a_user_that_is_allowed_gets_in_and_a_third_one_no_answer() -> None:
    signer = generate(ORIGIN, entropy())
    with TemporaryDirectory() as folder:  # that of a test is open to its owner alone
        place = Path(folder)
        place.chmod(0o755)
        with serving(place, signer, users={0, 65534}) as refused:
            answers = [
                subprocess.run(
                    [sys.executable, "-c", _ASK_AS_ANOTHER, str(place / "socket"), user],
                    check=True,
                    capture_output=True,
                    timeout=30,
                ).stdout
                for user in ("65534", "65533")
            ]
    assert json.loads(answers[0]) == {"keys": {"log": signer.vkey}}
    assert answers[1] == b""
    assert refused == ["user 65533 asked, who is not among those that may"]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}\n",
        b"[]\n",
        b'"keys"\n',
        b"not json\n",
        b"\xff\xfe\n",
        b'{"op": "keys"}',
        b'{"op": "keys", "x": ' + b"[" * 5000 + b"\n",
        b'{"op": "pem"}\n',
        b'{"op": "sign", "role": "statement", "data": ""}\n',
        b'{"op": "sign", "role": ["log"], "data": ""}\n',
        b'{"op": "sign", "role": "log", "data": "?"}\n',
        b'{"op": "sign", "role": "log", "data": 1}\n',
        b'{"op": "sign", "role": "log", "data": "aGVsbG8="}\n',
    ],
)
def test_a_question_that_is_none_is_refused_and_the_next_one_answered(tmp_path: Path, line: bytes) -> None:
    with serving(tmp_path / "at", generate(ORIGIN, entropy())) as refused:
        assert set(json.loads(ask(tmp_path / "at", line))) == {"error"}
        assert set(json.loads(ask(tmp_path / "at", b'{"op": "keys"}\n'))) == {"keys"}
    assert len(refused) == 1


def test_a_question_without_an_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    with serving(tmp_path / "at", generate(ORIGIN, entropy())) as refused:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(10)
            asking.connect(str(tmp_path / "at" / "socket"))
            with pytest.raises(OSError, match=r"Broken pipe|reset"):
                asking.sendall(b"x" * (MAX_LINE * 2))
        assert set(json.loads(ask(tmp_path / "at", b'{"op": "keys"}\n'))) == {"keys"}
    assert len(refused) == 1


class Broken(Signer):
    """A key that cannot sign, for a reason that nobody thought of."""

    def __init__(self, verifier: Verifier) -> None:
        self.verifier = verifier

    def sign(self, data: bytes) -> bytes:
        return bytes([len(data) // 0])


def test_whatever_one_question_brings_about_the_next_one_is_answered(tmp_path: Path) -> None:
    key = generate(ORIGIN, entropy())
    with serving(tmp_path / "at", Broken(key.verifier)) as refused:
        with pytest.raises(StoreError, match="refuses: integer division"):
            SocketSigner(str(tmp_path / "at" / "socket"), "log", key.verifier).sign(HEAD)
        assert keys_at(str(tmp_path / "at" / "socket")) == {"log": key.vkey}
    assert len(refused) == 1


def test_who_cannot_be_answered_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accept, failing = socket.socket.accept, [OSError(24, "Too many open files")]

    def flaky(self: socket.socket) -> tuple[socket.socket, Any]:
        if failing:
            raise failing.pop()
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", flaky)
    monkeypatch.setattr(server_module, "_PAUSE", 0)
    with serving(tmp_path / "at", generate(ORIGIN, entropy())) as refused:
        assert set(json.loads(ask(tmp_path / "at", b'{"op": "keys"}\n'))) == {"keys"}
    assert refused == ["nobody could be answered: [Errno 24] Too many open files"]


def connected(place: Path, closing: ExitStack) -> socket.socket:
    idle = closing.enter_context(socket.socket(socket.AF_UNIX))
    idle.connect(str(place / "socket"))  # without a timeout: with one it fails where many are not yet taken in
    idle.settimeout(10)
    return idle


def test_who_asks_nothing_keeps_nobody_waiting(tmp_path: Path) -> None:
    signer, at = generate(ORIGIN, entropy()), tmp_path / "at"
    with serving(at, signer, clock=lambda: 7.0) as refused, ExitStack() as closing:
        for _ in range(200):
            connected(at, closing)
        assert SocketSigner(str(at / "socket"), "log", signer.verifier).sign(HEAD) == signer.sign(HEAD)
        given_up = f"user {os.geteuid()} did not ask to the end: 64 others have come since, found 0 octets"
        assert refused == [given_up] * (200 + 1 - MOST_WAITING)


def test_a_question_that_does_not_come_whole_in_time_is_given_up(tmp_path: Path) -> None:
    now, at = [100.0], tmp_path / "at"
    with serving(at, generate(ORIGIN, entropy()), clock=lambda: now[0]) as refused, ExitStack() as closing:
        idle = connected(at, closing)
        idle.sendall(b'{"op"')
        assert set(keys_at(str(at / "socket"))) == {"log"}  # who came before was let in before
        now[0] += SECONDS - 0.5
        assert set(keys_at(str(at / "socket"))) == {"log"}
        assert refused == []
        now[0] += 0.5
        assert set(keys_at(str(at / "socket"))) == {"log"}
        assert idle.recv(1) == b""
    assert refused == [f"user {os.geteuid()} did not ask to the end: expected a whole line within 5 s, found 5 octets"]


def test_a_question_may_come_in_pieces_while_others_are_answered(tmp_path: Path) -> None:
    signer, at = generate(ORIGIN, entropy()), tmp_path / "at"
    with serving(at, signer) as refused, ExitStack() as closing:
        slow = connected(at, closing)
        for piece in (b'{"op"', b': "ke', b'ys"}'):
            slow.sendall(piece)
            assert set(keys_at(str(at / "socket"))) == {"log"}
        slow.sendall(b"\n")
        assert json.loads(slow.recv(65536)) == {"keys": {"log": signer.vkey}}
    assert refused == []


def test_of_questions_that_are_too_much_together_the_longest_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MOST_HELD", 1000)
    signer, at = generate(ORIGIN, entropy()), tmp_path / "at"
    with serving(at, signer, clock=lambda: 7.0) as refused, ExitStack() as closing:
        longest, shorter, last = (connected(at, closing) for _ in range(3))
        longest.sendall(b'{"op": "keys"'.ljust(600))
        shorter.sendall(b'{"op": "keys"'.ljust(300))
        assert keys_at(str(at / "socket")) == {"log": signer.vkey}
        assert refused == []
        last.sendall(b'{"op": "keys"'.ljust(200))
        assert longest.recv(1) == b""
        for other in (shorter, last):
            other.sendall(b"}\n")
            assert json.loads(other.recv(65536)) == {"keys": {"log": signer.vkey}}
    told = "all questions together are over 1000 octets, found 600 octets"
    assert refused == [f"user {os.geteuid()} did not ask to the end: {told}"]


class Dripping(socket.socket):
    """One octet a second, by a clock of its own; never an end."""

    def __init__(self) -> None:
        super().__init__(socket.AF_UNIX)
        self.now = 100.0
        self.timeouts: list[float | None] = []

    def settimeout(self, value: float | None, /) -> None:
        self.timeouts.append(value)

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        assert size > flags
        self.now += 1
        return b" "


def test_a_line_has_one_deadline_for_all_of_it() -> None:
    with Dripping() as dripping, pytest.raises(TimeoutError, match="within 5 s, found 5 octets"):
        read_line(dripping, lambda: dripping.now)
    assert dripping.timeouts == [SECONDS, 4, 3, 2, 1]


@pytest.mark.parametrize("answer", [b"[" * 100_000, b'{"a":' * 100_000, b"7", b"\xff", b"", b'{"signature":1}'])
def test_an_answer_that_is_none_is_said(tmp_path: Path, answer: bytes) -> None:
    key = generate(ORIGIN, entropy()).verifier
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        listening.listen()

        def odd() -> None:
            with suppress(OSError), listening.accept()[0] as asking:
                read_line(asking)
                asking.sendall(answer + b"\n")

        thread = threading.Thread(target=odd)
        thread.start()
        with pytest.raises(StoreError, match=r"gives no answer|does not sign with"):
            SocketSigner(str(tmp_path / "socket"), "log", key).sign(HEAD)
        thread.join(10)


def test_a_signature_of_another_key_is_not_taken(tmp_path: Path) -> None:
    other = generate(ORIGIN, entropy()).verifier
    stranger = generate(ORIGIN, lambda size: bytes(range(size)))
    with serving(tmp_path / "at", stranger), pytest.raises(StoreError, match="does not sign with"):
        SocketSigner(str(tmp_path / "at" / "socket"), "log", other).sign(HEAD)


def test_a_place_is_taken_over_from_the_dead_alone(tmp_path: Path) -> None:
    signer = generate(ORIGIN, entropy())
    place = tmp_path / "at"
    with serving(place, signer), pytest.raises(UsageError, match="another signer listens there"):
        SignerServer(place / "socket", {}, Rules(ORIGIN, place), {os.geteuid()})
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(place / "socket"))
    with serving(place, signer):
        assert keys_at(str(place / "socket")) == {"log": signer.vkey}
    (place / "socket").write_text("a file")
    with pytest.raises(UsageError, match="found a file"):
        SignerServer(place / "socket", {}, Rules(ORIGIN, place), {os.geteuid()})
    assert (place / "socket").read_text() == "a file"
