"""How much the ranges of a table hold, and which tables are small by it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import psycopg
import pyarrow as pa
import pytest

from headrace.catalog.records import Relation
from headrace.engine import Engine
from headrace.ingest.small import SMALL_BYTES, difference_in_memory
from headrace.relations.rows import stored_schema
from headrace.source.connection import Database
from headrace.source.introspect import find_table
from headrace.source.snapshot import page_ranges
from headrace.spark.copy import LiveRows
from headrace.types import TEXT
from tests.store.memory_store import MemoryStore

MEGABYTE = 1024 * 1024


@pytest.mark.postgres
def test_values_beside_the_pages_count(dsn: str) -> None:
    """Nine rows on one page, whose values are a megabyte each."""
    with psycopg.connect(dsn, autocommit=True) as application:
        application.execute("CREATE TABLE t (a text) PARTITION BY LIST (a)")
        application.execute("CREATE TABLE t1 PARTITION OF t DEFAULT")
        application.execute("ALTER TABLE t1 ALTER COLUMN a SET STORAGE EXTERNAL")
        application.execute(
            f"INSERT INTO t SELECT repeat('x', {MEGABYTE}) FROM generate_series(1, 9)"
        )
    with Database(dsn) as database, database.session() as session:
        table = find_table(session, None, "t")
        ranges = page_ranges(session, table, 4)
    assert 9 * MEGABYTE < sum(part.bytes for part in ranges) < 10 * MEGABYTE
    store = MemoryStore()
    pin = store.create("r1", pa.schema([("c1", TEXT.arrow)]))
    relation = Relation("r1", (("c1", TEXT),), ("c1",), pin)
    live = LiveRows("r1", stored_schema(relation), dsn, "none", table, ranges, 1)
    engine = cast("Engine", SimpleNamespace(store=store))
    assert SMALL_BYTES < 9 * MEGABYTE
    assert difference_in_memory(engine, live, relation, 1000) is None
