"""The place that a file's url names, without what signs the url anew each time that it is given out. Pure.

A store signs a url for some minutes, so that every read of one file has another one: Amazon S3 (SigV4 query parameters,
and the older signature), Google Cloud Storage (V4 and V2), Azure Storage (shared access signature), CloudFront.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote


class _Way(NamedTuple):
    """One way to sign a url: the query parameters that tell it, and all that come with them, in lower case."""

    told_by: frozenset[str]
    names: frozenset[str]


_V4 = ("algorithm", "credential", "date", "expires", "signedheaders", "signature")
_AZURE = ("sig", "se", "st", "sp", "sv", "sr", "spr", "sip", "skoid", "sktid", "skt", "ske", "sks", "skv")
_WAYS = (
    _Way(frozenset({"x-amz-signature"}), frozenset({f"x-amz-{name}" for name in (*_V4, "security-token")})),
    _Way(frozenset({"x-goog-signature"}), frozenset({f"x-goog-{name}" for name in _V4})),
    _Way(frozenset({"sig"}), frozenset(_AZURE)),
    *(
        _Way(frozenset({"signature", key}), frozenset({"signature", "expires", key, *others}))
        for key, others in (
            ("key-pair-id", ("policy",)),
            ("awsaccesskeyid", ("x-amz-security-token",)),
            ("googleaccessid", ()),
        )
    ),
)


def unsigned(url: str) -> str:
    """Return a url without the query parameters that sign it; any other one is part of the place, as it is spelled."""
    before, mark, fragment = url.partition("#")
    place, asks, query = before.partition("?")
    if not asks:
        return url
    pairs = [(unquote(pair.partition("=")[0]).lower(), pair) for pair in query.split("&")]
    names = {name for name, _ in pairs}
    signing = frozenset[str]().union(*(way.names for way in _WAYS if way.told_by <= names))
    if not signing:
        return url
    kept = "&".join(pair for name, pair in pairs if name not in signing)
    return f"{place}{asks if kept else ''}{kept}{mark}{fragment}"
