"""Every PostgreSQL type that is stored, and how: one row a type.

A stored value is *exact*: reading it back gives what PostgreSQL would give. Values that the stored
form cannot hold (numeric NaN, infinite dates, too many digits) are found by `misfit` while they
are read from PostgreSQL, before they can be stored wrongly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

if TYPE_CHECKING:
    from headrace.types.type import Type

Comparison = Literal["ordered", "equality", "none"]
MAXIMUM_DIGITS = 38


@dataclass(frozen=True)
class Kind:
    """One PostgreSQL type: its stored form, and how PostgreSQL reads and checks it.

    `read` and `misfit` are SQL templates over `{column}` (a quoted column reference) and the
    type's parameters: what a SELECT asks for, and a condition that is true when the value does
    not fit. `comparison` says which comparisons mean the same in both engines. No template casts a
    value of a type that users may own: a cast of the owner's would run with our rights.
    """

    name: str
    oid: int | None
    sql: Callable[[Type], str]
    arrow: Callable[[Type], pa.DataType]
    spark: Callable[[Type], str]
    comparison: Comparison = "ordered"
    read: str = "{column}"
    misfit: str | None = None


def _plain(name: str) -> Callable[[Type], str]:
    return lambda _: name


def _arrow(data_type: pa.DataType) -> Callable[[Type], pa.DataType]:
    return lambda _: data_type


def _numeric_sql(type_: Type) -> str:
    if not type_.declared:
        return "numeric"
    return f"numeric({type_.precision},{type_.scale})"


def _decimal(type_: Type) -> str:
    return f"DECIMAL({type_.precision},{type_.scale})"


def _length_sql(name: str) -> Callable[[Type], str]:
    return lambda type_: name if type_.length is None else f"{name}({type_.length})"


def _character_sql(type_: Type) -> str:
    return "bpchar" if type_.unsized else _length_sql("char")(type_)


def _enum_sql(type_: Type) -> str:
    assert type_.enum is not None
    return type_.enum


def _element(type_: Type) -> Type:
    assert type_.element is not None
    return type_.element


# Infinities are below and above every date, so bounds rule them out, too.
_FINITE_DATE = "({column} < DATE '0001-01-01' OR {column} > DATE '9999-12-31')"
_FINITE_TIMESTAMP = (
    "({column} < TIMESTAMP '0001-01-01 00:00:00' OR {column} >= TIMESTAMP '9999-12-31 00:00:00')"
)
_FINITE_TIMESTAMPTZ = (
    "({column} < TIMESTAMPTZ '0001-01-02 00:00:00+00'"
    " OR {column} >= TIMESTAMPTZ '9999-12-31 00:00:00+00')"
)
# abs() and scale() of NaN and Infinity are themselves special, so they are asked about first.
_FITTING_NUMERIC = (
    "({column} IN ('NaN', 'Infinity', '-Infinity')"
    " OR abs({column}) >= 1e{integer_digits}::numeric"
    " OR scale(trim_scale({column})) > {scale})"
)
# What PostgreSQL itself holds to its digits can still be this.
NOT_A_NUMBER = "({column} = 'NaN')"
_FITTING_ARRAY = "(array_ndims({column}) > 1 OR array_lower({column}, 1) <> 1)"

# What PostgreSQL prints, by the type's own output function: the owner of an enum may define its
# cast to text, but nothing that concat() calls. It prints NULL as nothing, hence the test.
PRINTED = "CASE WHEN {column} IS NOT NULL THEN pg_catalog.concat({column}) END"
# A list of what is printed of an array. Sessions and triggers that read it have array_nulls on.
PRINTED_ARRAY = (
    "CASE WHEN {column} IS NOT NULL THEN pg_catalog.concat({column})::pg_catalog.text[] END"
)

KINDS: tuple[Kind, ...] = (
    Kind("boolean", 16, _plain("boolean"), _arrow(pa.bool_()), _plain("BOOLEAN")),
    Kind("smallint", 21, _plain("smallint"), _arrow(pa.int16()), _plain("SMALLINT")),
    Kind("integer", 23, _plain("integer"), _arrow(pa.int32()), _plain("INT")),
    Kind("bigint", 20, _plain("bigint"), _arrow(pa.int64()), _plain("BIGINT")),
    Kind("real", 700, _plain("real"), _arrow(pa.float32()), _plain("FLOAT")),
    Kind(
        "double precision",
        701,
        _plain("double precision"),
        _arrow(pa.float64()),
        _plain("DOUBLE"),
    ),
    Kind(
        "numeric",
        1700,
        _numeric_sql,
        lambda type_: pa.decimal128(type_.precision, type_.scale),
        _decimal,
        read="{column}::text",
        misfit=_FITTING_NUMERIC,
    ),
    Kind("text", 25, _plain("text"), _arrow(pa.string()), _plain("STRING")),
    Kind("character varying", 1043, _length_sql("varchar"), _arrow(pa.string()), _plain("STRING")),
    # Stored without its padding: trailing blanks of char(n) never count in PostgreSQL, and the
    # served column pads again.
    Kind(
        "character",
        1042,
        _character_sql,
        _arrow(pa.string()),
        _plain("STRING"),
        read="{column}::text",
    ),
    Kind("bytea", 17, _plain("bytea"), _arrow(pa.binary()), _plain("BINARY")),
    Kind("date", 1082, _plain("date"), _arrow(pa.date32()), _plain("DATE"), misfit=_FINITE_DATE),
    Kind(
        "timestamp",
        1114,
        _plain("timestamp"),
        _arrow(pa.timestamp("us")),
        _plain("TIMESTAMP_NTZ"),
        misfit=_FINITE_TIMESTAMP,
    ),
    Kind(
        "timestamptz",
        1184,
        _plain("timestamptz"),
        _arrow(pa.timestamp("us", "UTC")),
        _plain("TIMESTAMP"),
        misfit=_FINITE_TIMESTAMPTZ,
    ),
    # As PostgreSQL prints it, which sorts as the times do.
    Kind(
        "time", 1083, _plain("time"), _arrow(pa.string()), _plain("STRING"), read="{column}::text"
    ),
    # Months, days and microseconds in ISO 8601; a month equals 30 days, so text cannot compare it.
    Kind(
        "interval",
        1186,
        _plain("interval"),
        _arrow(pa.string()),
        _plain("STRING"),
        comparison="none",
        read="{column}::text",
        misfit="(NOT isfinite({column}))",
    ),
    # The canonical text of a uuid sorts as its bytes do.
    Kind(
        "uuid", 2950, _plain("uuid"), _arrow(pa.string()), _plain("STRING"), read="{column}::text"
    ),
    # Enum labels compare by declaration order, text by its letters: only equality agrees.
    Kind(
        "enum",
        None,
        _enum_sql,
        _arrow(pa.string()),
        _plain("STRING"),
        comparison="equality",
        read=PRINTED,
    ),
    # jsonb equality ignores the scale of numbers, text does not: carried, never compared.
    Kind(
        "jsonb",
        3802,
        _plain("jsonb"),
        _arrow(pa.string()),
        _plain("STRING"),
        comparison="none",
        read="{column}::text",
    ),
    # One dimension, counted from 1. PostgreSQL sorts NULL elements last, Spark first.
    Kind(
        "array",
        None,
        lambda type_: f"{_element(type_).sql}[]",
        lambda type_: pa.list_(_element(type_).arrow),
        lambda type_: f"ARRAY<{_element(type_).spark}>",
        comparison="equality",
        misfit=_FITTING_ARRAY,
    ),
)

KIND_BY_NAME = {kind.name: kind for kind in KINDS}
KIND_BY_OID = {kind.oid: kind for kind in KINDS if kind.oid is not None}
