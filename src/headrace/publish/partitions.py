"""The partitions of a served table, and the part of a change that each of them gets.

By value, a partition is made with the first row of the value. It is attached and never detached,
which no reader has to wait for. Some values have no partition of their own: they came when there
were many already, or are too long to name a partition by. Their rows share the default partition,
and once that exists no others are made: each would have to lock it against readers. Partitions by
range are in `ranges`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from psycopg import sql

from headrace.catalog.records import OutputColumn, StreamTable
from headrace.publish.partitioning import MOST_PARTITIONS, partition_of
from headrace.publish.ranges import PendingRanges, Ranges, range_slices
from headrace.publish.served import (
    Connection,
    attach_partition,
    create_partition,
    leaves,
    partition_name,
    served_name,
)

# PostgreSQL keeps the value of a partition in a row that must fit into a page, spelled out.
MOST_VALUE_BYTES = 1000

Value = str | None
"""A value as text, or NULL."""


@dataclass(frozen=True)
class Partition:
    """A table with the rows of some values; without values it has those of all others.

    Partitions by range have no values here.
    """

    name: sql.Identifier
    values: frozenset[Value]


@dataclass(frozen=True)
class Slice:
    """Those rows of a staged change that go into one table; the condition is over them as `d`."""

    table: sql.Identifier
    staged: sql.Composable
    condition: sql.Composable


@dataclass(frozen=True)
class Slices:
    """A staged change by the tables that it touches.

    The rows of `pending` ranges are in none of the slices: they have their partitions last.
    """

    ready: tuple[Slice, ...]
    staged: sql.Identifier
    pending: PendingRanges | None = None

    def attach_pending(self, connection: Connection, table: StreamTable) -> tuple[Slice, ...]:
        """Return the slices of pending ranges, whose partitions are attached if they can be."""
        if self.pending is None:
            return ()
        return tuple(
            Slice(name, self.staged, condition)
            for name, condition in self.pending.attach(connection, table)
        )


def slices(connection: Connection, table: StreamTable, staged: sql.Identifier) -> Slices:
    """Return the slices of a staged change; partitions that it needs are made."""
    partitioning = partition_of(table)
    if partitioning is None:
        return Slices((Slice(served_name(table), staged, sql.SQL("true")),), staged)
    scheme, column = partitioning
    if scheme.is_range:
        ready, pending = range_slices(connection, table, staged, Ranges(scheme, column))
        if len(ready) > 1 or pending is not None:
            connection.execute(sql.SQL("ANALYZE {}").format(staged))
        return Slices(tuple(Slice(name, staged, rows) for name, rows in ready), staged, pending)
    staged_column = f"c{table.columns.index(column) + 1}"
    existing = partitions(connection, table)
    value = sql.Identifier("d", staged_column)
    changed = _changed(connection, staged, _as_text(column, value), existing)
    for values in _missing(existing, changed):
        existing = (*existing, _attach(connection, table, values))
    named = _named(existing)
    touched = [
        partition
        for partition in existing
        if (
            not partition.values.isdisjoint(changed)
            if partition.values
            else not named.issuperset(changed)
        )
    ]
    if len(touched) > 1:
        index = sql.SQL("CREATE INDEX ON {} USING hash ({})")
        connection.execute(index.format(staged, sql.Identifier(staged_column)))
        connection.execute(sql.SQL("ANALYZE {}").format(staged))
    return Slices(
        tuple(
            Slice(partition.name, staged, _condition(column, value, partition, named))
            for partition in touched
        ),
        staged,
    )


def partitions(connection: Connection, table: StreamTable) -> tuple[Partition, ...]:
    """Return the partitions of a served table, read from PostgreSQL's catalog."""
    partitioning = partition_of(table)
    if partitioning is None:
        return ()
    scheme, column = partitioning
    bounds = leaves(connection, table)
    values: list[set[Value]] = [set() for _ in bounds]
    if not scheme.is_range and (query := _values_query(column, [bound for _, bound in bounds])):
        for position, value in connection.execute(query).fetchall():
            values[position].add(value)
    return tuple(
        Partition(name, frozenset(listed)) for (name, _), listed in zip(bounds, values, strict=True)
    )


