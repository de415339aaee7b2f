"""Our own scans of served tables, counted apart, so that they are not taken for others' reads.

PostgreSQL counts for a session what it has not reported yet, also from earlier transactions; so
what a transaction did is the difference between its end and its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from headrace.catalog.records import StreamTable
from headrace.publish.served import Connection

_SCANS = """
SELECT t.relid, w.relation, coalesce(t.seq_scan, 0) + coalesce(t.idx_scan, 0)
FROM unnest(%s::text[], %s::text[], %s::text[]) AS w (relation, schema, name)
JOIN pg_namespace n ON n.nspname = w.schema
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
LEFT JOIN pg_inherits i ON i.inhparent = c.oid AND c.relkind = 'p'
JOIN pg_stat_xact_user_tables t ON t.relid = coalesce(i.inhrelid, c.oid)
"""
_ADD = "UPDATE headrace.stream_tables SET own_scans = own_scans + %s WHERE relation = %s"


@contextmanager
def counting_own_scans(transaction: Connection, tables: Sequence[StreamTable]) -> Iterator[None]:
    """Add to the records of these tables how often they are scanned inside."""
    if not tables:
        yield
        return
    parameters = (
        [table.relation for table in tables],
        [table.schema for table in tables],
        [table.name for table in tables],
    )
    before = {
        relid: scans for relid, _, scans in transaction.execute(_SCANS, parameters).fetchall()
    }
    yield
    for relid, relation, scans in transaction.execute(_SCANS, parameters).fetchall():
        own = scans - before.get(relid, 0)
        if own:
            transaction.execute(_ADD, (own, relation))
