"""`keys rotate` and `keys revoke`, typed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from a2a_ledger.key_ring import lies_elsewhere
from a2a_ledger.policy import parse_policy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]

ROLES = ("log", "statement", "export")


def listed(run: Run, ledger: Path) -> list[dict[str, Any]]:
    text = run("--ledger", ledger, "--format", "json", "keys", "list").stdout
    return [json.loads(line) for line in text.splitlines()]


def states(run: Run, ledger: Path) -> list[tuple[str, str, bool]]:
    return [(key["role"], key["state"], key["private_key_here"]) for key in listed(run, ledger)]


def test_a_rotated_log_key_is_listed_with_its_successor(run: Run, ledger: Path) -> None:
    before = listed(run, ledger)[0]
    done = run("--ledger", ledger, "--format", "json", "keys", "rotate", "--role", "log")
    assert done.exit_code == 0
    said = json.loads(done.stdout)
    assert (said["role"], said["old"]) == ("log", [before["vkey"]])
    assert [key["vkey"] for key in listed(run, ledger) if key["role"] == "log"] == [before["vkey"], said["new"]]
    assert states(run, ledger) == [
        ("log", "retired", False),
        ("statement", "current", True),
        ("export", "current", True),
        ("log", "current", True),
    ]
    assert run("--ledger", ledger, "keys", "vkeys", "--role", "log").stdout == said["new"] + "\n"
    assert run("--ledger", ledger, "audit").exit_code == 0


def test_a_revoked_key_is_said_to_people_and_followed(run: Run, ledger: Path) -> None:
    export = listed(run, ledger)[2]
    done = run("--ledger", ledger, "keys", "revoke", export["key_id"], "--size", "4")
    assert done.exit_code == 0
    first, second, new, *_ = done.stdout.splitlines()
    assert first == f"export key {export['key_id']} has ended."
    assert second == "It is followed by:"
    assert new == listed(run, ledger)[3]["vkey"]
    assert states(run, ledger)[2:] == [("export", "revoked", False), ("export", "current", True)]
    again = run("--ledger", ledger, "keys", "revoke", export["key_id"], "--size", "5")
    assert (again.exit_code, "revoked already" in again.stderr) == (2, True)


def test_a_size_beyond_the_log_is_refused(run: Run, ledger: Path) -> None:
    done = run("--ledger", ledger, "keys", "revoke", listed(run, ledger)[0]["key_id"], "--size", "1000000")
    assert done.exit_code == 2
    assert "found 1000000" in done.stderr
    assert len(listed(run, ledger)) == 3


def test_keys_that_another_process_has_are_said_to_be_signed_for(run: Run, ledger: Path, home: Path) -> None:
    """Nobody need answer at the socket for that."""
    uri = f"unix:{home / 'signer.sock'}"
    vkeys = {str(key["role"]): str(key["vkey"]) for key in listed(run, ledger)}
    for role, vkey in vkeys.items():
        (ledger / "keys" / f"{role}.pem").unlink()
        lies_elsewhere(ledger / "keys", role, uri, vkey)
    assert [(key["private_key_here"], key["signed_for_by"]) for key in listed(run, ledger)] == [(False, uri)] * 3
    shown = run("--ledger", ledger, "keys", "list")
    assert "cannot be written" not in shown.stderr
    assert "No private key lies here" not in shown.stderr
    audited = run("--ledger", ledger, "audit")
    said = audited.stdout + audited.stderr
    assert audited.exit_code == 0
    assert f"the statement key is not here: it is signed for by {uri}" in said.replace("\n", " ")
    assert "private keys that are not here" not in said


@pytest.mark.parametrize("uri", ["unix:/nowhere/signer.sock", "file2:/nowhere/key.pem", "awskms:1234"])
@pytest.mark.parametrize("role", ROLES)
def test_an_audit_finds_a_signer_whose_key_is_not_the_one_that_the_log_names(
    run: Run, ledger: Path, uri: str, role: str
) -> None:
    vkeys = {str(key["role"]): str(key["vkey"]) for key in listed(run, ledger)}
    other = next(vkey for name, vkey in vkeys.items() if name != role)
    (ledger / "keys" / f"{role}.pem").unlink()
    lies_elsewhere(ledger / "keys", role, uri, vkeys[role])
    assert run("--ledger", ledger, "audit").exit_code == 0
    where = ledger / "keys" / f"{role}.uri"
    where.write_text(f"{uri}\n{other}\n")
    audited = run("--ledger", ledger, "--format", "json", "audit")
    assert audited.exit_code == 1
    assert f"expected the {role} key that the log names, {vkeys[role]}, found {other}" in audited.stdout
    for broken in ("", f"{uri}\n", f"{uri}\nno vkey\n"):
        where.write_text(broken)
        audited = run("--ledger", ledger, "--format", "json", "audit")
        assert audited.exit_code == 1
        assert "expected a line with a URI and one with the key's vkey" in audited.stdout


def test_keys_are_encrypted_and_decrypted(run: Run, ledger: Path, home: Path) -> None:
    secret = home / "secret"
    secret.write_text("of a test\n")
    secret.chmod(0o600)
    done = run("--ledger", ledger, "keys", "encrypt", "--passphrase-file", secret)
    assert (done.exit_code, done.stdout.count(": encrypted")) == (0, 3)
    refused = run("--ledger", ledger, "keys", "decrypt")
    assert refused.exit_code != 0
    assert "is encrypted, and there is no passphrase" in refused.stderr
    assert run("--ledger", ledger, "keys", "list").exit_code == 0
    with (ledger / "config.toml").open("a") as config:
        config.write(f'\nkey_passphrase_file = "{secret}"\n')
    done = run("--ledger", ledger, "--format", "json", "keys", "decrypt")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["encrypted"] is False
    assert b"BEGIN PRIVATE KEY" in (ledger / "keys" / "log.pem").read_bytes()


def test_without_a_terminal_and_a_file_nothing_is_encrypted(run: Run, ledger: Path) -> None:
    done = run("--ledger", ledger, "keys", "encrypt")
    assert (done.exit_code, "nobody sits at a terminal" in done.stderr) == (2, True)


def test_without_a_role_a_whole_policy_is_printed_whose_lines_name_the_role(run: Run, ledger: Path) -> None:
    vkeys = {role: run("--ledger", ledger, "keys", "vkeys", "--role", role).stdout.strip() for role in ROLES}
    said = run("--ledger", ledger, "keys", "vkeys").stdout
    assert sorted(said.splitlines()) == sorted(
        [f"log {vkeys['log']}", *(f"# a2a-ledger: {role} {vkeys[role]}" for role in ROLES[1:]), "quorum none"]
    )
    policy = parse_policy(said.encode())
    assert {role: [key.vkey for key in policy.keys(role)] for role in ROLES} == {
        role: [vkey] for role, vkey in vkeys.items()
    }
    lines = [
        json.loads(line) for line in run("--ledger", ledger, "--format", "json", "keys", "vkeys").stdout.splitlines()
    ]
    assert {line["role"]: line["vkey"] for line in lines} == vkeys


def test_a_role_that_has_no_key_is_said(run: Run, ledger: Path) -> None:
    none = run("--ledger", ledger, "keys", "vkeys", "--role", "peer")
    assert (none.exit_code, none.stdout) == (0, "")
    assert none.stderr == (
        "The log names no current key of role peer; it is made when `follow` runs with peers named below [anchor].\n"
    )
    made = run("--ledger", ledger, "--format", "json", "keys", "vkeys", "--role", "log")
    assert (made.exit_code, made.stderr) == (0, "")
