"""Arithmetic of join keys: NULL, which equals nothing, where the operator itself would raise.

    a.k = b.k - 1    a row of b with the least integer has no key, and no match

A join compares keys before anyone can say which rows will stand beside each other. So a key must
not fail on a row that was in a log only in passing, or that no other row would have met. No query
writes these functions: `tried` puts them in the place of others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta

from sqlglot import exp

from headrace.algebra.scalar import Scalar, Value
from headrace.functions.function import Function, Rendering, Typing, spark_cast, spark_function
from headrace.functions.numbers import RANGE_OF_INTEGERS, common_number
from headrace.functions.spark import case, let, string
from headrace.types import BIGINT, INTEGER, Type

DATE = Type("date")


def _of_type(result: Type) -> Typing:
    def type_of(arguments: Sequence[Scalar]) -> Type | None:
        left, right = arguments
        common = common_number(left.type, right.type)
        return result if common is not None and common.kind == result.kind else None

    return type_of


def _spark(name: str) -> Rendering:
    def spark(
        arguments: Sequence[exp.Expression], _types: Sequence[Type], result: Type
    ) -> exp.Expression:
        return spark_function(name, *(spark_cast(argument, result) for argument in arguments))

    return spark


def _within(result: Type, operation: Callable[[int, int], int]) -> Callable[..., Value]:
    limit = RANGE_OF_INTEGERS[result.kind]

    def evaluate(left: int, right: int) -> Value:
        value = operation(left, right)
        return value if -limit <= value < limit else None

    return evaluate


def _integers(symbol: str, name: str, operation: Callable[[int, int], int]) -> tuple[Function, ...]:
    return tuple(
        Function(
            f"try {result.kind} {symbol}",
            _of_type(result),
            _spark(name),
            _within(result, operation),
            "",
        )
        for result in (INTEGER, BIGINT)
    )


def _days_type(arguments: Sequence[Scalar]) -> Type | None:
    day, count = arguments
    return DATE if day.type == DATE and count.type.kind in ("smallint", "integer") else None


def _days_spark(name: str) -> Rendering:
    """Return the rendering of a date moved by days, which are numbered from 1970 on.

    So Spark computes no date that it could not hold.
    """

    def spark(arguments: Sequence[exp.Expression], *_: object) -> exp.Expression:
        day, count = arguments
        number = spark_cast(spark_function("unix_date", day), BIGINT)
        moved = spark_function(name, number, spark_cast(count, BIGINT))

        def stored(found: exp.Expression) -> exp.Expression:
            low, high = (
                spark_function("unix_date", spark_cast(string(text), DATE))
                for text in ("0001-01-01", "9999-12-31")
            )
            fits = exp.Between(this=found.copy(), low=low, high=high)
            back = spark_function("date_from_unix_date", spark_cast(found.copy(), INTEGER))
            return case(fits, back, exp.Null())

        return let((moved,), stored)

    return spark


def _days(sign: int) -> Callable[[date, int], Value]:
    def evaluate(day: date, count: int) -> Value:
        try:
            return day + timedelta(days=sign * count)
        except OverflowError:
            return None

    return evaluate


TRIES: tuple[Function, ...] = (
    *_integers("+", "try_add", lambda a, b: a + b),
    *_integers("-", "try_subtract", lambda a, b: a - b),
    *_integers("*", "try_multiply", lambda a, b: a * b),
    Function("try date +", _days_type, _days_spark("try_add"), _days(1), ""),
    Function("try date -", _days_type, _days_spark("try_subtract"), _days(-1), ""),
)
