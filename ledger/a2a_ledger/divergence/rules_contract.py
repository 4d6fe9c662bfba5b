"""Contract rules that read what a message states about itself: its pin, its version, its interface.

`auth-demand`, the fourth of the class in this rule set, has a module of its own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from a2a_ledger.address import normal_url, origin_of
from a2a_ledger.divergence.reading import REDIRECTS, leg_of, members, number, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.contract import Profile
    from a2a_ledger.divergence.finding import Finding
    from a2a_ledger.divergence.matter import Matter
    from a2a_ledger.divergence.reading import Frozen
    from a2a_ledger.events import Json

VERSION_NOT_SUPPORTED = -32009


def request_rules(matter: Matter, frozen: Frozen) -> Iterator[Finding]:
    """Hold a request of ours against the frozen contract."""
    agreed = _agreed(matter, frozen)
    spoken = text(matter.record.data, "wire_version")
    if agreed is not None and spoken not in {None, agreed} and not _request_fits(agreed, spoken or "", matter, frozen):
        yield _skew(matter, "client", agreed, spoken)
    drift = _drift(matter, frozen)
    if drift:
        sent_to = matter.case.redirect
        redirected = sent_to is not None and _place(sent_to) == _place(text(matter.record.data, "url") or "")
        about = "peer" if redirected else "client"
        yield matter.finding("interface-drift", about=about, subject="interface", observed={**drift})


def answer_rules(matter: Matter, frozen: Frozen) -> Iterator[Finding]:
    """Hold a message of the peer against the frozen contract."""
    if matter.record.data.get("pin") is not None:
        yield from _pin_mismatch(matter, frozen)
    yield from _version_skew(matter, frozen)
    if number(matter.record.data, "status") in REDIRECTS:
        yield from _redirect(matter, frozen)


def _agreed(matter: Matter, frozen: Frozen) -> str | None:
    """Return the version of the frozen interface, or the one that the first exchange decided on."""
    return frozen.interface["version"] or matter.case.version


def _pin_mismatch(matter: Matter, frozen: Frozen) -> Iterator[Finding]:
    """A Task of the peer carries another contract hash of the same form in its own metadata."""
    pin = members(matter.record.data.get("pin"))
    echoed, form = text(pin, "contractHash"), text(pin, "form")
    if echoed is None or frozen.contract_hash is None or form != frozen.form or echoed == frozen.contract_hash:
        return  # of another form: not comparable, which is no violation
    yield matter.finding(
        "pin-mismatch",
        about="peer",
        subject=echoed,
        observed={"frozen": frozen.contract_hash, "echoed": echoed, "form": frozen.form, "pointer": "/metadata"},
    )


def _version_skew(matter: Matter, frozen: Frozen) -> Iterator[Finding]:
    """The peer speaks another version than frozen: by envelope or error, never by state spelling."""
    agreed, asked = _agreed(matter, frozen), matter.asked
    if agreed is None:
        return
    if asked is not None and asked.version is not None and _major(asked.version) != _major(agreed):
        return  # the peer follows a request that was itself in another version
    spoken = text(matter.record.data, "wire_version")
    if spoken is not None and _major(spoken) != _major(agreed):
        yield _skew(matter, "peer", agreed, spoken)
    elif matter.record.data.get("error_code") == VERSION_NOT_SUPPORTED:
        yield _skew(matter, "peer", agreed, None)


def _skew(matter: Matter, about: str, agreed: str, spoken: str | None) -> Finding:
    """Return the finding; `spoken` None: the peer refused the agreed version by an error."""
    shown_by = "request" if about == "client" else "envelope" if spoken is not None else "error"
    return matter.finding(
        "version-skew",
        about=about,
        subject=f"{shown_by}:{spoken or VERSION_NOT_SUPPORTED}",
        observed={
            "frozen": agreed,
            "spoken": spoken,
            "shown_by": shown_by,
            "error_code": number(matter.record.data, "error_code"),
        },
    )


def _request_fits(agreed: str, spoken: str, matter: Matter, frozen: Frozen) -> bool:
    """Say whether a request is in the agreed version, as far as one can tell.

    0.2 and 0.3 share their methods, and `tasks/get` and its like are the same from 0.1 on. In
    HTTP+JSON a path that begins with /v1 may belong to the interface's own url.
    """
    if _major(agreed) != 0 or _major(spoken) != 0:
        behind_v1 = _place(frozen.interface["url"]).endswith("/v1")
        if text(matter.record.data, "binding") == "HTTP+JSON" and _major(spoken) == 0 and behind_v1:
            return True
        return agreed == spoken
    oldest = "0.1" in {agreed, spoken}
    is_send = (text(matter.record.data, "method_spelled") or "").startswith(("message/", "tasks/send"))
    return agreed == spoken or not (oldest and is_send)


@lru_cache(maxsize=256)
def _major(version: str) -> int:
    head = version.partition(".")[0]
    return int(head) if head.isdecimal() and len(head) < 6 else -1  # noqa: PLR2004 - capture keeps five digits at most


def _redirect(matter: Matter, frozen: Frozen) -> Iterator[Finding]:
    """The peer sends us elsewhere."""
    target = leg_of(matter.record).redirect
    if target is not None and frozen.interface["url"] and not _within(target, frozen, matter.profile):
        observed: dict[str, Json] = {
            "frozen_url": frozen.interface["url"],
            "redirected_to": origin_of(target)[:256],
        }
        yield matter.finding("interface-drift", about="peer", subject="interface", observed=observed)


def _drift(matter: Matter, frozen: Frozen) -> dict[str, str]:
    """Return what of the interface a request leaves: url, host, tenant, binding; empty: nothing."""
    data, used, profile = matter.record.data, frozen.interface, matter.profile
    found: dict[str, str] = {}
    binding, url, tenant = text(data, "binding") or "", text(data, "url") or "", text(data, "tenant") or ""
    if binding in {"JSONRPC", "HTTP+JSON", "GRPC"} and used["binding"] and binding != used["binding"]:
        found |= {"frozen_binding": used["binding"], "binding": binding}
    if not used["url"]:
        return found
    if not _within(url, frozen, profile):
        found |= {"frozen_url": used["url"], "url": url}
    elif matter.case.sent is None and not _is_listed(used["url"], used["binding"], frozen, profile):
        found |= {"listed_url": ", ".join(_listed(frozen))[:256], "url": url}
    if tenant and tenant != used["tenant"]:
        found |= {"frozen_tenant": used["tenant"], "tenant": tenant}
    return found


def _within(url: str, frozen: Frozen, profile: Profile) -> bool:
    """Say whether a url belongs to the frozen interface, or to one that the profile calls the same."""
    return _belongs(url, frozen.interface["url"], frozen.interface["binding"], profile)


def _is_listed(url: str, binding: str, frozen: Frozen, profile: Profile) -> bool:
    """Say whether the card lists the interface that was used; a card that lists none says nothing."""
    listed = _listed(frozen)
    return not listed or any(_belongs(url, one, binding, profile) for one in listed)


def _listed(frozen: Frozen) -> list[str]:
    interfaces = (frozen.contract or {}).get("interfaces")
    urls = [text(members(one), "url") for one in interfaces] if isinstance(interfaces, list) else []
    return [url for url in urls if url]


def _belongs(url: str, interface: str, binding: str, profile: Profile) -> bool:
    """Compare by place: a JSON-RPC interface is one url; the operations of HTTP+JSON lie below theirs."""
    place, base = _place(url), _place(interface)
    bases = {base}
    for alias in profile.aliases:
        stood = _place(alias.frozen)
        if base == stood or base.startswith(stood + "/"):
            bases.add(_place(alias.seen) + base.removeprefix(stood))
    if binding == "JSONRPC":
        return place in bases
    return any(place == one or place.startswith((one + "/", one + ":")) for one in bases)


@lru_cache(maxsize=1024)
def _place(url: str) -> str:
    """Cut a url to what an interface is compared by: no query, no trailing slash."""
    return normal_url(url).partition("?")[0].partition("#")[0].rstrip("/")
