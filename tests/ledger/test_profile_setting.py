"""The setting `profile`: which file names the terms, and what is said of one that cannot be used."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from a2a_ledger import ContractLedger
from a2a_ledger.contract import default_profile
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

MINE = b'name = "mine"\n[terms]\npaths = ["/sla"]\n'
MINE_HASH = "sha256:" + hashlib.sha256(MINE).hexdigest()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a new ledger directory with a profile file in it."""
    place = tmp_path / "audit"
    ContractLedger.open(place, mark_dir=str(tmp_path / "mark"), follow=False).close()
    (place / "mine.toml").write_bytes(MINE)
    with (place / "config.toml").open("a", encoding="utf-8") as config:
        config.write(f'\nmark_dir = "{tmp_path / "mark"}"\n')
    return place


def configured(home: Path, line: str) -> None:
    """Put a line above the first table of the settings."""
    config = home / "config.toml"
    config.write_text(line + "\n" + config.read_text(encoding="utf-8"), encoding="utf-8")


def test_without_the_setting_the_shipped_profile_stands(home: Path) -> None:
    with ContractLedger.open(home, follow=False) as ledger:
        assert ledger.profile == default_profile()


def test_the_settings_name_a_file_of_the_ledger_directory(home: Path) -> None:
    configured(home, 'profile = "mine.toml"')
    with ContractLedger.open(home, follow=False) as ledger:
        assert (ledger.profile.name, ledger.profile.hash, ledger.profile.source) == ("mine", MINE_HASH, MINE)


def test_open_takes_it_too_with_any_path(home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "other.toml"
    elsewhere.write_bytes(b'name = "other"')
    configured(home, 'profile = "mine.toml"')
    with ContractLedger.open(home, follow=False, profile=elsewhere) as ledger:
        assert ledger.profile.name == "other"
    with ContractLedger.open(":memory:", follow=False, profile=str(elsewhere)) as ledger:
        assert ledger.profile.name == "other"


@pytest.mark.parametrize(
    ("line", "content", "said"),
    [
        ('profile = "absent.toml"', None, r"setting profile: .*absent\.toml cannot be read \(No such file"),
        ('profile = "."', None, r"setting profile: .* cannot be read \(Is a directory"),
        ("profile = 5", None, "setting profile: expected a text in quotes, found 5"),
        ('profile = "mine.toml"', b"name = 1", r"setting profile: .*mine\.toml: expected a text as name"),
        ('profile = "mine.toml"', b"a = [\n", r"mine\.toml: expected a profile in TOML, .*(line 2|end of document)"),
    ],
)
def test_a_profile_that_cannot_be_used_is_said_when_the_ledger_is_opened(
    home: Path, line: str, content: bytes | None, said: str
) -> None:
    configured(home, line)
    if content is not None:
        (home / "mine.toml").write_bytes(content)
    with pytest.raises(UsageError, match=said):
        ContractLedger.open(home, follow=False)
