"""What the agent's bundle shows: the cards that it served, so that a reader of two bundles sees a stale contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.bundle import record_file
from a2a_ledger.codec import canonical, parse_canonical
from a2a_ledger.verify import verify
from tests.evidence.forging import forged, statuses
from tests.reconcile.test_verb import Parties

if TYPE_CHECKING:
    from pathlib import Path


def test_the_stale_case_comes_out_of_two_verified_bundles(tmp_path: Path) -> None:
    parties = Parties(tmp_path, changed=True, paid="paid 10")
    code, found = parties.json(
        tmp_path / "ours.zip",
        tmp_path / "theirs.zip",
        "--policy-a",
        tmp_path / "ours.txt",
        "--policy-b",
        tmp_path / "theirs.txt",
    )
    assert [found["sides"][name]["verdict"] for name in "ab"] == ["verified", "verified"]
    assert (code, found["verdict"]) == (1, "mutually-consistent-stale")


def test_a_served_card_whose_record_says_another_hash_is_found(tmp_path: Path) -> None:
    parties = Parties(tmp_path, changed=True, paid="paid 10")
    bundle = (tmp_path / "theirs.zip").read_bytes()
    assert statuses(verify(bundle, trust=[parties.vkeys[1]]))["R"] == "VALID"

    def change(files: dict[str, bytes]) -> None:
        name = record_file(5)  # the card that was served behind the first one
        record = parse_canonical(files[name])
        assert isinstance(record, dict)
        assert record["type"] == "card.served.v1"
        data = record["data"]
        assert isinstance(data, dict)
        files[name] = canonical({**record, "data": {**data, "contract_hash": "sha256:" + "00" * 32}})

    assert verify(forged(bundle, change)).verdict == "invalid"
