"""Encrypted key files: what opens them, what does not, and a rotation that keeps them so."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from a2a_ledger.audit import audit_ledger
from a2a_ledger.errors import MissingKeysError, StoreError
from a2a_ledger.key_ring import KeyRing, reseal
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.passphrase import ENV
from a2a_ledger.rotation import revoke, rotate

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "a horse of staple and battery"
FROM_FILE = {"key_passphrase_file": "secret"}


@pytest.fixture(autouse=True)
def _no_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENV, raising=False)


def open_at(tmp_path: Path, **options: Any) -> ContractLedger:  # noqa: ANN401 - passed through
    return ContractLedger.open(
        tmp_path / "audit", origin="acme/audit", follow=False, mark_dir=str(tmp_path / "mark"), **options
    )


def types_it(what: str) -> str:
    """Answer as the person does who knows it."""
    assert what.startswith("Passphrase of ")
    return SECRET


def types_another(what: str) -> str:
    """Answer as somebody does who does not know it."""
    return what


def encrypted(tmp_path: Path) -> dict[str, str]:
    """Make a ledger whose keys are encrypted; return its vkeys by role."""
    with open_at(tmp_path) as ledger:
        assert isinstance(ledger.signers, KeyRing)
        reseal(ledger.signers, SECRET.encode())
        return {role: signer.vkey for role, signer in _opened(tmp_path).items()}


def _opened(tmp_path: Path) -> dict[str, Any]:
    with open_at(tmp_path, ask_passphrase=types_it) as ledger:
        return dict(ledger.signers)


def openssl_reads(path: Path, passphrase: str) -> bool:
    """Say whether openssl opens a key file with a passphrase."""
    command = ["openssl", "pkey", "-in", str(path), "-passin", "stdin", "-noout"]
    return subprocess.run(command, input=passphrase.encode(), capture_output=True, check=False).returncode == 0


def test_another_tool_reads_the_files_with_the_passphrase_alone(tmp_path: Path) -> None:
    encrypted(tmp_path)
    files = sorted((tmp_path / "audit" / "keys").iterdir())
    assert [path.name for path in files] == ["export.pem", "log.pem", "statement.pem"]
    assert [openssl_reads(path, SECRET) for path in files] == [True] * 3
    assert [openssl_reads(path, "another") for path in files] == [False] * 3
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


@pytest.mark.parametrize("source", ["file", "environment", "person"])
def test_each_source_opens_them_and_a_person_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    vkeys, asked, options = encrypted(tmp_path), list[str](), dict[str, Any]()

    def person(what: str) -> str:
        asked.append(what)
        return SECRET

    if source == "file":
        (tmp_path / "audit" / "secret").write_text(f"{SECRET}\n")
        (tmp_path / "audit" / "secret").chmod(0o600)
        options.update(FROM_FILE)
    elif source == "environment":
        monkeypatch.setenv(ENV, SECRET)
    else:
        options["ask_passphrase"] = person
    with open_at(tmp_path, **options) as ledger:
        assert {role: signer.vkey for role, signer in ledger.signers.items()} == vkeys
        ledger.sign_checkpoint()
    assert len(asked) == (source == "person")


def test_without_a_passphrase_it_opens_to_read_alone(tmp_path: Path) -> None:
    encrypted(tmp_path)
    with pytest.raises(MissingKeysError, match=f"is encrypted, and there is no passphrase.*{ENV}"):
        open_at(tmp_path)
    with open_at(tmp_path, read_only=True) as ledger:
        assert ledger.store.size() == 4
        report = audit_ledger(ledger)
    assert report.faults == ()


def test_another_passphrase_and_a_file_that_others_may_read_are_refused(tmp_path: Path) -> None:
    encrypted(tmp_path)
    with pytest.raises(StoreError, match="expected its passphrase, found another"):
        open_at(tmp_path, ask_passphrase=types_another)
    (tmp_path / "audit" / "secret").write_text(SECRET)
    (tmp_path / "audit" / "secret").chmod(0o644)
    with pytest.raises(StoreError, match="chmod 600"):
        open_at(tmp_path, **FROM_FILE)
    (tmp_path / "audit" / "secret").chmod(0o600)
    (tmp_path / "audit" / "secret").write_text("\n")
    with pytest.raises(StoreError, match="is empty"):
        open_at(tmp_path, **FROM_FILE)


@pytest.mark.parametrize("how", ["rotate", "revoke"])
def test_a_successor_is_encrypted_as_its_predecessor_was(tmp_path: Path, how: str) -> None:
    encrypted(tmp_path)
    with open_at(tmp_path, ask_passphrase=types_it) as ledger:
        if how == "rotate":
            rotate(ledger, "export", sleep=lambda _: None)
        else:
            revoke(ledger, ledger.signers["export"].key_id, 4)
    assert openssl_reads(tmp_path / "audit" / "keys" / "export.pem", SECRET)
    assert not openssl_reads(tmp_path / "audit" / "keys" / "export.pem", "another")


def test_decrypted_again_they_need_nothing(tmp_path: Path) -> None:
    vkeys = encrypted(tmp_path)
    with open_at(tmp_path, ask_passphrase=types_it) as ledger:
        assert isinstance(ledger.signers, KeyRing)
        reseal(ledger.signers, None)
    with open_at(tmp_path) as ledger:
        assert {role: signer.vkey for role, signer in ledger.signers.items()} == vkeys