def _values_query(column: OutputColumn, bounds: Sequence[str]) -> sql.Composed | None:
    """Return a query of the values of partitions: PostgreSQL reads its own constants.

    Values of an enum are its labels, and are read as text.
    """
    type_ = "text" if column.type.is_of_users else column.served
    rows = [
        sql.SQL("({}, ARRAY[{}]::{}[])").format(
            sql.Literal(position),
            sql.SQL(bound.removeprefix("FOR VALUES IN (").removesuffix(")")),
            sql.SQL(type_),
        )
        for position, bound in enumerate(bounds)
        if bound != "DEFAULT"
    ]
    if not rows:
        return None
    text = "SELECT position, unnest(bound)::text FROM (VALUES {}) AS v (position, bound)"
    return sql.SQL(text).format(sql.SQL(", ").join(rows))


def _changed(
    connection: Connection,
    staged: sql.Identifier,
    text: sql.Composed,
    existing: Iterable[Partition],
) -> tuple[Value, ...]:
    """Return values that change: all that have a partition, and enough others by frequency."""
    statement = sql.SQL(
        "SELECT value FROM (SELECT {} AS value, count(*) AS rows FROM {} d GROUP BY 1) AS v"
        " ORDER BY value IS NULL OR value = ANY (%s) DESC, rows DESC, value LIMIT %s"
    ).format(text, staged)
    names = [value for value in _named(existing) if value is not None]
    rows = connection.execute(statement, (names, len(names) + MOST_PARTITIONS + 2)).fetchall()
    return tuple(value for (value,) in rows)


def _missing(existing: Sequence[Partition], changed: Sequence[Value]) -> list[frozenset[Value]]:
    """Return the values of partitions to be made, so that every value has one."""
    if any(not partition.values for partition in existing):
        return []
    new = [value for value in changed if value not in _named(existing)]
    short = [value for value in new if value is None or len(value.encode()) <= MOST_VALUE_BYTES]
    own = short[: max(0, MOST_PARTITIONS - len(existing))]
    others: list[frozenset[Value]] = [frozenset()] if len(own) < len(new) else []
    return [frozenset({value}) for value in own] + others


def _attach(connection: Connection, table: StreamTable, values: frozenset[Value]) -> Partition:
    listed = sql.SQL(", ").join(sql.Literal(value) for value in values)
    bound = sql.SQL("FOR VALUES IN ({})").format(listed) if values else sql.SQL("DEFAULT")
    name = partition_name(table)
    create_partition(connection, table, name)
    attach_partition(connection, table, name, bound)
    return Partition(name, values)


def _as_text(column: OutputColumn, value: sql.Identifier) -> sql.Composed:
    return sql.SQL(column.type.as_text).format(column=value)


def _condition(
    by: OutputColumn, column: sql.Identifier, partition: Partition, named: frozenset[Value]
) -> sql.Composed:
    """Return the condition on rows of a partition; without values it has those that none names."""
    values, text = partition.values, _as_text(by, column)
    compared = text if by.type.is_of_users else column
    tests = [
        sql.SQL("{} = {}").format(compared, sql.Literal(value))
        for value in values
        if value is not None
    ]
    if not values:
        others = [value for value in named if value is not None]
        tests.append(sql.SQL("{} <> ALL ({}::text[])").format(text, sql.Literal(others)))
    absent = sql.SQL("{} IS NULL").format(column)
    present = sql.SQL("{} IS NOT NULL AND ({})").format(
        column, sql.SQL(" OR ").join(tests) if tests else sql.SQL("false")
    )
    if None in values or (not values and None not in named):
        return sql.SQL("({} OR {})").format(absent, present)
    return sql.SQL("({})").format(present)


def _named(existing: Iterable[Partition]) -> frozenset[Value]:
    return frozenset(value for partition in existing for value in partition.values)
