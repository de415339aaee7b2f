"""A second opinion: PostgreSQL's own answer in the snapshot of a cut, and the table at that cut.

`recompute` compares Spark with Spark, which finds nothing where Spark computes a query differently
from PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from headrace.capture.cut import OpenCut
from headrace.catalog import State
from headrace.catalog.records import StreamTable
from headrace.engine import HOME, Engine
from headrace.errors import HeadraceError, UserError
from headrace.graph import upstream
from headrace.ingest.ingest import ingest_database, sources_in
from headrace.lifecycle.name_resolver import not_built_in
from headrace.lifecycle.rebuild import refresh
from headrace.query.bind import ORDER_NOTICE
from headrace.refresh.refresh import refresh_group, require_active, require_table
from headrace.refresh.scope import together
from headrace.relations.definition import rebound
from headrace.source.describe import resolve
from headrace.source.reading import read_sql
from headrace.source.snapshot import answer_in_snapshot
from headrace.source.table import SourceColumn
from headrace.store import WEIGHT, net
from headrace.verify.comparison import Comparison, compared
from headrace.verify.over_sources import over_sources, rounded, unsupported
from headrace.verify.recompute import at
from headrace.verify.sample import Sample
from headrace.verify.sources import require_unrewritten

LARGEST_ANSWER = 1 << 30
"""Bytes of an answer, which is held in memory."""


@dataclass(frozen=True)
class Question:
    """A query for PostgreSQL, with every name resolved, and the columns of its answer."""

    text: str
    columns: tuple[SourceColumn, ...]


def verify_postgres(
    engine: Engine, schema: str, name: str, sample: Sample | None = None
) -> tuple[Comparison, State]:
    """Take a cut, bring the table to it, and compare it with PostgreSQL's answer in the cut.

    With a sample, PostgreSQL computes that part of the answer only. Also return the state of the
    catalog in which the table was compared.
    """
    answers: list[pa.Table] = []
    failures: list[HeadraceError] = []
    with engine.writing() as lease:
        refresh(engine, schema, name)
        state = engine.catalog.state()
        table = require_table(state, schema, name)
        # A query that PostgreSQL cannot answer is refused before anything is taken in.
        _question(engine, state, table, sample)

        def ask(cut: OpenCut, state: State) -> None:
            # The cut is taken in by now, and what is left of it has to be done.
            try:
                answers.append(_answer(engine, cut, state, table, sample))
            except HeadraceError as error:
                failures.append(error)

        state = ingest_database(engine, state, HOME, lease.fence, inside=ask)
        for failure in failures:
            raise failure
        tables = together(state, [require_table(state, schema, name)], engine.settings(state))
        require_active(tables)
        refresh_group(engine, state, [member.relation for member in tables], lease.fence)
        state = engine.catalog.state()
        table = require_table(state, schema, name)
        stored = at(engine, state, table).rows(state.relation(table.relation))
        stored = stored if sample is None else sample.filtered(stored)
        comparison = _compared(table, answers[-1], stored)
    if not comparison.equal and _leaves_order_open(state, table):
        raise unsupported(
            "its query leaves an order open, and PostgreSQL's answer differs",
            "Name more columns in ORDER BY, so that no two rows are equal in it.",
        )
    return comparison, state


def _question(
    engine: Engine, state: State, table: StreamTable, sample: Sample | None = None
) -> Question:
    text = over_sources(table, state)
    columns = tuple(
        SourceColumn(number, f"c{number}", column.served, column.type)
        for number, column in enumerate(table.columns, 1)
    )
    names = [column.name for column in columns]
    with engine.database.session() as connection:
        try:
            resolved = resolve(connection, text, table.search_path, names)
        except UserError as error:
            raise unsupported(
                f"it does not read the query over source tables: {error.message}"
            ) from error
    if resolved.user_objects:
        # Nothing that a user has made is run with the rights of Headrace.
        raise not_built_in(resolved.user_objects[0])
    items = ", ".join(
        f"{rounded(c.name, column.type)} AS {c.name}"
        for c, column in zip(columns, table.columns, strict=True)
    )
    rows = f"(SELECT {items} FROM (\n{resolved.text}\n) AS query) AS answer"
    where = "true"
    if sample is not None:
        where = sample.postgres(sql.Identifier(columns[sample.place].name))
    return Question(read_sql(rows, columns, where), columns)


def _answer(
    engine: Engine, cut: OpenCut, state: State, table: StreamTable, sample: Sample | None
) -> pa.Table:
    """Return PostgreSQL's answer in the cut, in the stored types and with weight 1.

    Names are resolved under the locks: no session can give a source's name to a view meanwhile.
    """
    read = {
        relation for reader in upstream(state.stream_tables, table) for relation in reader.inputs
    }
    sources = [
        source
        for source in sources_in(state, HOME)
        if source.relation in read and source.oid in cut.tables
    ]
    for source in sources:
        cut.lock(source.oid)
    question = _question(engine, state, table, sample)
    batches: list[pa.Table] = []
    size = 0
    conninfo = cut.database.conninfo
    for batch in answer_in_snapshot(
        conninfo, cut.export(), question.text, question.columns, not_built_in
    ):
        batches.append(batch)
        size += batch.nbytes
        if size > LARGEST_ANSWER:
            raise unsupported(f"its answer is larger than {LARGEST_ANSWER:,} bytes")
    for source in sources:
        require_unrewritten(cut, state, source)
    schema = pa.schema([(c.name, c.type.arrow) for c in question.columns if c.type is not None])
    rows = pa.concat_tables(batches) if batches else schema.empty_table()
    return rows.add_column(0, WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))


def _compared(table: StreamTable, answer: pa.Table, stored: pa.Table) -> Comparison:
    negated = stored.set_column(
        stored.schema.get_field_index(WEIGHT), WEIGHT, pc.negate(stored[WEIGHT])
    )
    difference = net(pa.concat_tables([answer.cast(stored.schema), negated]))
    names: Sequence[str] = [column.name for column in table.columns]
    types = [column.type for column in table.columns]
    label = f"postgres {table.schema}.{table.name}"
    return compared(label, difference, names, types, digits=True)


def _leaves_order_open(state: State, table: StreamTable) -> bool:
    """Return whether a query makes an order total by a rule that PostgreSQL does not have."""
    return any(
        notice != ORDER_NOTICE
        for reader in upstream(state.stream_tables, table)
        for notice in rebound(reader, state).notices
    )
