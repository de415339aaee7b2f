"""Keeping logs short: what no reader tells apart is summed up, what nobody can need is removed."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from headrace.catalog import Change, State
from headrace.catalog.records import Relation, taken_in
from headrace.engine import Engine
from headrace.errors import HeadraceError
from headrace.plan.operators import Net
from headrace.relations.rows import in_ranges, scan_all, stored_schema, with_epoch
from headrace.render import render
from headrace.render.inputs import input_name
from headrace.spark.run import Input
from headrace.steps import Compact
from headrace.store import LogFile, Pin
from headrace.store.compaction import worth_merging

ROWS_A_PART = 1_000_000

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
        files = engine.store.files(name, relation.pin, 0, relation.pin.epoch)
        needed = epochs_needed(state, name) | held[name]
        chosen = worth_merging(files, needed)
        if chosen:
            limit = engine.settings(state).collect_rows
            moved.append(replace(relation, pin=_summed(engine, relation, chosen, limit)))
    if moved:
        engine.catalog.commit(Change(put=tuple(moved)), fence=fence)
    # Looking for superfluous files lists a folder, so it is done only where a compaction just made
    # some, or where those that were noted before have waited for long enough.
    state = state.with_relations(moved)
    retention = timedelta(seconds=engine.settings(state).history_retention)
    replaced = {relation.id for relation in moved}
    for name in names:
        if name in replaced or engine.store.vacuum_is_due(name, retention):
            engine.store.vacuum(name, state.relation(name).pin, retention)


def _summed(engine: Engine, relation: Relation, chosen: tuple[LogFile, ...], limit: int) -> Pin:
    """The pin after the chosen files were replaced by their sum; executors make a large one."""
    rows = sum(file.rows for file in chosen)
    if rows <= limit:
        return engine.store.compact(relation.id, relation.pin, chosen)
    epoch = chosen[-1].last_epoch
    text = with_epoch(render(Net(scan_all(relation, "before"))), epoch)
    files = Input(
        input_name(relation.id, "before"),
        stored_schema(relation),
        files=tuple(file.uri for file in chosen),
    )
    folder = engine.store.new_folder(relation.id, epoch)
    arrangement = engine.store.arrangement(relation.id, relation.pin)
    engine.runner.write(in_ranges(text, arrangement, 1 + rows // ROWS_A_PART), [files], folder)
    return engine.store.replace(relation.id, relation.pin, chosen, folder)
