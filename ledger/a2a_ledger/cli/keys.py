"""`keys`: which keys speak for this log, and their public halves to give away."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.keys_serve import serve_keys, use_keys
from a2a_ledger.cli.output import note, print_json
from a2a_ledger.cli.session import asked, pass_session
from a2a_ledger.cli.table import print_table
from a2a_ledger.cli.verb import Verb, VerbGroup
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.cli.session import Session
    from a2a_ledger.rotation import Rotated
    from a2a_ledger.store import Store

_ROLES = ["log", "statement", "export", "peer"]
_IN_A_POLICY = {
    "log": "log",
    "statement": "# a2a-ledger: statement",
    "export": "# a2a-ledger: export",
    "peer": "# peer",  # a witness of its peers' logs, and nothing in a policy for this one
}
_KEY_EVENTS = ("key.added.v1", "key.retired.v1", "key.revoked.v1")


@click.group("keys", cls=VerbGroup, example="a2a-ledger --ledger audit keys list")
def keys() -> None:
    """Show the keys of a ledger, and replace them. No private key is ever printed."""


@keys.command("list", cls=Verb, example="a2a-ledger --ledger audit keys list")
@pass_session
def list_keys(session: Session) -> None:
    """List every key that the log names: role, state, since when."""
    from a2a_ledger.key_ring import signed_for_by  # noqa: PLC0415 - a heavy import belongs to the verb

    with session.reading() as ledger:
        found = list(_keys(ledger.store))
        session.keys_can_be_listed()
        here = {path.stem for path in ledger.home.key_files() if path.suffix == ".pem"} if ledger.home else set[str]()
        away = signed_for_by(ledger.home.keys) if ledger.home else {}
    for key in found:
        current = key["state"] == "current"
        key["private_key_here"] = current and key["role"] in here
        key["signed_for_by"] = away.get(str(key["role"])) if current else None
    if session.as_json:
        for key in found:
            print_json(key)
        return
    columns = ["ROLE", "KEY ID", "STATE", "SINCE", "PRIVATE KEY"]
    rows = [
        [
            str(k["role"]),
            str(k["key_id"]),
            str(k["state"]),
            f"#{k['position']}",
            _where(k),
        ]
        for k in found
    ]
    print_table(columns, rows, styles={"revoked": "red", "retired": "yellow"}, drop=("SINCE", "STATE"))
    if not here and not away:
        note("No private key lies here: this copy can be read and verified, not written.")


def _where(key: dict[str, object]) -> str:
    """Say where a key's private half is."""
    if key["signed_for_by"]:
        return f"signed for by {key['signed_for_by']}"
    return "here" if key["private_key_here"] else "not here"


@keys.command("vkeys", cls=Verb, example="a2a-ledger --ledger audit keys vkeys --role log")
@click.option("--role", type=click.Choice(_ROLES), help="Only the key of this role.")
@pass_session
def vkeys(session: Session, *, role: str | None) -> None:
    """Print the current verifier keys, one a line.

    They are for whoever is to trust this log.
    Give them to the reader on a way that a forger does not control. With --role the key stands alone, as
    `verify --trust` takes it; without, what is printed is a policy file, which asks for no witness: each line names the
    role, and the last one is `quorum none`.
    """
    with session.reading() as ledger:
        found = [key for key in _keys(ledger.store) if key["state"] == "current" and role in {None, key["role"]}]
    for key in found:
        if session.as_json:
            print_json({"role": key["role"], "vkey": key["vkey"]})
        else:
            click.echo(key["vkey"] if role else f"{_IN_A_POLICY[str(key['role'])]} {key['vkey']}")
    if found and role is None and not session.as_json:
        click.echo("quorum none")
    if not found:
        made = "; it is made when `follow` runs with peers named below [anchor]" if role == "peer" else ""
        note(f"The log names no current key of role {role or 'any'}{made}.")


@keys.command("rotate", cls=Verb, example="a2a-ledger --ledger audit keys rotate --role log")
@click.option("--role", type=click.Choice(_ROLES), required=True, help="Which key gives way to a new one.")
@click.option("--to", "uri", metavar="URI", help="Where the new key lies, as for `keys use`; default: made here.")
@click.option("--public-key", type=click.Path(path_type=Path), metavar="PEM", help="Of the new key at --to.")
@pass_session
def rotate_key(session: Session, *, role: str, uri: str | None, public_key: Path | None) -> None:
    """Replace a key by a new one that both sign for.

    The old private key is overwritten, and speaks for no later head. Running processes take up the new one by
    themselves. Whoever trusts the old log key follows the hand-over; witnesses have to be given the new one.
    """
    from a2a_ledger.cli.keys_serve import key_at  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.rotation import Elsewhere, rotate  # noqa: PLC0415 - same

    if (uri is None) != (public_key is None):
        raise UsageError("expected --to and --public-key together: a key elsewhere is known by its public half")
    if uri is not None and role == "peer":
        raise UsageError("the peer key lies here: heads of peers are compared where their cosignature is made")
    with session.writing(follow=False) as ledger:
        to = None
        if uri is not None and public_key is not None:
            to = Elsewhere(uri, key_at(uri, role, ledger.origin, public_key))
        _say_replaced(session, rotate(ledger, role, sleep=time.sleep, to=to))


