"""The parts of one open project, wired once and passed to all code that acts."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from headrace.capture.wal.streaming_reader import SlotReaders
from headrace.catalog import Catalog, Change, State, new_relation_id, records
from headrace.catalog.records import Lease, Relation, Source, Status, StreamTable
from headrace.engine.steps import PinRecovered, RollBack, Step
from headrace.errors import HeadraceError, NeedsReinit
from headrace.settings import Settings, resolve
from headrace.source.connection import Database
from headrace.spark.run import Runner
from headrace.store import Store

HOME = 1

Part = TypeVar("Part")

logger = logging.getLogger(__name__)

# Reports the progress of long work: the activity, the amount done, the total (0: not known).
Progress = Callable[[str, int, int], None]


def this_process() -> str:
    """Return the name by which others know this process."""
    return f"{socket.gethostname()}:{os.getpid()}"


def no_progress(what: str, done: int, total: int) -> None:
    """Ignore progress."""


def nothing_else(engine: Engine, fence: int) -> None:
    """Recover nothing besides the logs."""


def nobody_watches(when: str, step: Step) -> None:
    """Perform steps unwatched."""


# The addresses of a database, for its runtime role and for the role that sets capture up.
_Address = tuple[str, str | None]

# Called "before" and "after" every step.
Watch = Callable[[str, Step], None]

# Recovery of other things than the logs, after a writer may have died; called with the fence.
Recovery = Callable[["Engine", int], None]


@dataclass
class Engine:
    """Source database, catalog, store and Spark of one project.

    `database` is the home database; sources are in it or in attached ones. `fence` is the number of
    the lease this process held last, None if it failed in between: when the next one is not its
    successor, a writer may have died, and the logs are rolled back to their pins first.
    `held` is the number of the lease while it is held, `recovery` restores other things than the
    logs. A `shared` lease is held for the life of a daemon, and all its threads write under it.
    `slot_readers` read the servers' WAL, which a daemon has streamed. An engine that is `closed`
    must not be used any more.
    """

    database: Database
    catalog: Catalog
    store: Store
    runner: Runner
    progress: Progress = no_progress
    recovery: Recovery = nothing_else
    watch: Watch = nobody_watches
    closed: bool = field(default=False, init=False)
    fence: int | None = field(default=None, init=False)
    held: int | None = field(default=None, init=False)
    shared: Lease | None = field(default=None, init=False)
    slot_readers: SlotReaders = field(default_factory=SlotReaders, init=False, repr=False)
    _attached: dict[int, tuple[_Address, Database]] = field(
        default_factory=dict, init=False, repr=False
    )
    _parts: dict[type, object] = field(default_factory=dict, init=False, repr=False)
    _read: list[State] = field(default_factory=list, init=False, repr=False)
    _changes: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    def part(self, kind: type[Part]) -> Part:
        """Return this project's one instance of `kind`, created without arguments at first use.

        What a package remembers between calls (caches, times of attempts) is of a class of that
        package, and is found here by all code that has the engine.
        """
        with self._changes:
            instance = self._parts.get(kind)
            if instance is None:
                instance = self._parts[kind] = kind()
        assert isinstance(instance, kind)
        return instance

    def settings(self, state: State) -> Settings:
        return Settings.of(dict(state.settings))

    def source_database(self, record: records.DatabaseRecord) -> Database:
        """Return the database of a record; open an attached one when it is first needed.

        An attached database whose address has changed is closed and opened again.
        """
        if record.id == HOME:
            return self.database
        assert record.address is not None
        address = (record.address, record.setup_address)
        with self._changes:
            if record.id in self._attached:
                opened_address, database = self._attached[record.id]
                if opened_address == address:
                    return database
                database.close()
            setup = record.setup_address
            opened = Database(resolve(record.address), None if setup is None else resolve(setup))
            self._attached[record.id] = address, opened
            return opened

    def forget_database(self, record: records.DatabaseRecord) -> None:
        """Close the connections to a database that is detached."""
        with self._changes:
            if record.id in self._attached:
                _, database = self._attached.pop(record.id)
                database.close()

    def close(self) -> None:
        """Close the connections to all databases."""
        self.slot_readers.close()
        for database in (self.database, *(database for _, database in self._attached.values())):
            database.close()

    @contextmanager
    def writing(self) -> Iterator[Lease]:
        """Hold the writer lease, with every log at its pin."""
        if self.shared is not None:
            yield self.shared
            return
        wait = self.settings(self.catalog.state()).lease_wait
        with self.catalog.lease(this_process(), wait) as lease:
            if lease.fence == self.held:
                # The lease is taken again while it is held: rows beyond the pins are our own work.
                yield lease
                return
            if self.fence is None or lease.fence != self.fence + 1:
                self.recover(lease)
            self.fence, self.held = lease.fence, lease.fence
            try:
                yield lease
            except BaseException:
                self.distrust()
                raise
            finally:
                self.held = None

    @contextmanager
    def serving(self, wait: float) -> Iterator[Lease]:
        """Hold the writer lease for all threads of a process that performs requests."""
        with self.catalog.lease(this_process(), wait, serves=True) as lease:
            self.recover(lease)
            self.shared = lease
            try:
                yield lease
            finally:
                self.shared = None
                self.distrust()

    @contextmanager
    def changing(self, state: State) -> Iterator[State]:
        """Yield the newest state, which no other thread changes meanwhile.

        `state` is the caller's state, which is the newest where nobody else writes.
        """
        with self._changes:
            yield state if self.shared is None else self.catalog.state()

    def hold(self, state: State) -> None:
        """Hold the state of a refresh under way, at whose pins its tables stand once published."""
        with self._changes:
            self._read.append(state)

    def release(self, state: State) -> None:
        """Release the state of a refresh that has ended."""
        with self._changes:
            place = next(
                number for number, held_state in enumerate(self._read) if held_state is state
            )
            del self._read[place]

    def epochs_held(self, relation: str) -> frozenset[int]:
        """Return the epochs of a relation at which refreshes under way will stand."""
        with self._changes:
            pins = [
                relation_record.pin
                for state in self._read
                if (relation_record := state.find(relation))
            ]
        return frozenset(pin.epoch for pin in pins)

    @contextmanager
    def step(self, step: Step) -> Iterator[None]:
        """Report a step to `watch` before and after the durable act inside the `with`."""
        self.watch("before", step)
        yield
        self.watch("after", step)

    def distrust(self) -> None:
        """Have the logs rolled back to their pins before the next write."""
        self.fence = None

    def recover(self, lease: Lease) -> None:
        """Remove what was written but never pinned."""
        state = self.catalog.state()
        self._roll_back(state, state.relations, lease.fence)
        self.recovery(self, lease.fence)

    def roll_back(self, owners: Iterable[str], fence: int) -> None:
        """Roll the logs of relations, and of the stages below them, back to their pins.

        Called after a failure of one of several threads that write. A single writer has all logs
        rolled back before the next write instead.
        """
        if self.shared is None:
            return
        size = len(new_relation_id())
        owner_ids = {name[:size] for name in owners}
        try:
            state = self.catalog.state()
            relations = [
                relation for relation in state.relations if relation.id[:size] in owner_ids
            ]
            self._roll_back(state, relations, fence)
        except HeadraceError as error:
            logger.warning("rollback failed", extra={"code": error.code, "error": error.message})

    def _roll_back(self, state: State, relations: Iterable[Relation], fence: int) -> None:
        """Roll back logs; a damaged log suspends only the tables that need it."""
        moved: list[Relation | Source | StreamTable] = []
        for relation in relations:
            try:
                with self.step(RollBack(relation.id)):
                    pin = self.store.rollback(relation.id, relation.pin)
            except NeedsReinit as error:
                moved += _stopped(state, relation.id, error)
                continue
            if pin != relation.pin:
                moved.append(replace(relation, pin=pin))
        if moved:
            with self.step(PinRecovered()):
                self.catalog.commit(Change(put=tuple(moved)), fence=fence)


def _stopped(state: State, relation: str, error: NeedsReinit) -> list[Source | StreamTable]:
    """Return the source and stream tables that need a relation's log, suspended with a reason."""
    reason = f"{error.message}; reinit the stream tables that need it"
    owner = state.origin(relation[: len(new_relation_id())])
    needing: list[Source | StreamTable] = [owner] if owner is not None else []
    if isinstance(owner, Source):
        needing += state.readers(relation)
    return [
        owner_or_reader.suspended(reason)
        if isinstance(owner_or_reader, StreamTable)
        else replace(owner_or_reader, status=Status.SUSPENDED, reason=reason)
        for owner_or_reader in needing
    ]
