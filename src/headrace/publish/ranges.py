"""The partitions of a served table that is partitioned by ranges of a column.

A range gets a partition with its first row, and as many ranges ahead of it as the table asks for.
Rows without a value, and those of older ranges where there are many, are in the default partition.
PostgreSQL attaches a partition beside a default one only while nobody reads that: such partitions
are attached last in a publish (`PendingRanges`). While readers hold the default partition, the rows
of the newest ranges go there, and move to their own partitions with a later publish.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import psycopg
from psycopg import errors, sql

from headrace.catalog.records import OutputColumn, StreamTable
from headrace.publish.lock import waiting_shortly
from headrace.publish.partition_scheme import AHEAD, Scheme
from headrace.publish.served import (
    Connection,
    attach_partition,
    column_names,
    create_partition,
    leaves,
    partition_name,
    served_name,
)

# A publish makes partitions for as many new ranges, the newest; and an older range gets one only
# while the table has fewer. All others share the default partition.
MOST_RANGES = 1000

_HAS_ROW_TRIGGERS = """
SELECT EXISTS (
    SELECT FROM pg_trigger WHERE tgrelid = %s::text::regclass AND (tgtype::integer & 1) = 1
)
"""


@dataclass(frozen=True)
class RangePartition:
    """A table with the rows of [low, high), in PostgreSQL's spelling; None is no bound.

    The default partition has the rows that no other has.
    """

    name: sql.Identifier
    low: str | None = None
    high: str | None = None
    is_default: bool = False


def range_partitions(connection: Connection, table: StreamTable) -> list[RangePartition]:
    """Return the partitions of a served table, read from PostgreSQL's catalog."""
    partitions = []
    for name, bound in leaves(connection, table):
        if bound == "DEFAULT":
            partitions.append(RangePartition(name, is_default=True))
            continue
        bounds = bound.removeprefix("FOR VALUES FROM (").removesuffix(")")
        low, _, high = bounds.partition(") TO (")
        partitions.append(RangePartition(name, _constant(low), _constant(high)))
    return partitions


def _constant(text: str) -> str | None:
    """Return a bound without its quotes; times and integers have none inside."""
    return None if text in ("MINVALUE", "MAXVALUE") else text.strip("'")


