"""The catalog in memory: the same guarantees without a server, for tests."""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from headrace.catalog.catalog import Change, Transaction, lease_held, lease_lost
from headrace.catalog.codec import EPOCHS, RECEIPTS, REFRESHES, STATE, Codec, to_json
from headrace.catalog.memory_requests import MemoryRequests
from headrace.catalog.prune import EFFORTS_KEPT, in_one_span
from headrace.catalog.records import (
    CutRecord,
    Effort,
    Lease,
    Receipt,
    Refresh,
    StratumTicks,
    StreamTable,
    TierInForce,
    taken_in,
)
from headrace.catalog.state import State
from headrace.errors import InternalError

R = TypeVar("R")
L = TypeVar("L", Refresh, Receipt)


@dataclass(frozen=True)
class _Contents:
    """The contents that a commit changes: replaced as a whole, or not at all."""

    records: dict[type, dict[Any, Any]] = field(default_factory=dict)
    cuts: tuple[CutRecord, ...] = ()
    refreshes: tuple[Refresh, ...] = ()
    receipts: tuple[Receipt, ...] = ()

    def after(self, change: Change) -> _Contents:
        records = {codec.record: dict(self.records.get(codec.record, {})) for codec in STATE}
        keys = {codec.record: codec.key for codec in STATE}
        for record in change.remove:
            records[type(record)].pop(getattr(record, str(keys[type(record)])), None)
        for codec in STATE:
            for record in change.put:
                if isinstance(record, codec.record):
                    records[codec.record][getattr(record, str(codec.key))] = _stored(codec, record)
        return _Contents(
            records,
            self.cuts + tuple(_stored(EPOCHS, cut) for cut in change.epochs),
            _appended(REFRESHES, _succeeded(self.refreshes, change), change.refreshes),
            _appended(RECEIPTS, _succeeded(self.receipts, change), change.receipts),
        )


