"""One case: a bundle, what the reader gives, and the expected status of each claim, by docs/format.md alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

LETTERS: Final = ("I", "L", "P", "A", "W", "T", "S", "C1", "C2", "C3", "R", "X")
VALID: Final = "VALID"
INVALID: Final = "INVALID"
OPEN: Final = "NOT PROVEN"


class Case(NamedTuple):
    """One bundle and what is to be said of it.

    Attributes:
        name: of the case; ends in `_fail` where a claim is INVALID, in `_notproven` where one is open that could be
            proven.
        bundle: the zip.
        policy: the reader's tlog-policy file; "" where he gives none.
        earlier: signed heads that the reader holds.
        expected: status of each claim by a verifier that judges again.
        without_judging: status of R by one that does not: never VALID, and what only judging finds, it may miss.
        section: of docs/format.md that decides.
    """

    name: str
    bundle: bytes
    policy: str
    earlier: tuple[bytes, ...]
    expected: dict[str, str]
    without_judging: str
    section: str

    def table(self, *, judging: bool) -> dict[str, str]:
        """Return the expected status of each claim by a verifier that judges again, or by one that does not."""
        return self.expected if judging else {**self.expected, "R": self.without_judging}

    def verdict(self, *, judging: bool, required: tuple[str, ...] = ("I", "L", "P", "C2", "R")) -> str:
        """Return the verdict over the table, step 13 of section 12."""
        table = self.table(judging=judging)
        if INVALID in table.values():
            return "invalid"
        if not self.policy:
            return "self-consistent only"
        needed = {*required, *(["A"] if self.earlier else [])}
        return "verified" if all(table[letter] == VALID for letter in needed) else "not proven"


class Made(NamedTuple):
    """What a case's recipe gives."""

    bundle: bytes
    policy: str
    earlier: tuple[bytes, ...] = ()


Recipe: TypeAlias = "Callable[[], Made]"


class Row(NamedTuple):
    """A case that is not made yet."""

    name: str
    section: str
    recipe: Recipe
    expected: dict[str, str]
    without_judging: str

    def made(self) -> Case:
        """Make the bundle."""
        bundle, policy, earlier = self.recipe()
        return Case(self.name, bundle, policy, earlier, self.expected, self.without_judging, self.section)


def row(
    name: str, section: str, recipe: Recipe, *, valid: str = "", invalid: str = "", unproven: str = "", missed: str = ""
) -> Row:
    """Write down a case as it differs from a good bundle of a task in a larger log, judged by a reader with its key.

    Of that I, L, P, C1, C2, R and X are VALID, and A, W, T, S and C3 NOT PROVEN.

    Args:
        name: of the case.
        section: of docs/format.md that decides.
        recipe: makes it.
        valid: letters of the claims that are VALID here.
        invalid: letters of those that are INVALID.
        unproven: letters of those that are NOT PROVEN.
        missed: "R" where only judging again, or reading a message again, finds what is wrong.
    """
    expected = {letter: VALID if letter in {"I", "L", "P", "C1", "C2", "R", "X"} else OPEN for letter in LETTERS}
    for status, letters in ((VALID, valid), (INVALID, invalid), (OPEN, unproven)):
        expected |= dict.fromkeys(letters.split(), status)
    without_judging = INVALID if expected["R"] == INVALID and not missed else OPEN
    return Row(name, section, recipe, expected, without_judging)
