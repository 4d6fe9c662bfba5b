"""What a person reads in each real card of the corpus, written by hand from the cards before any code was run."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NONE: Mapping[str, str] = MappingProxyType({})


class Read(NamedTuple):
    """What a card says.

    Attributes:
        dialect: As in docs/format.md section 7.1.
        interfaces: "binding url version" each, "-" where no version is stated.
        schemes: Names and kinds.
        security: The card's requirement list.
        skills: Those with a requirement list of their own.
        extended: Whether it offers an authenticated extended card.
        extensions: URIs of the required ones.
        flags: What is odd about it.
        terms: Members that the default profile takes for terms of a vendor, and URIs of such extensions.
    """

    dialect: str
    interfaces: tuple[str, ...]
    schemes: Mapping[str, str] = NONE
    security: Sequence[dict[str, list[str]]] = ()
    skills: Mapping[str, Sequence[dict[str, list[str]]]] = MappingProxyType({})
    extended: bool = False
    extensions: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()


REFUSED = {
    "035a": ("not-json", "not-a-card"),  # a comma too many: `},\n  },`
    "086a": ("not-a-card",),  # a menu and on-chain addresses; neither url nor skills nor capabilities
}
"""Cards that cannot be captured, and why."""

GEO = "https://georoute-agent.example.com/a2a/"
GEO_3 = (f"JSONRPC {GEO}v1 ", f"GRPC {GEO}grpc ", f"HTTP+JSON {GEO}json ")
GOOGLE = {"google": "openIdConnect"}
GEO_SECURITY = [{"google": ["email", "openid", "profile"]}]
MAPS = "https://www.googleapis.com/auth/maps"

HOTEL = ("JSONRPC http://localhost:10104/ -",)
CURRENCY = "JSONRPC http://localhost:10999/ "
MERCHANT = ("JSONRPC http://localhost:8001/a2a/merchant_agent 0.3",)
WALLET = "JSONRPC http://localhost:8002/a2a/credentials_provider"
AP2 = "https://github.com/google-agentic-commerce/ap2/v1"
AP2_MOVED = "https://github.com/google-agentic-commerce/AP2/tree/v0.1"
CARD_NETWORK = "https://sample-card-network.github.io/paymentmethod/types/v1"
AP2_READ = Read("0.3", MERCHANT, extensions=(AP2, CARD_NETWORK), terms=(AP2, CARD_NETWORK))

VAPE = "https://api.vapagent.com/"
PRICED = ("/pricing",)
VERSE = "https://brain.verse-me.com/ 0.3"

ANCHOR = "https://api.anchor-x402.com/"
# Eighteen skills, each with a url and a method of its own; the card's A2A extension names another address.
ANCHOR_READ = Read(
    "0.3",
    (f"JSONRPC {ANCHOR}v1/a2a 0.3",),
    {"x402": "apiKey"},
    [{"x402": []}],
    terms=("/extensions/anchor-x402:a2a/endpoint", "/skills/anchor_hash/url"),
)

MANDATE = Read(
    "0.3",  # it claims 1.0, and writes url, preferredTransport and `type` as 0.3 does
    ("JSONRPC https://access0x1.xyz/api/agent 1.0",),
    {"bearerJWT": "http", "sessionGrantMandate": "mutualTLS"},
    [{"sessionGrantMandate": []}],
    terms=(
        "https://ap2.dev/extensions/payments/v0.2",
        "https://x402.org/extensions/ap2-x402/v1",
        "https://eips.ethereum.org/EIPS/eip-7715",
    ),
)

SHIELD = ("JSONRPC https://aishield.tools/ a2a-2025-06",)
ODD = ("odd-shape", "odd-version")  # `capabilities` is a list, the version no version
SHIELD_READ = Read("unknown", SHIELD, flags=ODD, terms=("/endpoints",))

ECHO = Read("0.3", ("JSONRPC http://localhost:8080/ 0.3",))  # its members are in snake_case

CARDS: dict[str, Read] = {
    "001": Read("0.1", (f"JSONRPC {GEO}v1 -",), {"OAuth2": "legacy"}, [{"OAuth2": []}]),
    "002": Read("0.2", (f"JSONRPC {GEO}v1 0.2",), GOOGLE, GEO_SECURITY, extended=True),
    "003": Read("0.2", tuple(one + "0.2" for one in GEO_3), GOOGLE, GEO_SECURITY, extended=True),
    "004": Read("1.0", tuple(one + "1.0" for one in GEO_3), GOOGLE, GEO_SECURITY, extended=True),
    "005": Read("0.2", ("JSONRPC https://example.com/agents/eightball -",)),
    "006": Read(
        "1.0",
        ("jsonrpc https://recipes.example.com/a2a -", "grpc https://recipes.example.com/a2a/grpc -"),
        {"apiKey": "apiKey", "bearerAuth": "http"},
        [{"bearerAuth": []}],
        terms=("/supportsExtendedAgentCard",),  # no version of A2A calls it so
    ),
    "007": Read("1.0", ("JSONRPC  1.0",)),
    "008": Read("unknown", ("JSONRPC  1.0",), flags=("odd-shape",)),
    "009": Read("1.0", ("JSONRPC https://agent.example.com/a2a/v1 0.3",)),
    "010": Read("0.1", ()),  # its url is "", its authentication {}
    "011": Read("unknown", (), flags=("odd-shape",), terms=("/endpoint",)),
    "012": Read("0.1", ("JSONRPC http://localhost:10103/ -",), {"public": "legacy"}, [{"public": []}]),
    "013a": Read("0.1", HOTEL, {"public": "legacy"}, [{"public": []}]),
    "013b": Read("0.2", HOTEL),
    "014a": Read("1.0", (f"{CURRENCY}1.0",)),
    "014b": Read("1.0", (f"{CURRENCY}1.0", f"{CURRENCY}0.3")),
    "015": Read("0.3", (f"{CURRENCY}0.3",)),
    "016": Read("0.1", ("JSONRPC http://oixa.io/ -",), {"none": "legacy"}, [{"none": []}]),
    "017": Read("0.2", ("JSONRPC http://localhost:8000/a2a/human_in_loop -",)),
    "018": Read(
        "0.2",
        ("JSONRPC https://seller.example.com/a2a -",),
        terms=("https://github.com/a2aproject/a2a-samples/extensions/commerce-profile/v1",),
    ),
    "019": Read("1.0", ("JSONRPC https://api.weathernow.io/a2a -",)),
    "020a": AP2_READ,
    "020b": AP2_READ._replace(extensions=(AP2_MOVED, CARD_NETWORK), terms=(AP2_MOVED, CARD_NETWORK)),
    "021a": AP2_READ,
    "021b": AP2_READ,
    "022a": Read("0.3", (f"{WALLET}_agent 0.3",), extensions=(AP2,), terms=(AP2,)),
    "022b": Read("0.3", (f"{WALLET} 0.3",), extensions=(AP2,), terms=(AP2,)),
    "023": Read("0.2", (f"{WALLET} -",), extensions=(AP2, CARD_NETWORK), terms=(AP2, CARD_NETWORK)),
    "025a": Read("0.3", (f"JSONRPC {VAPE} 0.3",)),
    "025b": Read(
        "hybrid",
        (f"HTTP+JSON {VAPE}a2a -",),
        {"vapeApiKey": "http"},
        [{"vapeApiKey": []}],
        terms=("/pricing", "/supportsExtendedAgentCard"),
    ),
    "026a": Read(
        "0.3",
        (f"JSONRPC {VAPE} 0.3",),
        {"authentication": "unknown"},  # `{"type": "bearer", "registration": …}`: no names of schemes
        [{"authentication": []}],
        flags=("unknown-scheme",),
        terms=PRICED,
    ),
    "026b": Read("0.3", (f"JSONRPC {VAPE} 0.3",)),
    "028a": Read("0.3", ("REST http://lucid.itsgloria.ai:3004/ 1.0",), terms=PRICED),
    "028b": Read("0.3", ("REST https://lucid.itsgloria.ai/ 1.0",), terms=PRICED),
    "029a": Read("0.3", (f"REST {VERSE}",), terms=PRICED),
    "029b": Read("0.3", (f"JSONRPC {VERSE}",)),
    "030a": Read(
        "0.3",
        ("REST https://e4d4c407-17c3-445c-9294-ef1e53c77e0c-00-33flekwhvsrda.worf.replit.dev/ 0.3",),
        terms=PRICED,
    ),
    "030b": Read("0.3", ("REST https://node-basic.replit.app/ 0.3",), terms=PRICED),
    "032a": Read("0.2", ("REST https://anybrowse.dev/ 0.2",), terms=PRICED),
    "032b": Read("0.2", ("JSONRPC https://anybrowse.dev/ 0.2",), terms=("/protocols", "/x402")),
    "034a": Read("0.3", ("REST https://hello.a2aregistry.org/a2a 0.3",), terms=PRICED),
    "034b": Read("0.3", ("REST https://hello.a2aregistry.org/ 0.3",), terms=PRICED),
    "035b": Read("0.3", ("JSONRPC https://system-integration.telex.im/chessagent 0.3",)),
    "054a": Read(
        "0.1",
        (f"JSONRPC {ANCHOR} -",),
        {"x402": "legacy"},
        [{"x402": []}],
        terms=("/skills/anchor_hash/url", "/skills/anchor_hash/method"),
    ),
    "054b": ANCHOR_READ,
    "055a": ANCHOR_READ,
    "055b": ANCHOR_READ,
    "056a": ANCHOR_READ,
    "056b": ANCHOR_READ,
    "071a": MANDATE,
    "071b": MANDATE,
    "072a": SHIELD_READ._replace(interfaces=("JSONRPC https://aishield.dev/ a2a-2025-06",)),
    "072b": SHIELD_READ._replace(flags=("bom", *ODD)),
    "073a": SHIELD_READ._replace(flags=("bom", *ODD)),
    "073b": SHIELD_READ,
    "074a": SHIELD_READ,
    "074b": SHIELD_READ._replace(
        schemes={"authentication": "unknown"},  # a list of objects where 0.1 has one with names
        security=[{"authentication": []}],
        flags=(*ODD, "unknown-scheme"),
    ),
    "080a": Read(
        "0.1",
        ("JSONRPC https://example.com/agent -",),
        {"api-key": "legacy", "bearer": "legacy"},
        [{"api-key": []}, {"bearer": []}],
        terms=("/supportsExtendedAgentCard",),
    ),
    "080b": Read(
        "1.0",
        ("jsonrpc https://complete.example.com/jsonrpc 1.0", "http+json https://complete.example.com/rest 1.0"),
        {"apikey": "apiKey", "bearer": "unknown"},  # its `type` is "httpAuth", which no version of A2A has
        [{"bearer": ["read", "write"]}],
        flags=("unknown-scheme",),
    ),
    "086b": Read(
        "0.1",
        ("JSONRPC https://lordbasilaiassistant-sudo.github.io/TheAgentCafe/ -",),
        {"none": "legacy"},
        [{"none": []}],
        terms=("/extensions/0/params", "/extensions/1/params"),
    ),
    "087a": Read(
        "0.1",
        ("JSONRPC https://precisionworks.example.com/.well-known/agent-card.json -",),
        {"none": "legacy"},
        [{"none": []}],
    ),
    "087b": Read("1.0", ("HTTP+JSON https://precisionworks.example.com/a2a/v1 1.0",)),
    "088a": Read("1.0", ("HTTP+JSON https://api.askasha.org/a2a/v1 1.0",), {"bearer": "http"}, [{"bearer": []}]),
    "088b": Read("hybrid", ("HTTP+JSON https://api.askasha.org/a2a/v1 1.0",), {"bearer": "http"}, [{"bearer": []}]),
    "095a": Read("0.3", ("JSONRPC http://localhost:0/ 1.0",), extended=True, terms=("/extensions/0/uri",)),
    "095b": Read("hybrid", ("HTTP+JSON http://localhost:0/ 1.0",), extended=True, terms=("/extensions/0/uri",)),
    "096": Read(
        "hybrid",
        ("HTTP+JSON http://localhost:0/ 1.2", "HTTP+JSON http://localhost:0/ 1.0"),
        extended=True,
        terms=("/extensions/0/uri",),
    ),
    "103": Read(
        "1.0",
        ("jsonrpc https://agent-208bfeb7-fffd-4b4b-9ca8-db9be7d57adf.jacs.localhost/ -",),
        {"api-key": "apiKey", "bearer-jwt": "http"},
        terms=("/protocolVersions",),
    ),
    "105": Read("0.2", (f"JSONRPC {GEO}v1 0.2", f"GRPC {GEO}grpc 0.2"), GOOGLE, GEO_SECURITY, extended=True),
    "159a": ECHO,
    "159b": ECHO,
    "161": Read(
        "1.0",
        tuple(one + "1.0" for one in GEO_3),
        GOOGLE,
        GEO_SECURITY,
        skills={"route-optimizer-traffic": [{"google": [MAPS]}]},
        extended=True,
    ),
    "162": Read(
        "0.3",
        tuple(one + "0.3" for one in GEO_3),
        GOOGLE,
        GEO_SECURITY,
        skills={"route-optimizer-traffic": [{"example": []}, *GEO_SECURITY]},
        extended=True,
    ),
}
"""By id; the halves of no card disagree."""


class Pair(NamedTuple):
    """What a person says of a real change.

    Attributes:
        verdict: The strongest class met.
        authorization: Which way it moved; None where that cannot be said.
        decides: Every pointer of the verdict's class, those of `beside` apart.
        beside: Members under which the default profile sees terms that changed as well.
    """

    verdict: str
    authorization: str | None
    decides: frozenset[str] = frozenset()
    beside: tuple[str, ...] = ()


def _pair(verdict: str, authorization: str | None, *decides: str, beside: tuple[str, ...] = ()) -> Pair:
    return Pair(verdict, authorization, frozenset(decides), beside)


A2A_EXTENSION = "/extensions/anchor-x402:a2a/"
FEDERATION = "/extensions/agoragentic:federation/"

PAIRS: dict[str, Pair] = {
    "013": _pair("contract", "same", "/authentication"),  # its scheme was "public": the form moved, nobody's duty did
    "014": _pair("contract", "same", "/supportedInterfaces/1"),
    "020": _pair("contract", "same", "/capabilities/extensions/0"),  # another required extension in its place
    "021": _pair("same-document", "same"),
    "022": _pair("contract", "same", "/url"),
    # A bearer token is asked for where nothing was, and prices appear: two moves with no order between them.
    "025": _pair(
        "contract",
        "incomparable",
        *("/preferredTransport", "/security", "/securitySchemes", "/supportedInterfaces", "/url"),
        beside=("/pricing", "/supportsExtendedAgentCard"),
    ),
    "026": _pair("contract", "incomparable", "/authentication", beside=("/pricing",)),
    "028": _pair("contract", "same", "/url"),
    "029": _pair("contract", "incomparable", "/preferredTransport", beside=("/pricing",)),  # the urls are one place
    "030": _pair("contract", "same", "/url"),
    "032": _pair(
        "contract",
        "incomparable",
        "/preferredTransport",
        beside=("/identity", "/pricing", "/protocols", "/x402"),
    ),
    "034": _pair("contract", "same", "/url"),
    "035": _pair("undecidable", None),  # before, it was no JSON
    "054": _pair(
        "contract",
        "incomparable",
        *("/additionalInterfaces", "/authentication", "/preferredTransport", "/protocolVersion"),
        *("/securitySchemes", "/url"),
        beside=("/capabilities", "/discovery", "/extensions", "/skills"),
    ),
    "055": _pair(
        "unclassified",
        "same",
        f"{A2A_EXTENSION}card_signing_keys",
        *(FEDERATION + name for name in ("capability_exchange", "federation_consent", "retired_at", "scope", "status")),
    ),
    "056": _pair(
        "unclassified",
        "same",
        *(A2A_EXTENSION + name for name in ("a2a_methods", "extension_methods", "extension_methods_note", "methods")),
    ),
    "071": _pair("prose", "same", "/capabilities/extensions/2/description"),
    "072": _pair("contract", "same", "/url"),
    "073": _pair("same-document", "same"),
    # It asked for nothing, and now for OAuth2 in a shape that nobody reads, though it calls it optional in words.
    "074": _pair("contract", "stricter", "/authentication"),
    "080": _pair(
        "contract",
        "incomparable",
        *("/authentication", "/securityRequirements", "/securitySchemes", "/supportedInterfaces", "/url"),
        beside=("/protocolVersion", "/supportsExtendedAgentCard"),
    ),
    "086": _pair("undecidable", None),  # before, it was no card
    "087": _pair("contract", "same", "/authentication", "/supportedInterfaces", "/url"),  # it asked for "none"
    # A 0.3 half appears beside the 1.0 half, with the same address and the same terms.
    "088": _pair(
        "unclassified",
        "same",
        *("/epistemicCapabilities/evidenceGrounding", "/epistemicCapabilities/knowledgeCorpus/lastAudited"),
        *("/protocolVersion", "/url"),
    ),
    "095": _pair("contract", "same", "/supportedInterfaces"),
    "159": _pair("same-document", "same"),
}
"""By number: the card before and after a real commit."""
