"""The partitions of a served table that is partitioned by ranges of a column.

A range is made when its first row comes, and with it as many ahead as the table asks for. Rows
without a value, and those of old ranges when there are many, are in one more, the default. A range
whose rows are there already is not made later; newer ones always are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from psycopg import errors, sql

from headrace.catalog.records import OutputColumn, StreamTable
from headrace.publish.partition_scheme import AHEAD, Scheme
from headrace.publish.served import Connection, attach, leaves, served_name

# Beyond so many, ranges that are older than the newest share the default partition.
MOST_RANGES = 1000
LIMITS = {
    "smallint": (-(2**15), 2**15 - 1),
    "integer": (-(2**31), 2**31 - 1),
    "bigint": (-(2**63), 2**63 - 1),
}


@dataclass(frozen=True)
class RangePartition:
    """A table with the rows of [low, high), as PostgreSQL spells them; None is no bound.

    The default one has the rows of no other.
    """

    name: sql.Identifier
    low: str | None = None
    high: str | None = None
    is_default: bool = False


def range_partitions(connection: Connection, table: StreamTable) -> list[RangePartition]:
    """The partitions that a served table has, as PostgreSQL tells them."""
    found = []
    for name, bound in leaves(connection, table):
        if bound == "DEFAULT":
            found.append(RangePartition(name, is_default=True))
            continue
        spelled = bound.removeprefix("FOR VALUES FROM (").removesuffix(")")
        low, _, high = spelled.partition(") TO (")
        found.append(RangePartition(name, _constant(low), _constant(high)))
    return found


def _constant(spelled: str) -> str | None:
    """A bound without its quotes; times and integers have none inside."""
    return None if spelled in ("MINVALUE", "MAXVALUE") else spelled.strip("'")


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
        """The start of the range that comes so many after the one that begins there."""
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
        how = "({} AT TIME ZONE 'UTC')" if zoned else "{}::timestamp"
        return sql.SQL(how).format(value)

    def _in_utc(self, plain: sql.Composable) -> sql.Composed:
        zoned = self.column.type.kind == "timestamptz"
        how = "(({}) AT TIME ZONE 'UTC')" if zoned else f"({{}})::{self.column.served}"
        return sql.SQL(how).format(plain)

    def within(self, value: sql.Composable, one: RangePartition) -> sql.Composable:
        """The condition on values of a range; NULL where the value is."""
        tests: list[sql.Composable] = [
            sql.SQL(f"{{}} {sign} {{}}::{self.column.served}").format(value, sql.Literal(bound))
            for sign, bound in ((">=", one.low), ("<", one.high))
            if bound is not None
        ]
        return sql.SQL("({})").format(sql.SQL(" AND ").join(tests or [sql.SQL("true")]))

    def limited(self, bound: str) -> str | None:
        """The bound as a partition has it; None beyond the values of the type."""
        if self.scheme.width is None:
            return bound
        least, greatest = LIMITS[self.column.type.kind]
        return bound if least <= int(bound) <= greatest else None

    def known(self, partitions: Sequence[RangePartition]) -> sql.Composed:
        """The ranges that there are, as rows of their places and bounds."""
        rows = [
            sql.SQL("({}, {}::{type}, {}::{type})").format(
                sql.Literal(place), sql.Literal(one.low), sql.Literal(one.high), type=self.type
            )
            for place, one in enumerate(partitions)
            if not one.is_default
        ]
        none = sql.SQL("(NULL::integer, NULL::{type}, NULL::{type})").format(type=self.type)
        where = sql.SQL("" if rows else " WHERE false")
        return sql.SQL("(SELECT * FROM (VALUES {}) AS v (place, low, high){})").format(
            sql.SQL(", ").join(rows or [none]), where
        )


@dataclass(frozen=True)
class TouchedRange:
    """A range that a change has rows of; `place` is that of its partition, if there is one.

    It is `newer` if it comes after all that there are.
    """

    low: str
    high: str
    place: int | None
    newer: bool


def range_slices(
    connection: Connection, table: StreamTable, staged: sql.Identifier, ranges: Ranges
) -> list[tuple[sql.Identifier, sql.Composable]]:
    """The partitions that a staged change touches, each with the condition of its rows as `d`.

    Those that it needs are made.
    """
    known = range_partitions(connection, table)
    value = sql.Identifier("d", f"c{table.columns.index(ranges.column) + 1}")
    shared = _has_null(connection, staged, value)
    used: set[int] = set()
    found = _found(connection, staged, value, ranges, known)
    for one in found:
        if one.place is not None:
            used.add(one.place)
        elif _may_have_its_own(connection, ranges, known, one):
            used.add(len(known))
            known.append(_made(connection, table, ranges, one.low, one.high))
        else:
            shared = True
    if found:
        for low, high in _ahead(connection, table, ranges, known, found[-1].low):
            known.append(_made(connection, table, ranges, low, high))
    if shared and not any(one.is_default for one in known):
        known.append(RangePartition(attach(connection, table, sql.SQL("DEFAULT")), is_default=True))
    slices = [(known[i].name, ranges.within(value, known[i])) for i in sorted(used)]
    if shared:
        default = next(one for one in known if one.is_default)
        own = [ranges.within(value, one) for one in known if not one.is_default]
        others = sql.SQL("({} IS NULL OR NOT ({}))").format(
            value, sql.SQL(" OR ").join(own or [sql.SQL("false")])
        )
        slices.append((default.name, others))
    return slices


def _has_null(connection: Connection, staged: sql.Identifier, value: sql.Identifier) -> bool:
    text = sql.SQL("SELECT EXISTS (SELECT FROM {} d WHERE {} IS NULL)").format(staged, value)
    return connection.execute(text).fetchone() == (True,)


def _found(
    connection: Connection,
    staged: sql.Identifier,
    value: sql.Identifier,
    ranges: Ranges,
    known: Sequence[RangePartition],
) -> list[TouchedRange]:
    """The ranges that a change has rows of, in their order."""
    text = sql.SQL(
        "WITH known AS MATERIALIZED {known},"
        " found AS (SELECT DISTINCT {start} AS start FROM {staged} d WHERE {value} IS NOT NULL)"
        " SELECT start::text, ({stop})::text, place,"
        " NOT EXISTS (SELECT FROM known k WHERE k.high IS NULL OR k.high > start)"
        " FROM found LEFT JOIN known"
        " ON (low IS NULL OR low <= start) AND (high IS NULL OR high > start) ORDER BY start"
    ).format(
        known=ranges.known(known),
        start=ranges.start(value),
        staged=staged,
        value=value,
        stop=ranges.later(sql.Identifier("start"), sql.Literal(1)),
    )
    return [TouchedRange(*row) for row in connection.execute(text).fetchall()]


def _may_have_its_own(
    connection: Connection, ranges: Ranges, known: Sequence[RangePartition], one: TouchedRange
) -> bool:
    if not one.newer and len(known) >= MOST_RANGES:
        return False
    default = next((other for other in known if other.is_default), None)
    if default is None:
        return True
    low, high = ranges.limited(one.low), ranges.limited(one.high)
    column = sql.Identifier(ranges.column.name)
    inside = ranges.within(column, RangePartition(default.name, low, high))
    text = sql.SQL("SELECT EXISTS (SELECT FROM {} WHERE {})").format(default.name, inside)
    return connection.execute(text).fetchone() == (False,)


def _ahead(
    connection: Connection,
    table: StreamTable,
    ranges: Ranges,
    known: Sequence[RangePartition],
    newest: str,
) -> list[tuple[str, str]]:
    """The ranges that are to be made ahead of the newest that a change has rows of."""
    number = table.options.get(AHEAD)
    if not number:
        return []
    start = sql.SQL("{}::{}").format(sql.Literal(newest), ranges.type)
    text = sql.SQL(
        "WITH known AS MATERIALIZED {known}"
        " SELECT ({low})::text, ({high})::text FROM generate_series(1, {number}) AS n"
        " WHERE NOT EXISTS (SELECT FROM known WHERE high IS NULL OR high > {low}) ORDER BY n"
    ).format(
        known=ranges.known(known),
        low=ranges.later(start, sql.SQL("n")),
        high=ranges.later(start, sql.SQL("(n + 1)")),
        number=sql.Literal(number),
    )
    found = connection.execute(text).fetchall()
    return [(low, high) for low, high in found if ranges.limited(low) is not None]


def _made(
    connection: Connection, table: StreamTable, ranges: Ranges, low: str, high: str
) -> RangePartition:
    least, greatest = ranges.limited(low), ranges.limited(high)
    bound = sql.SQL("FOR VALUES FROM ({}) TO ({})").format(
        sql.SQL("MINVALUE") if least is None else sql.Literal(least),
        sql.SQL("MAXVALUE") if greatest is None else sql.Literal(greatest),
    )
    return RangePartition(attach(connection, table, bound), least, greatest)


def drop_empty(connection: Connection, table: StreamTable, names: Iterable[sql.Identifier]) -> None:
    """Drop those of the partitions that have no rows.

    A partition stays while somebody reads the table, and where a foreign key or a view depends
    on it. Dropping one locks readers out until the transaction ends, so it comes last in it.
    """
    exists = sql.SQL("SELECT EXISTS (SELECT FROM {})")
    empty = [
        name for name in names if connection.execute(exists.format(name)).fetchone() == (False,)
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
