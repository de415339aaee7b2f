"""Stream tables as they are after they were made, without the rows: no Spark is needed."""

from __future__ import annotations

from dataclasses import replace

import headrace
from headrace.catalog import Change, Transaction
from headrace.catalog.records import DatabaseRecord, Relation, Source, Status
from headrace.engine import HOME
from headrace.lifecycle.logs import create_logs
from headrace.lifecycle.planned_table import FIRST, TableRequest
from headrace.lifecycle.planning import plan
from headrace.lifecycle.table_spec import TableSpec
from headrace.publish.served import create_served
from headrace.relations.definition import relation_of
from headrace.store import Arrangement, Pin


def put_tables(project: headrace.Headrace, *requests: TableRequest) -> None:
    """Record the stream tables with their sources, and serve them empty."""
    engine = project._engine
    with engine.writing() as lease:
        state = engine.catalog.state()
        planned_tables = plan(
            engine, state, [TableSpec(FIRST, request) for request in requests]
        ).planned_tables
        known = {source.relation for source in state.sources}
        sources = {one.relation: one for making in planned_tables for one in making.sources}
        new = [source for relation, source in sources.items() if relation not in known]
        stages = [stage for making in planned_tables for stage in making.definition.stages]
        relations = [*map(_log, new), *(relation_of(stage, Pin(0, 0)) for stage in stages)]
        tables = [replace(making.table, status=Status.ACTIVE) for making in planned_tables]
        home = any(database.id == HOME for database in state.databases)
        databases = [] if home else [DatabaseRecord(HOME, "home", "", 0)]

        def serve(transaction: Transaction) -> None:
            for table in tables:
                create_served(transaction, table)
            # The scans of making indexes are counted now, and not as reads by others later.
            transaction.execute("SELECT pg_stat_force_next_flush()")

        logs = create_logs(engine, dict.fromkeys(relations, Arrangement()), lease.fence)
        change = Change(put=(*databases, *logs, *new, *tables))
        engine.catalog.commit(change, fence=lease.fence, apply=serve)


def _log(source: Source) -> Relation:
    stored = tuple((c.physical, c.type) for c in source.columns if c.type is not None)
    return Relation(source.relation, stored, tuple(name for name, _ in stored), Pin(0, 0))
