"""Text on its way to a log, with what can be told to be a credential cut out. Pure.

What this package logs is made so that no credential is in it. But a line may quote an error of a library, which may
quote a url or a header, so this is the last thing before a line is written. Cut are places that hold secrets by their
name (`authorization: …`, `access_token=…`, user info and queries of urls) and shapes that only secrets have (a token
behind its scheme, a JSON Web Token, a private key). A secret that nothing tells from other words is not found.
"""

from __future__ import annotations

import re

from a2a_ledger.capture.redact import CREDENTIAL_HEADERS
from a2a_ledger.capture.url_secrets import secret_places, tells

CUT = "***"
"""What stands in a credential's place."""

# Possessive throughout, and no name begins inside of another one: a line is read in one pass, whatever a peer sends.
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z]++ )?PRIVATE KEY-----.*?(?:-----END (?:[A-Z]++ )?PRIVATE KEY-----|\Z)", re.DOTALL
)
_JWT = re.compile(r"(?<![\w-])eyJ[\w-]++(?:\.[\w-]*+)++")  # RFC 7519: base64url of {", then parts behind dots
_URL = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*+://[^\s\"'<>\\]++")
_SAID = r"(?:[^\"'\\\n]|\\.)++"  # what stands between quotes, or up to the end of the line
_WORD = r"[^\s\"'\\,;&]++"
_QUOTE = r"\\*+[\"']"  # with a backslash for each string that this one is quoted in
_HEADER = re.compile(
    rf"\b({'|'.join(CREDENTIAL_HEADERS)})((?:{_QUOTE})?\s*+[:=,]\s*+(?:b?{_QUOTE})?){_SAID}", re.IGNORECASE
)
_PAIR = re.compile(
    rf"(?<![\w-])([A-Za-z][\w-]*+)((?:{_QUOTE})?\s*+[:=]\s*+|{_QUOTE}\s*+,\s*+(?=b?{_QUOTE}))"
    rf"(?:(b?{_QUOTE}){_SAID}|{_WORD})"
)
_TOKEN = re.compile(  # behind its scheme, if it is spelled as no word is
    r"\b((?i:basic|bearer|digest|dpop|negotiate))(\s++)(?=[A-Z]?[a-z]*+[^a-z\s,.;:)])[^\s\"'\\,]{6,}+"
)
_WORDS = frozenset({"auth", "code", "credentials", "key", "sid", "sig", "signature"})
"""Names that tell of a secret in a query, and are plain words in a sentence."""


def without_credentials(text: str) -> str:
    """Return the text with `CUT` in the place of every credential that is recognised."""
    text = _PRIVATE_KEY.sub(CUT, text)
    text = _URL.sub(lambda found: _url_without(found[0]), text)
    text = _HEADER.sub(rf"\1\2{CUT}", text)
    text = _PAIR.sub(_pair_without, text)
    return _JWT.sub(CUT, _TOKEN.sub(rf"\1\2{CUT}", text))


def _pair_without(found: re.Match[str]) -> str:
    name, between, quote = found[1], found[2], found[3] or ""
    return f"{name}{between}{quote}{CUT}" if tells(name) and name.lower() not in _WORDS else found[0]


def _url_without(url: str) -> str:
    octets = url.encode("utf-8", "surrogatepass")
    for start, end in sorted(secret_places(octets), reverse=True):
        octets = octets[:start] + CUT.encode() + octets[end:]
    return octets.decode("utf-8", "replace")
