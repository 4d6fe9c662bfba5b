"""A log taken apart and put together again around one change, by somebody who holds all of its keys.

Whatever rests on the change is made anew: commitments, references, signed findings, leaves, tree, head, proofs,
claims, the exporter's statement, manifests. So each case has one thing wrong, and all else fits.
"""

from __future__ import annotations

import base64
import hmac
import json
from hashlib import sha256
from typing import TYPE_CHECKING, cast

from a2a_ledger.bundle import CHECKPOINT, EXPECTED, INDEX, LEAVES, Bundle, index_text
from a2a_ledger.checkpoint import Checkpoint, sign_checkpoint
from a2a_ledger.codec import canonical, parse_canonical
from a2a_ledger.errors import FormatError
from tests.evidence.forging import repacked
from tests.evidence.refitting import claim, signed_again

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_ledger.bundle import IndexRow
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.keys import Signer
    from tests.conformance.material import Log
    from tests.evidence.forging import Files

_OUTCOME = ("decision", "reason", "rule", "about", "certainty")


class Remaking:
    """The parts of a bundle and of the log behind it; change them, then `bundle`.

    Attributes:
        files: the bundle's files.
        records: R by log index; a change here goes into everything that rests on it.
        rows: the rows of the index by log index.
        tags: the stream tag of each leaf of the log, hex.
        commitments: what each leaf of the log commits to, hex.
        signers: who signs what: log, statement, export.
        leaves: changes to single leaves after all is made, by log index.
        claimed: members of `claims.json` that are to say something else.
    """

    def __init__(self, log: Log) -> None:
        self.log = log
        self.files: Files = log.files
        read = Bundle(self.files, ())
        self.rows: dict[int, IndexRow] = {row.n: row for row in read.index()}
        self.records: dict[int, bytes] = {n: self.files[f"data/records/{n}.json"] for n in self.rows}
        leaves = [cast("dict[str, str]", parse_canonical(leaf)) for leaf in log.leaves]
        self.tags = [leaf["t"] for leaf in leaves]
        self.commitments = [leaf["c"] for leaf in leaves]
        self.signers: dict[str, Signer] = dict(log.signers)
        self.leaves: dict[int, Callable[[bytes], bytes]] = {}
        self.claimed: JsonObject = {}
        self.note: Callable[[str], str] = lambda note: note
        self._renamed: dict[bytes, bytes] = {}

    def change(self, n: int, change: Callable[[JsonObject], None]) -> None:
        """Change a record as an object; the members are those of section 3.1."""
        record = cast("JsonObject", parse_canonical(self.records[n]))
        change(record)
        self.records[n] = canonical(record)

    def record(self, n: int) -> JsonObject:
        """Return a record as an object."""
        return cast("JsonObject", parse_canonical(self.records[n]))

    def data(self, n: int, **fields: Json) -> None:
        """Set fields of an event."""
        self.change(n, lambda record: cast("JsonObject", record["data"]).update(fields))

    def append(self, stream: str, event: str, data: JsonObject) -> int:
        """Append an event to the log, and show it; return its log index."""
        last = max((row for row in self.rows.values() if row.stream == stream), key=lambda row: row.ver)
        n, ver = len(self.tags), last.ver + 1
        members: JsonObject = {
            "at": "2026-09-14T12:00:00.000000Z",
            "blobs": {},
            "data": data,
            "how": "live",
            "log": self.log.origin,
            "prev": self.commitments[last.n],
            "stream": stream,
            "type": event,
            "v": 1,
            "ver": ver,
        }
        key = self.files.get(f"data/streams/{stream.replace(':', '.')}.key")
        t = sha256(b"tag %d" % n).hexdigest() if key is None else tag(key, ver)  # nobody can check that of a peer's
        self.show(n, canonical(members), stream, ver, t)
        return n

    def show(self, n: int, raw: bytes, stream: str, ver: int, t: str) -> None:
        """Put a record at the end of the log, without a word on whether it fits."""
        self.records[n] = raw
        self.files[f"data/records/{n}.salt"] = sha256(b"salt %d" % n).digest()
        self.tags.append(t)
        self.commitments.append(sha256(b"not made yet %d" % n).hexdigest())
        self.rows[n] = next(iter(self.rows.values()))._replace(
            n=n, stream=stream, ver=ver, record=f"data/records/{n}.json", body="-"
        )

    def stream_key(self, stream: str) -> bytes:
        """Return the key of a stream that the bundle discloses."""
        return self.files[f"data/streams/{stream.replace(':', '.')}.key"]

    def hide(self, n: int) -> None:
        """Show an event no more; it stays in the log."""
        del self.rows[n], self.records[n]
        for name in (f"data/records/{n}.json", f"data/records/{n}.salt", f"data/log/proofs/{n}.tlog-proof"):
            self.files.pop(name, None)

    def bundle(self, *, signed: bool = True) -> bytes:
        """Put everything together again, by the exporter or by nobody."""
        for n in sorted(self.records):
            self._remake(n)
        leaves = [self._leaf(n) for n in range(len(self.tags))]
        hashes = [sha256(b"\x00" + leaf).digest() for leaf in leaves]
        root = root_of(hashes)
        note = self.note(sign_checkpoint(Checkpoint(self.log.origin, len(leaves), root), self.signers["log"]))
        self.files[CHECKPOINT] = note.encode()
        shown = sorted(self.rows)
        self.files[LEAVES] = b"".join(leaves[n] + b"\n" for n in shown)
        self.files[INDEX] = index_text(self.rows[n]._replace(line=line) for line, n in enumerate(shown, 1))
        for n in shown:
            path = [base64.b64encode(node).decode() for node in path_of(n, hashes)]
            lines = ("c2sp.org/tlog-proof@v1", f"index {n}", *path, "", note)
            self.files[f"data/log/proofs/{n}.tlog-proof"] = "\n".join(lines).encode()
            self.files[f"data/records/{n}.json"] = self.records[n]
        self._claim(len(leaves), root, shown)
        if not signed:
            return repacked(self.files)
        return signed_again(self.files, self.signers["export"])

    def _remake(self, n: int) -> None:
        """Make a record's commitment again, after what it refers to; of a finding the statement too."""
        raw = self._renew(self.records[n])
        if b'"violation.detected.v1"' in raw and f"data/statements/{n}.dsse.json" in self.files:
            self._sign_finding(n)
            raw = self._renew(raw)
        self.records[n] = raw
        salt = self.files[f"data/records/{n}.salt"]
        made = sha256(b"a2a-ledger/record/v1\x00" + salt + raw).hexdigest()
        if made == self.commitments[n]:
            return
        old = self._leaf(n)
        self._renamed[self.commitments[n].encode()] = made.encode()
        self.commitments[n] = made
        self._renamed[sha256(old).hexdigest().encode()] = sha256(self._leaf(n)).hexdigest().encode()

    def _renew(self, octets: bytes) -> bytes:
        for old, new in self._renamed.items():
            octets = octets.replace(old, new)
        return octets

    def _sign_finding(self, n: int) -> None:
        """Sign a statement again whose payload names something that changed."""
        name = f"data/statements/{n}.dsse.json"
        payload = payload_of(self.files[name])
        again = self._renew(payload)
        signer = self.signers["statement"]
        if again == payload and signer is self.log.signers["statement"]:
            return
        self.put_statement(n, enveloped(again, signer), payload, again)

    def put_statement(self, n: int, envelope: bytes, before: bytes, after: bytes) -> None:
        """Put another envelope in the place of a finding's."""
        name = f"data/statements/{n}.dsse.json"
        record = cast("JsonObject", parse_canonical(self.records[n]))
        blob = cast("JsonObject", cast("JsonObject", record["blobs"])["statement"])
        old = str(blob["id"])
        salt = self.files.pop(f"data/blobs/{old}/0.salt")
        del self.files[f"data/blobs/{old}/0"]
        part = sha256(b"a2a-ledger/part/v1\x00" + salt + envelope).digest()
        made = sha256(b"a2a-ledger/blob/v1\x00\x00\x00\x00\x01" + len(envelope).to_bytes(8, "big") + part).hexdigest()
        self.files |= {name: envelope, f"data/blobs/{made}/0": envelope, f"data/blobs/{made}/0.salt": salt}
        self._renamed[old.encode()] = made.encode()
        self._renamed[sha256(before).hexdigest().encode()] = sha256(after).hexdigest().encode()
        blob["size"] = len(envelope)
        self.records[n] = canonical(record)

    def replace_blob(self, n: int, role: str, content: bytes) -> None:
        """Put another content in the place of a whole blob; what stated its SHA-256 anywhere states the new one."""
        blob = cast("dict[str, dict[str, JsonObject]]", _record(self.records[n]))["blobs"][role]
        before = self.files.pop(f"data/blobs/{blob['id']}/0")
        salt = self.files.pop(f"data/blobs/{blob['id']}/0.salt")
        part = sha256(b"a2a-ledger/part/v1\x00" + salt + content).digest()
        made = sha256(b"a2a-ledger/blob/v1\x00\x00\x00\x00\x01" + len(content).to_bytes(8, "big") + part).hexdigest()
        self.files |= {f"data/blobs/{made}/0": content, f"data/blobs/{made}/0.salt": salt}

        def change(record: JsonObject) -> None:
            cast("dict[str, JsonObject]", record["blobs"])[role] |= {"id": made, "size": len(content)}

        self.change(n, change)
        self._renamed[sha256(before).hexdigest().encode()] = sha256(content).hexdigest().encode()

    def blob(self, n: int, role: str) -> bytes:
        """Return the content of a blob of one part."""
        blob = cast("dict[str, dict[str, JsonObject]]", _record(self.records[n]))["blobs"][role]
        return self.files[f"data/blobs/{blob['id']}/0"]

    def hide_with_blobs(self, n: int) -> None:
        """Show an event no more, nor what only it holds."""
        self.hide(n)
        kept = b"".join(self.records.values()).decode()
        for name in [name for name in self.files if name.startswith("data/blobs/")]:
            if name.split("/")[2] not in kept:
                del self.files[name]

    def _leaf(self, n: int) -> bytes:
        leaf = canonical({"c": self.commitments[n], "log": self.log.origin, "n": n, "t": self.tags[n], "v": 1})
        return self.leaves[n](leaf) if n in self.leaves else leaf

    def _claim(self, size: int, root: bytes, shown: Sequence[int]) -> None:
        rows = [self.rows[n] for n in shown]
        ends: list[Json] = [
            {"stream": stream, "ver": max((row.ver for row in rows if row.stream == stream), default=-1)}
            for stream in (f"findings:{self.log.task}", "ledger", f"task:{self.log.task}")
        ]
        checkpoint: JsonObject = {"root": root.hex(), "size": size}
        said_otherwise = {"checkpoint": checkpoint, "ends": ends, "events": len(shown), **self.claimed}
        claim(self.files, **said_otherwise)
        info = self.files["bag-info.txt"].splitlines(keepends=True)
        self.files["bag-info.txt"] = b"".join(
            b"Log-Size: %d\n" % size if line.startswith(b"Log-Size:") else line for line in info
        )
        outcome = b""
        for n in shown:
            read = _record(self.records[n])
            if read.get("type") in {"freshness.decided.v1", "violation.detected.v1"}:
                data = cast("JsonObject", read["data"])
                told = {name: data[name] for name in _OUTCOME if name in data}
                outcome += canonical({"index": n, "type": read["type"], **told}) + b"\n"
        self.files[EXPECTED] = outcome


