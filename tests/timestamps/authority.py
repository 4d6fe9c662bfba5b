"""A timestamp authority as openssl makes one: a root, certificates by `openssl ca`, answers by `openssl ts -reply`."""

from __future__ import annotations

import base64
import itertools
import re
import subprocess
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

POLICY = "1.3.6.1.4.1.57264.2"
OTHER_POLICY = "1.3.6.1.4.1.57264.3"

_CONFIG = f"""\
[ca]
default_ca = own
[own]
dir = .
new_certs_dir = .
database = index.txt
serial = serial
default_md = sha256
policy = any
unique_subject = no
copy_extensions = none
[any]
commonName = supplied
[root]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[middle]
basicConstraints = critical,CA:TRUE,pathlen:0
keyUsage = critical,keyCertSign
[stamping]
keyUsage = critical,digitalSignature
extendedKeyUsage = critical,timeStamping
[not_critical]
extendedKeyUsage = timeStamping
[not_alone]
extendedKeyUsage = critical,timeStamping,codeSigning
[other_use]
extendedKeyUsage = critical,codeSigning
[no_use]
keyUsage = critical,digitalSignature
[unread]
extendedKeyUsage = critical,timeStamping
nameConstraints = critical,permitted;DNS:example.org
[tsa]
default_tsa = tsa1
[tsa1]
serial = tsa_serial
crypto_device = builtin
signer_digest = sha256
default_policy = {POLICY}
other_policies = {OTHER_POLICY}
digests = sha256, sha512
accuracy = secs:1, millisecs:500
ordering = no
tsa_name = no
ess_cert_id_chain = no
ess_cert_id_alg = sha256
[tsa_plain]
serial = tsa_serial
crypto_device = builtin
signer_digest = sha512
default_policy = {POLICY}
digests = sha256
ess_cert_id_alg = sha1
"""


class Signer(NamedTuple):
    """One certificate of the authority, and its key."""

    certificate: Path
    key: Path


def openssl(folder: Path, *arguments: str | Path, given: bytes = b"") -> bytes:
    """Run openssl in a folder; return what it prints."""
    done = subprocess.run(["openssl", *arguments], cwd=folder, input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


class Authority:
    """An authority in a folder of its own."""

    def __init__(self, folder: Path, name: str = "Test Root", key: str = "P-256") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._numbers = itertools.count()
        for file, content in (
            ("openssl.cnf", _CONFIG),
            ("index.txt", ""),
            ("serial", "01\n"),
            ("tsa_serial", "01\n"),
        ):
            (folder / file).write_text(content)
        self.root = self.issue("root", name=name, key=key, by=None)
        self.stamping = self.issue("stamping", name="Test TSA", key=key)

    def issue(
        self,
        extensions: str,
        *,
        name: str,
        key: str = "P-256",
        by: Signer | str | None = "root",
        start: str = "20200101000000Z",
        end: str = "20491231235959Z",
    ) -> Signer:
        """Issue a certificate with a section of extensions; `by` None: it signs itself."""
        stem = f"{extensions}{next(self._numbers)}"
        made = Signer(self.folder / f"{stem}.pem", self.folder / f"{stem}.key")
        kind = ["-algorithm", "RSA", "-pkeyopt", f"rsa_keygen_bits:{key}"]
        if not key.isdigit():
            kind = ["-algorithm", "EC", "-pkeyopt", f"ec_paramgen_curve:{key}"]
        openssl(self.folder, "genpkey", *kind, "-out", made.key)
        request = self.folder / f"{stem}.csr"
        openssl(self.folder, "req", "-new", "-key", made.key, "-subj", f"/CN={name}", "-out", request)
        issuer = self.root if isinstance(by, str) else by
        signer: list[str | Path] = (
            ["-selfsign", "-keyfile", made.key]
            if issuer is None
            else ["-cert", issuer.certificate, "-keyfile", issuer.key]
        )
        openssl(
            self.folder, "ca", "-batch", "-notext", "-config", "openssl.cnf", *signer, "-extensions", extensions,
            "-startdate", start, "-enddate", end, "-in", request, "-out", made.certificate,
        )  # fmt: skip
        return made

    def reply(self, query: bytes, signer: Signer | None = None, section: str = "tsa1") -> bytes:
        """Answer a request."""
        by = signer or self.stamping
        (self.folder / "query").write_bytes(query)
        openssl(
            self.folder, "ts", "-reply", "-config", "openssl.cnf", "-section", section, "-queryfile", "query",
            "-signer", by.certificate, "-inkey", by.key, "-out", "reply",
        )  # fmt: skip
        return (self.folder / "reply").read_bytes()

    def stamp(self, content: bytes, signer: Signer | None = None, section: str = "tsa1") -> bytes:
        """Answer a request that openssl itself made for some octets."""
        (self.folder / "content").write_bytes(content)
        query = openssl(self.folder, "ts", "-query", "-data", "content", "-sha256", "-cert")
        return self.reply(query, signer, section)

    def refusal(self) -> bytes:
        """Return the answer to a request that it does not read."""
        return self.reply(b"no request")

    def signed_anew(self, reply: bytes, signer: Signer, *more: Signer, year: str = "") -> bytes:
        """Return an answer with the same statement, signed under another certificate, whatever that one is for.

        Args:
            reply: an answer of `openssl ts`.
            signer: its certificate and key.
            more: certificates that come along.
            year: puts the statement's time into that year.
        """
        (self.folder / "reply").write_bytes(reply)
        token = openssl(self.folder, "ts", "-reply", "-in", "reply", "-token_out")
        (self.folder / "token").write_bytes(token)
        statement = openssl(self.folder, "cms", "-verify", "-noverify", "-inform", "DER", "-in", "token")
        now = re.search(rb"\d{14}Z", statement)
        assert now is not None
        when = year.encode() + now[0][len(year) :]
        (self.folder / "statement").write_bytes(statement.replace(now[0], when))
        (self.folder / "others.pem").write_bytes(b"".join(one.certificate.read_bytes() for one in more))
        others = ["-certfile", "others.pem"] if more else []
        openssl(
            self.folder, "cms", "-sign", "-binary", "-nodetach", "-nosmimecap", "-cades", "-md", "sha256",
            "-econtent_type", "1.2.840.113549.1.9.16.1.4", "-signer", signer.certificate, "-inkey", signer.key, *others,
            "-in", "statement", "-outform", "DER", "-out", "signed",
        )  # fmt: skip
        return openssl(self.folder, "ts", "-reply", "-in", "signed", "-token_in")

    def octets(self, signer: Signer | None = None) -> bytes:
        """Return a certificate, that of the root if none is given, in DER."""
        return openssl(self.folder, "x509", "-in", (signer or self.root).certificate, "-outform", "DER")

    @property
    def pem(self) -> bytes:
        """Return the root's certificate in PEM."""
        return self.root.certificate.read_bytes()

    @property
    def policy_line(self) -> str:
        """Return the line by which a reader's policy trusts this root."""
        return f"# a2a-ledger: tsa {base64.b64encode(self.octets()).decode()}\n"

    def accepts(self, content: bytes, reply: bytes, *arguments: str) -> bool:
        """Say whether `openssl ts -verify` takes an answer for these octets, by this root."""
        (self.folder / "content").write_bytes(content)
        (self.folder / "reply").write_bytes(reply)
        command: list[str | Path] = [
            "openssl",
            "ts",
            "-verify",
            "-data",
            "content",
            "-in",
            "reply",
            "-CAfile",
            self.root.certificate,
        ]
        done = subprocess.run([*command, *arguments], cwd=self.folder, capture_output=True, check=False)
        return done.returncode == 0
