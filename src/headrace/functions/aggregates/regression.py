"""Covariance, correlation and linear regression: double precision, over pairs without NULL."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from headrace.algebra.scalar import Value
from headrace.functions.aggregates.aggregate import (
    AggregateFunction,
    GroupRows,
    Inputs,
    field,
    folded,
)
from headrace.functions.function import spark_cast, spark_function
from headrace.functions.spark import bound, case, long, minus, number, plus, times
from headrace.types import BIGINT, DOUBLE, Type

Expression = exp.Expression


@dataclass(frozen=True)
class Moments:
    """The number of pairs, the means, and the sums of squares and products about these."""

    count: int
    y: float
    x: float
    syy: float
    sxx: float
    sxy: float


def _moments(inputs: Inputs) -> Moments:
    ys = [float(row[0]) for row in inputs]  # type: ignore[arg-type]
    xs = [float(row[1]) for row in inputs]  # type: ignore[arg-type]
    n = len(inputs)
    y, x = sum(ys) / n, sum(xs) / n
    return Moments(
        n,
        y,
        x,
        sum((b - y) ** 2 for b in ys),
        sum((a - x) ** 2 for a in xs),
        sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)),
    )


def _pair(type_: Type) -> Callable[..., Type | None]:
    def type_of(*arguments: Type | None) -> Type | None:
        doubles = len(arguments) == 2 and all(argument == DOUBLE for argument in arguments)
        return type_ if doubles else None

    return type_of


def _correlation(m: Moments) -> float | None:
    if m.sxx == 0 or m.syy == 0:
        return None
    return m.sxy / math.sqrt(m.sxx * m.syy)


def _determination(m: Moments) -> float | None:
    if m.sxx == 0:
        return None
    return 1.0 if m.syy == 0 else m.sxy * m.sxy / (m.sxx * m.syy)


_DEFINITIONS: dict[str, Callable[[Moments], float | None]] = {
    "covar_pop": lambda m: m.sxy / m.count,
    "covar_samp": lambda m: None if m.count < 2 else m.sxy / (m.count - 1),
    "corr": _correlation,
    "regr_avgx": lambda m: m.x,
    "regr_avgy": lambda m: m.y,
    "regr_intercept": lambda m: None if m.sxx == 0 else m.y - m.x * m.sxy / m.sxx,
    "regr_r2": _determination,
    "regr_slope": lambda m: None if m.sxx == 0 else m.sxy / m.sxx,
    "regr_sxx": lambda m: m.sxx,
    "regr_sxy": lambda m: m.sxy,
    "regr_syy": lambda m: m.syy,
}


_OF_DIVISION = ("corr", "regr_intercept", "regr_r2", "regr_slope")
EQUAL_VALUES = (
    "NULL where all x are equal; PostgreSQL may show what rounding leaves of equal fractions."
)


def _ratio(above: Expression, below: Expression) -> Expression:
    """Return the quotient, NULL where the divisor is zero."""
    quotient = exp.Div(this=above, expression=below)
    return case(_zero(below), exp.Null(), exp.Paren(this=quotient))


def _zero(value: Expression) -> Expression:
    return exp.EQ(this=value.copy(), expression=number(0))


def _spark(name: str) -> Callable[[GroupRows, Type], Expression]:
    """Return the rendering of the function from the pairs themselves.

    Spark's own functions lose the largest doubles, and DISTINCT of one of the two values.
    """

    def spark(rows: GroupRows, _: Type) -> Expression:
        def of_values(values: Expression) -> Expression:
            means = (mean(values, "a1"), mean(values, "a2"))
            result = bound((values.copy(), *means), of_means)
            nothing = exp.Null() if name != "regr_count" else long(number(0))
            return case(_zero(spark_function("size", values.copy())), nothing, result)

        def of_means(values: Expression, y: Expression, x: Expression) -> Expression:
            count = spark_function("size", values.copy())
            first, second = ("a1", y), ("a2", x)
            pairs = ((first, first), (second, second), (second, first))
            squares = (_products(values, *pair) for pair in pairs)
            return bound((count, y, x, *squares), lambda *moments: _spark_value(name, *moments))

        return bound((rows.array(),), of_values)

    return spark


def mean(values: Expression, name: str) -> Expression:
    """Return the mean of a field of the structs; NULL if there are none."""
    step = plus(exp.Column(this=exp.to_identifier("total")), field("x", name))
    total = folded(values.copy(), spark_cast(number(0), DOUBLE), step)
    count = spark_cast(spark_function("size", values.copy()), DOUBLE)
    return case(_zero(count), exp.Null(), exp.Paren(this=exp.Div(this=total, expression=count)))


def _products(values: Expression, *factors: tuple[str, Expression]) -> Expression:
    """Return the sum of products of two fields about their means."""
    away = (minus(field("x", name), center.copy()) for name, center in factors)
    step = plus(exp.Column(this=exp.to_identifier("total")), times(*away))
    return folded(values.copy(), spark_cast(number(0), DOUBLE), step)


def _spark_value(
    name: str,
    count: Expression,
    y: Expression,
    x: Expression,
    syy: Expression,
    sxx: Expression,
    sxy: Expression,
) -> Expression:
    match name:
        case "corr":
            ratio = _ratio(sxy, spark_function("sqrt", times(sxx, syy)))
            return case(exp.Or(this=_zero(sxx), expression=_zero(syy)), exp.Null(), ratio)
        case "regr_r2":
            ratio = _ratio(times(sxy, sxy.copy()), times(sxx, syy))
            perfect = spark_cast(number(1), DOUBLE)
            return case(_zero(sxx), exp.Null(), _zero(syy), perfect, ratio)
        case "regr_slope":
            return _ratio(sxy, sxx)
        case "regr_intercept":
            return minus(y, times(x, _ratio(sxy, sxx)))
        case "covar_pop":
            return _ratio(sxy, spark_cast(count, DOUBLE))
        case "covar_samp":
            return _ratio(sxy, spark_cast(minus(count, number(1)), DOUBLE))
    values_by_name = {
        "avgx": x,
        "avgy": y,
        "count": long(count),
        "sxx": sxx,
        "sxy": sxy,
        "syy": syy,
    }
    return values_by_name[name.removeprefix("regr_")]


def _regression(name: str) -> AggregateFunction:
    definition = _DEFINITIONS[name]

    def evaluate(inputs: Inputs, _: Type) -> Value:
        return definition(_moments(inputs)) if inputs else None

    return AggregateFunction(
        name,
        _pair(DOUBLE),
        evaluate,
        _spark(name),
        f"{name}(y, x)",
        arguments=2,
        needed=2,
        takes=DOUBLE,
        note=EQUAL_VALUES if name in _OF_DIVISION else "",
    )


REGRESSIONS: tuple[AggregateFunction, ...] = (
    *map(_regression, _DEFINITIONS),
    AggregateFunction(
        "regr_count",
        _pair(BIGINT),
        lambda inputs, _: len(inputs),
        _spark("regr_count"),
        "regr_count(y, x)",
        arguments=2,
        needed=2,
        takes=DOUBLE,
    ),
)
