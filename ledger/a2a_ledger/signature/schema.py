"""The Agent Card as A2A 1.0 and as the 0.3 SDK for Python define it: member names, types and presence. Tables only.

From `a2a.proto` of A2A 1.0 (package lf.a2a.v1) and from `a2a.json` of A2A 0.3.0. `signatures` is left out:
no form signs it. docs/format.md section 7.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

TEXT: Final = "text"
FLAG: Final = "flag"
STRUCT: Final = "struct"  # any JSON object
LEAVES: Final = (TEXT, FLAG, STRUCT)


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a message.

    Attributes:
        kind: `TEXT`, `FLAG`, `STRUCT`, or the name of a message.
        many: `list`, or `map` from text; "" for a single value.
        required: Marked REQUIRED; a card without it is none to a reader that checks.
        tracked: Whether unset and set to the default are two things (`optional`, and every single message).
        only: Of the members with the same name here, at most one may be stated (`oneof`).
        default: The value that the 0.3 SDK takes for an absent member, and leaves out again.
    """

    kind: str
    many: Literal["", "list", "map"] = ""
    required: bool = False
    tracked: bool = False
    only: str = ""
    default: str = ""


Schema: TypeAlias = "dict[str, dict[str, Member]]"

_text = Member(TEXT)
_texts = Member(TEXT, "list")
_flag = Member(FLAG)
_needed = Member(TEXT, required=True)
_needed_texts = Member(TEXT, "list", required=True)
_set_text = Member(TEXT, tracked=True)
_set_flag = Member(FLAG, tracked=True)
_struct = Member(STRUCT, tracked=True)
_scopes = Member(TEXT, "map", required=True)


def _one_of(group: str, **kinds: str) -> dict[str, Member]:
    return {name: Member(kind, tracked=True, only=group) for name, kind in kinds.items()}


A2A_1_0: Final[Schema] = {
    "AgentCard": {
        "name": _needed,
        "description": _needed,
        "supportedInterfaces": Member("AgentInterface", "list", required=True),
        "provider": Member("AgentProvider", tracked=True),
        "version": _needed,
        "documentationUrl": _set_text,
        "capabilities": Member("AgentCapabilities", required=True, tracked=True),
        "securitySchemes": Member("SecurityScheme", "map"),
        "securityRequirements": Member("SecurityRequirement", "list"),
        "defaultInputModes": _needed_texts,
        "defaultOutputModes": _needed_texts,
        "skills": Member("AgentSkill", "list", required=True),
        "iconUrl": _set_text,
    },
    "AgentInterface": {"url": _needed, "protocolBinding": _needed, "tenant": _text, "protocolVersion": _needed},
    "AgentProvider": {"url": _needed, "organization": _needed},
    "AgentCapabilities": {
        "streaming": _set_flag,
        "pushNotifications": _set_flag,
        "extensions": Member("AgentExtension", "list"),
        "extendedAgentCard": _set_flag,
    },
    "AgentExtension": {"uri": _text, "description": _text, "required": _flag, "params": _struct},
    "AgentSkill": {
        "id": _needed,
        "name": _needed,
        "description": _needed,
        "tags": _needed_texts,
        "examples": _texts,
        "inputModes": _texts,
        "outputModes": _texts,
        "securityRequirements": Member("SecurityRequirement", "list"),
    },
    "SecurityRequirement": {"schemes": Member("StringList", "map")},
    "StringList": {"list": _texts},
    "SecurityScheme": _one_of(
        "scheme",
        apiKeySecurityScheme="APIKey",
        httpAuthSecurityScheme="HTTPAuth",
        oauth2SecurityScheme="OAuth2",
        openIdConnectSecurityScheme="OpenIdConnect",
        mtlsSecurityScheme="MutualTls",
    ),
    "APIKey": {"description": _text, "location": _needed, "name": _needed},
    "HTTPAuth": {"description": _text, "scheme": _needed, "bearerFormat": _text},
    "OAuth2": {
        "description": _text,
        "flows": Member("OAuthFlows", required=True, tracked=True),
        "oauth2MetadataUrl": _text,
    },
    "OpenIdConnect": {"description": _text, "openIdConnectUrl": _needed},
    "MutualTls": {"description": _text},
    "OAuthFlows": _one_of(
        "flow",
        authorizationCode="AuthorizationCode",
        clientCredentials="ClientCredentials",
        implicit="Implicit",
        password="Password",  # noqa: S106 - the name of a flow
        deviceCode="DeviceCode",
    ),
    "AuthorizationCode": {
        "authorizationUrl": _needed,
        "tokenUrl": _needed,
        "refreshUrl": _text,
        "scopes": _scopes,
        "pkceRequired": _flag,
    },
    "ClientCredentials": {"tokenUrl": _needed, "refreshUrl": _text, "scopes": _scopes},
    "Implicit": {"authorizationUrl": _text, "refreshUrl": _text, "scopes": Member(TEXT, "map")},
    "Password": {"tokenUrl": _text, "refreshUrl": _text, "scopes": Member(TEXT, "map")},
    "DeviceCode": {"deviceAuthorizationUrl": _needed, "tokenUrl": _needed, "refreshUrl": _text, "scopes": _scopes},
}

