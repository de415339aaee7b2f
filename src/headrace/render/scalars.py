"""Scalars, and trees of queries, as Spark SQL text."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generator import Generator
from sqlglot.generators.spark import SparkGenerator

from headrace.algebra.scalar import Call, Column, Literal, Outer, Scalar, Subquery
from headrace.functions import FUNCTION_BY_NAME
from headrace.functions.function import spark_cast, spark_function

_SPARK = Spark()


class _Printer(SparkGenerator):
    """sqlglot's printer for trees that are written for Spark.

    Its own first rewrites what other dialects have and Spark has not, in each SELECT with all that
    is below it: the time grows with the square of the nesting. WITH is where it belongs already.
    """

    EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[Any] = set()

    TRANSFORMS: ClassVar[Any] = {
        kind: printed
        for kind, printed in SparkGenerator.TRANSFORMS.items()
        if kind is not exp.Select
    }

    def identifier_sql(self, expression: exp.Identifier) -> str:
        name = expression.args["this"]
        plain = expression.args.get("quoted") and name.isidentifier()
        return f"`{name}`" if plain else super().identifier_sql(expression)

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        return Generator.cast_sql(self, expression, safe_prefix=safe_prefix)

    def datatype_sql(self, expression: exp.DataType) -> str:
        """Return the type's text, cached for plain types: sqlglot parses a name for each."""
        kind, parameters = expression.this, expression.expressions
        further = any(expression.args.get(name) for name in ("nested", "values", "kind"))
        if further or not all(isinstance(each, exp.DataTypeParam) for each in parameters):
            return super().datatype_sql(expression)
        key = (kind, *(each.name for each in parameters))
        if key not in _TYPES:
            _TYPES[key] = super().datatype_sql(expression)
        return _TYPES[key]


_TYPES: dict[tuple[object, ...], str] = {}


def text_of(query: exp.Query) -> str:
    """Return the query's text; the tree is used up."""
    return _Printer(dialect=_SPARK, pretty=True).generate(query, copy=False)


def identifier(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def column(name: str) -> exp.Column:
    return exp.Column(this=identifier(name))


def render_scalar(scalar: Scalar) -> exp.Expression:
    """Return the expression over columns named by their ids."""
    match scalar:
        case Column(id=id_):
            return column(id_)
        case Literal():
            return _literal(scalar)
        case Call(function=name, arguments=arguments, type=type_):
            rendered = [render_scalar(argument) for argument in arguments]
            types = [argument.type for argument in arguments]
            return FUNCTION_BY_NAME[name].spark(rendered, types, type_)
        case Outer() | Subquery():
            raise TypeError(f"{type(scalar).__name__} is lowered before it is rendered")


def _literal(literal: Literal) -> exp.Expression:
    """Return a constant with its type spelled out, so that Spark infers nothing."""
    match literal.value:
        case None:
            return spark_cast(exp.Null(), literal.type)
        case bool() as value:
            return exp.Boolean(this=value)
        case str() as value:
            return exp.Literal.string(value)
        case tuple() as elements:
            assert literal.type.element is not None
            of_type = literal.type.element
            items = [_literal(Literal(element, of_type)) for element in elements]
            return spark_cast(spark_function("array", *items), literal.type)
        case bytes() as value:
            return spark_function("unhex", exp.Literal.string(value.hex()))
        case value:
            return spark_cast(exp.Literal.string(_spelled(value)), literal.type)


def _spelled(value: int | float | Decimal | date | datetime) -> str:
    """Return the digits of a number without an exponent, a point in time as ISO writes it."""
    match value:
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.isoformat(sep=" ")
        case date():
            return value.isoformat()
        case _:
            return repr(value)
