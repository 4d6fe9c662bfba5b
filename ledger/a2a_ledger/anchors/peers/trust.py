"""Which peers' logs we keep heads of, where these peers are, and whose cosignatures count: a file of the deployment.

docs/format.md section 6.4. The file is a C2SP tlog-policy, `peers` below `[anchor]` of config.toml:

    log ledger.example/vendor-0a1b2c3d+48543ebf+AXk… https://vendor.example
    witness vendor ledger.example/vendor-0a1b2c3d+9b2f6e01+BQ…
    quorum none
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_ledger.address import origin_of, peer_id, typed_card_url
from a2a_ledger.anchors.witness import Witness
from a2a_ledger.errors import UsageError
from a2a_ledger.policy import parse_policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from a2a_ledger.keys import Verifier


@dataclass(frozen=True, slots=True)
class PeerTrust:
    """What the file says.

    Attributes:
        logs: keys of each log, by its origin.
        places: by peer id, the origin of the log that the agent there keeps: our heads go to these peers with a call.
        urls: by peer id, scheme and host of its public card.
        witnesses: keys whose cosignatures of our heads are anchors here.
    """

    logs: Mapping[str, Sequence[Verifier]]
    places: Mapping[str, str]
    urls: Mapping[str, str]
    witnesses: Sequence[Witness]


def read_peers(raw: bytes) -> PeerTrust:
    """Read the file.

    Raises:
        FormatError: it is no policy.
        UsageError: it names no log, or a place that is no url of a card or an agent, or one place for two logs.
    """
    policy = parse_policy(raw)
    logs: dict[str, list[Verifier]] = {}
    places: dict[str, str] = {}
    urls: dict[str, str] = {}
    for key in policy.logs:
        logs.setdefault(key.name, []).append(key)
        url = policy.log_urls.get(key.vkey)
        if url is None:
            continue
        card = typed_card_url(url)
        if card is None:
            raise UsageError(f"log {key.name}: expected the url of an agent, or of its public card, found {url[:80]!r}")
        if places.setdefault(peer_id(card), key.name) != key.name:
            raise UsageError(f"{url}: expected one log for one agent, found {places[peer_id(card)]} and {key.name}")
        urls[peer_id(card)] = origin_of(card)
    if not logs:
        raise UsageError("expected a line `log <vkey>` or `log <vkey> <url>` for each peer, found none")
    witnesses = [Witness(name, key, "") for name, key in policy.witnesses.items() if key.usable]
    return PeerTrust(logs, places, urls, witnesses)
