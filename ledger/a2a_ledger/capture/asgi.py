"""ASGI middleware for an agent: the receiving side keeps a ledger of its own (docs/format.md section 14).

    app = ContractLedgerMiddleware(app, ContractLedger.open("audit"), "https://me.example/.well-known/agent-card.json")

Every request is recorded as it came, before the application sees it, and every answer as it leaves; streams pass
live, event by event. Nothing that we say ourselves is judged. Put it inside of what compresses or encrypts answers.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from a2a_ledger.capture.carried_heads import answering_with_head
from a2a_ledger.capture.desk import Desk
from a2a_ledger.capture.failures import Failure
from a2a_ledger.capture.server.answering import Answering
from a2a_ledger.capture.server.incoming import Incoming
from a2a_ledger.capture.server.opening import Servant
from a2a_ledger.capture.server.problem import send_problem
from a2a_ledger.capture.server.served import ServedRequest, being_served
from a2a_ledger.capture.server.spool import Spool
from a2a_ledger.errors import LedgerError

if TYPE_CHECKING:
    from a2a_ledger.capture.exchange import Exchange
    from a2a_ledger.capture.redact import Redactor
    from a2a_ledger.capture.server.incoming import AsgiApp, Message, Receive, Scope, Send
    from a2a_ledger.ledger import ContractLedger

_log = logging.getLogger(__name__)

_NOT_PASSED = ("http.response.pathsend", "http.response.zerocopysend")
"""Ways to answer past the middleware: not offered to the application."""


class ContractLedgerMiddleware:
    """Records what passes between an ASGI server and an agent."""

    def __init__(self, app: AsgiApp, ledger: ContractLedger, card_url: str, *, redact: Redactor | None = None) -> None:
        """Wrap an application.

        Args:
            app: the agent.
            ledger: the agent's own ledger.
            card_url: where the world finds the agent's public card; the peer id of both sides is made from it.
            redact: the user's own redaction, beside the one that always happens. Where it fails, all that it was to
                look through is withheld; for a large message it is called in a thread (see `Redactor`).
        """
        self._app = app
        self._servant = Servant(Desk(ledger, client_versions=(), redact=redact), card_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection; what is no HTTP request passes as it is.

        The application is told that the server stops when what was begun is recorded: it may close the ledger then.
        """
        if scope["type"] == "lifespan":
            receive = self._ending(receive)
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                _log.warning("a websocket passes unrecorded: A2A has no binding for it")
            await self._app(scope, receive, send)
            return
        ledger = self._servant.desk.ledger
        request = Incoming(scope, receive, Spool(ledger.settings.keep_body, ledger.entropy))
        try:
            await self._serve(scope, request, send)
        finally:
            request.body.close()

    async def settled(self) -> None:
        """Wait for what is still being recorded, before the ledger is closed by who serves without a lifespan."""
        await self._servant.desk.underway.settled()

    def _ending(self, receive: Receive) -> Receive:
        async def received() -> Message:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.settled()
            return message

        return received

    async def _serve(self, scope: Scope, request: Incoming, send: Send) -> None:
        came_whole = await request.read()
        exchange: Exchange | None = None
        try:
            with self._servant.desk.failing_as_chosen():
                exchange = await self._servant.open(request)
        except LedgerError as error:
            await send_problem(send, error)
            return
        if not came_whole:
            if exchange is not None:
                await exchange.failed(Failure("closed", None, "the client had gone before the whole request came"))
            return
        scope = {**scope, "extensions": {k: v for k, v in scope.get("extensions", {}).items() if k not in _NOT_PASSED}}
        if exchange is None:  # passes unrecorded, as was chosen
            await self._app(scope, request.receive, send)
            return
        await self._answer(scope, request, exchange, send)

    async def _answer(self, scope: Scope, request: Incoming, exchange: Exchange, send: Send) -> None:
        send = answering_with_head(exchange.desk.ledger, request.headers, send)
        answering = Answering(exchange, request, self._servant.cards, send)
        token = being_served.set(ServedRequest(exchange.stream, exchange.leg.task_id))
        try:
            await self._app(scope, request.receive, answering.send)
        except LedgerError as error:
            _log.error("an answer could not be recorded and did not leave: %s", error)
            if not answering.begun:
                await send_problem(send, error)
            await self._finished(answering, error)
        except BaseException as error:
            await self._finished(answering, error)
            raise
        else:
            await self._finished(answering, None)
        finally:
            being_served.reset(token)

    async def _finished(self, answering: Answering, error: BaseException | None) -> None:
        """Record how it ended; what the application raised matters more than a ledger that fails on top of it."""
        try:
            await answering.finished(error)
        except LedgerError as failure:
            _log.error("how an answer ended was not recorded: %s", failure)
