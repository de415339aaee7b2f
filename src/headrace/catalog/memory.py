"""The catalog in memory: the same promises without a server, for tests of what stands on it."""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from headrace.catalog.catalog import Change, Transaction, lease_held, lease_lost
from headrace.catalog.codec import EPOCHS, RECEIPTS, REFRESHES, STATE, Codec, to_json
from headrace.catalog.memory_requests import MemoryRequests
from headrace.catalog.records import Cut, Effort, Lease, Receipt, Refresh
from headrace.catalog.state import State
from headrace.errors import InternalError

R = TypeVar("R")
L = TypeVar("L", Refresh, Receipt)


@dataclass(frozen=True)
class _Contents:
    """What a commit changes: replaced as a whole, or not at all."""

    records: dict[type, dict[Any, Any]] = field(default_factory=dict)
    cuts: tuple[Cut, ...] = ()
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

    def cuts(self, epoch: int) -> tuple[Cut, ...]:
        with self._use():
            cuts = sorted(self._contents.cuts, key=lambda cut: (cut.database, cut.epoch))
            return tuple({cut.database: cut for cut in cuts if cut.epoch <= epoch}.values())

    def refreshes(self, table: str | None = None, limit: int | None = 100) -> tuple[Refresh, ...]:
        with self._use():
            return _latest(self._contents.refreshes, table, limit)

    def efforts(self, table: str, limit: int) -> tuple[tuple[str, Effort], ...]:
        left = {"FULL": limit, "DIFFERENTIAL": limit}
        found: list[tuple[str, Effort]] = []
        for line in self.refreshes(table, None):
            if line.error is None and line.effort is not None and left.get(line.mode, 0) > 0:
                left[line.mode] -= 1
                found.append((line.mode, line.effort))
        return tuple(found)

    def strata_skipped(self) -> Mapping[str, int]:
        with self._use():
            total: Counter[str] = Counter()
            for line in self._contents.refreshes:
                total[line.table] += line.strata_skipped
            return total

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
    """The record as it would come back from a row."""
    return codec.decode(json.loads(to_json(codec.encode(record))))


def _succeeded(lines: tuple[L, ...], change: Change) -> tuple[L, ...]:
    successors = dict(change.successors)
    return tuple(replace(line, table=successors.get(line.table, line.table)) for line in lines)


def _appended(codec: Codec[L], lines: tuple[L, ...], new: tuple[L, ...]) -> tuple[L, ...]:
    first = len(lines) + 1
    return lines + tuple(
        replace(_stored(codec, line), id=first + place) for place, line in enumerate(new)
    )


def _latest(lines: tuple[L, ...], table: str | None, limit: int | None) -> tuple[L, ...]:
    found = [line for line in reversed(lines) if table is None or line.table == table]
    return tuple(found if limit is None else found[:limit])
