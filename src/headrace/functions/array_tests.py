"""Tests over the elements of arrays: ANY and ALL, containment and overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from headrace.algebra.scalar import Column, Scalar, Value
from headrace.functions.arrays import Array, each, is_null, variable
from headrace.functions.comparison import COMPARISONS, comparable
from headrace.functions.function import Function, Rendering
from headrace.functions.let import let
from headrace.functions.spark import case
from headrace.types import BOOLEAN, Type

Expression = exp.Expression
_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


def _quantified(comparison: Function, which: str) -> Function:
    """`x op ANY (array)` and `x op ALL (array)`: OR and AND of the comparisons."""

    def type_of(arguments: Sequence[Scalar]) -> Type | None:
        value, array = arguments
        if array.type.element is None:
            return None
        return comparison.type_of((value, Column("item", array.type.element)))

    def spark(arguments: Sequence[Expression], types: Sequence[Type], result: Type) -> Expression:
        element = types[1].element
        assert element is not None
        of_types = (types[0], element)

        def test(value: Expression, array: Expression) -> Expression:
            one = comparison.spark((value, variable("item")), of_types, result)
            return each("exists" if which == "any" else "forall", array, one)

        return let(arguments, test)

    def evaluate(value: Value, array: Array | None) -> Value:
        if array is None:
            return None
        decided = which == "any"
        tests = [
            None if value is None or item is None else comparison.evaluate(value, item)
            for item in array
        ]
        if decided in tests:
            return decided
        return None if None in tests else not decided

    # One row of the documentation stands for all of them.
    first = (comparison.name, which) == ("=", "any")
    syntax = "a = ANY (b), a <> ALL (b), a < ANY (b), …" if first else ""
    return Function(f"{comparison.name} {which}", type_of, spark, evaluate, syntax, strict=False)


def _both_type(arguments: Sequence[Scalar]) -> Type | None:
    left, right = (argument.type for argument in arguments)
    alike = left.kind == "array" and comparable(left, right, order=False)
    return BOOLEAN if alike else None


def _both_spark(name: str) -> Rendering:
    """`name` over the elements of the second: whether each is one of the first. NULL never is."""

    def test(left: Expression, right: Expression) -> Expression:
        equal = exp.EQ(this=variable("other"), expression=variable("item"))
        found = _is_true(each("exists", left, equal, "other"))
        return case(is_null(left), exp.Null(), each(name, right, found))

    def spark(arguments: Sequence[Expression], *_: object) -> Expression:
        return let(arguments, test)

    return spark


def _is_true(test: Expression) -> Expression:
    """The test, false where it is NULL."""
    return exp.Paren(this=exp.NullSafeEQ(this=test, expression=exp.Boolean(this=True)))


def _both(every: Callable[..., bool]) -> Callable[..., Value]:
    equal = next(function for function in COMPARISONS if function.name == "=").evaluate

    def evaluate(left: Array, right: Array) -> Value:
        present = [item for item in left if item is not None]
        return every(
            item is not None and any(equal(other, item) for other in present) for item in right
        )

    return evaluate


ARRAY_TESTS: tuple[Function, ...] = (
    *(
        _quantified(next(f for f in COMPARISONS if f.name == operator), which)
        for operator in _OPERATORS
        for which in ("any", "all")
    ),
    Function("@>", _both_type, _both_spark("forall"), _both(all), "a @> b, b <@ a"),
    Function("&&", _both_type, _both_spark("exists"), _both(any), "a && b"),
)
