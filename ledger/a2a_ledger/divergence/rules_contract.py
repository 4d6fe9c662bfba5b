"""Contract rules that read what a message states about itself: its pin, its version, its interface.

`auth-demand`, the fourth of the class in this rule set, has a module of its own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from a2a_ledger.address import authority_of, origin_of, url_difference, wire_url
from a2a_ledger.divergence.cut import cut_location, cut_url, may_be_at
from a2a_ledger.divergence.finding import CUT
from a2a_ledger.divergence.reading import REDIRECTS, is_of_another, leg_of, members, number, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.contract import Profile
    from a2a_ledger.divergence.finding import Finding
    from a2a_ledger.divergence.matter import Matter
    from a2a_ledger.divergence.reading import Frozen
    from a2a_ledger.events import Json

VERSION_NOT_SUPPORTED = -32009

_BINDINGS = frozenset({"JSONRPC", "HTTP+JSON", "GRPC"})
_SLASH = "trailing-slash"


def request_rules(matter: Matter, frozen: Frozen) -> Iterator[Finding]:
    """Hold a request of ours against the frozen contract; behind a proxy, against all that its card offers."""
    cut = matter.readings.heeds_cuts and _may_be_within(cut_url(matter.record), frozen, matter.profile)
    if frozen.for_many and matter.case.sent is not None and (cut or _is_offered(matter, frozen)):
        return
    agreed = _agreed(matter, frozen)
    spoken = text(matter.record.data, "wire_version")
    if agreed is not None and spoken not in {None, agreed} and not _request_fits(agreed, spoken or "", matter, frozen):
        yield _skew(matter, "client", agreed, spoken)
    yield from _drifted(matter, frozen, cut=cut)


def answer_rules(matter: Matter, frozen: Frozen) -> Iterator[Finding]:
    """Hold a message of the peer against the frozen contract."""
    if matter.record.data.get("pin") is not None:
        yield from _pin_mismatch(matter, frozen)
    yield from _version_skew(matter, frozen)
    if number(matter.record.data, "status") in REDIRECTS:
        yield from _redirect(matter, frozen)


def _agreed(matter: Matter, frozen: Frozen) -> str | None:
    """Return the version of the frozen interface, or the one that the first exchange decided on."""
    return frozen.interface["version"] or matter.told.version


def _pin_mismatch(matter: Matter, frozen: Frozen) -> Iterator[Finding]:
    """A Task of the peer carries another contract hash of the same form in its own metadata, in the place of our pin.

    What came with a request that we only passed on is its client's pin, and what names another log or another task is
    somebody else's: neither is a word of the peer about the contract that was frozen here. But a task that our own send
    opened had nobody else's pin before: one that stands there in the answer to that send is suspected.
    """
    pin = members(matter.record.data.get("pin"))
    echoed, form = text(pin, "contractHash"), text(pin, "form")
    if matter.readings.own_pins and not frozen.pin:
        return
    if echoed is None or frozen.contract_hash is None or form != frozen.form or echoed == frozen.contract_hash:
        return  # of another form: not comparable, which is no violation
    anothers = matter.readings.own_pins and is_of_another(pin, frozen.pin)
    if anothers and not _answers_opening(matter):
        return
    yield matter.finding(
        "pin-mismatch",
        about="peer",
        subject=echoed,
        certainty="suspected" if anothers else "certain",
        observed={
            "frozen": frozen.contract_hash,
            "echoed": echoed,
            "form": frozen.form,
            "pointer": "/metadata",
            "names": (text(pin, "origin") or text(pin, "task")) if anothers else None,
        },
    )


def _answers_opening(matter: Matter) -> bool:
    """Say whether this answers the send that opened a task of the peer, which has not acknowledged our pin yet."""
    asked, sent = matter.asked, matter.told.sent
    if asked is None or sent is None or asked.evidence.n != sent.n:
        return False
    is_new = asked.task_id is None and not asked.again
    return is_new and matter.case.acknowledged(matter.record, matter.told) is None


def _version_skew(matter: Matter, frozen: Frozen) -> Iterator[Finding]:
    """The peer speaks another version than frozen: by envelope or error, never by state spelling."""
    agreed, asked = _agreed(matter, frozen), matter.asked
    if agreed is None:
        return
    if asked is not None and asked.version is not None and _major(asked.version) != _major(agreed):
        return  # the peer follows a request that was itself in another version
    spoken = text(matter.record.data, "wire_version")
    if spoken is not None and _major(spoken) != _major(agreed):
        # A2A negotiates no version for pushes: SDKs post each in the envelope of their own version.
        if not (matter.readings.in_pushes and text(matter.record.data, "leg") == "push"):
            yield _skew(matter, "peer", agreed, spoken)
    elif matter.record.data.get("error_code") == VERSION_NOT_SUPPORTED:
        chosen = asked.version if asked is not None and asked.version != agreed else None
        yield _skew(matter, "peer" if chosen is None else "client", agreed, chosen)  # whose choice was refused?


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
    HTTP+JSON a path that begins with /v1 may belong to the interface's own url. From 1.0 on the
    major number tells versions apart: an SDK of 1.0 says so to an interface of 1.1.
    """
    if _same_major(agreed, spoken, matter):
        return True
    if _major(agreed) != 0 or _major(spoken) != 0:
        behind_v1 = _place(frozen.interface["url"]).endswith("/v1")
        if text(matter.record.data, "binding") == "HTTP+JSON" and _major(spoken) == 0 and behind_v1:
            return True
        return agreed == spoken
    oldest = "0.1" in {agreed, spoken}
    is_send = (text(matter.record.data, "method_spelled") or "").startswith(("message/", "tasks/send"))
    return agreed == spoken or not (oldest and is_send)


