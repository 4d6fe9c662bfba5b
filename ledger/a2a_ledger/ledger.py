"""The application service and only writer: open a ledger, append facts, sign heads.

`ContractLedger` joins what lies below (store, keys, mark, settings) and knows nothing of what
lies above: neither how exchanges are captured, nor which projections read on. Time and
randomness come in once, here.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from a2a_ledger import codec
from a2a_ledger.checkpoint import new_origin
from a2a_ledger.commands import command
from a2a_ledger.erasing import finish_erasures
from a2a_ledger.errors import ReadOnlyError, UsageError
from a2a_ledger.followers import FollowerThread, catch_up_all, fence_of, load_followers
from a2a_ledger.heads import HeadSigner, check_mark, mark_of
from a2a_ledger.home import LedgerHome
from a2a_ledger.key_ring import KeyRing
from a2a_ledger.making import begin, make, new_keys, open_log
from a2a_ledger.passphrase import Passphrase
from a2a_ledger.settings import Settings, read_settings
from a2a_ledger.store import Appended, Store, open_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence

    from eventsourcing.persistence import Tracking

    from a2a_ledger.anchors.cadence import Cadence
    from a2a_ledger.anchors.peers import Peers
    from a2a_ledger.codec import Content, Draft
    from a2a_ledger.contract import Profile
    from a2a_ledger.events import Event
    from a2a_ledger.keys import Signer
    from a2a_ledger.store import Server
    from a2a_ledger.store.fence import Fence
    from a2a_ledger.store.mark import HighWaterMark

    Clock = Callable[[], datetime]
    Entropy = Callable[[int], bytes]

_log = logging.getLogger(__name__)

_URGENT = frozenset(
    {
        "contract.captured.v1",
        "contract.reconstructed.v1",
        "violation.detected.v1",
        "key.added.v1",
        "key.retired.v1",
        "key.revoked.v1",
    }
)

current_task: ContextVar[str | None] = ContextVar("a2a_ledger_task", default=None)
"""The local task that exchanges of this context belong to (docs/format.md section 4)."""


def _now() -> datetime:
    return datetime.now(UTC)


class ContractLedger:
    """An open ledger. Use `open`; close it, or use it as a context manager.

    Attributes:
        origin: the log's name.
        store: events, leaves and proofs.
        settings: what the deployment chose.
        profile: which vendor paths and extensions are terms beside the contract.
        signers: private keys by role; empty when the ledger is read-only.
    """

    def __init__(  # noqa: PLR0913 - the parts that `open` joins
        self,
        *,
        home: LedgerHome | None,
        store: Store,
        settings: Settings,
        signers: Mapping[str, Signer],
        mark: HighWaterMark | None,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self.home = home
        self.store = store
        self.origin = store.origin
        self.settings = settings
        self.profile: Profile = settings.read_profile(home.root if home else Path())
        self.signers = signers
        self.mark = mark
        self.clock = clock
        self.entropy = entropy
        self.probe: Callable[[str], Awaitable[str]] | None = None
        self._heads = HeadSigner(store, lambda: signers["log"], mark) if mark and "log" in signers else None
        self._followers: FollowerThread | None = None
        self._cadence: Cadence | None = None
        self.peers: Peers | None = None
        self._closing = threading.Lock()
        self._closed = False
        self._process = os.getpid()

    # ---- opening and closing --------------------------------------------------------------------------------

    @classmethod
    def open(  # noqa: PLR0913 - every choice of a deployment, all named and optional
        cls,
        location: str | Path,
        *,
        origin: str | None = None,
        read_only: bool = False,
        create: bool = True,
        follow: bool = True,
        ask_passphrase: Callable[[str], str] | None = None,
        clock: Clock = _now,
        entropy: Entropy = os.urandom,
        server: Server | None = None,
        **settings: Any,  # noqa: ANN401 - checked by name and type in Settings
    ) -> ContractLedger:
        """Open the ledger in a directory; make one when the directory is absent or empty.

        Args:
            location: a directory, or `:memory:` for a ledger that lives and dies with the process.
            origin: prefix of a new log's name; default: this machine's and the directory's name.
            read_only: neither write nor need a key. Without `keys/*.pem` a ledger always opens so.
            create: False: refuse to make a new ledger.
            follow: run the read models and the verifier in a thread of this process.
            ask_passphrase: asks a person for the passphrase of encrypted key files, where no file and no variable
                of the environment has it.
            clock: gives the time, with a zone.
            entropy: gives that many random octets.
            server: has the events of a new ledger, in the place of `ledger.db`; of an existing one its settings say.
            **settings: override `config.toml`, see `Settings`.

        Raises:
            UsageError: no ledger there, and no place for one; or an unknown setting.
            MissingKeysError: a database without its key store.
            RollbackError: the database is older than its high-water mark, or than a head that is kept elsewhere, or
                does not name the key that signed the mark.
            ConsistencyError: a head that is kept elsewhere is no beginning of the log.
            StoreError: it cannot be read or written, or a private key is not the one that the log names.
        """
        if str(location).startswith(("postgresql://", "postgres://")):
            raise UsageError(
                "expected a directory, found a URL: a ledger on a server is named by the directory that has its keys",
                hint="make one with `a2a-ledger --ledger DIR init --store postgresql://HOST/DATABASE`",
            )
        if str(location) == ":memory:":
            return cls._in_memory(
                origin or "memory", clock, entropy, Settings().with_overrides(settings), follow=follow
            )
        home = LedgerHome(Path(location).absolute())
        if home.is_new():
            if read_only or not create:
                raise UsageError(f"{home.root}: no ledger here; make one with `{command(home.root, 'init')}`")
            make(home, origin, clock, entropy, server)
        chosen = read_settings(home.config).with_overrides(settings)
        chosen.peer_card_keys(home.root)  # what cannot be used is said now, before anything is opened
        chosen.read_profile(home.root)
        chosen.witness_policy(home.root)
        signers: Mapping[str, Signer] = {}
        store = open_store(
            home.root, read_only=read_only or not home.key_files(), entropy=entropy, server=chosen.store.server
        )
        try:
            mark = mark_of(home, store, chosen)
            if not store.read_only:
                if chosen.store.server is not None:
                    begin(home, store, mark, clock, entropy)
                check_mark(mark, store, chosen)  # before the keys: an old copy does not name those of today
                signers = KeyRing(store, home.keys, Passphrase(chosen.passphrase_file(home.root), ask_passphrase))
            ledger = cls(
                home=home, store=store, settings=chosen, signers=signers, mark=mark, clock=clock, entropy=entropy
            )
            if chosen.anchor.files and not store.read_only:
                from a2a_ledger.anchors.kept import check_files  # noqa: PLC0415 - few deployments need it

                check_files(ledger, home.root)
            if chosen.anchor.peers and not store.read_only:
                from a2a_ledger.anchors.peers import meet_peers  # noqa: PLC0415 - few deployments need it

                ledger.peers = meet_peers(ledger)
        except BaseException:
            store.close()
            raise
        ledger._start(follow=follow and not store.read_only)
        finish_erasures(ledger)
        atexit.register(ledger.close)  # two lines in a program are enough: nobody has to remember to close
        return ledger

    @classmethod
    def _in_memory(
        cls,
        prefix: str,
        clock: Clock,
        entropy: Entropy,
        settings: Settings,
        *,
        follow: bool,
    ) -> ContractLedger:
        origin = new_origin(prefix, entropy)
        store = open_store(None, origin=origin, create=True, entropy=entropy)
        signers = new_keys(origin, entropy)
        open_log(store, signers, clock, entropy)
        ledger = cls(
            home=None, store=store, settings=settings, signers=signers, mark=None, clock=clock, entropy=entropy
        )
        ledger._start(follow=follow)
        return ledger

    def _start(self, *, follow: bool) -> None:
        if self._heads is not None:
            self._heads.start()
        if follow:
            self._followers = FollowerThread(self, fence_of(self))
            self._followers.start()
            self.anchor_regularly()

    def close(self) -> None:
        """Let the followers catch up, sign what is left, and close the store; a second call does nothing."""
        if os.getpid() != self._process:
            return  # a forked child has its parent's ledger, but none of its threads: the parent closes it
        with self._closing:
            if self._closed:
                return
            self._closed = True
            atexit.unregister(self.close)
            for part in (self._cadence, self.peers, self._followers, self._heads):
                if part is not None:
                    part.stop()
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- writing --------------------------------------------------------------------------------------------

    @property
    def read_only(self) -> bool:
        """Say whether nothing can be appended."""
        return self.store.read_only

    @property
    def statement_signer(self) -> Signer | None:
        """Return the key that signs findings, when it is here."""
        return self.signers.get("statement")

    def draft(
        self,
        event: Event,
        *,
        stream: str,
        blobs: Mapping[str, Content | bytes] | None = None,
        how: str = "live",
        at: datetime | None = None,
    ) -> Draft:
        """Seal an event outside any lock; `append` gives it its place."""
        return codec.draft(event, stream=stream, at=at or self.clock(), entropy=self.entropy, blobs=blobs, how=how)

    def append(self, drafts: Sequence[Draft], tracking: Tracking | None = None) -> list[Appended]:
        """Append all of `drafts` durably, in one transaction, or none of them.

        Raises:
            ReadOnlyError: this ledger cannot be written.
            StoreError: it could not be recorded.
        """
        self._writable()
        appended = self.store.append(drafts, tracking)
        self._appended(drafts)
        return appended

    async def append_async(self, drafts: Sequence[Draft]) -> list[Appended]:
        """Append without ever blocking the event loop; a cancelled caller leaves nothing or all of it."""
        self._writable()
        appended = await self.store.append_async(drafts)
        self._appended(drafts)
        return appended

    def command(self, words: str) -> str:
        """Return the command line for a verb on this ledger, as it can be pasted (`words`: verb and arguments)."""
        return command(self.home.root if self.home else None, words)

    def _writable(self) -> None:
        if self.store.read_only:
            raise ReadOnlyError(
                f"{self.home.root if self.home else self.origin}: opened read-only, nothing can be recorded; "
                "open a ledger that has its keys"
            )

    def _appended(self, drafts: Sequence[Draft]) -> None:
        if any(draft.type in _URGENT for draft in drafts):
            self.checkpoint_soon()
        if self._followers is not None:
            self._followers.wake()

    def new_task(self) -> str:
        """Return a new local task id, 40 hex digits; its stream is `task:<id>`. Its key is durable already."""
        self._writable()
        return self.store.keys.new_task()

    def find_task(self, peer: str, task_id: str) -> str | None:
        """Return the local task that a peer's task id belongs to, from the log and not from memory."""
        found = self.store.tagged(f"task:{peer}:{task_id}", limit=1)
        return found[0].stream.removeprefix("task:") if found else None

    @contextmanager
    def task(self, task: str | None = None) -> Generator[str]:
        """Make the exchanges of this context belong to one task; without an id a new one is opened."""
        chosen = task or self.new_task()
        token = current_task.set(chosen)
        try:
            yield chosen
        finally:
            current_task.reset(token)

    # ---- heads and followers --------------------------------------------------------------------------------

    def sign_checkpoint(self) -> str:
        """Sign the head as it is now and return the note (docs/format.md section 6).

        Raises:
            ReadOnlyError: the log key is not here.
            RollbackError: the database is behind its high-water mark.
        """
        if self._heads is None:
            raise ReadOnlyError(
                f"{self.home.root if self.home else self.origin}: no log key here, so no head can be signed; "
                "do this where keys/log.pem is"
            )
        return self._heads.sign()

    def checkpoint_soon(self) -> None:
        """Ask for a signature at once, without waiting for it."""
        if self._heads is not None:
            self._heads.soon()

    def anchor_regularly(self) -> None:
        """Give heads to whom the settings name (`[anchor]`), in a thread, until the ledger is closed.

        Does nothing where they name nobody, or where no head can be signed.
        """
        chosen = self.settings.anchor
        if self._cadence or self.home is None or self._heads is None or not chosen.by_itself:
            return
        from a2a_ledger.anchors.cadence import Cadence  # noqa: PLC0415 - only deployments with anchors need it

        self._cadence = Cadence(self, self.home.root)
        self._cadence.start()

    def catch_up(self, *, from_start: bool = False, fence: Fence | None = None) -> int:
        """Run the read models and the verifier up to the head, in this thread; return the events processed.

        Args:
            from_start: read the log again from its first event, as after a read model or a position was damaged.
                No finding is recorded twice.
            fence: that this process is inside of; None: others may follow as well, which costs work and harms nothing.

        Raises:
            StoreError: a position or a read model was changed from outside; `from_start` repairs it.
            UnreachableError: the fence, or the server, is lost.
        """
        self._writable()
        followers = load_followers(self)
        try:
            for follower in followers if from_start else ():
                follower.start_over()
            return catch_up_all(followers, fence=fence)
        finally:
            for follower in followers:
                follower.close()

    async def diagnose(self, peer: str) -> str:
        """Fetch a peer's card as a diagnostic, the only probe of a running task; it never reaches an SDK as a card.

        Returns:
            The contract hash of what was fetched, or a word for why there is none.

        Raises:
            UsageError: no guard of this process knows how to reach the peer.
        """
        if self.probe is None:
            raise UsageError("no guarded client in this process: make one with guard(ledger), then diagnose")
        return await self.probe(peer)