@dataclass(frozen=True)
class Ranges:
    """The ranges of one column: where a value's begins and ends, in SQL.

    Times with a time zone are cut in UTC, whatever the session's is. Integers are computed as
    numeric: a range may begin or end beyond those that the type has.
    """

    scheme: Scheme
    column: OutputColumn

    @property
    def type(self) -> sql.SQL:
        return sql.SQL("numeric" if self.scheme.width is not None else self.column.served)

    def start(self, value: sql.Composable) -> sql.Composed:
        if self.scheme.width is not None:
            # Division would round quotients of many digits; remainders are exact.
            return sql.SQL("{0}::numeric - mod(mod({0}::numeric, {1}) + {1}, {1})").format(
                value, sql.Literal(self.scheme.width)
            )
        return self._in_utc(
            sql.SQL("date_trunc({}, {})").format(sql.Literal(self.scheme.unit), self._plain(value))
        )

    def later(self, start: sql.Composable, number: sql.Composable) -> sql.Composed:
        """Return the start of the range that comes `number` ranges after the one at `start`."""
        if self.scheme.width is not None:
            return sql.SQL("{} + {} * {}::numeric").format(
                start, number, sql.Literal(self.scheme.width)
            )
        step = sql.Literal(f"1 {self.scheme.unit}")
        return self._in_utc(
            sql.SQL("{} + {} * {}::interval").format(self._plain(start), number, step)
        )

    def _plain(self, value: sql.Composable) -> sql.Composed:
        zoned = self.column.type.kind == "timestamptz"
        text = "({} AT TIME ZONE 'UTC')" if zoned else "{}::timestamp"
        return sql.SQL(text).format(value)

    def _in_utc(self, plain: sql.Composable) -> sql.Composed:
        zoned = self.column.type.kind == "timestamptz"
        text = "(({}) AT TIME ZONE 'UTC')" if zoned else f"({{}})::{self.column.served}"
        return sql.SQL(text).format(plain)

    def ordinal(self, start: sql.Composable) -> sql.Composable:
        """Return a number that orders starts of ranges."""
        if self.scheme.width is not None:
            return start
        return sql.SQL("extract(epoch FROM {})").format(self._plain(start))

    def within(self, value: sql.Composable, partition: RangePartition) -> sql.Composable:
        """Return the condition on values of a range, NULL for no value."""
        tests: list[sql.Composable] = [
            sql.SQL(f"{{}} {sign} {{}}::{self.column.served}").format(value, sql.Literal(bound))
            for sign, bound in ((">=", partition.low), ("<", partition.high))
            if bound is not None
        ]
        return sql.SQL("({})").format(sql.SQL(" AND ").join(tests or [sql.SQL("true")]))

    def any_of(self, value: sql.Composable, partitions: Iterable[RangePartition]) -> sql.Composable:
        """Return the condition on values of any of the ranges."""
        tests = [self.within(value, partition) for partition in partitions]
        return sql.SQL("({})").format(sql.SQL(" OR ").join(tests or [sql.SQL("false")]))

    def partition(self, name: sql.Identifier, low: str, high: str) -> RangePartition:
        """Return the partition of a range, without bounds that the type has no values beyond."""
        return RangePartition(name, self._limited(low), self._limited(high))

    def has_values_from(self, low: str) -> bool:
        """Return whether the type has values from a bound on."""
        return self._limited(low) is not None

    def _limited(self, bound: str) -> str | None:
        limits = self.column.type.row.limits
        if self.scheme.width is None or limits is None:
            return bound
        least, greatest = limits
        return bound if least <= int(bound) <= greatest else None

    def as_rows(self, partitions: Sequence[RangePartition]) -> sql.Composed:
        """Return a query of ranges that have a partition: its position among them, and bounds."""
        rows = [
            sql.SQL("({}, {}::{type}, {}::{type})").format(
                sql.Literal(position),
                sql.Literal(partition.low),
                sql.Literal(partition.high),
                type=self.type,
            )
            for position, partition in enumerate(partitions)
            if not partition.is_default
        ]
        none = sql.SQL("(NULL::integer, NULL::{type}, NULL::{type})").format(type=self.type)
        where = sql.SQL("" if rows else " WHERE false")
        return sql.SQL("(SELECT * FROM (VALUES {}) AS v (position, low, high){})").format(
            sql.SQL(", ").join(rows or [none]), where
        )


@dataclass(frozen=True)
class ValueRange:
    """A range that rows have values of.

    `position` is that of its partition, if there is one; `newer` means after all partitions.
    """

    low: str
    high: str
    ordinal: Decimal
    position: int | None
    newer: bool


RangeSlice = tuple[sql.Identifier, sql.Composable]
"""A partition, and the condition of its rows of a staged change `d`."""


@dataclass(frozen=True)
class PendingRanges:
    """Partitions that have to be attached beside a default one.

    The default partition has rows of those `occupied`, the staged change has rows of those
    `touched`, by their `value`.
    """

    default: RangePartition
    partitions: tuple[RangePartition, ...]
    occupied: tuple[RangePartition, ...]
    touched: tuple[RangePartition, ...]
    ranges: Ranges
    value: sql.Identifier

    def attach(self, connection: Connection, table: StreamTable) -> list[RangeSlice]:
        """Attach the partitions, and return the slices of their rows.

        The wait for readers of the default partition is short; while they hold it, the rows go into
        the default partition. Once a partition is attached, readers wait until the transaction
        ends.
        """
        try:
            with connection.transaction(), waiting_shortly(connection):
                self._attach(connection, table)
        except errors.LockNotAvailable:
            if not self.touched:
                return []
            return [(self.default.name, self.ranges.any_of(self.value, self.touched))]
        return [(new.name, self.ranges.within(self.value, new)) for new in self.touched]

    def _attach(self, connection: Connection, table: StreamTable) -> None:
        # Ranges that are only ahead of the rows can wait for a better time.
        nowait = sql.SQL("" if self.touched else " NOWAIT")
        locking = sql.SQL("LOCK TABLE ONLY {} IN ACCESS EXCLUSIVE MODE{}").format(
            self.default.name, nowait
        )
        if self.occupied:
            # Rows are moved before the lock is taken, and only where it seems to be available.
            with connection.transaction() as trial:
                connection.execute(locking)
                raise psycopg.Rollback(trial)
        for partition in self.partitions:
            create_partition(connection, table, partition.name)
            if partition in self.occupied:
                self._move(connection, table, partition)
        connection.execute(locking)
        for partition in self.partitions:
            attach_partition(connection, table, partition.name, _bound(partition))

    def _move(self, connection: Connection, table: StreamTable, partition: RangePartition) -> None:
        column = sql.Identifier(self.ranges.column.name)
        moving = sql.SQL(
            "WITH moved AS (DELETE FROM {default} WHERE {within} RETURNING {columns})"
            " INSERT INTO {partition} ({columns}) SELECT {columns} FROM moved"
        )
        connection.execute(
            moving.format(
                default=self.default.name,
                within=self.ranges.within(column, partition),
                columns=column_names(tuple(column.name for column in table.columns)),
                partition=partition.name,
            )
        )