def _same_major(agreed: str, spoken: str, matter: Matter) -> bool:
    return matter.readings.by_major and _major(agreed) == _major(spoken) > 0


@lru_cache(maxsize=256)
def _major(version: str) -> int:
    head = version.partition(".")[0]
    return int(head) if head.isdecimal() and len(head) < 6 else -1  # noqa: PLR2004 - capture keeps five digits at most


def _redirect(matter: Matter, frozen: Frozen) -> Iterator[Finding]:
    """The peer sends us elsewhere; a slash more or less is its own spelling of its own place.

    Where what is left of the place after a cut may be ours, it is suspected.
    """
    target = leg_of(matter.record).redirect
    hidden = matter.readings.heeds_cuts and _may_be_within(cut_location(matter.record), frozen, matter.profile)
    if target is None or not frozen.interface["url"]:
        return
    if not hidden and _stands(target, frozen, matter.profile) != "outside":
        return
    observed: dict[str, Json] = {
        "frozen_url": frozen.interface["url"],
        "redirected_to": origin_of(target)[:256],
    }
    if hidden:
        observed[CUT] = "location"
    certainty = "suspected" if hidden else "certain"
    yield matter.finding("interface-drift", about="peer", subject="interface", observed=observed, certainty=certainty)


def _drifted(matter: Matter, frozen: Frozen, *, cut: bool) -> Iterator[Finding]:
    """A request of ours leaves the frozen interface; by a slash at the end alone, that is no more than suspected.

    `cut`: what is left of the url after a cut may be within. Where something was cut out of the place that the peer
    sent us to, and it is not seen to be this one, who left the interface cannot be told.
    """
    drift = _drift(matter, frozen, cut=cut)
    url, sent_to = text(matter.record.data, "url") or "", matter.told.redirect
    redirected = sent_to is not None and _place(sent_to) == _place(url)
    if drift:
        hidden = matter.readings.heeds_cuts and matter.told.redirect_cut
        about = "peer" if redirected else "either" if hidden else "client"
        yield matter.finding("interface-drift", about=about, subject="interface", observed={**drift})
    elif not redirected and not cut and frozen.interface["url"] and _stands(url, frozen, matter.profile) == _SLASH:
        yield matter.finding(
            "interface-drift",
            about="client",
            subject=f"interface:{_SLASH}",
            certainty="suspected",
            observed={"frozen_url": frozen.interface["url"], "url": url, "kind": _SLASH},
        )


def _drift(matter: Matter, frozen: Frozen, *, cut: bool) -> dict[str, str]:
    """Return what of the interface a request leaves: url, host, tenant, binding; empty: nothing."""
    data, used, profile = matter.record.data, frozen.interface, matter.profile
    found: dict[str, str] = {}
    binding, url, tenant = text(data, "binding") or "", text(data, "url") or "", text(data, "tenant") or ""
    frozen_binding = used["binding"].upper()  # real cards write "jsonrpc" too; a name of their own proves nothing
    if binding in _BINDINGS and frozen_binding in _BINDINGS and binding != frozen_binding:
        found |= {"frozen_binding": used["binding"], "binding": binding}
    if not used["url"] or cut:
        return found
    if _stands(url, frozen, profile) == "outside":
        found |= {"frozen_url": used["url"], "url": url}
        kind = url_difference(used["url"], url)
        found |= {"kind": kind} if kind else {}
    elif matter.case.sent is None and not _is_listed(used["url"], used["binding"], frozen, profile):
        found |= {"listed_url": ", ".join(_listed(frozen))[:256], "url": url}
    if tenant and tenant != used["tenant"]:
        found |= {"frozen_tenant": used["tenant"], "tenant": tenant}
    return found


