"""Keys that securesystemslib has: made by its own file signer, which is one of its URIs."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from a2a_ledger.audit import audit_ledger
from a2a_ledger.cli import cli
from a2a_ledger.errors import StoreError, UsageError
from a2a_ledger.export import export_task
from a2a_ledger.keys import Verifier, generate, public_from_pem
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.rotation import Elsewhere, rotate
from a2a_ledger.signing.away import wherever_we_run
from a2a_ledger.signing.kms import UriSigner
from tests.evidence.forging import judged
from tests.evidence.recorded import dispute, entropy

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.key_ring import KeyRing

library: Any = pytest.importorskip("securesystemslib.signer", reason="the extra kms is not installed")

ROLES = ["log", "statement", "export"]


class Theirs:
    """A key that their library made, in a file of theirs, and its public half in one that openssl wrote."""

    def __init__(self, folder: Path, name: str = "theirs") -> None:
        made = library.CryptoSigner.generate_ed25519()
        private, self.public = folder / f"{name}.p8", folder / f"{name}.pub"
        private.write_bytes(made.private_bytes)
        command = ["openssl", "pkey", "-in", str(private), "-pubout", "-out", str(self.public)]
        subprocess.run(command, check=True, capture_output=True)
        self.uri = f"file2:{private}"
        self.hex = str(made.public_key.keyval["public"])

    def signer(self, origin: str) -> UriSigner:
        return UriSigner(self.uri, Verifier(origin, bytes.fromhex(self.hex)))


def open_at(tmp_path: Path) -> ContractLedger:
    return ContractLedger.open(tmp_path / "audit", origin="acme/audit", follow=False, mark_dir=str(tmp_path / "mark"))


def run(tmp_path: Path, *words: object) -> Result:
    return CliRunner().invoke(cli, ["--ledger", str(tmp_path / "audit"), *map(str, words)])


@pytest.fixture(autouse=True)
def _mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_their_signature_verifies_and_their_public_key_is_the_one_that_openssl_writes(tmp_path: Path) -> None:
    theirs = Theirs(tmp_path)
    assert public_from_pem(theirs.public.read_bytes()).hex() == theirs.hex
    signer = theirs.signer("acme/audit-1b9e04c7")
    (tmp_path / "message").write_bytes(b"hello")
    (tmp_path / "signature").write_bytes(signer.sign(b"hello"))
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-rawin", "-inkey", str(theirs.public)]
    command += ["-in", str(tmp_path / "message"), "-sigfile", str(tmp_path / "signature")]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    with pytest.raises(UsageError, match="and not here"):
        signer.pem()


@pytest.mark.parametrize("role", ROLES)
def test_a_key_hands_over_to_one_of_theirs(tmp_path: Path, role: str) -> None:
    with open_at(tmp_path) as ledger:
        first, mark = ledger.signers["log"].vkey, ledger.settings.mark_dir
    theirs = Theirs(tmp_path)
    (tmp_path / "audit" / "config.toml").write_text(f'mark_dir = "{mark}"\n')
    done = run(tmp_path, "keys", "rotate", "--role", role, "--to", theirs.uri, "--public-key", theirs.public)
    assert done.exit_code == 0, done.stderr
    keys = tmp_path / "audit" / "keys"
    assert sorted(path.name for path in keys.iterdir()) == sorted(
        f"{each}.{'uri' if each == role else 'pem'}" for each in ROLES
    )
    with open_at(tmp_path) as ledger:
        assert ledger.signers[role].verifier.public_key.hex() == theirs.hex
        story = dispute(ledger)
        ledger.catch_up()
        bundle = export_task(ledger, story.tasks["t1"]).data
        assert audit_ledger(ledger).faults == ()
    assert judged(bundle, first).verdict == "verified"


def test_one_of_theirs_hands_over_to_a_key_that_lies_here(tmp_path: Path) -> None:
    with open_at(tmp_path) as ledger:
        theirs = Theirs(tmp_path)
        rotate(ledger, "log", sleep=wait, to=Elsewhere(theirs.uri, theirs.signer(ledger.origin)))
        rotate(ledger, "log", sleep=wait)
        assert audit_ledger(ledger).faults == ()
    assert not list((tmp_path / "audit" / "keys").glob("*.uri"))


def wait(_: float) -> None:
    """Wait for nobody."""


class CrashError(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("step", ["unlink", "replace"])
def test_a_crash_while_the_file_of_a_key_elsewhere_is_put_in_place_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    theirs = Theirs(tmp_path)

    def crash(ring: KeyRing, role: str) -> None:
        if step == "replace":  # the old key is gone, the new one not in place
            (ring.folder / f"{role}.pem").unlink()
        raise CrashError

    with open_at(tmp_path) as ledger:
        monkeypatch.setattr("a2a_ledger.rotation._put_in_place", crash)
        with pytest.raises(CrashError):
            rotate(ledger, "log", sleep=wait, to=Elsewhere(theirs.uri, theirs.signer(ledger.origin)))
    with open_at(tmp_path) as ledger:
        assert ledger.signers["log"].verifier.public_key.hex() == theirs.hex
    assert sorted(path.name for path in (tmp_path / "audit" / "keys").glob("log.*")) == ["log.uri"]


def test_a_key_that_was_moved_there_is_used(tmp_path: Path) -> None:
    open_at(tmp_path).close()
    held = tmp_path / "held.pem"
    (tmp_path / "audit" / "keys" / "log.pem").rename(held)
    done = run(tmp_path, "keys", "use", f"file2:{held}", "--role", "log")
    assert (done.exit_code, done.stdout) == (0, f"log: signed for by file2:{held} from now on\n"), done.stderr
    with open_at(tmp_path) as ledger:
        ledger.sign_checkpoint()
        assert isinstance(ledger.signers["log"], UriSigner)
        assert audit_ledger(ledger).faults == ()


@pytest.mark.parametrize("verb", ["rotate", "use"])
def test_a_relative_path_is_found_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    open_at(tmp_path).close()
    theirs = Theirs(tmp_path)
    held, words = tmp_path / "theirs.p8", ["--to", "file2:theirs.p8", "--public-key", theirs.public]
    if verb == "use":
        held, words = tmp_path / "held.pem", ["file2:held.pem"]
        (tmp_path / "audit" / "keys" / "log.pem").rename(held)
    monkeypatch.chdir(tmp_path)
    done = run(tmp_path, "keys", verb, *words, "--role", "log")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "audit" / "keys" / "log.uri").read_text().splitlines()[0] == f"file2:{held}"
    monkeypatch.chdir("/")
    with open_at(tmp_path) as ledger:
        ledger.sign_checkpoint()
        assert audit_ledger(ledger).faults == ()


def test_a_path_below_the_prefix_of_theirs_stays_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CRYPTO_SIGNER_PATH_PREFIX", str(tmp_path))
    assert wherever_we_run("file2:theirs.p8") == "file2:theirs.p8"
    theirs = Theirs(tmp_path)
    assert UriSigner("file2:theirs.p8", Verifier("acme", bytes.fromhex(theirs.hex))).sign(b"hello")


def test_another_key_a_gone_one_and_an_unknown_place_are_refused(tmp_path: Path) -> None:
    mine = generate("acme/audit-1b9e04c7", entropy()).verifier
    theirs = Theirs(tmp_path)
    for uri, error, said in (
        (theirs.uri, StoreError, "cannot be had"),
        (f"file2:{tmp_path / 'nothing'}", StoreError, "cannot be had"),
        ("pigeon:post", UsageError, "or one of .*file2"),
    ):
        with pytest.raises(error, match=said):
            UriSigner(uri, mine).sign(b"hello")
    with open_at(tmp_path):
        pass
    done = run(tmp_path, "keys", "rotate", "--role", "log", "--to", theirs.uri)
    assert (done.exit_code, "together" in done.stderr) == (2, True)
    done = run(tmp_path, "keys", "use", theirs.uri)
    assert (done.exit_code, "expected --role" in done.stderr) == (2, True)


@pytest.mark.parametrize("text", [b"", b"hello", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_what_is_no_public_key_is_refused(tmp_path: Path, text: bytes) -> None:
    open_at(tmp_path).close()
    (tmp_path / "other.pub").write_bytes(text)
    done = run(tmp_path, "keys", "rotate", "--role", "log", "--to", "file2:x", "--public-key", tmp_path / "other.pub")
    assert (done.exit_code, "a public key in PEM" in done.stderr) == (2, True), done.stderr
