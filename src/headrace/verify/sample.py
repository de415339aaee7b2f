"""A part of a stream table to be verified: rows by the value of one column.

Either the values are given, such as those of some partitions (where the table is partitioned by
ranges of the column, a value stands for its range), or all values are spread over buckets, and one
bucket is compared: all rows with one value of the column together, so that a sample of a bag is the
bag of a sample. Spark, PostgreSQL and this module agree on the bucket of a value, which is a part
of the MD5 of its text; NULL is in bucket 0.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from hashlib import md5
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql
from sqlglot import exp

from headrace.catalog.records import OutputColumn, Receipt, StreamTable
from headrace.errors import UserError
from headrace.publish.partition_scheme import Scheme, scheme_of
from headrace.types import KINDS
from headrace.verify.value_range import EPOCH, WholeRange, integer, range_of

SAMPLED = tuple(kind.name for kind in KINDS if kind.sampled)
MOST_BUCKETS = 1_000_000
HINT = "Write a share such as 1% or 0.01, 1% by column, or column=value,value."
BOOLEANS = {
    **dict.fromkeys(("t", "true", "y", "yes", "on", "1"), "t"),
    **dict.fromkeys(("f", "false", "n", "no", "off", "0"), "f"),
}


@dataclass(frozen=True)
class SampleRequest:
    """A request for a share of the values of a column, or for some of the values."""

    column: str | None = None
    share: float | None = None
    values: tuple[str | None, ...] = ()

    @staticmethod
    def of(given: float | str | Mapping[str, Iterable[Any]]) -> SampleRequest:
        """Return the request given in one of its forms; raise `invalid-option` for others."""
        if isinstance(given, Mapping):
            if len(given) != 1:
                raise _invalid(given)
            ((column, values),) = given.items()
            if isinstance(values, str) or not isinstance(values, Iterable):
                values = (values,)
            return _by_values(column, values, given)
        if isinstance(given, str):
            return _parsed(given)
        return SampleRequest(share=_share(given, given))

    def __str__(self) -> str:
        """Return a text from which the request can be read again."""
        if self.share is None:
            return json.dumps({self.column: self.values})
        return f"{self.share!r}" if self.column is None else f"{self.share!r} by {self.column}"


@dataclass(frozen=True)
class Sample:
    """Rows of which `column` has one of `values`, or a value in one of several buckets.

    By ranges, those that the `values` fall into are chosen; NULL is in none.
    """

    column: OutputColumn
    place: int
    values: tuple[str | None, ...] = ()
    bucket: int = 0
    buckets: int = 0
    ranges: tuple[WholeRange, ...] = ()
    partition_by: str | None = None

    def covered(self, rows: int, of: int, without_rows: Sequence[Any] = ()) -> dict[str, Any]:
        """Return what a receipt records: which rows were compared, and how many of how many."""
        part: dict[str, Any] = {"values": list(self.values)}
        if self.buckets:
            part = {"bucket": self.bucket, "buckets": self.buckets}
        if self.partition_by is not None:
            part["partition_by"] = self.partition_by
            part["ranges"] = [range_.bounds for range_ in self.ranges]
        if without_rows:
            part["without_rows"] = list(without_rows)
        return {"column": self.column.name, **part, "rows": rows, "of": of}

    def has(self, value: Any) -> bool:
        """Return whether rows with this value of the column belong to the sample."""
        text = _text(value)
        if not self.buckets:
            return text in self.values
        if text is None:
            return self.bucket == 0
        digest = md5(text.encode(), usedforsecurity=False).hexdigest()
        return int(digest[:8], 16) % self.buckets == self.bucket

    def without_rows(self, rows: pa.Table) -> list[Any]:
        """Return the values, or bounds of ranges, that no row has."""
        parts: list[tuple[Any, Sample]]
        if self.partition_by is None:
            parts = [(value, replace(self, values=(value,))) for value in self.values]
        else:
            parts = [
                (range_.bounds, replace(self, values=(), ranges=(range_,)))
                for range_ in self.ranges
            ]
            if None in self.values:
                parts.append((None, replace(self, values=(None,), ranges=())))
        return [value for value, part in parts if not part.filtered(rows).num_rows]

    def filtered(self, rows: pa.Table) -> pa.Table:
        """Return the rows that belong to the sample; the weight is their first column."""
        if self.partition_by is not None:
            values = rows.column(1 + self.place).combine_chunks()
            mask = pc.and_(pc.is_null(values), pa.scalar(None in self.values))
            for range_ in self.ranges:
                mask = pc.or_(mask, range_.mask(values))
            return rows.filter(mask)
        encoded = rows.column(1 + self.place).combine_chunks().dictionary_encode()
        in_sample = [self.has(value) for value in encoded.dictionary.to_pylist()]
        null = self.has(None)
        mask = [
            null if index is None else in_sample[index] for index in encoded.indices.to_pylist()
        ]
        return rows.filter(pa.array(mask, pa.bool_()))

    def spark(self, column: exp.Expression) -> exp.Expression:
        """Return the condition for Spark."""
        if self.partition_by is not None:
            tests = [range_.spark(column) for range_ in self.ranges]
            if None in self.values:
                tests.append(exp.Is(this=column, expression=exp.Null()))
            return exp.Paren(this=exp.or_(*tests))
        text = _spark_text(column, self.column.type.kind)
        if not self.buckets:
            texts = [exp.Literal.string(value) for value in self.values if value is not None]
            missing = exp.Is(this=column, expression=exp.Null())
            is_listed = exp.In(this=text, expressions=texts)
            tests = [missing] * (None in self.values) + [is_listed] * bool(texts)
            return exp.Paren(this=exp.or_(*tests)) if tests else exp.false()
        head = _call("substr", _call("md5", text), _number(1), _number(8))
        number = exp.cast(_call("conv", head, _number(16), _number(10)), "bigint")
        bucket = _call("coalesce", _call("pmod", number, _number(self.buckets)), _number(0))
        return exp.EQ(this=bucket, expression=_number(self.bucket))

    def postgres(self, column: sql.Composable) -> str:
        """Return the condition for PostgreSQL, with built-in functions only."""
        if self.partition_by is not None:
            tests = [range_.postgres(column) for range_ in self.ranges]
            if None in self.values:
                tests.append(sql.SQL("({} IS NULL)").format(column))
            return sql.SQL("({})").format(sql.SQL(" OR ").join(tests)).as_string()
        value = sql.SQL("pg_catalog.concat({})").format(column)
        if self.column.type.kind == "date":
            value = sql.SQL(
                "pg_catalog.concat({} OPERATOR(pg_catalog.-) DATE '1970-01-01')"
            ).format(column)
        if not self.buckets:
            texts = [text for text in self.values if text is not None]
            is_listed = sql.SQL("{} OPERATOR(pg_catalog.=) ANY ({}::pg_catalog.text[])").format(
                value, sql.Literal(texts)
            )
            whole = sql.SQL("({} IS NOT NULL AND {})").format(column, is_listed)
            if None in self.values:
                whole = sql.SQL("({} IS NULL OR {})").format(column, whole)
            return whole.as_string()
        return (
            sql.SQL(
                "coalesce(pg_catalog.mod(CAST(CAST(pg_catalog.concat('x', pg_catalog.substr("
                "pg_catalog.md5(pg_catalog.convert_to(CASE WHEN {column} IS NOT NULL THEN {value}"
                " END, 'UTF8')), 1, 8)) AS bit(32)) AS bigint), {buckets}), 0)"
                " OPERATOR(pg_catalog.=) {bucket}"
            )
            .format(
                column=column,
                value=value,
                buckets=sql.Literal(self.buckets),
                bucket=sql.Literal(self.bucket),
            )
            .as_string()
        )


def chosen(request: SampleRequest, table: StreamTable, past: Iterable[Receipt]) -> Sample:
    """Return the sample of a table; of a share, the bucket after the latest one in `past`."""
    scheme = ranges_asked(request, scheme_of(table.options))
    if scheme is not None:
        return _in_ranges(request, scheme, table)
    column = _column(request.column, table)
    place = table.columns.index(column)
    if request.share is None:
        values = tuple(_known_text(column, value) for value in request.values)
        return Sample(column, place, values)
    buckets = buckets_of(request.share)
    for receipt in past:
        covered = receipt.covered or {}
        if (covered.get("column"), covered.get("buckets")) == (column.name, buckets):
            return Sample(column, place, (), (covered["bucket"] + 1) % buckets, buckets)
    return Sample(column, place, (), random.randrange(buckets), buckets)  # noqa: S311


def ranges_asked(request: SampleRequest, scheme: Scheme | None) -> Scheme | None:
    """Return how a table is partitioned, if the request is for ranges that are its partitions."""
    if scheme is None or not scheme.is_range or request.share is not None:
        return None
    return replace(scheme, taken_over=False) if request.column == scheme.column else None


def _in_ranges(request: SampleRequest, scheme: Scheme, table: StreamTable) -> Sample:
    """Return the sample of the ranges that the values fall into."""
    (column,) = [candidate for candidate in table.columns if candidate.name == scheme.column]
    ranges: list[WholeRange] = []
    for value in request.values:
        if value is not None:
            try:
                ranges.append(range_of(scheme, column, value.strip()))
            except (ValueError, OverflowError):
                raise _no_value(column, value) from None
    return Sample(
        column,
        table.columns.index(column),
        request.values,
        ranges=tuple(dict.fromkeys(ranges)),
        partition_by=str(scheme),
    )


def buckets_of(share: float) -> int:
    return round(min(MOST_BUCKETS, 1 / share))


def _column(name: str | None, table: StreamTable) -> OutputColumn:
    columns = {column.name: column for column in table.columns}
    if name is not None:
        if name not in columns:
            raise UserError(
                "unknown-column",
                f"stream table {table.schema}.{table.name} has no column {name}",
                hint=f"Its columns are {', '.join(columns)}.",
            )
        if columns[name].type.kind not in SAMPLED:
            raise UserError(
                "unsupported-type",
                f"rows cannot be chosen by column {name}, which is {columns[name].served}",
                hint=f"They can be by one of type {', '.join(SAMPLED[:-1])} or {SAMPLED[-1]}.",
            )
        return columns[name]
    scheme = scheme_of(table.options)
    first = [*([scheme.column] if scheme is not None else []), *table.key, *columns]
    for candidate in first:
        if candidate in columns and columns[candidate].type.kind in SAMPLED:
            return columns[candidate]
    raise UserError(
        "invalid-option",
        f"stream table {table.schema}.{table.name} has no column by which rows can be chosen",
        hint=f"There is none of type {', '.join(SAMPLED[:-1])} or {SAMPLED[-1]}: verify all of it.",
    )


def _parsed(given: str) -> SampleRequest:
    """Return the request that a text stands for.

    A share comes first, since the column after `by` may have any name; and a column whose name
    would be taken for something else is written in JSON.
    """
    if given.lstrip().startswith("{"):
        values = _json(given)
        if not isinstance(values, dict):
            raise _invalid(given)
        return SampleRequest.of(values)
    share, _, column = given.partition(" by ")
    number = _number_of(share)
    if number is not None:
        return SampleRequest(column.strip() or None, _share(number, given))
    column, equals, listed = given.partition("=")
    if not equals:
        raise _invalid(given)
    if listed.startswith("["):
        return _by_values(column, _json(listed), given)
    return SampleRequest(column.strip(), values=tuple(listed.split(",")))


def _by_values(column: str, values: Iterable[Any], given: Any) -> SampleRequest:
    """Return the request for some values of a column; no values would prove nothing."""
    listed = tuple(values)
    if not listed or any(isinstance(value, list | dict) for value in listed):
        raise _invalid(given)
    return SampleRequest(column, values=tuple(map(_text, listed)))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise _invalid(text) from None


def _number_of(text: str) -> float | None:
    """Return the share that a text is, None if it is no number."""
    text = text.strip()
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None


def _share(number: float, given: Any) -> float:
    if not 0 < number <= 0.5:
        raise _invalid(given)
    return number


def _invalid(given: Any) -> UserError:
    return UserError("invalid-option", f"{given!r} is no sample", hint=HINT)


def _text(value: Any) -> str | None:
    """Return the text by which a value is known in every engine."""
    match value:
        case None:
            return None
        case bool():
            return "t" if value else "f"
        case datetime():
            return value.isoformat()
        case date():
            return str((value - EPOCH).days)
        case _:
            return str(value)


def _known_text(column: OutputColumn, given: str | None) -> str | None:
    """Return the text, as PostgreSQL writes it, of a value that a user has written.

    Raise `invalid-option` for a value that the type does not have: no row could have it, and a
    sample without rows is equal to anything.
    """
    if given is None:
        return None
    text = given.strip()
    try:
        match column.type.kind:
            case "date":
                days = text.removeprefix("-").isdigit()
                return str(int(text)) if days else _text(date.fromisoformat(text))
            case "boolean":
                return BOOLEANS[text.lower()]
            case "smallint" | "integer" | "bigint":
                return str(integer(column, text))
            case "uuid":
                return str(UUID(text))
            case _:
                return given
    except (ValueError, KeyError):
        raise _no_value(column, given) from None


def _no_value(column: OutputColumn, given: str) -> UserError:
    return UserError(
        "invalid-option",
        f"{given!r} is no value of column {column.name}, which is {column.served}",
        hint="Write dates as 2026-03-01, timestamps as 2026-03-01 12:30 and booleans as true or"
        " false.",
    )


def _spark_text(column: exp.Expression, kind: str) -> exp.Expression:
    if kind == "boolean":
        true, false = exp.Literal.string("t"), exp.Literal.string("f")
        return exp.Case().when(column, true).when(exp.not_(column), false)
    if kind == "date":
        column = exp.Anonymous(this="unix_date", expressions=[column])
    return exp.cast(column, "string")


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _number(value: int) -> exp.Expression:
    return exp.Literal.number(value)
