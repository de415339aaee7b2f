"""The range of values that a value falls into, where a table is partitioned by ranges. Pure.

Values are numbers here: integers as they are, dates in days and timestamps in microseconds since
1970, in UTC. Dates are those of the Gregorian calendar from the year 1 to 9999, as in Spark and
PostgreSQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql
from sqlglot import exp

from headrace.catalog.records import OutputColumn
from headrace.publish.partition_scheme import Scheme

EPOCH = date(1970, 1, 1)
DAY = 86_400_000_000
LEAST, GREATEST = -(2**63), 2**63 - 1
_AFTER_ALL_DATES = "10000-01-01"


@dataclass(frozen=True)
class WholeRange:
    """The values of a column of type `kind` whose numbers are in [low, high)."""

    kind: str
    low: int
    high: int

    @property
    def bounds(self) -> list[str]:
        """The bounds as PostgreSQL writes them."""
        return [self._written(self.low), self._written(self.high)]

    def mask(self, values: pa.Array) -> pa.Array:
        """Return a mask of the values that are in the range; NULL never is."""
        days = pa.types.is_date32(values.type)
        numbers = (values.cast(pa.int32()) if days else values).cast(pa.int64())
        inside = pc.is_valid(numbers)
        for number, holds in ((self.low, pc.greater_equal), (self.high, pc.less)):
            if LEAST <= number <= GREATEST:
                inside = pc.and_(inside, holds(numbers, pa.scalar(number, pa.int64())))
        return inside.fill_null(False)

    def spark(self, column: exp.Expression) -> exp.Expression:
        """Return the condition for Spark, where the time zone of the session is UTC."""
        number = column
        if self.kind == "date":
            number = exp.Anonymous(this="unix_date", expressions=[column])
        elif self.kind in ("timestamp", "timestamptz"):
            moment = exp.Anonymous(this="to_timestamp", expressions=[column])
            number = exp.Anonymous(this="unix_micros", expressions=[moment])
        tests: list[exp.Expression] = [exp.Not(this=exp.Is(this=column, expression=exp.Null()))]
        for bound, compared in ((self.low, exp.GTE), (self.high, exp.LT)):
            if LEAST <= bound <= GREATEST:
                literal = exp.cast(exp.Literal.string(str(bound)), "bigint")
                tests.append(compared(this=number.copy(), expression=literal))
        return exp.Paren(this=exp.and_(*tests))

    def postgres(self, column: sql.Composable) -> sql.Composed:
        """Return the condition for PostgreSQL, with built-in operators only."""
        kind = "int8" if self.kind in ("smallint", "integer", "bigint") else self.kind
        type_ = sql.SQL(f"pg_catalog.{kind}")
        tests: list[sql.Composable] = [sql.SQL("{} IS NOT NULL").format(column)]
        for number, bound, sign in zip(
            (self.low, self.high), self.bounds, (">=", "<"), strict=True
        ):
            if LEAST <= number <= GREATEST:
                tests.append(
                    sql.SQL("{} OPERATOR(pg_catalog.{}) CAST({} AS {})").format(
                        column, sql.SQL(sign), sql.Literal(bound), type_
                    )
                )
        return sql.SQL("({})").format(sql.SQL(" AND ").join(tests))

    def _written(self, number: int) -> str:
        if self.kind not in ("date", "timestamp", "timestamptz"):
            return str(number)
        days = number if self.kind == "date" else number // DAY
        after = days > (date.max - EPOCH).days
        day = _AFTER_ALL_DATES if after else str(EPOCH + timedelta(days=days))
        zone = {"date": "", "timestamp": " 00:00:00", "timestamptz": " 00:00:00+00"}
        return day + zone[self.kind]


def range_of(scheme: Scheme, column: OutputColumn, text: str) -> WholeRange:
    """Return the range that the value with this text falls into.

    Raise ValueError or OverflowError if the type has no such value.
    """
    kind = column.type.kind
    if scheme.width is not None:
        number = integer(column, text)
        low = number - number % scheme.width
        return WholeRange(kind, low, low + scheme.width)
    low, high = _days(scheme.unit, _day(kind, text))
    size = 1 if kind == "date" else DAY
    return WholeRange(kind, low * size, high * size)


def integer(column: OutputColumn, text: str) -> int:
    """Return the integer of a text; raise ValueError if the column's type has no such value."""
    number = int(text)
    least, greatest = column.type.row.limits or (LEAST, GREATEST)
    if not least <= number <= greatest:
        raise ValueError(text)
    return number


def _day(kind: str, text: str) -> date:
    """Return the day of a value, in UTC; a plain number counts days."""
    if text.removeprefix("-").isdigit():
        return EPOCH + timedelta(days=int(text))
    if kind == "date":
        return date.fromisoformat(text)
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        return moment.date()
    if kind == "timestamp":
        raise ValueError(text)
    return moment.astimezone(UTC).date()


def _days(unit: str | None, day: date) -> tuple[int, int]:
    """Return the first day of a range, and the one after its last, in days since 1970."""
    if unit in ("day", "week"):
        first = (day - EPOCH).days - (day.weekday() if unit == "week" else 0)
        return first, first + (1 if unit == "day" else 7)
    start = day.replace(day=1) if unit == "month" else day.replace(month=1, day=1)
    last = day.replace(month=12, day=31) if unit == "year" else _last_of_month(start)
    return (start - EPOCH).days, (last - EPOCH).days + 1


def _last_of_month(first: date) -> date:
    if first.month == 12:
        return first.replace(day=31)
    return first.replace(month=first.month + 1) - timedelta(days=1)
