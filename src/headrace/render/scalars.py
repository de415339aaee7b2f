"""Scalars as Spark SQL."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from headrace.algebra.scalar import Call, Column, Literal, Outer, Scalar, Subquery
from headrace.functions import FUNCTION_BY_NAME
from headrace.functions.function import spark_cast, spark_function


def identifier(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def column(name: str) -> exp.Column:
    return exp.Column(this=identifier(name))


def render_scalar(scalar: Scalar) -> exp.Expression:
    """The expression over columns named by their ids."""
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
    """A constant with its type spelled out, so that Spark infers nothing."""
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
    """The digits of a number without an exponent, a point in time as ISO writes it."""
    match value:
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.isoformat(sep=" ")
        case date():
            return value.isoformat()
        case _:
            return repr(value)