@keys.command("revoke", cls=Verb, example="a2a-ledger --ledger audit keys revoke 5f2c91aa --size 3")
@click.argument("key_id")
@click.option("--size", type=click.IntRange(0), required=True, help="The last size at which it was nobody else's.")
@pass_session
def revoke_key(session: Session, *, key_id: str, size: int) -> None:
    """End a key that was stolen or lost; trust it up to SIZE alone.

    One that is in force gets a successor. Choose the newest size that somebody else has anchored before: what
    was only signed since may be a thief's. Readers do not follow a hand-over by a key that is revoked from there
    on: give them the new key as you gave them the first one.

    Findings that a statement key signed behind SIZE are not signed again. Bundles made from now on show the
    revocation, and their readers answer NOT PROVEN for such a finding; one made before stays as it was, so keep
    it, best under a head that others hold. What an export key signed before is not undone either: export again.
    """
    from a2a_ledger.rotation import revoke  # noqa: PLC0415 - a heavy import belongs to the verb

    with session.writing(follow=False) as ledger:
        _say_replaced(session, revoke(ledger, key_id, size))


@keys.command("encrypt", cls=Verb, example="a2a-ledger --ledger audit keys encrypt --passphrase-file passphrase.txt")
@click.option(
    "--passphrase-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Holds the passphrase, mode 0600; default: a person is asked.",
)
@pass_session
def encrypt_keys(session: Session, *, passphrase_file: Path | None) -> None:
    """Encrypt the key files with a passphrase.

    Whoever opens the ledger to write needs it: in the file that the setting key_passphrase_file names, in
    A2A_LEDGER_KEY_PASSPHRASE, or typed at a terminal. It has no place on the command line.
    """
    from a2a_ledger.passphrase import read_passphrase  # noqa: PLC0415 - a heavy import belongs to the verb

    if passphrase_file is not None:
        new = read_passphrase(passphrase_file)
    elif asked() is not None:
        new = str(click.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True)).encode()
    else:
        raise UsageError("no passphrase: expected --passphrase-file FILE, since nobody sits at a terminal")
    _reseal(session, new)


@keys.command("decrypt", cls=Verb, example="a2a-ledger --ledger audit keys decrypt")
@pass_session
def decrypt_keys(session: Session) -> None:
    """Write the key files without encryption again."""
    _reseal(session, None)


def _reseal(session: Session, passphrase: bytes | None) -> None:
    from a2a_ledger.key_ring import KeyRing, reseal  # noqa: PLC0415 - a heavy import belongs to the verb

    with session.writing(follow=False) as ledger:
        if not isinstance(ledger.signers, KeyRing):
            raise UsageError("the keys of this ledger lie in no directory of its own: there are no files to write")
        files = [str(path) for path in reseal(ledger.signers, passphrase)]
    if session.as_json:
        print_json({"encrypted": passphrase is not None, "files": files})
        return
    for name in files:
        click.echo(f"{name}: {'not ' if passphrase is None else ''}encrypted")


def _say_replaced(session: Session, done: Rotated) -> None:
    old = [key.vkey for key in done.old]
    if session.as_json:
        new = done.new.vkey if done.new else None
        print_json(
            {
                "role": done.role,
                "old": old,
                "new": new,
                "size": done.size,
                "lapsed": done.lapsed,
                "unsigned": done.unsigned,
            }
        )
        return
    for vkey in old:
        click.echo(f"{done.role} key {vkey.split('+')[1]} has ended.")
    if done.new is not None:
        click.echo(f"It is followed by:\n{done.new.vkey}")
    if done.unsigned is not None:
        note(f"It is recorded, and no head covers it yet: {done.unsigned}. Whoever can sign next signs that too.")
    if done.lapsed:
        from a2a_ledger.verify.signed import LAPSED  # noqa: PLC0415 - a heavy import belongs to the verb

        what = "1 recorded finding has" if done.lapsed == 1 else f"{done.lapsed} recorded findings have"
        note(f"{what} no signer any more that counts: {LAPSED}.")


keys.add_command(serve_keys)
keys.add_command(use_keys)
VERBS = (keys,)


def _keys(store: Store) -> Iterator[dict[str, object]]:
    events = sorted((r for kind in _KEY_EVENTS for r in store.tagged(f"type:{kind}")), key=lambda r: r.n)
    ended = {r.data.get("vkey"): r for r in events if r.type != "key.added.v1"}
    for record in events:
        if record.type != "key.added.v1":
            continue
        end = ended.get(record.data.get("vkey"))
        yield {
            "role": record.data.get("role"),
            "key_id": record.data.get("key_id"),
            "vkey": record.data.get("vkey"),
            "position": record.n,
            "state": "current" if end is None else end.type.split(".")[1],
            "ended": end.n if end else None,
        }