class MemoryCatalog(MemoryRequests):
    """Implements `Catalog`; `apply` gets a transaction that refuses to be used."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = threading.RLock()
        self._committing = False
        self._contents = _Contents()
        self._settings: dict[str, Any] = {}
        self._epochs = itertools.count(1)
        self._fence = 0
        self._writer = threading.RLock()
        self._lease: Lease | None = None
        self._ticks: dict[int, StratumTicks] = {}
        self._tiers: tuple[TierInForce, ...] = ()

    def state(self) -> State:
        with self._use():
            rows = (self._contents.records.get(codec.record, {}).values() for codec in STATE)
            databases, relations, sources, stream_tables = rows
            return State.of(databases, relations, sources, stream_tables, self._settings)

    def next_epoch(self) -> int:
        with self._use():
            return next(self._epochs)

    def commit(
        self,
        change: Change,
        *,
        fence: int,
        apply: Callable[[Transaction], None] | None = None,
    ) -> None:
        with self._use():
            if fence != self._fence:
                raise lease_lost(fence, self._fence)
            contents = self._contents.after(change)
            if apply is not None:
                self._committing = True
                try:
                    apply(cast(Transaction, _NoTransaction()))
                finally:
                    self._committing = False
            self._contents = contents

    @contextmanager
    def lease(self, holder: str, wait: float = 0.0, *, serves: bool = False) -> Iterator[Lease]:
        patience = 0.0 if self.serving() is not None else wait
        if not self._writer.acquire(timeout=patience):
            raise lease_held(self._lease)
        try:
            if self._lease is not None:
                yield self._lease
                return
            self._fence += 1
            self._lease = Lease(self._fence, holder, os.getpid(), datetime.now(UTC), serves)
            try:
                yield self._lease
            finally:
                self._lease = None
        finally:
            self._writer.release()

    def cuts(self, epoch: int) -> tuple[CutRecord, ...]:
        with self._use():
            cuts = sorted(self._contents.cuts, key=lambda cut: (cut.database, cut.epoch))
            return tuple({cut.database: cut for cut in cuts if cut.epoch <= epoch}.values())

    def refreshes(self, table: str | None = None, limit: int | None = 100) -> tuple[Refresh, ...]:
        with self._use():
            return _latest(self._contents.refreshes, table, limit)

    def efforts(self, table: str, limit: int) -> tuple[tuple[str, Effort], ...]:
        left = {"FULL": limit, "DIFFERENTIAL": limit}
        efforts: list[tuple[str, Effort]] = []
        for line in self.refreshes(table, None):
            if line.error is None and line.effort is not None and left.get(line.mode, 0) > 0:
                left[line.mode] -= 1
                efforts.append((line.mode, line.effort))
        return tuple(efforts)

    def strata_ticks(self) -> tuple[StratumTicks, ...]:
        with self._use():
            return tuple(sorted(self._ticks.values(), key=lambda ticks: ticks.stratum))

    def count_ticks(self, ticks: Iterable[StratumTicks]) -> None:
        with self._use():
            for stratum_ticks in ticks:
                counted = self._ticks.get(
                    stratum_ticks.stratum, StratumTicks(stratum_ticks.stratum)
                )
                self._ticks[stratum_ticks.stratum] = counted.then(stratum_ticks)

    def prune_history(self, tables: Iterable[str], before: datetime, keep: int) -> int:
        state = self.state()
        table_ids = {table.relation for table in state.stream_tables}
        efforts = {
            table: {id(effort) for _, effort in self.efforts(table, EFFORTS_KEPT)}
            for table in table_ids
        }
        with self._use():
            refreshes, receipts = self._contents.refreshes, self._contents.receipts
            kept_refreshes = {line.id for line in refreshes if line.table in table_ids}
            kept_receipts = {
                line.id
                for line in receipts
                if line.table in table_ids or line.verified_at >= before
            }
            for table in set(tables) & table_ids:
                stays = _lacked(refreshes, state, table) | _first(refreshes, table)
                for place, line in enumerate(_latest(refreshes, table, None)):
                    needed = place == 0 or id(line.effort) in efforts[table] or line.id in stays
                    if not needed and (place >= keep or line.finished_at < before):
                        kept_refreshes.remove(line.id)
                for place, receipt in enumerate(_latest(receipts, table, None)):
                    if place > 0 and (place >= keep or receipt.verified_at < before):
                        kept_receipts.remove(receipt.id)
            left = tuple(
                line
                for line in refreshes
                if line.id in kept_refreshes
                or (line.table not in table_ids and line.finished_at >= before)
            )
            self._contents = replace(
                self._contents,
                cuts=tuple(_kept_cuts(self._contents.cuts, before, keep)),
                refreshes=left,
                receipts=tuple(line for line in receipts if line.id in kept_receipts),
            )
            return len(refreshes) - len(left)

    def tiers(self) -> tuple[TierInForce, ...]:
        with self._use():
            return self._tiers

    def note_tiers(self, tiers: Iterable[TierInForce]) -> None:
        with self._use():
            self._tiers = tuple(sorted(tiers, key=lambda tier: tier.relation))

    def receipts(self, table: str | None = None, limit: int | None = 100) -> tuple[Receipt, ...]:
        with self._use():
            return _latest(self._contents.receipts, table, limit)

    def set(self, name: str, value: Any) -> None:
        with self._use():
            if value is None:
                self._settings.pop(name, None)
            else:
                self._settings[name] = json.loads(to_json(value))

    def close(self) -> None:
        pass

    @contextmanager
    def _use(self) -> Iterator[None]:
        with self._turn:
            if self._committing:
                raise InternalError("invariant", "the catalog was called within its own commit")
            yield


class _NoTransaction:
    """Stands for the transaction of a commit where there is no server."""

    def __getattr__(self, name: str) -> Any:
        raise InternalError("invariant", "a catalog in memory has no transaction to work in")


def _stored(codec: Codec[R], record: R) -> R:
    """Return the record as it would come back from a row."""
    return codec.decode(json.loads(to_json(codec.encode(record))))


def _succeeded(lines: tuple[L, ...], change: Change) -> tuple[L, ...]:
    successors = dict(change.successors)
    return tuple(replace(line, table=successors.get(line.table, line.table)) for line in lines)


def _appended(codec: Codec[L], lines: tuple[L, ...], new: tuple[L, ...]) -> tuple[L, ...]:
    first = 1 + max((line.id or 0 for line in lines), default=0)
    return lines + tuple(
        replace(_stored(codec, line), id=first + place) for place, line in enumerate(new)
    )


def _latest(lines: tuple[L, ...], table: str | None, limit: int | None) -> tuple[L, ...]:
    matching_lines = [line for line in reversed(lines) if table is None or line.table == table]
    return tuple(matching_lines if limit is None else matching_lines[:limit])


def _lacked(lines: tuple[Refresh, ...], state: State, table: str) -> set[int | None]:
    """Return the first lines that each reader lacks which has not taken in all of a table."""
    origin = state.origin(table)
    assert isinstance(origin, StreamTable)
    line_ids: set[int | None] = set()
    for reader in state.readers(table):
        after = origin.epoch if reader.epoch == 0 else taken_in(reader, table)
        if after < origin.epoch:
            own = [line for line in lines if line.table == table and table in line.versions]
            later = [line for line in own if line.epoch > after]
            lines_with_rows = [line for line in later if line.rows_inserted + line.rows_deleted]
            line_ids |= {line.id for line in (*later[:1], *lines_with_rows[:1])}
    return line_ids


def _first(lines: tuple[Refresh, ...], table: str) -> set[int | None]:
    """Return the line of the refresh that built the relation of a table."""
    own = (line for line in lines if line.table == table and table in line.versions)
    return {line.id for line in itertools.islice(own, 1)}


def _kept_cuts(cuts: Iterable[CutRecord], before: datetime, keep: int) -> Iterator[CutRecord]:
    """Yield the latest `keep` of every database, and of the others the first of a minute or day."""
    by_database: dict[int, list[CutRecord]] = {}
    for cut in sorted(cuts, key=lambda cut: cut.epoch):
        by_database.setdefault(cut.database, []).append(cut)
    for database_cuts in by_database.values():
        yield from database_cuts[:1]
        for place, (previous, cut) in enumerate(itertools.pairwise(database_cuts), 1):
            is_late = place >= len(database_cuts) - keep
            if is_late or not in_one_span(previous.cut_at, cut.cut_at, before):
                yield cut
