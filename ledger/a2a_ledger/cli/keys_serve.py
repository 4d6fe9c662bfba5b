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
    "--allow-user", "users", type=click.IntRange(0), multiple=True, metavar="UID", help="Who may ask beside this user."
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
    newest head is remembered beside the keys. Who asks is told by the kernel.
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
@pass_session
def use_keys(session: Session, *, uri: str) -> None:
    """Have another process sign for this ledger.

    Move keys/*.pem to it first. Each of its keys has to be the one that the log names for its role now.
    """
    from a2a_ledger.key_ring import lies_elsewhere  # noqa: PLC0415 - a heavy import belongs to the verb
    from a2a_ledger.signing.away import UNIX, keys_at  # noqa: PLC0415 - same
    from a2a_ledger.store.log_keys import NOW, log_keys  # noqa: PLC0415 - same

    if not uri.startswith(UNIX):
        raise UsageError(f"expected unix: and the path of a signer's socket, found {uri!a:.200}")
    path = str(Path(uri.removeprefix(UNIX)).absolute())
    offered = keys_at(path)
    with session.reading() as ledger:
        known = log_keys(ledger.store)
        for role, vkey in offered.items():
            if vkey not in [key.vkey for key in known.speaking(role, NOW)]:
                raise UsageError(f"the signer at {path} has a {role} key that the log does not name now: {vkey}")
        assert ledger.home is not None  # noqa: S101 - a session opens directories only
        for role, vkey in offered.items():
            lies_elsewhere(ledger.home.keys, role, f"{UNIX}{path}", vkey)
    if session.as_json:
        print_json({"signer": f"{UNIX}{path}", "keys": offered})
    else:
        click.echo(f"{', '.join(offered)}: signed for by {path} from now on")
