"""Signatures that others have published: RFC 7515, RFC 8037, and the card signing vectors of the A2A TCK."""

from __future__ import annotations

import pytest

from a2a_ledger.signature import CardKey, judge
from a2a_ledger.signature.base64url import decode
from a2a_ledger.signature.jws import checker
from tests.signature.signing import signed

RSA_7515 = {  # RFC 7515 appendix A.2.1, public members
    "kty": "RSA",
    "n": (
        "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-"
        "pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2Cap"
        "Hg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h"
        "4FRWyuXpoQ"
    ),
    "e": "AQAB",
}
EC_7515 = {  # appendix A.3.1
    "kty": "EC",
    "crv": "P-256",
    "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
    "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
}
PAYLOAD_7515 = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
ED_8037 = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}  # RFC 8037 A.2
INPUT_8037 = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"  # RFC 8037 A.4
SIGNATURE_8037 = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"

PUBLISHED = [
    (
        "RS256",
        RSA_7515,
        f"eyJhbGciOiJSUzI1NiJ9.{PAYLOAD_7515}",
        (
            "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJ"
            "dbF9CUAr7"
            "t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi1"
            "2jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGl"
            "UPQGe77Rw"
        ),
    ),
    (
        "ES256",
        EC_7515,
        f"eyJhbGciOiJFUzI1NiJ9.{PAYLOAD_7515}",
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
    ),
    ("EdDSA", ED_8037, INPUT_8037, SIGNATURE_8037),
    # RFC 9864 section 2.2: Ed25519 is what EdDSA is with a key of that curve. It publishes no vector of its own.
    ("Ed25519", ED_8037, INPUT_8037, SIGNATURE_8037),
]


@pytest.mark.parametrize(("alg", "jwk", "signing_input", "signature"), PUBLISHED)
def test_signatures_of_the_standards_verify_and_no_changed_bit_does(
    alg: str, jwk: dict[str, str], signing_input: str, signature: str
) -> None:
    verifies = checker(alg, dict(jwk))
    raw = decode(signature)
    assert raw is not None
    data = signing_input.encode()
    assert verifies(data, raw)
    for number in (0, len(raw) // 2, len(raw) - 1):
        assert not verifies(data, raw[:number] + bytes([raw[number] ^ 1]) + raw[number + 1 :])
    assert not verifies(data + b"A", raw)
    assert not verifies(data, raw[:-1])
    assert not verifies(data, b"")
    assert not verifies(data, bytes(len(raw)))


def test_a_der_signature_is_no_jws_signature() -> None:
    # RFC 7518 section 3.4: R and S side by side, never ASN.1.
    raw = decode(PUBLISHED[1][3])
    assert raw is not None
    r, s = raw[:32], raw[32:]
    s = b"\0" + s if s[0] > 127 else s
    body = b"\x02" + bytes([len(r)]) + r + b"\x02" + bytes([len(s)]) + s
    assert not checker("ES256", dict(EC_7515))(PUBLISHED[1][2].encode(), b"\x30" + bytes([len(body)]) + body)


# tests/unit/agent_card/card_signing_vectors.json of a2aproject/a2a-tck at d366cbc60db21586770c581777818a2bf91bb4f7
# (Apache-2.0): signing_cases, each with the public key of the file.
TCK_KEY = CardKey(
    "key-1", {"kty": "OKP", "crv": "Ed25519", "x": "HPZl5kjLaWKcAp5QBiOWueZa0MyB5U6CGj0M6xZN4W4"}, "policy", None
)
TCK_PROTECTED = "eyJhbGciOiJFZERTQSIsImtpZCI6ImtleS0xIiwidHlwIjoiSk9TRSJ9"


def test_the_cards_that_the_tck_publishes_verify() -> None:
    small = signed(
        {
            "name": "Example Agent",
            "description": "",
            "capabilities": {"streaming": False, "pushNotifications": False},
            "skills": [],
        },
        {
            "protected": TCK_PROTECTED,
            "signature": ("olG34aQUzhOSXDUMp3m6zcOwX0zuPSH2wbcx3uY5d4CxjHTJNk_esMFDC379Tv780LltfYD9EZ9HDmKUKSe0BQ"),
        },
    )
    rich = signed(
        {
            "name": "Pay Agent",
            "version": "1.0.0",
            "url": "https://pay.example/a2a",
            "capabilities": {"streaming": True},
            "securitySchemes": {"oauth": {"type": "oauth2"}},
            "skills": [{"id": "quote", "name": "Quote"}],
        },
        {
            "protected": TCK_PROTECTED,
            "signature": ("Hwm5j4jzkRaIYuDIMAGfkpOw0kcp6VT5i2ziXy-d-Yz-jj97tPqrMqNkndWxvpUP4W8U7qMQViIQR1lDL5c5Cw"),
        },
    )
    for card in (small, rich):
        told = judge(card, [TCK_KEY])
        assert (told.status, told.form, told.covers_contract) == ("valid", "jcs", True)
        assert (told.alg, told.kid, told.key, told.proves) == ("EdDSA", "key-1", "policy", "signer")
