"""Every PostgreSQL type that is stored: one record a type.

A stored value is *exact*: it reads back as the value in PostgreSQL. Values that the stored form
cannot hold (numeric NaN, infinite dates, too many digits) are detected by `misfit` while they are
read from PostgreSQL, before they can be stored wrongly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.types.kind import Kind

if TYPE_CHECKING:
    from headrace.types.type import Type

MAXIMUM_DIGITS = 38


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
# abs() and scale() of NaN and Infinity are themselves special, so these are tested first.
_FITTING_NUMERIC = (
    "({column} IN ('NaN', 'Infinity', '-Infinity')"
    " OR abs({column}) >= 1e{integer_digits}::numeric"
    " OR scale(trim_scale({column})) > {scale})"
)
# A value whose digits PostgreSQL itself limits can still be NaN.
NOT_A_NUMBER = "({column} = 'NaN')"
_FITTING_ARRAY = "(array_ndims({column}) > 1 OR array_lower({column}, 1) <> 1)"

# The text that the type's own output function prints: the owner of an enum may define its cast to
# text, but nothing that concat() calls. concat() prints NULL as empty text, hence the test.
PRINTED = "CASE WHEN {column} IS NOT NULL THEN pg_catalog.concat({column}) END"
# The texts of an array's elements. Sessions and triggers that read it have array_nulls on.
PRINTED_ARRAY = (
    "CASE WHEN {column} IS NOT NULL THEN pg_catalog.concat({column})::pg_catalog.text[] END"
)

_DATE_FORM = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME_FORM = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
_NUMBER_FORM = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)"
_INTEGER_FORM = "[+-]?[0-9]+"
_INTEGER_HINT = "Write a whole number within the type's range."
_FLOAT_HINT = "Write a finite number in decimal digits."
_TEXT_HINT = "Write any text."


def _integer(name: str, oid: int, catalog_name: str, bits: int, arrow: pa.DataType) -> Kind:
    """Return the record of an integer type of `bits` bits."""
    return Kind(
        name,
        oid,
        _plain(name),
        _arrow(arrow),
        _plain({32: "INT"}.get(bits, name.upper())),
        family="integer",
        catalog_name=catalog_name,
        hint=_INTEGER_HINT,
        form=_INTEGER_FORM,
        limits=(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1),
        stored_equality=True,
        python_value=True,
        foldable=True,
        has_extremum=True,
        evaluated=True,
        partitioned=True,
        sampled=True,
    )


KINDS: tuple[Kind, ...] = (
    Kind(
        "boolean",
        16,
        _plain("boolean"),
        _arrow(pa.bool_()),
        _plain("BOOLEAN"),
        family="boolean",
        catalog_name="bool",
        hint="Write true or false.",
        form="true|false|t|f|yes|no|y|n|on|off|1|0",
        stored_equality=True,
        python_value=True,
        foldable=True,
        prints_alike=True,
        evaluated=True,
        few_values=True,
        partitioned=True,
        sampled=True,
    ),
    _integer("smallint", 21, "int2", 16, pa.int16()),
    _integer("integer", 23, "int4", 32, pa.int32()),
    _integer("bigint", 20, "int8", 64, pa.int64()),
    Kind(
        "real",
        700,
        _plain("real"),
        _arrow(pa.float32()),
        _plain("FLOAT"),
        family="float",
        catalog_name="float4",
        hint=_FLOAT_HINT,
        equal_values_differ=True,
        has_extremum=True,
    ),
    Kind(
        "double precision",
        701,
        _plain("double precision"),
        _arrow(pa.float64()),
        _plain("DOUBLE"),
        family="float",
        catalog_name="float8",
        hint=_FLOAT_HINT,
        form=rf"{_NUMBER_FORM}([eE][+-]?[0-9]{{1,2}})?",
        equal_values_differ=True,
        has_extremum=True,
    ),
    Kind(
        "numeric",
        1700,
        _numeric_sql,
        lambda type_: pa.decimal128(type_.precision, type_.scale),
        _decimal,
        family="numeric",
        catalog_name="numeric",
        hint="Write a number in decimal digits.",
        form=_NUMBER_FORM,
        read="{column}::text",
        misfit=_FITTING_NUMERIC,
        foldable=True,
        has_extremum=True,
        evaluated=True,
    ),
    Kind(
        "text",
        25,
        _plain("text"),
        _arrow(pa.string()),
        _plain("STRING"),
        family="text",
        catalog_name="text",
        hint=_TEXT_HINT,
        stored_equality=True,
        python_value=True,
        foldable=True,
        has_extremum=True,
        evaluated=True,
        unbounded=True,
        partitioned=True,
        sampled=True,
    ),
    Kind(
        "character varying",
        1043,
        _length_sql("varchar"),
        _arrow(pa.string()),
        _plain("STRING"),
        family="text",
        catalog_name="varchar",
        hint=_TEXT_HINT,
        stored_equality=True,
        python_value=True,
        has_extremum=True,
        evaluated=True,
        unbounded=True,
        partitioned=True,
        sampled=True,
    ),
    # Stored without its padding: trailing blanks of char(n) never count in PostgreSQL, and the
    # served column pads again.
    Kind(
        "character",
        1042,
        _character_sql,
        _arrow(pa.string()),
        _plain("STRING"),
        family="text",
        catalog_name="bpchar",
        hint=_TEXT_HINT,
        read="{column}::text",
        buffer="bpchar",
        stored_equality=True,
        has_extremum=True,
        in_arrays=False,
        evaluated=True,
        unbounded=True,
        partitioned=True,
    ),
    Kind(
        "bytea",
        17,
        _plain("bytea"),
        _arrow(pa.binary()),
        _plain("BINARY"),
        family="bytes",
        catalog_name="bytea",
        hint="Write it in hexadecimal: '\\x0a1b'.",
        stored_equality=True,
        has_extremum=True,
        unbounded=True,
    ),
    Kind(
        "date",
        1082,
        _plain("date"),
        _arrow(pa.date32()),
        _plain("DATE"),
        family="moment",
        catalog_name="date",
        hint="Write it in ISO form: '2024-12-31'.",
        form=_DATE_FORM,
        bounds=("0001-01-01", "9999-12-31"),
        misfit=_FINITE_DATE,
        stored_equality=True,
        python_value=True,
        foldable=True,
        prints_alike=True,
        has_extremum=True,
        evaluated=True,
        partitioned=True,
        sampled=True,
    ),
    Kind(
        "timestamp",
        1114,
        _plain("timestamp"),
        _arrow(pa.timestamp("us")),
        _plain("TIMESTAMP_NTZ"),
        family="moment",
        catalog_name="timestamp",
        hint="Write it in ISO form: '2024-12-31 23:59:59.5'.",
        form=rf"{_DATE_FORM}( {_TIME_FORM})?",
        bounds=("0001-01-01 00:00:00", "9999-12-30 23:59:59.999999"),
        misfit=_FINITE_TIMESTAMP,
        foldable=True,
        prints_alike=True,
        has_extremum=True,
    ),
    Kind(
        "timestamptz",
        1184,
        _plain("timestamptz"),
        _arrow(pa.timestamp("us", "UTC")),
        _plain("TIMESTAMP"),
        family="moment",
        catalog_name="timestamptz",
        hint="Write it in ISO form, in UTC or with its offset: '2024-12-31 23:59:59+00'.",
        bounds=("0001-01-02 00:00:00", "9999-12-30 23:59:59.999999"),
        misfit=_FINITE_TIMESTAMPTZ,
        prints_alike=True,
        has_extremum=True,
    ),
    # As PostgreSQL prints it, which sorts as the times do.
    Kind(
        "time",
        1083,
        _plain("time"),
        _arrow(pa.string()),
        _plain("STRING"),
        family="time",
        catalog_name="time",
        hint="Write it in ISO form: '23:59:59.5'.",
        read="{column}::text",
        prints_alike=True,
        has_extremum=True,
    ),
    # Months, days and microseconds in ISO 8601; a month equals 30 days, so text cannot compare it.
    Kind(
        "interval",
        1186,
        _plain("interval"),
        _arrow(pa.string()),
        _plain("STRING"),
        family="interval",
        catalog_name="interval",
        hint="Write whole numbers with units, a sign for each if the first is negative: "
        "'1 year 2 months 3 days 04:05:06', '-1 day -02:00'.",
        comparison="none",
        read="{column}::text",
        misfit="(NOT isfinite({column}))",
        equal_values_differ=True,
    ),
    # The canonical text of a uuid sorts as its bytes do.
    Kind(
        "uuid",
        2950,
        _plain("uuid"),
        _arrow(pa.string()),
        _plain("STRING"),
        family="uuid",
        catalog_name="uuid",
        hint="Write it in canonical form: '00000000-0000-0000-0000-000000000000'.",
        form="[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        read="{column}::text",
        stored_equality=True,
        prints_alike=True,
        partitioned=True,
        sampled=True,
    ),
    # Enum labels compare by declaration order, text by its letters: only equality agrees.
    Kind(
        "enum",
        None,
        _enum_sql,
        _arrow(pa.string()),
        _plain("STRING"),
        family="enum",
        catalog_name=None,
        hint="Write one of its labels.",
        comparison="equality",
        read=PRINTED,
        buffer="text",
        prints_alike=True,
        few_values=True,
        partitioned=True,
        sampled=True,
    ),
    # jsonb equality ignores the scale of numbers, text does not: carried, never compared.
    Kind(
        "jsonb",
        3802,
        _plain("jsonb"),
        _arrow(pa.string()),
        _plain("STRING"),
        family="document",
        catalog_name="jsonb",
        hint="Constants of jsonb are not maintained.",
        comparison="none",
        read="{column}::text",
        equal_values_differ=True,
        prints_alike=True,
        unbounded=True,
    ),
    # One dimension, counted from 1. PostgreSQL sorts NULL elements last, Spark first.
    Kind(
        "array",
        None,
        lambda type_: f"{_element(type_).sql}[]",
        lambda type_: pa.list_(_element(type_).arrow),
        lambda type_: f"ARRAY<{_element(type_).spark}>",
        family="array",
        catalog_name=None,
        hint="Write it as '{1,2}', or with ARRAY[…].",
        comparison="equality",
        misfit=_FITTING_ARRAY,
        equal_values_differ=True,
        in_arrays=False,
        unbounded=True,
    ),
)

INTEGERS = tuple(kind.name for kind in KINDS if kind.family == "integer")
"""Integer types, the shorter first."""
MOMENTS = tuple(kind.name for kind in KINDS if kind.family == "moment")
"""Types of points in time; a value of an earlier one converts to the later ones."""
KIND_BY_NAME = {kind.name: kind for kind in KINDS}
KIND_BY_OID = {kind.oid: kind for kind in KINDS if kind.oid is not None}
