"""`proxy`: a recording reverse proxy in front of an agent in any language."""

from __future__ import annotations

import socket
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.output import note, print_json
from a2a_ledger.cli.session import pass_session
from a2a_ledger.cli.verb import Verb
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from a2a_ledger.cli.session import Session

_WILDCARDS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - named to be told apart, not bound
_BACKLOG = 256
_LAST_PORT = 65535


@click.command(
    "proxy",
    cls=Verb,
    example="a2a-ledger --ledger audit proxy --upstream https://agent.example --listen 127.0.0.1:9000 --rewrite-card",
)
@click.option("--upstream", required=True, metavar="URL", help="Base URL of the agent.")
@click.option(
    "--listen", default="127.0.0.1:0", show_default=True, metavar="HOST:PORT", help="Where to listen; 0: a free port."
)
@click.option("--public", metavar="URL", help="Base URL by which clients reach the proxy; default: where it listens.")
@click.option(
    "--mode",
    type=click.Choice(["observe", "enforce"]),
    default="observe",
    show_default=True,
    help="Record only, or refuse what the guard would.",
)
@click.option(
    "--side",
    type=click.Choice(["client", "server"]),
    default="client",
    show_default=True,
    help="Whose record it is: a client's of that agent, or the agent's own.",
)
@click.option("--rewrite-card", is_flag=True, help="Put the proxy's URLs into the cards that pass.")
@pass_session
def proxy(  # noqa: PLR0913 - one argument an option
    session: Session, *, upstream: str, listen: str, public: str | None, mode: str, side: str, rewrite_card: bool
) -> None:
    """Record what passes between clients and an agent.

    JSON-RPC, HTTP+JSON, cards and event streams pass octet for octet; websockets are refused. Clients come here if the
    agent's card names the proxy, or with --rewrite-card, which serves a card of its own making, without the agent's
    signatures. Answers are asked for without compression. Needs the extra `server`.

    Runs until Ctrl-C or SIGTERM. Then nothing new is accepted, what runs has five seconds to end (a second
    signal: none), what still runs is stopped and recorded as that, the ledger is closed, and the exit code is 0,
    whatever further signals come meanwhile.
    """
    _need_extra()
    from a2a_ledger.capture.proxy import proxy_app  # noqa: PLC0415 - needs the extra, and only this verb does
    from a2a_ledger.capture.proxy.serving import serve  # noqa: PLC0415 - the same

    host, port = _address(listen)
    if public is None and host in _WILDCARDS and (rewrite_card or side == "server"):
        raise UsageError(f"--listen {listen}: expected --public URL beside it, since no client can reach {host}")
    with session.writing(mode=mode) as ledger, _bound(host, port, listen) as listening:
        here = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
        app = proxy_app(ledger, upstream, public=public or here, side=side, rewrite_card=rewrite_card)
        if session.as_json:
            print_json({"listening": here, "upstream": upstream, "mode": mode, "side": side})
        else:
            click.echo(f"{here} -> {upstream}, mode {mode}, recorded as the {_WHOSE[side]}. Stop with Ctrl-C.")
        if side == "client" and not rewrite_card:
            note("Cards pass as they are: clients come here only if the agent's card names this address.")
        serve(app, listening)


_WHOSE = {"client": "client's", "server": "agent's own"}


def _need_extra() -> None:
    """See that the extra is installed.

    Raises:
        UsageError: it is not.
    """
    missing = [name for name in ("httpx", "starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"the proxy needs {', '.join(missing)}, which is not installed: pip install 'a2a-ledger[server]'"
        )


def _address(listen: str) -> tuple[str, int]:
    """Read HOST:PORT; a host in brackets is one of IPv6.

    Raises:
        UsageError: it is not of that form.
    """
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > _LAST_PORT:
        raise UsageError(f"--listen: expected HOST:PORT such as 127.0.0.1:9000, found {listen!r}")
    return host, int(port)


def _bound(host: str, port: int, listen: str) -> socket.socket:
    """Listen.

    Raises:
        UsageError: it cannot be listened there.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as e:
        raise UsageError(f"--listen {listen}: cannot listen there: {e.strerror or e}") from e
    # asyncio does not switch Nagle's algorithm off for such a socket: the second piece of each answer, and each event
    # of a stream, would wait 40 ms for the client's delayed acknowledgement. What it accepts inherits the option.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


VERBS = (proxy,)
