"""Parts of a table that can be read side by side: ranges of its pages, leaf by leaf."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql

from headrace.source.faults import translated
from headrace.source.reading import relation_sql
from headrace.source.table import SourceTable

# A range below this many pages costs more to start than to read.
MINIMUM_PAGES = 128

# A partition is read by its own name where the role may: PostgreSQL does not skip the others for
# a condition on tableoid.
LEAVES = """
WITH RECURSIVE tree AS (
    SELECT %(oid)s::oid AS oid
    UNION ALL
    SELECT i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
)
SELECT c.oid, n.nspname, c.relname,
    pg_relation_size(c.oid) / current_setting('block_size')::bigint, pg_table_size(c.oid),
    has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
        AND NOT row_security_active(c.oid)
FROM tree t
JOIN pg_class c ON c.oid = t.oid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r'
ORDER BY c.oid
"""


@dataclass(frozen=True)
class LeafTable:
    """A table that holds rows itself, as `LEAVES` finds it."""

    oid: int
    schema: str
    name: str
    pages: int
    bytes: int
    readable: bool


@dataclass(frozen=True)
class Range:
    """Some pages of one table, for `read_sql`: SQL text of the relation and of the condition.

    `bytes` is what they took when the range was made, with their share of the values that
    PostgreSQL keeps beside the pages.
    """

    relation: str
    where: str
    bytes: int


def page_ranges(connection: Connection[Any], table: SourceTable, parts: int) -> tuple[Range, ...]:
    """About `parts` ranges that together cover every row of the table.

    Sizes must be asked for after the snapshot that the ranges are read in, with the table locked:
    then every row of the snapshot lies on a page counted here. The last range of each leaf is
    open-ended all the same.
    """
    with translated():
        found = connection.execute(LEAVES, {"oid": table.oid}).fetchall()
    leaves = [LeafTable(*row) for row in found]
    pages = max(sum(leaf.pages for leaf in leaves) // max(parts, 1) + 1, MINIMUM_PAGES)
    return tuple(
        Range(_relation(table, leaf), _where(leaf, first, last), _bytes(leaf, first, last))
        for leaf in leaves
        for first, last in _steps(leaf.pages, pages)
    )


def _steps(size: int, step: int) -> Iterator[tuple[int, int | None]]:
    """First page and first page beyond, None where the range is open-ended."""
    starts = list(range(0, size, step)) or [0]
    yield from zip(starts, [*starts[1:], None], strict=True)


def _relation(table: SourceTable, leaf: LeafTable) -> str:
    if leaf.readable:
        return relation_sql(leaf.schema, leaf.name)
    return sql.Identifier(table.schema, table.name).as_string()


def _bytes(leaf: LeafTable, first: int, last: int | None) -> int:
    pages = (leaf.pages if last is None else last) - first
    return leaf.bytes * pages // max(leaf.pages, 1)


def _where(leaf: LeafTable, first: int, last: int | None) -> str:
    conditions = [] if leaf.readable else [sql.SQL("tableoid = {}::oid").format(leaf.oid)]
    conditions.append(sql.SQL("ctid >= {}::tid").format(sql.Literal(f"({first},0)")))
    if last is not None:
        conditions.append(sql.SQL("ctid < {}::tid").format(sql.Literal(f"({last},0)")))
    return sql.SQL(" AND ").join(conditions).as_string()