def _stands(url: str, frozen: Frozen, profile: Profile) -> str:
    """Say how a url stands to the frozen interface, or to one that the profile calls the same."""
    return _place_of(url, frozen.interface["url"], frozen.interface["binding"], profile)


def _may_be_within(url: str | None, frozen: Frozen, profile: Profile) -> bool:
    """Say whether a url that something was cut out of may be within the frozen interface; None: no such url."""
    used = frozen.interface
    places = [(used["url"], used["binding"])]
    if frozen.for_many:
        listed = (frozen.contract or {}).get("interfaces")
        offered = map(members, listed if isinstance(listed, list) else [])
        places += [(text(one, "url") or "", text(one, "binding") or "") for one in offered]
    return url is not None and any(
        may_be_at(url, base, binding.upper()) for one, binding in places for base in _bases(one, profile)
    )


def _is_offered(matter: Matter, frozen: Frozen) -> bool:
    """Say whether a request uses an interface that the frozen card lists, be it another than that of the first send."""
    data = matter.record.data
    url, binding, spoken = text(data, "url") or "", text(data, "binding") or "", text(data, "wire_version")
    listed = (frozen.contract or {}).get("interfaces")
    return any(
        (text(one, "binding") or "").upper() == binding
        and _speaks(text(one, "version"), spoken, matter)
        and _place_of(url, text(one, "url") or "", binding, matter.profile) == "within"
        for one in map(members, listed if isinstance(listed, list) else [])
    )


def _speaks(listed: str | None, spoken: str | None, matter: Matter) -> bool:
    """Say whether an interface of a card is in the version that a request is in."""
    return listed in {None, spoken} or _same_major(listed or "", spoken or "", matter)


def _is_listed(url: str, binding: str, frozen: Frozen, profile: Profile) -> bool:
    """Say whether the card lists the interface that was used; a card that lists none says nothing."""
    listed = _listed(frozen)
    return not listed or any(_place_of(url, one, binding, profile) != "outside" for one in listed)


def _listed(frozen: Frozen) -> list[str]:
    interfaces = (frozen.contract or {}).get("interfaces")
    urls = [text(members(one), "url") for one in interfaces] if isinstance(interfaces, list) else []
    return [url for url in urls if url]


def _place_of(url: str, interface: str, binding: str, profile: Profile) -> str:
    """Say how a url stands to an interface: `within`, `trailing-slash` (within, but for slashes at the end), `outside`.

    Urls are compared as they go over the wire. A JSON-RPC interface is one url; the operations of HTTP+JSON and of
    gRPC lie below theirs, and a gRPC target is a host and a port.
    """
    place, base = _place(url), _place(interface)
    if binding.upper() == "GRPC" and authority_of(url) == authority_of(interface):
        return "within"
    bases, exact = _bases(interface, profile), {_wire(interface)}
    for alias in profile.aliases:
        stood = _place(alias.frozen)
        if base == stood or base.startswith(stood + "/"):
            exact.add(_wire(alias.seen) if base == stood else _place(alias.seen) + _wire(interface).removeprefix(stood))
    if binding.upper() == "JSONRPC":
        if _wire(url) in exact:
            return "within"
        return _SLASH if place in bases else "outside"
    return "within" if any(place == one or place.startswith((one + "/", one + ":")) for one in bases) else "outside"


def _bases(interface: str, profile: Profile) -> set[str]:
    """Return the place of an interface, and what the profile calls the same."""
    base = _place(interface)
    found = {base}
    for alias in profile.aliases:
        stood = _place(alias.frozen)
        if base == stood or base.startswith(stood + "/"):
            found.add(_place(alias.seen) + base.removeprefix(stood))
    return found


@lru_cache(maxsize=1024)
def _wire(url: str) -> str:
    """Return a url as it goes over the wire, without its query."""
    return wire_url(url).partition("?")[0]


def _place(url: str) -> str:
    """Return the same without slashes at the end."""
    return _wire(url).rstrip("/")
