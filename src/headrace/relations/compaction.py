"""Compact logs: merge files of epochs that no reader distinguishes, and remove superfluous files.

A daemon's threads write one relation each, from an exact version of its log, so nobody else can
commit to it. Large merges therefore run beside refreshes, in one thread for all relations, and only
write into a folder that no log names. The next compaction of the relation puts the merged files in
place. Until then, and if the process ends before, the original files count. The folder of a failed
merge is removed at once, one that nobody takes by a vacuum.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import timedelta
from threading import Lock

from headrace.catalog import Change, State
from headrace.catalog.records import Relation, taken_in
from headrace.engine import Engine
from headrace.engine.steps import Compact
from headrace.errors import HeadraceError
from headrace.plan.operators import Net
from headrace.relations.rows import in_ranges, scan_all, stored_schema, with_epoch
from headrace.render import render
from headrace.render.inputs import input_name
from headrace.spark.run import Input
from headrace.store import LogFile, Pin, RelationLog
from headrace.store.compaction import worth_merging

ROWS_A_PART = 1_000_000
# Merging so many rows takes as long as a commit or two; a refresh need not wait for more.
AT_ONCE_ROWS = 50_000

logger = logging.getLogger(__name__)


def epochs_needed(state: State, relation: str) -> frozenset[int]:
    """Return the epochs that readers need as their "before": those of their frontiers."""
    return frozenset(taken_in(reader, relation) for reader in state.readers(relation))


def compact(engine: Engine, relations: Iterable[str], fence: int) -> None:
    """Compact old epochs of these relations where that is worth it, and pin the result.

    The work of the caller is published already, so a failure is logged and not raised; the next
    writer finds the logs as they are.
    """
    names = tuple(relations)
    try:
        with engine.step(Compact(names)):
            _compact(engine, names, fence)
    except HeadraceError as error:
        engine.distrust()
        engine.roll_back(names, fence)
        logger.warning("compaction failed", extra={"code": error.code, "error": error.message})


def _compact(engine: Engine, names: tuple[str, ...], fence: int) -> None:
    # Held epochs are read before the state: a refresh that ends in between is in the state.
    held_epochs = {name: engine.epochs_held(name) for name in names}
    state = engine.catalog.state()
    moved = []
    for name in names:
        relation = state.relation(name)
        needed = epochs_needed(state, name) | held_epochs[name]
        pin = _shortened(engine, relation, needed, engine.settings(state).collect_rows)
        if pin != relation.pin:
            moved.append(replace(relation, pin=pin))
    if moved:
        engine.catalog.commit(Change(put=tuple(moved)), fence=fence)
    # Looking for superfluous files lists a folder, so it is done only where a compaction just made
    # some, or where those that were noted before have waited for long enough.
    state = state.with_relations(moved)
    retention = timedelta(seconds=engine.settings(state).history_retention)
    replaced = {relation.id for relation in moved}
    for name in names:
        # Files that a merge is writing are named by no commit either.
        if engine.part(Merges).being_merged(name):
            continue
        if name in replaced or engine.store.vacuum_is_due(name, retention):
            engine.store.vacuum(name, state.relation(name).pin, retention)


def _shortened(engine: Engine, relation: Relation, needed: frozenset[int], limit: int) -> Pin:
    """Return the pin after files were replaced by merged ones, or the same pin.

    Under a daemon larger merges are begun now, and a later call puts them in place.
    """
    store, merges, name, pin = engine.store, engine.part(Merges), relation.id, relation.pin
    files = store.files(name, pin, 0, pin.epoch)
    merge = merges.take(name)
    if merge is not None and merge.fits(files, needed):
        return store.replace(name, pin, merge.chosen, merge.sum.folder, merge.sum.rows)
    begun = merges.being_merged(name)
    newer = tuple(file for file in files if not begun or file.first_epoch > begun[-1].last_epoch)
    chosen = worth_merging(newer, needed)
    if not chosen:
        return pin
    rows = sum(file.rows for file in chosen)
    if rows > AT_ONCE_ROWS and engine.shared is not None:
        if not begun:
            log = store.log(name, pin)
            merges.begin(name, chosen, lambda: _written(engine, relation, log, chosen, limit))
        return pin
    if rows <= limit:
        return store.compact(name, pin, chosen)
    written = _written(engine, relation, store.log(name, pin), chosen, limit)
    return store.replace(name, pin, chosen, written.folder, written.rows)


def _written(
    engine: Engine, relation: Relation, log: RelationLog, chosen: tuple[LogFile, ...], limit: int
) -> MergedFiles:
    """Merge the chosen files into a new folder; executors merge many rows.

    `log` is as it was when they were chosen. It may have advanced far by the time they are merged.
    """
    store, epoch = engine.store, chosen[-1].last_epoch
    folder = store.new_folder(relation.id, epoch)
    try:
        if sum(file.rows for file in chosen) <= limit:
            store.write_merged(relation.id, log, chosen, folder)
        else:
            _write(engine, relation, log, chosen, folder)
        return MergedFiles(folder, store.rows_in(log, epoch, folder))
    except BaseException:
        store.discard(folder)
        raise


def _write(
    engine: Engine, relation: Relation, log: RelationLog, chosen: tuple[LogFile, ...], folder: str
) -> None:
    epoch = chosen[-1].last_epoch
    text = with_epoch(render(Net(scan_all(relation, "before"))), epoch)
    files = Input(
        input_name(relation.id, "before"),
        stored_schema(relation),
        files=tuple(file.uri for file in chosen),
    )
    parts = 1 + sum(file.rows for file in chosen) // ROWS_A_PART
    # Not counted: the jobs may end in the middle of an unrelated refresh.
    engine.runner.write(in_ranges(text, log.arrangement, parts), [files], folder, counted=False)


# The pause before a failed merge is retried.
PAUSE_SECONDS = 60.0


@dataclass(frozen=True)
class MergedFiles:
    """The folder that files were merged into, and the rows that it has."""

    folder: str
    rows: int


@dataclass(frozen=True)
class CompactedRun:
    """Neighbouring files of a log, and their merged rows."""

    chosen: tuple[LogFile, ...]
    sum: MergedFiles

    def fits(self, files: tuple[LogFile, ...], needed: Iterable[int]) -> bool:
        """Return whether the files are all still there, and no needed epoch is between theirs."""
        first, last = self.chosen[0].first_epoch, self.chosen[-1].last_epoch
        return set(self.chosen) <= set(files) and not any(first <= e < last for e in needed)


class Merges:
    """Merges beside refreshes, at most one at a time for each relation."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "headrace-merge")
        self._lock = Lock()
        self._begun: dict[str, tuple[tuple[LogFile, ...], Future[MergedFiles]]] = {}
        self._not_before: dict[str, float] = {}
        self._closed = False

    def begin(
        self, relation: str, chosen: tuple[LogFile, ...], work: Callable[[], MergedFiles]
    ) -> None:
        """Have `work` merge the chosen files, unless a merge of the relation failed lately.

        The caller has checked that no merge of the relation is under way.
        """
        with self._lock:
            assert relation not in self._begun
            if not self._closed and self._not_before.get(relation, 0.0) <= time.monotonic():
                self._begun[relation] = chosen, self._pool.submit(work)

    def being_merged(self, relation: str) -> tuple[LogFile, ...]:
        """Return the files that are being merged, or whose merge was not taken yet."""
        with self._lock:
            chosen, _ = self._begun.get(relation, ((), None))
        return chosen

    def take(self, relation: str) -> CompactedRun | None:
        """Return a finished merge of the relation; None if there is none yet.

        A failure is logged, and the files may be chosen again after a while.
        """
        with self._lock:
            chosen, future = self._begun.get(relation, ((), None))
            if future is None or not future.done():
                return None
            del self._begun[relation]
        try:
            return CompactedRun(chosen, future.result())
        except Exception as error:  # noqa: BLE001  the files are still there, whatever it was
            code = error.code if isinstance(error, HeadraceError) else type(error).__name__
            logger.warning("merge failed", extra={"code": code, "error": str(error)})
            with self._lock:
                self._not_before[relation] = time.monotonic() + PAUSE_SECONDS
            return None

    def forget(self, relation: str) -> bool:
        """Discard a merge of a relation; False while it is still being written."""
        with self._lock:
            _, future = self._begun.get(relation, ((), None))
            if future is not None and not future.done() and not future.cancel():
                return False
            self._begun.pop(relation, None)
            self._not_before.pop(relation, None)
        return True

    def wait(self, seconds: float | None = None) -> None:
        """Wait for all merges under way, at most so many seconds."""
        with self._lock:
            # A future that was cancelled before it began is never reported as done.
            futures = [future for _, future in self._begun.values() if not future.cancelled()]
        wait(futures, seconds)

    def close(self) -> None:
        """Begin no more merges; those under way go on until they end or are cancelled."""
        with self._lock:
            self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
