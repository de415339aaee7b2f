"""What the relations of a loop append: from its rounds, or from a recursion computed anew."""

from __future__ import annotations

import pyarrow as pa

from headrace.catalog.records import Relation
from headrace.delta.fixed_point import NotConverged, Rounds
from headrace.engine import Engine
from headrace.plan.loop import Loop
from headrace.plan.stage import Stage
from headrace.refresh.machine import SparkMachine
from headrace.relations.reading import Reading
from headrace.relations.recursion import endless, levels
from headrace.relations.rows import negated, stored_schema
from headrace.spark.schema import to_schema
from headrace.store import net

Rows = dict[str, pa.Table]
"""The weighted rows that every relation appends, netted."""


def compute_loop(
    engine: Engine,
    loop: Loop,
    reading: Reading,
    *,
    full: bool,
    stored: bool,
    changed: frozenset[str],
    most: int,
) -> tuple[Rows, int]:
    """Run the rounds of a loop, at most so many; the rows to append, and how many there were.

    `stored` says that there are rows of an earlier refresh. A `full` evaluation does not look at
    them before its end; else what they lack is found from the changes of `changed`.
    """
    anew = full or not stored
    machine = SparkMachine(engine, loop, reading, stored=not anew, change=not anew)
    rounds = Rounds(loop, machine, most)
    try:
        found = rounds.full() if anew else rounds.changed(changed)
    except NotConverged as error:
        raise endless(error, loop.relations, reading.state) from error
    rows = {}
    for name, change in found.changes.items():
        relation = reading.state.relation(name)
        rows[name] = _appended(reading, relation, change, replaces=stored and full)
    return rows, found.iterations


def recomputed(
    engine: Engine, stage: Stage, reading: Reading, *, stored: bool, most: int
) -> tuple[Rows, int]:
    """A recursion that no loop can follow, by its definition; as what is to be appended."""
    recursion = stage.recursion
    assert recursion is not None
    shown = (column for _, column in stage.outputs)
    places = dict(zip(shown, (physical for physical, _ in stage.visible), strict=True))
    names = tuple(places[column] for column in recursion.columns)
    try:
        rows, iterations = levels(engine, recursion, names, reading, most)
    except NotConverged as error:
        raise endless(error, (stage.relation,), reading.state) from error
    relation = reading.state.relation(stage.relation)
    return {stage.relation: _appended(reading, relation, rows, replaces=stored)}, iterations


def _appended(reading: Reading, relation: Relation, rows: pa.Table, *, replaces: bool) -> pa.Table:
    """Rows that are added to what is stored, or that replace it, as the log keeps them."""
    wanted = to_schema(rows, stored_schema(relation))
    if not replaces:
        return net(wanted)
    old = to_schema(reading.stored(relation), wanted.schema)
    return net(pa.concat_tables([wanted, negated(old)]))
