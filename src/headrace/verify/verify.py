"""Verify: recompute a stream table's query at its recorded epochs and compare as bags.

Three comparisons: the query recomputed by Spark from its inputs' states, in a form that shares
nothing with incremental maintenance, against the stream table's own relation, and the same for
every stream table that it reads, so that in the end it is proven from the sources; the relation
against the served table in PostgreSQL; and, if asked for, each source's relation against the live
table, both in one snapshot.

With PostgreSQL as the oracle its own answer, in the snapshot of a cut that the table is brought to,
takes the place of the first.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from headrace.catalog import Change, State
from headrace.catalog.records import Receipt, StreamTable, is_stale
from headrace.engine import Engine
from headrace.errors import Transient, UserError
from headrace.graph import upstream
from headrace.graph.components import grouped
from headrace.refresh.refresh import prune_history, require_table
from headrace.relations.fingerprint import definition_fingerprint
from headrace.store import WEIGHT, net
from headrace.verify.comparison import Comparison, compared
from headrace.verify.difference import tolerance_of
from headrace.verify.oracle import Oracle
from headrace.verify.postgres import verify_postgres
from headrace.verify.recompute import at, recompute
from headrace.verify.sample import Sample, SampleRequest, chosen
from headrace.verify.served import read_served
from headrace.verify.sources import verify_sources


def verify(
    engine: Engine,
    schema: str,
    name: str,
    *,
    source: bool = False,
    oracle: Oracle = Oracle.SPARK,
    sample: SampleRequest | None = None,
) -> Receipt:
    """Prove that the stream table is what its query says; keep and return the receipt.

    With a sample, only that part of the table is compared, and the inputs of the table are taken as
    they are stored.
    """
    state = engine.catalog.state()
    table = require_table(state, schema, name)
    if table.epoch == 0:
        raise UserError(
            "table-suspended",
            f"stream table {schema}.{name} was never filled",
            hint="Refresh it first.",
        )
    part = None
    if sample is not None:
        part = chosen(sample, table, engine.catalog.receipts(table.relation))
    if oracle is Oracle.POSTGRES:
        comparison, state = verify_postgres(engine, schema, name, part)
        comparisons = [comparison]
        table = require_table(state, schema, name)
    else:
        below = upstream(state.stream_tables, table)
        _require_whole(below)
        groups = grouped(below, state.stream_tables)
        samples = None if part is None else {table.relation: part}
        if part is not None:
            groups = tuple(group for group in groups if table in group)
        comparisons = [
            comparison
            for group in groups
            for comparison in recompute(engine, state, group, samples)
        ]
    comparisons.append(_served(engine, state, table, part))
    if source:
        comparisons += verify_sources(engine, table)
    stored = at(engine, state, table).rows(state.relation(table.relation))
    compared_rows = stored if part is None else part.filtered(stored)
    equal, rows = all(comparison.equal for comparison in comparisons), _count(compared_rows)
    # Where all sides are equal, values that are not stored are on no side.
    without_rows = part.without_rows(compared_rows) if part is not None and equal else []
    if without_rows and not rows:
        raise _nothing_compared(table, part, sample)
    receipt = Receipt(
        table.relation,
        table.epoch,
        equal,
        rows,
        sum(comparison.missing for comparison in comparisons),
        sum(comparison.surplus for comparison in comparisons),
        tolerance_of([column.type for column in table.columns]),
        {
            c.what: {"missing": c.missing, "surplus": c.surplus, "sample": list(c.sample)}
            for c in comparisons
        },
        datetime.now(UTC),
        oracle,
        None if part is None else part.covered(rows, _count(stored), without_rows),
        definition_fingerprint(state, table),
    )
    with engine.writing() as lease:
        engine.catalog.commit(Change(receipts=(receipt,)), fence=lease.fence)
        # Of all tables: a verify of the next table falls into the interval without pruning.
        prune_history(
            engine, state, [stream_table.relation for stream_table in state.stream_tables]
        )
    return receipt


def _require_whole(tables: tuple[StreamTable, ...]) -> None:
    """Raise `table-suspended` for a table to be rebuilt: the relations of its inputs are gone."""
    for table in tables:
        if is_stale(table):
            raise UserError(
                "table-suspended",
                f"stream table {table.schema}.{table.name} has to be rebuilt",
                hint="Refresh it first.",
            )


def _nothing_compared(
    table: StreamTable, sample: Sample | None, request: SampleRequest | None
) -> UserError:
    assert sample is not None
    assert request is not None
    values = ", ".join("NULL" if value is None else repr(value) for value in request.values)
    where = "is in the range of" if sample.ranges else "has"
    return UserError(
        "invalid-option",
        f"nothing was compared: no row of {table.schema}.{table.name} {where} {values} in column"
        f" {sample.column.name}",
        hint="Write values as they are stored, without blanks beside commas: column=value,value.",
    )


def _served(engine: Engine, state: State, table: StreamTable, sample: Sample | None) -> Comparison:
    """Compare the served table, or a sample, with the relation that it was published from."""
    relation = state.relation(table.relation)
    reading = at(engine, state, table)
    stored = reading.rows(relation)
    stored = stored if sample is None else sample.filtered(stored)
    served = read_served(engine.database, table, sample)
    now = engine.catalog.state().origin(table.relation)
    if not isinstance(now, StreamTable) or now.epoch != table.epoch:
        name = f"{table.schema}.{table.name}"
        raise Transient("cut-interrupted", f"{name} was published again while it was verified")
    both = pa.concat_tables([stored, served.cast(stored.schema)])
    names = [column.name for column in table.columns]
    return compared(
        f"served {table.schema}.{table.name}",
        net(both),
        names,
        [column.type for column in table.columns],
        exact=True,
    )


def _count(rows: pa.Table) -> int:
    return sum(rows[WEIGHT].to_pylist())