def range_slices(
    connection: Connection, table: StreamTable, staged: sql.Identifier, ranges: Ranges
) -> tuple[list[RangeSlice], PendingRanges | None]:
    """Return the slices of a staged change for present partitions, and the ranges to attach last.

    Partitions that the change needs are made, but those that have to be attached beside a default
    one are only returned.
    """
    existing = range_partitions(connection, table)
    default = next((partition for partition in existing if partition.is_default), None)
    value = sql.Identifier("d", f"c{table.columns.index(ranges.column) + 1}")
    touched = _ranges_of(connection, staged, value, ranges, existing)
    missing = [range_ for range_ in touched if range_.position is None]
    ahead = _ahead(connection, table, ranges, existing, touched[-1].low) if touched else []
    occupied: list[ValueRange] = []
    if default is not None and (missing or ahead):
        column = sql.Identifier("d", ranges.column.name)
        occupied = _ranges_of(connection, default.name, column, ranges, existing)
    fixed: set[str] = set()
    if default is not None and occupied and _has_row_triggers(connection, default):
        fixed = {range_.low for range_ in occupied}
    new = {
        low: ranges.partition(partition_name(table), low, high)
        for low, high in (*_with_partition(missing, occupied, len(existing)), *ahead)
        if low not in fixed
    }
    if default is None:
        for partition in new.values():
            create_partition(connection, table, partition.name)
            attach_partition(connection, table, partition.name, _bound(partition))
    shared = _has_null(connection, staged, value) or any(
        range_.low not in new for range_ in missing
    )
    own = [*(partition for partition in existing if not partition.is_default), *new.values()]
    positions = dict.fromkeys(range_.position for range_ in touched if range_.position is not None)
    used = [existing[position] for position in positions]
    touched_new = [new[range_.low] for range_ in missing if range_.low in new]
    if default is None:
        used += touched_new
    slices = [(partition.name, ranges.within(value, partition)) for partition in used]
    pending = None
    if default is not None and new:
        moving = tuple(new[range_.low] for range_ in occupied if range_.low in new)
        partitions = tuple(new.values())
        pending = PendingRanges(default, partitions, moving, tuple(touched_new), ranges, value)
    if shared:
        if default is None:
            default = RangePartition(partition_name(table), is_default=True)
            create_partition(connection, table, default.name)
            attach_partition(connection, table, default.name, sql.SQL("DEFAULT"))
        others = sql.SQL("({} IS NULL OR NOT {})").format(value, ranges.any_of(value, own))
        slices.append((default.name, others))
    return slices, pending


def _has_row_triggers(connection: Connection, default: RangePartition) -> bool:
    """Return whether moving rows would run triggers, of users or of foreign keys that refer to it.

    A foreign key with ON DELETE CASCADE would delete rows of users.
    """
    row = connection.execute(_HAS_ROW_TRIGGERS, [default.name.as_string(connection)]).fetchone()
    return row == (True,)


def _has_null(connection: Connection, staged: sql.Identifier, value: sql.Identifier) -> bool:
    text = sql.SQL("SELECT EXISTS (SELECT FROM {} d WHERE {} IS NULL)").format(staged, value)
    return connection.execute(text).fetchone() == (True,)


