"""A key ends once, whoever writes at the same time: the transaction that appends looks, in a file and on a server."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.codec import Draft, draft
from a2a_ledger.errors import UsageError
from a2a_ledger.events import KeyAdded, KeyRetired, KeyRevoked
from a2a_ledger.keys import KINDS, Signer, generate
from a2a_ledger.store.log_keys import log_keys
from tests.store.facts import AT, ORIGIN, message, new_stream
from tests.store.test_concurrency import begun, slowed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.events import Event
    from a2a_ledger.store import Store
    from tests.store.facts import Where


@pytest.fixture
def store(where: Where) -> Iterator[Store]:
    made = where.make()
    yield made
    made.close()


@pytest.fixture
def key(store: Store) -> Signer:
    made = generate(ORIGIN, os.urandom, KINDS["export"])
    added = KeyAdded(key_id=made.key_id, public_key=made.verifier.public_key.hex(), role="export", vkey=made.vkey)
    store.append([_drafted(added)])
    return made


def _drafted(event: Event) -> Draft:
    return draft(event, stream="ledger", at=AT, entropy=os.urandom)


def _retired(key: Signer) -> Draft:
    return _drafted(KeyRetired(key_id=key.key_id, role="export", vkey=key.vkey))


def _types(store: Store) -> list[str]:
    return [record.type for record in store.read(0, 10)]


def test_who_ends_a_key_just_before_the_transaction_of_another_is_the_only_one(
    where: Where, store: Store, key: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = where.make()
    other.append([message(new_stream(other))])  # so that it has looked at the log
    prepare = other.keys.prepare

    def outrun(stream: str) -> None:
        store.append([_retired(key)])
        prepare(stream)

    monkeypatch.setattr(other.keys, "prepare", outrun)
    with pytest.raises(UsageError, match="the key is retired already"):
        other.append([_retired(key)])
    other.close()
    assert _types(store) == ["key.added.v1", "message.recorded.v1", "key.retired.v1"]
    assert [term.retired for term in log_keys(store).terms] == [2]


def test_the_end_of_a_key_that_was_asked_for_again_is_one_end(store: Store, key: Signer) -> None:
    end = _retired(key)
    assert store.append([end]) == store.append([end])
    assert _types(store) == ["key.added.v1", "key.retired.v1"]


def test_two_ends_of_a_key_in_one_append_are_refused_together(store: Store, key: Signer) -> None:
    revoked = KeyRevoked(key_id=key.key_id, role="export", vkey=key.vkey, size=0)
    with pytest.raises(UsageError, match="the key is revoked already, behind size 0"):
        store.append([_drafted(revoked), _drafted(revoked)])
    assert _types(store) == ["key.added.v1"]


def test_an_end_that_is_refused_fails_no_neighbour(store: Store, key: Signer) -> None:
    store.append([_retired(key)])

    async def together() -> list[object]:
        with slowed(store) as sizes:
            first = asyncio.create_task(store.append_async([message(new_stream(store))]))
            await begun(sizes)
            found = await asyncio.gather(
                store.append_async([_retired(key)]),
                store.append_async([message(new_stream(store))]),
                return_exceptions=True,
            )
            await first
            assert sizes == [1, 2, 1, 1]  # what was refused together is written again, each for itself
        return list(found)

    refused, placed = asyncio.run(together())
    assert isinstance(refused, UsageError)
    assert not isinstance(placed, BaseException)
    assert _types(store) == ["key.added.v1", "key.retired.v1", "message.recorded.v1", "message.recorded.v1"]
