"""Repair: find what is lost or damaged in the store, and rebuild exactly that."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.catalog import State, new_relation_id
from headrace.catalog.records import Source, Status, StreamTable
from headrace.engine import Engine
from headrace.engine.steps import RollBack
from headrace.errors import NeedsReinit
from headrace.lifecycle.build import build
from headrace.lifecycle.planning import plan
from headrace.lifecycle.table_spec import TableSpec

REPAIRED = "repaired"


@dataclass(frozen=True)
class Damage:
    """A source or stream table with a damaged log: its name, its kind, and what is lost.

    One that is not `mended` is of a stream table that was suspended by hand; `resume` mends it.
    """

    name: str
    kind: str
    lost: str
    mended: bool


def repair(engine: Engine) -> tuple[Damage, ...]:
    """Read all logs as they are stored; copy damaged sources again, rebuild damaged tables.

    Readers of a source that is copied again, or of a table that is rebuilt, follow it.
    """
    with engine.writing() as lease:
        state = engine.catalog.state()
        lost = damage_in(engine, state)
        sources = frozenset(s.relation for s in state.sources if s.relation in lost)
        tables = [table for table in state.stream_tables if table.relation in lost]
        specs = [TableSpec(REPAIRED, old=table) for table in tables if not table.held]
        if specs or sources:
            build(engine, plan(engine, state, specs, sources), lease.fence)
        owners: list[Source | StreamTable] = [*state.sources, *state.stream_tables]
        return tuple(
            _damage_of(state, owner, lost[owner.relation])
            for owner in owners
            if owner.relation in lost
        )


def damage_in(engine: Engine, state: State) -> dict[str, str]:
    """Return what is lost of the logs of sources and stream tables, by the owner's relation."""
    size = len(new_relation_id())
    lost: dict[str, str] = {}
    for number, relation in enumerate(state.relations):
        engine.progress("reading logs", number, len(state.relations))
        damage = engine.store.damage(relation.id, relation.pin)
        if damage is not None:
            # A stage's relation is named after the table that it belongs to.
            lost.setdefault(relation.id[:size], damage)
    return lost


def _damage_of(state: State, owner: Source | StreamTable, lost: str) -> Damage:
    if isinstance(owner, Source):
        return Damage(state.called(owner), "source", lost, True)
    return Damage(f"{owner.schema}.{owner.name}", "stream table", lost, not owner.held)


def damaged_sources(engine: Engine, state: State) -> frozenset[str]:
    """Return the suspended sources whose logs do not hold what the catalog says."""
    damaged = set()
    for source in state.sources:
        if source.status is not Status.SUSPENDED:
            continue
        relation = state.relation(source.relation)
        try:
            with engine.step(RollBack(relation.id)):
                engine.store.rollback(relation.id, relation.pin)
        except NeedsReinit:
            damaged.add(relation.id)
    return frozenset(damaged)
