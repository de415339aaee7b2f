"""Names of types: those in casts, and those that only PostgreSQL has built in.

sqlglot takes `string` and `double` for types, and a quoted name for the same as one without quotes.
To PostgreSQL these may be types of a user.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.tokenizer_core import TokenType

from headrace.functions.numbers import as_numeric
from headrace.query.refusal import refuse
from headrace.types import Type, array_of, has_arrays, numeric, plain_numeric, result_numeric
from headrace.types.kinds import KIND_BY_NAME, KINDS, MAXIMUM_DIGITS

_NAMES = frozenset(
    (
        *("BOOL", "BOOLEAN", "INT2", "SMALLINT", "INT", "INT4", "INTEGER", "INT8", "BIGINT"),
        *("REAL", "FLOAT", "FLOAT4", "FLOAT8", "DOUBLE PRECISION", "DEC", "DECIMAL", "NUMERIC"),
        *("CHAR", "CHARACTER", "BPCHAR", "CHAR VARYING", "CHARACTER VARYING", "VARCHAR", "TEXT"),
        *("BYTEA", "DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "INTERVAL", "UUID", "JSONB"),
    )
)
_TYPES = frozenset(Postgres.Tokenizer.KEYWORDS[name] for name in _NAMES)
# Names in pg_type; int, decimal or char are words of the grammar, which have no meaning in quotes.
_QUOTED = frozenset(kind.catalog_name for kind in KINDS if kind.catalog_name is not None)


class PostgresTokenizer(Postgres.Tokenizer):
    """sqlglot's tokenizer for PostgreSQL without other systems' names of known types."""

    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        name: type_
        for name, type_ in Postgres.Tokenizer.KEYWORDS.items()
        if type_ not in _TYPES or name in _NAMES
    }


class NotBuiltIn(set[str]):
    """All quoted names but those of built-in types."""

    def __contains__(self, name: object) -> bool:
        return name not in _QUOTED


_PLAIN: dict[exp.DType, str] = {
    exp.DType.BOOLEAN: "boolean",
    exp.DType.SMALLINT: "smallint",
    exp.DType.INT: "integer",
    exp.DType.BIGINT: "bigint",
    exp.DType.FLOAT: "real",
    exp.DType.DOUBLE: "double precision",
    exp.DType.TEXT: "text",
    exp.DType.VARBINARY: "bytea",
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPTZ: "timestamptz",
    exp.DType.TIME: "time",
    exp.DType.INTERVAL: "interval",
    exp.DType.UUID: "uuid",
    exp.DType.JSONB: "jsonb",
}


def named_type(node: exp.Expr, source: Type | None) -> Type:
    """Return the type a cast names; numeric takes the digits of `source`, None for a constant."""
    if isinstance(node, exp.DataType) and node.this == exp.DType.ARRAY and node.expressions:
        element = named_type(node.expressions[0], source and source.element)
        if not has_arrays(element):
            raise _refuse_type(node)
        return array_of(element)
    if not isinstance(node, exp.DataType) or node.args.get("nested"):
        raise _refuse_type(node)
    parameters = [_number(parameter) for parameter in node.expressions]
    name = node.this
    kind = _PLAIN.get(name)
    if kind is not None and not parameters:
        return Type(kind)
    if name == exp.DType.VARCHAR and len(parameters) <= 1:
        return Type("character varying", length=parameters[0] if parameters else None)
    if name == exp.DType.BPCHAR and not parameters:
        return Type("character")
    if name == exp.DType.CHAR and len(parameters) <= 1:
        return Type("character", length=parameters[0] if parameters else 1)
    if name == exp.DType.DECIMAL and len(parameters) <= 2:
        return _numeric(node, parameters, source)
    raise _refuse_type(node)


def _numeric(node: exp.DataType, parameters: list[int], source: Type | None) -> Type:
    if parameters:
        precision, scale = parameters[0], (*parameters, 0)[1]
        if not 0 < precision <= MAXIMUM_DIGITS or not 0 <= scale <= precision:
            raise _refuse_type(node)
        return numeric(precision, scale)
    if source is not None and (source.is_integer or source.kind == "numeric"):
        return replace(as_numeric(source), declared=False)
    if source is None:
        # A constant has the digits that are written, and NULL none.
        return result_numeric(1, 0)
    if source.is_text:
        return plain_numeric()
    raise refuse(
        "unsupported-function",
        f"a cast from {source.sql} to numeric without digits has no exact counterpart on Spark",
        node,
    )


def _number(parameter: exp.Expr) -> int:
    value = parameter.this
    if not isinstance(value, exp.Literal) or value.is_string or not value.name.isdigit():
        raise refuse("unsupported-type", "a type's parameters must be numbers", parameter)
    return int(value.name)


def _refuse_type(node: exp.Expr) -> Exception:
    name = node.sql(dialect="postgres").lower()
    return refuse("unsupported-type", f"type {name} has no exact counterpart on Spark", node)


def internal_name(type_: Type) -> str:
    """Return PostgreSQL's own name of the type, which an unnamed cast gives to its column."""
    kind = (type_.element or type_).kind
    return KIND_BY_NAME[kind].catalog_name or kind
