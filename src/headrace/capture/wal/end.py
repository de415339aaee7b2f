"""Where the log ends, as a position that a slot may be moved to."""

from __future__ import annotations

from headrace.capture.cut import flush
from headrace.source.connection import Database
from headrace.source.faults import translated

END = """
SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint,
    pg_current_wal_insert_lsn() <= pg_current_wal_flush_lsn()
"""


def end_on_disk(database: Database) -> int:
    """The end of the last record written; all that is before it is on disk when this returns."""
    with database.session() as connection, translated():
        row = connection.execute(END).fetchone()
    assert row is not None
    position, flushed = row
    if not flushed:
        flush(database)
    return int(position)