def _ranges_of(
    connection: Connection,
    rows: sql.Identifier,
    value: sql.Identifier,
    ranges: Ranges,
    existing: Sequence[RangePartition],
) -> list[ValueRange]:
    """Return the ranges that the rows of a table `d` have values of, in their order."""
    text = sql.SQL(
        "WITH existing AS MATERIALIZED {existing},"
        " starts AS (SELECT DISTINCT {start} AS start FROM {rows} d WHERE {value} IS NOT NULL)"
        " SELECT start::text, ({stop})::text, ({ordinal})::numeric AS ordinal, position,"
        " NOT EXISTS (SELECT FROM existing e WHERE e.high IS NULL OR e.high > start)"
        " FROM starts LEFT JOIN existing"
        " ON (low IS NULL OR low <= start) AND (high IS NULL OR high > start) ORDER BY ordinal"
    ).format(
        existing=ranges.as_rows(existing),
        start=ranges.start(value),
        rows=rows,
        value=value,
        stop=ranges.later(sql.Identifier("start"), sql.Literal(1)),
        ordinal=ranges.ordinal(sql.Identifier("start")),
    )
    return [ValueRange(*row) for row in connection.execute(text).fetchall()]


def _with_partition(
    missing: Sequence[ValueRange], occupied: Sequence[ValueRange], number: int
) -> list[tuple[str, str]]:
    """Return the bounds of those of the ranges that get a partition of their own.

    `missing` are those that a change has rows of, `occupied` those that the default partition has
    rows of; `number` is how many partitions there are.
    """
    newer = {range_.low: range_ for range_ in (*missing, *occupied) if range_.newer}
    newest = sorted(newer.values(), key=lambda range_: range_.ordinal)[-MOST_RANGES:]
    shared = {range_.low for range_ in occupied}
    older = [range_ for range_ in missing if not range_.newer and range_.low not in shared]
    chosen = (*older[: max(0, MOST_RANGES - number)], *newest)
    return [(range_.low, range_.high) for range_ in chosen]


def _ahead(
    connection: Connection,
    table: StreamTable,
    ranges: Ranges,
    existing: Sequence[RangePartition],
    newest: str,
) -> list[tuple[str, str]]:
    """Return the ranges to be made ahead of the newest that a change has rows of."""
    number = table.options.get(AHEAD)
    if not number:
        return []
    start = sql.SQL("{}::{}").format(sql.Literal(newest), ranges.type)
    text = sql.SQL(
        "WITH existing AS MATERIALIZED {existing}"
        " SELECT ({low})::text, ({high})::text FROM generate_series(1, {number}) AS n"
        " WHERE NOT EXISTS (SELECT FROM existing WHERE high IS NULL OR high > {low}) ORDER BY n"
    ).format(
        existing=ranges.as_rows(existing),
        low=ranges.later(start, sql.SQL("n")),
        high=ranges.later(start, sql.SQL("(n + 1)")),
        number=sql.Literal(number),
    )
    rows = connection.execute(text).fetchall()
    return [(low, high) for low, high in rows if ranges.has_values_from(low)]


def _bound(partition: RangePartition) -> sql.Composed:
    low, high = partition.low, partition.high
    return sql.SQL("FOR VALUES FROM ({}) TO ({})").format(
        sql.SQL("MINVALUE") if low is None else sql.Literal(low),
        sql.SQL("MAXVALUE") if high is None else sql.Literal(high),
    )


def drop_empty(connection: Connection, table: StreamTable, names: Iterable[sql.Identifier]) -> None:
    """Drop those of the partitions that have no rows.

    A partition stays while somebody reads the table, and where a foreign key or a view depends
    on it. Dropping locks readers out until the transaction ends, so it comes last in a publish.
    """
    exists = sql.SQL("SELECT EXISTS (SELECT FROM {})")
    distinct = {name.as_string(connection): name for name in names}.values()
    empty = [
        name for name in distinct if connection.execute(exists.format(name)).fetchone() == (False,)
    ]
    locking = sql.SQL("LOCK TABLE ONLY {} IN ACCESS EXCLUSIVE MODE NOWAIT")
    for name in empty:
        try:
            with connection.transaction():
                connection.execute(locking.format(served_name(table)))
                connection.execute(locking.format(name))
                connection.execute(sql.SQL("DROP TABLE {}").format(name))
        except errors.LockNotAvailable:
            return
        except errors.DependentObjectsStillExist:
            continue