_requirements = Member("Requirement", "list")

A2A_0_3: Final[Schema] = {
    "AgentCard": {
        "name": _needed,
        "description": _needed,
        "url": _needed,
        "version": _needed,
        "preferredTransport": Member(TEXT, default="JSONRPC"),
        "protocolVersion": Member(TEXT, default="0.3.0"),
        "additionalInterfaces": Member("AgentInterface", "list"),
        "provider": Member("AgentProvider"),
        "documentationUrl": _text,
        "iconUrl": _text,
        "capabilities": Member("AgentCapabilities", required=True),
        "supportsAuthenticatedExtendedCard": _flag,
        "securitySchemes": Member("SecurityScheme", "map"),
        "security": _requirements,
        "defaultInputModes": _needed_texts,
        "defaultOutputModes": _needed_texts,
        "skills": Member("AgentSkill", "list", required=True),
    },
    "AgentInterface": {"url": _needed, "transport": _needed},
    "AgentProvider": {"url": _needed, "organization": _needed},
    "AgentCapabilities": {
        "streaming": _flag,
        "pushNotifications": _flag,
        "stateTransitionHistory": _flag,
        "extensions": Member("AgentExtension", "list"),
    },
    "AgentExtension": {"uri": _needed, "description": _text, "required": _flag, "params": Member(STRUCT)},
    "AgentSkill": {
        "id": _needed,
        "name": _needed,
        "description": _needed,
        "tags": _needed_texts,
        "examples": _texts,
        "inputModes": _texts,
        "outputModes": _texts,
        "security": _requirements,
    },
    "apiKey": {"description": _text, "in": _needed, "name": _needed},
    "http": {"description": _text, "scheme": _needed, "bearerFormat": _text},
    "oauth2": {"description": _text, "flows": Member("OAuthFlows", required=True), "oauth2MetadataUrl": _text},
    "openIdConnect": {"description": _text, "openIdConnectUrl": _needed},
    "mutualTLS": {"description": _text},
    "OAuthFlows": {
        "authorizationCode": Member("AuthorizationCode"),
        "clientCredentials": Member("ClientCredentials"),
        "implicit": Member("Implicit"),
        "password": Member("Password"),
    },
    "AuthorizationCode": {"authorizationUrl": _needed, "tokenUrl": _needed, "refreshUrl": _text, "scopes": _scopes},
    "ClientCredentials": {"tokenUrl": _needed, "refreshUrl": _text, "scopes": _scopes},
    "Implicit": {"authorizationUrl": _needed, "refreshUrl": _text, "scopes": _scopes},
    "Password": {"tokenUrl": _needed, "refreshUrl": _text, "scopes": _scopes},
}
"""The messages of 0.3. A `SecurityScheme` is one of the messages named like its `type`; a `Requirement` is a map
from a scheme's name to a list of scopes."""
