"""Keeping logs short: what no reader tells apart is summed up, what nobody can need is removed."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from headrace.catalog import Change, State
from headrace.catalog.records import Relation, taken_in
from headrace.engine import Engine
from headrace.engine.steps import Compact
from headrace.errors import HeadraceError
from headrace.plan.operators import Net
from headrace.relations.merges import Merges, Sum
from headrace.relations.rows import in_ranges, scan_all, stored_schema, with_epoch
from headrace.render import render
from headrace.render.inputs import input_name
from headrace.spark.run import Input
from headrace.store import LogFile, Pin, RelationLog
from headrace.store.compaction import worth_merging

ROWS_A_PART = 1_000_000
# So many rows are summed up in the time of a commit or two; a refresh need not wait for more.
AT_ONCE_ROWS = 50_000

logger = logging.getLogger(__name__)


def epochs_needed(state: State, relation: str) -> frozenset[int]:
    """The epochs that some reader needs as its "before": where each of them stands."""
    return frozenset(taken_in(reader, relation) for reader in state.readers(relation))


def compact(engine: Engine, relations: Iterable[str], fence: int) -> None:
    """Sum up old epochs of these relations where that is worth it, and pin the outcome.

    The work before it is published already, so a failure here is told and not raised; whoever
    writes next finds the logs as they are.
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
    # In this order: a refresh that ends in between is in the state by then.
    held = {name: engine.epochs_held(name) for name in names}
    state = engine.catalog.state()
    moved = []
    for name in names:
        relation = state.relation(name)
        needed = epochs_needed(state, name) | held[name]
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
        # What is being written is unnamed, too.
        if engine.part(Merges).summed(name):
            continue
        if name in replaced or engine.store.vacuum_is_due(name, retention):
            engine.store.vacuum(name, state.relation(name).pin, retention)


def _shortened(engine: Engine, relation: Relation, needed: frozenset[int], limit: int) -> Pin:
    """The pin after files were replaced by their sum; the same if there was none to replace.

    Under a daemon larger sums are begun now and put in place by a later call.
    """
    store, merges, name, pin = engine.store, engine.part(Merges), relation.id, relation.pin
    files = store.files(name, pin, 0, pin.epoch)
    merge = merges.take(name)
    if merge is not None and merge.fits(files, needed):
        return store.replace(name, pin, merge.chosen, merge.sum.folder, merge.sum.rows)
    begun = merges.summed(name)
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
) -> Sum:
    """The sum of the chosen files in a folder of its own; executors make a large one.

    `log` is as it was when they were chosen. It may have moved on for long when they are summed up.
    """
    store, epoch = engine.store, chosen[-1].last_epoch
    folder = store.new_folder(relation.id, epoch)
    try:
        if sum(file.rows for file in chosen) <= limit:
            store.write_sum(relation.id, log, chosen, folder)
        else:
            _write(engine, relation, log, chosen, folder)
        return Sum(folder, store.rows_in(log, epoch, folder))
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
    # Not counted: it may end in the middle of a refresh that has nothing to do with it.
    engine.runner.write(in_ranges(text, log.arrangement, parts), [files], folder, counted=False)
