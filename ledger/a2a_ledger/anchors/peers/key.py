"""The key by which this ledger cosigns heads of its peers: made once, when peers are first named.

docs/format.md section 6.3, role `peer`. As with a rotation the private key is durable before the log names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.events import KeyAdded
from a2a_ledger.key_ring import KeyRing, next_file, save_whole
from a2a_ledger.keys import KINDS, generate

if TYPE_CHECKING:
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store.mark import HighWaterMark

ROLE = "peer"


def make_peer_key(ledger: ContractLedger, mark: HighWaterMark) -> None:
    """Give a ledger its cosigning key if it has none.

    Under the signer's lock: if two processes added a key each, one of the files would be no longer there.

    Raises:
        MissingKeysError: a key file is encrypted, and there is no passphrase.
        StoreError: the key or its event cannot be written.
    """
    ring = ledger.signers
    if not isinstance(ring, KeyRing) or ROLE in ring:
        return
    with mark.exclusive():
        ring.take_up(ROLE)
        if ROLE in ring:
            return
        new = generate(ledger.origin, ledger.entropy, KINDS[ROLE])
        save_whole(next_file(ring.folder, ROLE), new, ring.sealing())  # in the place of one that the log never named
        added = KeyAdded(key_id=new.key_id, public_key=new.verifier.public_key.hex(), role=ROLE, vkey=new.vkey)
        ledger.append([ledger.draft(added, stream="ledger")])
        ring.take_up(ROLE)
