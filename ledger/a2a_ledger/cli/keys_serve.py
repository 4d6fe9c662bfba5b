"""`keys serve` and `keys use`: a process of its own that holds the keys, and the ledger that asks it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.output import clean, note, print_json
from a2a_ledger.cli.session import asked, pass_session
from a2a_ledger.cli.verb import Verb
from a2a_ledger.errors import MissingKeysError, UsageError

if TYPE_CHECKING:
    from types import FrameType

    from a2a_ledger.cli.session import Session
    from a2a_ledger.keys import Signer


_PROBE = b"a2a-ledger/probe/v1\x00"


@click.command(
    "serve",
    cls=Verb,
    example="a2a-ledger keys serve --keys /srv/keys --origin acme/audit-1b9e04c7 --socket /run/audit.sock",
)
@click.option("--socket", "place", type=click.Path(path_type=Path), required=True, help="Where to listen.")
@click.option(
    "--keys", "folder", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Holds log.pem and so on."
)
@click.option("--origin", required=True, metavar="NAME", help="The log's whole name, as `keys vkeys` begins.")
@click.option(
    "--allow-user",
    "users",
    type=click.IntRange(0),
    multiple=True,
    metavar="UID",
    help="Who may ask beside this user; the socket is then open to all (mode 0666), and nobody else is answered.",
)
@click.option(
    "--passphrase-file", type=click.Path(path_type=Path), metavar="FILE", help="Of encrypted keys, mode 0600."
)
@pass_session
def serve_keys(  # noqa: PLR0913 - the options of a verb
    session: Session, *, place: Path, folder: Path, origin: str, users: tuple[int, ...], passphrase_file: Path | None
) -> None:
    """Sign for a ledger whose process does not hold the keys.

    Signs heads that never fall behind one signed before, findings, manifests and exports, and nothing else. The
    newest head is remembered beside the keys. Who asks is told by the kernel; a user of --allow-user has to be able
    to reach the folder that the socket is in.
    """
    from a2a_ledger.keys import load_pem  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.making import KEY_ROLES  # noqa: PLC0415 - same
    from a2a_ledger.passphrase import Passphrase  # noqa: PLC0415 - same
    from a2a_ledger.signing.rules import Rules  # noqa: PLC0415 - same
    from a2a_ledger.signing.server import SignerServer  # noqa: PLC0415 - same

    passphrase = Passphrase(passphrase_file, asked())
    files = {role: folder / f"{role}.pem" for role in KEY_ROLES}
    signers = {role: load_pem(path, origin, passphrase) for role, path in files.items() if path.exists()}
    if not signers:
        raise MissingKeysError(f"{folder}: expected log.pem, statement.pem or export.pem, found none of them")
    server = SignerServer(place, signers, Rules(origin, folder), {os.geteuid(), *users})

    def stop(_: int, __: FrameType | None) -> None:
        server.close()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    if session.as_json:
        print_json({"socket": str(place), "keys": {role: signer.vkey for role, signer in signers.items()}})
    else:
        click.echo(f"{place}: signs as {', '.join(signers)} for {origin}")
    server.serve(on_error=lambda why: note(f"refused: {clean(why)}"))


@click.command("use", cls=Verb, example="a2a-ledger --ledger audit keys use unix:/run/audit.sock")
@click.argument("uri")
@click.option("--role", type=click.Choice(["log", "statement", "export"]), help="Of the key at URI; not for unix:.")
@pass_session
def use_keys(session: Session, *, uri: str, role: str | None) -> None:
    """Have another process, or a key service, sign for this ledger.

    URI is unix:PATH of a `keys serve`, or one that securesystemslib knows (file2:, awskms:, hashivault: and so on;
    needs the extra kms). Move keys/*.pem there first: each key has to be the one that the log names for its role now.
    """
    from a2a_ledger.key_ring import lies_elsewhere  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.signing.away import UNIX, keys_at, signer_at, wherever_we_run  # noqa: PLC0415 - same
    from a2a_ledger.store.log_keys import NOW, log_keys  # noqa: PLC0415 - same

    if uri.startswith(UNIX) == (role is not None):
        raise UsageError("expected --role with the URI of one key, and without it unix: and the path of a signer")
    place = wherever_we_run(uri)
    offered = keys_at(place.removeprefix(UNIX)) if role is None else dict[str, str]()
    with session.reading() as ledger:
        known = log_keys(ledger.store)
        for each, vkey in offered.items():
            if vkey not in [key.vkey for key in known.speaking(each, NOW)]:
                raise UsageError(f"the signer at {place} has a {each} key that the log does not name now: {vkey}")
        if role is not None:
            speaking = known.speaking(role, NOW)
            if not speaking:
                raise UsageError(f"{ledger.origin} has no {role} key now: a2a-ledger keys list shows those it had")
            _try(signer_at(place, role, speaking[-1]))
            offered[role] = speaking[-1].vkey
        assert ledger.home is not None  # noqa: S101 - a session opens directories only
        for each, vkey in offered.items():
            lies_elsewhere(ledger.home.keys, each, place, vkey)
    if session.as_json:
        print_json({"signer": place, "keys": offered})
    else:
        click.echo(f"{', '.join(offered)}: signed for by {place} from now on")


def key_at(uri: str, role: str, origin: str, public_key: Path) -> Signer:
    """Return the signer of a key that a log is to get, after it has signed something.

    Args:
        uri: where it lies.
        role: of the key.
        origin: of the log.
        public_key: a file with its public half, PEM.

    Raises:
        UsageError: the file cannot be read, or the URI is unknown or one that signs no hand-over.
        FormatError: it holds no Ed25519 public key.
        StoreError: the key cannot be had, or is another one.
    """
    from a2a_ledger.keys import Verifier, public_from_pem  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.signing.away import UNIX, signer_at  # noqa: PLC0415 - same

    if uri.startswith(UNIX):
        raise UsageError("a signer process signs no hand-over: rotate to a key here, and move it there afterwards")
    try:
        octets = public_from_pem(public_key.read_bytes())
    except OSError as e:
        raise UsageError(f"{public_key}: cannot be read ({e.strerror})") from e
    signer = signer_at(uri, role, Verifier(origin, octets))
    _try(signer)
    return signer


def _try(signer: Signer) -> None:
    """See that a key can be had and is the one that it is said to be; what is signed is of no use to anybody."""
    signer.sign(_PROBE + os.urandom(32))
