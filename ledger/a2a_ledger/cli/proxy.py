"""`proxy`: a recording reverse proxy in front of an agent in any language."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from a2a_ledger.cli.listening import address, bound, url_of
from a2a_ledger.cli.output import note, print_json
from a2a_ledger.cli.session import pass_session
from a2a_ledger.cli.verb import Verb
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from a2a_ledger.cli.session import Session

_WILDCARDS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - named to be told apart, not bound


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
@click.option("--metrics", metavar="HOST:PORT", help="Serve /metrics there for Prometheus; 0: a free port.")
@pass_session
def proxy(  # noqa: PLR0913 - one argument an option
    session: Session,
    *,
    upstream: str,
    listen: str,
    public: str | None,
    mode: str,
    side: str,
    rewrite_card: bool,
    metrics: str | None,
) -> None:
    """Record what passes between clients and an agent.

    JSON-RPC, HTTP+JSON, cards and event streams pass octet for octet; websockets are refused. Clients come here if the
    agent's card names the proxy, or with --rewrite-card, which serves a card of its own making, without the agent's
    signatures. Answers are asked for without compression. Needs the extra `server`.

    With --mode enforce, an event that a stream ends in the middle of is recorded and not passed on, and the kept card
    is served where the agent's has no validator, until the setting `cache` ends. 409 contract-changed is lifted by a
    GET of the card through the proxy, after `card accept` where the setting `acceptance` asks a person. 409 and 502
    name the task and the event that says more.

    Runs until Ctrl-C, SIGTERM or SIGHUP. Then nothing new is accepted, what runs has five seconds to end (a second
    signal: none), what still runs is stopped and recorded as that, the ledger is closed, and the exit code is 0,
    whatever further signals come meanwhile.
    """
    _need_extra()
    from a2a_ledger.capture.proxy import proxy_app  # noqa: PLC0415 - needs the extra, and only this verb does
    from a2a_ledger.capture.proxy.serving import serve  # noqa: PLC0415 - the same
    from a2a_ledger.cli.scraping import scraped  # noqa: PLC0415 - a heavy import belongs to the verb

    host, _ = address("--listen", listen)
    if public is None and host in _WILDCARDS and (rewrite_card or side == "server"):
        raise UsageError(f"--listen {listen}: expected --public URL beside it, since no client can reach {host}")
    with (
        session.writing(mode=mode) as ledger,
        bound("--listen", listen) as listening,
        scraped(ledger, metrics) as scrape,
    ):
        here = url_of(host, listening)
        app = proxy_app(ledger, upstream, public=public or here, side=side, rewrite_card=rewrite_card)
        if session.as_json:
            served = {} if scrape is None else {"metrics": scrape}
            print_json({"listening": here, "upstream": upstream, "mode": mode, "side": side, **served})
        else:
            click.echo(f"{here} -> {upstream}, mode {mode}, recorded as the {_WHOSE[side]}. Stop with Ctrl-C.")
        if scrape is not None and not session.as_json:
            note(f"Metrics for Prometheus: {scrape}")
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


VERBS = (proxy,)
