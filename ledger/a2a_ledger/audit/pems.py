"""The audit's look at the private keys beside a ledger: not needed, and if they lie there, the right ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.audit.fault import Fault
from a2a_ledger.errors import FormatError, StoreError
from a2a_ledger.home import LedgerHome
from a2a_ledger.key_ring import place_of, signed_for_by
from a2a_ledger.keys import KINDS, ROLES, load_pem, parse_vkey
from a2a_ledger.making import KEY_ROLES
from a2a_ledger.passphrase import Passphrase
from a2a_ledger.store.log_keys import NOW, check_signer

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.key_events import Keys


def check_private_keys(root: Path, origin: str, keys: Keys, notes: list[str]) -> list[Fault]:
    """Return a fault for each key file that is not the log's; what is not there is worth a note."""
    faults: list[Fault] = []
    files = {path.stem: path for path in LedgerHome(root).key_files() if path.stem in ROLES and path.suffix == ".pem"}
    for role, path in files.items():
        try:
            signer = load_pem(path, origin, Passphrase(), KINDS[role])
        except StoreError as problem:
            notes.append(str(problem))
            continue
        try:
            check_signer(keys, role, path, signer)
        except StoreError as problem:
            faults.append(Fault("key", None, str(problem)))
    away = signed_for_by(LedgerHome(root).keys)
    faults += _away_faults(LedgerHome(root).keys, keys, notes)
    notes += [f"the {role} key is not here: it is signed for by {uri}" for role, uri in away.items()]
    absent = [f"{role}.pem" for role in KEY_ROLES if role not in files and role not in away]
    if absent:
        notes.append(f"private keys that are not here: {', '.join(absent)}; this copy can be read and verified")
    return faults


def _away_faults(folder: Path, keys: Keys, notes: list[str]) -> list[Fault]:
    """Return a fault for each key that is signed for elsewhere and is not the one that the log names for its role.

    Nobody is asked to sign: what lies here says which key it is, and each signature is held to that.
    """
    faults: list[Fault] = []
    for role in ROLES:
        path = place_of(folder, role)
        if path.suffix != ".uri":
            continue
        try:
            stated = parse_vkey(path.read_text(encoding="utf-8").splitlines()[1]).vkey
        except OSError as problem:
            notes.append(f"{path}: cannot be read ({problem.strerror})")
            continue
        except (ValueError, IndexError, FormatError):
            said = f"{path}: expected a line with a URI and one with the key's vkey; `a2a-ledger keys use` writes it"
            faults.append(Fault("key", None, said))
            continue
        expected = [key.vkey for key in keys.speaking(role, NOW)]
        if stated not in expected:
            named = " or ".join(expected) or "which is none"
            said = (
                f"{path}: expected the {role} key that the log names, {named}, found {stated}: what is signed there "
                "would prove nothing; say who signs with `a2a-ledger keys use`"
            )
            faults.append(Fault("key", None, said))
    return faults
