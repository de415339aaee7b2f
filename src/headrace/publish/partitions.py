"""The partitions of a served table: one a value of a column, made when the value first comes.

They are attached and never detached, which no reader has to wait for. Some values have no partition
of their own: they came when there were many already, or are too long to name one by. Their rows
are in one more, and once that is there no others are made: for each of them it would have to be
locked against readers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from psycopg import sql

from headrace.catalog.records import OutputColumn, StreamTable
from headrace.publish.partitioning import partition_of
from headrace.publish.ranges import Ranges, range_slices
from headrace.publish.served import Connection, attach, leaves, served_name

# A statement that reads all of a table locks each of its partitions and each of their indexes.
MOST_PARTITIONS = 256
# PostgreSQL keeps the value of a partition in a row that must fit into a page, spelled out.
MOST_VALUE_BYTES = 1000

Value = str | None
"""A value as text, or NULL."""


@dataclass(frozen=True)
class Partition:
    """A table with the rows of some values; the one without values has those of all others.

    Partitions by range are told without values.
    """

    name: sql.Identifier
    values: frozenset[Value]


@dataclass(frozen=True)
class Slice:
    """Those rows of a staged change that go into one table; the condition is over them as `d`."""

    table: sql.Identifier
    staged: sql.Composable
    condition: sql.Composable


def slices(connection: Connection, table: StreamTable, staged: sql.Identifier) -> tuple[Slice, ...]:
    """A staged change by the tables that it touches; partitions that it needs are made."""
    found = partition_of(table)
    if found is None:
        return (Slice(served_name(table), staged, sql.SQL("true")),)
    scheme, column = found
    if scheme.is_range:
        ranges = range_slices(connection, table, staged, Ranges(scheme, column))
        if len(ranges) > 1:
            connection.execute(sql.SQL("ANALYZE {}").format(staged))
        return tuple(Slice(name, staged, condition) for name, condition in ranges)
    place = f"c{table.columns.index(column) + 1}"
    known = partitions(connection, table)
    changing = sql.Identifier("d", place)
    changed = _changed(connection, staged, _as_text(column, changing), known)
    for values in _missing(known, changed):
        known = (*known, _attach(connection, table, values))
    named = _named(known)
    touched = [
        one
        for one in known
        if (not one.values.isdisjoint(changed) if one.values else not named.issuperset(changed))
    ]
    if len(touched) > 1:
        index = sql.SQL("CREATE INDEX ON {} USING hash ({})")
        connection.execute(index.format(staged, sql.Identifier(place)))
        connection.execute(sql.SQL("ANALYZE {}").format(staged))
    return tuple(
        Slice(one.name, staged, _condition(column, changing, one, named)) for one in touched
    )


def partitions(connection: Connection, table: StreamTable) -> tuple[Partition, ...]:
    """The partitions that a served table has, as PostgreSQL tells them."""
    found = partition_of(table)
    if found is None:
        return ()
    scheme, column = found
    known = leaves(connection, table)
    values: list[set[Value]] = [set() for _ in known]
    if not scheme.is_range and (spelled := _spelled(column, [bound for _, bound in known])):
        for place, value in connection.execute(spelled).fetchall():
            values[place].add(value)
    return tuple(
        Partition(name, frozenset(listed)) for (name, _), listed in zip(known, values, strict=True)
    )


def _spelled(column: OutputColumn, bounds: Sequence[str]) -> sql.Composed | None:
    """A query of the values of partitions: PostgreSQL reads the constants that it wrote itself.

    Those of an enum are its labels, and are read as text.
    """
    type_ = "text" if column.type.is_of_users else column.served
    rows = [
        sql.SQL("({}, ARRAY[{}]::{}[])").format(
            sql.Literal(place),
            sql.SQL(bound.removeprefix("FOR VALUES IN (").removesuffix(")")),
            sql.SQL(type_),
        )
        for place, bound in enumerate(bounds)
        if bound != "DEFAULT"
    ]
    if not rows:
        return None
    text = "SELECT place, unnest(bound)::text FROM (VALUES {}) AS v (place, bound)"
    return sql.SQL(text).format(sql.SQL(", ").join(rows))


def _changed(
    connection: Connection,
    staged: sql.Identifier,
    text: sql.Composed,
    known: Iterable[Partition],
) -> tuple[Value, ...]:
    """Values that change: all that have a partition, and enough others, the most frequent first."""
    statement = sql.SQL(
        "SELECT value FROM (SELECT {} AS value, count(*) AS rows FROM {} d GROUP BY 1) AS v"
        " ORDER BY value IS NULL OR value = ANY (%s) DESC, rows DESC, value LIMIT %s"
    ).format(text, staged)
    names = [value for value in _named(known) if value is not None]
    found = connection.execute(statement, (names, len(names) + MOST_PARTITIONS + 2)).fetchall()
    return tuple(value for (value,) in found)


def _missing(known: Sequence[Partition], changed: Sequence[Value]) -> list[frozenset[Value]]:
    """The values of the partitions that have to be made, so that there is one for every value."""
    if any(not one.values for one in known):
        return []
    new = [value for value in changed if value not in _named(known)]
    short = [value for value in new if value is None or len(value.encode()) <= MOST_VALUE_BYTES]
    own = short[: max(0, MOST_PARTITIONS - len(known))]
    others: list[frozenset[Value]] = [frozenset()] if len(own) < len(new) else []
    return [frozenset({value}) for value in own] + others


def _attach(connection: Connection, table: StreamTable, values: frozenset[Value]) -> Partition:
    listed = sql.SQL(", ").join(sql.Literal(value) for value in values)
    bound = sql.SQL("FOR VALUES IN ({})").format(listed) if values else sql.SQL("DEFAULT")
    return Partition(attach(connection, table, bound), values)


def _as_text(column: OutputColumn, value: sql.Identifier) -> sql.Composed:
    return sql.SQL(column.type.as_text).format(column=value)


def _condition(
    by: OutputColumn, column: sql.Identifier, partition: Partition, named: frozenset[Value]
) -> sql.Composed:
    """What tells the rows of a partition, whose values are those `named` nowhere if it has none."""
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


def _named(known: Iterable[Partition]) -> frozenset[Value]:
    return frozenset(value for one in known for value in one.values)