def _record(raw: bytes) -> JsonObject:
    try:
        return cast("JsonObject", parse_canonical(raw))
    except FormatError:
        return {}


def enveloped(payload: bytes, signer: Signer, kind: str = "application/vnd.in-toto+json") -> bytes:
    """Return a DSSE envelope in RFC 8785 octets, section 10.2."""
    message = b"DSSEv1 %d %b %d %b" % (len(kind), kind.encode(), len(payload), payload)
    signature = base64.b64encode(signer.sign(message)).decode()
    return canonical(
        {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": kind,
            "signatures": [{"keyid": signer.key_id, "sig": signature}],
        }
    )


def payload_of(envelope: bytes) -> bytes:
    """Return what an envelope holds."""
    return base64.b64decode(cast("dict[str, str]", json.loads(envelope))["payload"])


def tag(key: bytes, ver: int) -> str:
    """Return the stream tag of a version, section 4."""
    return hmac.new(key, b"a2a-ledger/stream/v1\x00" + ver.to_bytes(8, "big"), "sha256").hexdigest()


def root_of(hashes: Sequence[bytes]) -> bytes:
    """Return the root of these leaf hashes, RFC 6962 section 2.1."""
    if len(hashes) == 1:
        return hashes[0]
    cut = _cut(len(hashes))
    return sha256(b"\x01" + root_of(hashes[:cut]) + root_of(hashes[cut:])).digest()


def path_of(n: int, hashes: Sequence[bytes]) -> list[bytes]:
    """Return the inclusion path of a leaf, RFC 6962 section 2.1.1."""
    if len(hashes) == 1:
        return []
    cut = _cut(len(hashes))
    if n < cut:
        return [*path_of(n, hashes[:cut]), root_of(hashes[cut:])]
    return [*path_of(n - cut, hashes[cut:]), root_of(hashes[:cut])]


def _cut(count: int) -> int:
    return 1 << (count - 1).bit_length() - 1
