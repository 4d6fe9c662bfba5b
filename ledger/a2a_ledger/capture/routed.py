"""What really sends below a guarded client: whichever transport httpx would choose for each url.

`mounts=`, `proxy=` and the proxies of the environment give a client several transports. They all lie below its one
guarded transport, so that no request goes past that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import httpx

from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_FOR_SENDING = ("verify", "cert", "trust_env", "http1", "http2", "limits", "proxy", "proxies", "mounts")


class Routed(httpx.AsyncBaseTransport):
    """Hands each request to the transport that a client of these options would send it through."""

    def __init__(self, chooser: httpx.AsyncClient, another: Callable[[], Routed] | None = None) -> None:
        self._chooser = chooser
        self.another = another
        """Makes the same once more; None: it sends through a transport of the caller's, which cannot be made again."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request.

        Raises:
            httpx.HTTPError: as the transport that was chosen raises it.
        """
        chosen = self._chooser._transport_for_url(request.url)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - httpx chooses, by rules of its own
        return await chosen.handle_async_request(request)

    async def aclose(self) -> None:
        """Close all of them."""
        await self._chooser.aclose()


def take_sending(transport: httpx.AsyncBaseTransport | None, options: dict[str, Any]) -> Routed:
    """Return what really sends, made of the options of a client that are for it, which are taken out.

    Args:
        transport: where requests go that no proxy and no mount takes; default one made of the options, and then the
            proxies of the environment count as with httpx (`HTTP_PROXY`, `NO_PROXY`; not with `trust_env=False`).
        options: of a client; and `retries`, which makes a transport, beside which httpx reads no environment.

    Raises:
        UsageError: a transport is a synchronous one.
    """
    sending = {name: options.pop(name) for name in _FOR_SENDING if name in options}
    made_of = {**sending, **({"retries": options["retries"]} if "retries" in options else {})}
    mounted = cast("Mapping[str, object]", sending.get("mounts") or {})
    given = [one for one in (transport, *mounted.values()) if one is not None]
    for one in given:
        if not hasattr(one, "handle_async_request"):
            raise UsageError(
                f"expected an asynchronous transport, found {type(one).__name__}: a guarded client, the synchronous "
                "one too, sends through asynchronous transports; use httpx.AsyncHTTPTransport"
            )
    if "retries" in options and transport is None:
        mounts = {"mounts": sending.pop("mounts")} if "mounts" in sending else {}
        transport = httpx.AsyncHTTPTransport(retries=options.pop("retries"), **sending)
        sending = mounts
    another = None if given else lambda: take_sending(None, dict(made_of))
    return Routed(httpx.AsyncClient(transport=transport, **sending), another)
