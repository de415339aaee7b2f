"""Counts of others' reads of the served tables: PostgreSQL's counters, without our own scans.

The scans of a partitioned table are the sum of the scans of its partitions.
"""

from __future__ import annotations

from datetime import datetime

from headrace.catalog import State
from headrace.engine import Engine
from headrace.schedule.state import ScheduleState
from headrace.schedule.tiers import ReadActivity, ScanCounters, is_watched
from headrace.settings import Settings
from headrace.source.faults import translated

SCANS = """
SELECT w.schema, w.name, sum(coalesce(t.seq_scan, 0) + coalesce(t.idx_scan, 0))
FROM unnest(%s::text[], %s::text[]) AS w (schema, name)
JOIN pg_namespace n ON n.nspname = w.schema
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
LEFT JOIN pg_inherits i ON i.inhparent = c.oid AND c.relkind = 'p'
JOIN pg_stat_user_tables t ON t.relid = coalesce(i.inhrelid, c.oid)
GROUP BY 1, 2
"""
OWN = "SELECT relation, own_scans FROM headrace.stream_tables"


def sample_reads(
    engine: Engine, state: State, settings: Settings, memory: ScheduleState, now: datetime
) -> None:
    """Record the scans so far of every table whose tier depends on reads."""
    watched = {
        (table.schema, table.name): table
        for table in state.stream_tables
        if is_watched(table, settings)
    }
    if not watched:
        return
    schemas, names = [schema for schema, _ in watched], [name for _, name in watched]
    with engine.database.session() as connection, translated():
        rows = connection.execute(SCANS, (schemas, names)).fetchall()
        # Read after the scans, so that our own scans among those are counted here as well.
        own = dict(connection.execute(OWN).fetchall())
    for schema, name, scans in rows:
        table = watched[schema, name]
        sample = ScanCounters(now, int(scans), own.get(table.relation, table.own_scans))
        activity = memory.reads.get(table.relation)
        memory.reads[table.relation] = (
            ReadActivity.begin(sample) if activity is None else activity.then(sample)
        )
