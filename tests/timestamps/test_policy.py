"""What a reader's policy says of times: roots of authorities, and the clocks of a quorum."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.errors import FormatError
from a2a_ledger.policy import parse_policy
from a2a_ledger.verify import verify
from tests.conformance.cases import all_rows
from verifier import a2a_verify

if TYPE_CHECKING:
    from tests.timestamps.authority import Authority


def test_a_root_stands_in_one_line(authority: Authority) -> None:
    text = f"quorum none\n{authority.policy_line}"
    policy = parse_policy(text)
    assert [root.octets for root in policy.authorities] == [authority.octets()]
    assert str(policy) == text
    assert a2a_verify.read_policy(text.encode()).roots == [authority.octets()]


@pytest.mark.parametrize("what", ["twice", "no base64", "no certificate", "of a signer", "nothing", "with a name"])
def test_a_line_that_trusts_nobody_is_refused_by_both(authority: Authority, what: str) -> None:
    line = authority.policy_line
    signer = base64.b64encode(authority.octets(authority.stamping)).decode()
    text = {
        "twice": line + line,
        "no base64": line.replace("tsa ", "tsa -"),
        "no certificate": "# a2a-ledger: tsa AAAA\n",
        "of a signer": f"# a2a-ledger: tsa {signer}\n",
        "nothing": "# a2a-ledger: tsa\n",
        "with a name": line.replace("tsa ", "tsa example "),
    }[what]
    with pytest.raises(FormatError, match="policy line"):
        parse_policy(f"quorum none\n{text}")
    with pytest.raises(a2a_verify.RefusedError, match="policy line"):
        a2a_verify.read_policy(f"quorum none\n{text}".encode())


def test_a_quorum_s_time_is_that_of_the_last_who_was_needed() -> None:
    """Of two witnesses, at 09:00:00 and 09:00:01, both are asked for in the one case, any of them in the other."""
    rows = {row.name: row for row in all_rows()}
    for name, time in (("witnessed_by_quorum", "09:00:01Z"), ("witnessed_by_any", "09:00:00Z")):
        case = rows[name].made()
        detail = verify(case.bundle, policy=parse_policy(case.policy)).claim("T").detail
        alone = a2a_verify.verify(case.bundle, a2a_verify.read_policy(case.policy.encode())).claims["T"].detail
        for said in (detail, alone):
            assert f"existed not later than 2026-09-14T{time}, by the clocks of the witnesses of your quorum" in said
