"""A witness in this process that answers what a test tells it to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.anchors.asking import Answer
from a2a_ledger.anchors.witness import SIZE_TYPE, Witness
from a2a_ledger.keys import COSIGNATURE, Verifier, generate
from a2a_ledger.note import SignatureLine, cosignature_message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TIME = 1_789_376_400  # 2026-09-14T09:00:00Z


class Pretend:
    """Answers each submission with the next of its answers; without any, with a good cosignature."""

    def __init__(self, name: str = "witness.example/w") -> None:
        self.signer = generate(name, lambda size: name.encode().ljust(size)[:size])
        self.key = Verifier(name, self.signer.verifier.public_key, COSIGNATURE)
        self.witness = Witness("w", self.key, f"https://{name}")
        self.answers: list[Answer | Callable[[str], Answer]] = []
        self.shown = Answer(404, "", b"")  # to who asks for the newest head
        self.asked: list[tuple[str, str, str]] = []

    @property
    def line(self) -> str:
        return f"witness {self.key.name} {self.key.vkey} {self.witness.url}\n"

    def __call__(self, method: str, url: str, body: bytes, headers: Mapping[str, str], *, timeout: float = 1) -> Answer:
        assert timeout > 0
        self.asked.append((method, url, body.decode()))
        if method == "GET":
            assert not headers
            return self.shown
        text = body.decode().partition("\n\n")[2].partition("\n\n")[0] + "\n"
        if not self.answers:
            return self.cosigned(text)
        answer = self.answers.pop(0)
        return answer if isinstance(answer, Answer) else answer(text)

    def cosigned(self, text: str, *, over: str = "") -> Answer:
        """Return a cosignature over a head's text, or over another one's."""
        signature = self.signer.sign(cosignature_message(over or text, TIME))
        line = SignatureLine(self.key.name, self.key.key_id, TIME.to_bytes(8, "big") + signature)
        return Answer(200, "text/plain", str(line).encode())


def size(number: object) -> Answer:
    """Return the answer of a witness that is elsewhere."""
    return Answer(409, SIZE_TYPE, f"{number}\n".encode())
