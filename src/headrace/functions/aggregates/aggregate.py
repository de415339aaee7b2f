"""The record of an aggregate in the table, and the rows of a group as its Spark form takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from sqlglot import exp

from headrace.algebra.scalar import Call, Literal, Scalar, Value
from headrace.functions.function import spark_cast, spark_function
from headrace.functions.spark import case, number
from headrace.types import BIGINT, BOOLEAN, DOUBLE, Type, result_numeric


def without_sign_of_zero(argument: Scalar) -> Scalar:
    """Return the expression, 0.0 where it is a zero of either sign."""
    if not argument.type.is_float:
        return argument
    zero = Literal(0.0, argument.type)
    is_zero = Call("=", (argument, zero), BOOLEAN)
    return Call("case", (is_zero, zero, argument), argument.type)


def unsigned_zero(value: Value) -> Value:
    """Return the value, 0.0 where it is a zero of either sign."""
    return 0.0 if isinstance(value, float) and value == 0 else value


def spark_unsigned_zero(value: exp.Expression, type_: Type) -> exp.Expression:
    """Return the Spark expression, 0.0 where it is a zero of either sign."""
    if not type_.is_float:
        return value
    zero = spark_cast(exp.Literal.number(0), type_)
    return case(exp.EQ(this=value, expression=zero), zero.copy(), value.copy())


Expression = exp.Expression


@dataclass(frozen=True)
class GroupRows:
    """What an aggregate call sees of each row of its group.

    `arguments` are its arguments, of `types`; `only` says which rows count. `order` has, for each
    sort key, its expression, whether it descends and whether NULLs come first.
    """

    arguments: tuple[Expression, ...]
    types: tuple[Type, ...]
    needed: int = 1
    distinct: bool = False
    order: tuple[tuple[Expression, bool, bool], ...] = ()
    only: Expression | None = None

    @property
    def value(self) -> Expression:
        """The first argument."""
        return self.arguments[0].copy()

    def call(self, name: str, *values: Expression) -> Expression:
        """Return an aggregate of Spark's over the rows, for DISTINCT over distinct rows."""
        assert self.only is None
        if self.distinct:
            return spark_function(name, exp.Distinct(expressions=list(values)))
        return spark_function(name, *values)

    def array(self) -> Expression:
        """Return the rows as structs with fields a1, a2, … for the arguments, in their order."""
        present = [
            exp.Not(this=exp.Is(this=argument.copy(), expression=exp.Null()))
            for argument in self.arguments[: self.needed]
        ]
        conditions = [*present, *([] if self.only is None else [self.only.copy()])]
        row: Expression = spark_function("named_struct", *self.fields())
        if conditions:
            row = exp.Case(ifs=[exp.If(this=exp.and_(*conditions), true=row)])
        rows = self.collected(row)
        return spark_function("array_sort", rows, self._comparator()) if self.order else rows

    def collected(self, row: Expression) -> Expression:
        """Return the list of the rows' structs. Neither function collects NULLs."""
        return spark_function("collect_set" if self.distinct else "collect_list", row)

    def fields(self) -> list[Expression]:
        fields: list[Expression] = []
        for place, (argument, type_) in enumerate(zip(self.arguments, self.types, strict=True), 1):
            value = (
                spark_unsigned_zero(argument.copy(), type_) if self.distinct else argument.copy()
            )
            fields += (exp.Literal.string(f"a{place}"), value)
        for place, (key, _, _) in enumerate(self.order, 1):
            if key not in self.arguments:
                fields += (exp.Literal.string(f"o{place}"), key.copy())
        return fields

    def _name(self, place: int, key: Expression) -> str:
        """Return the field that holds a sort key."""
        if key in self.arguments:
            return f"a{self.arguments.index(key) + 1}"
        return f"o{place}"

    def _comparator(self) -> Expression:
        result: Expression = number(0)
        for place, (key, descending, nulls_first) in reversed(list(enumerate(self.order, 1))):
            name = self._name(place, key)
            left, right = field("l", name), field("r", name)
            first, last = number(-1), number(1)
            result = case(
                exp.NullSafeEQ(this=left, expression=right),
                result,
                exp.Is(this=left.copy(), expression=exp.Null()),
                (first if nulls_first else last).copy(),
                exp.Is(this=right.copy(), expression=exp.Null()),
                (last if nulls_first else first).copy(),
                exp.LT(this=left.copy(), expression=right.copy()),
                (last if descending else first).copy(),
                (first if descending else last).copy(),
            )
        names = [exp.to_identifier(side) for side in ("l", "r")]
        return exp.Lambda(this=result, expressions=names)


def field(variable: str, name: str) -> Expression:
    """Return a field of the struct that a lambda's variable stands for."""
    return exp.Column(this=exp.to_identifier(name), table=exp.to_identifier(variable))


def folded(array: Expression, start: Expression, step: Expression) -> Expression:
    """Return the fold of `step`, over the element `x` and `total`, which is `start` at first."""
    names = [exp.to_identifier(name) for name in ("total", "x")]
    return spark_function("aggregate", array, start, exp.Lambda(this=step, expressions=names))


def one_if(condition: Scalar) -> Scalar:
    """Return 1 where the condition is true, else 0."""
    return Call("case", (condition, Literal(1, BIGINT), Literal(0, BIGINT)), BIGINT)


def present(argument: Scalar) -> Scalar:
    """Return 1 where the argument is not NULL, else 0."""
    missing = Call("is null", (argument,), BOOLEAN)
    return Call("case", (missing, Literal(0, BIGINT), Literal(1, BIGINT)), BIGINT)


def filled(argument: Scalar) -> Scalar:
    """Return the number, or 0 where it is NULL."""
    zero = Call("cast", (Literal(0, BIGINT),), argument.type)
    return Call("coalesce", (argument, zero), argument.type)


def or_null(count: Scalar, value: Scalar, type_: Type, *, below: int = 1) -> Scalar:
    """Return NULL where fewer than `below` inputs were present, else the value."""
    empty = Call("<", (count, Literal(below, BIGINT)), BOOLEAN)
    if below == 1:
        empty = Call("=", (count, Literal(0, BIGINT)), BOOLEAN)
    return Call("case", (empty, Literal(None, type_), value), type_)


DIGITS_OF_COUNTS = 19
"""A relation has fewer than 2^63 rows."""


def total_type(term: Type) -> Type:
    """Return the type of sums of a decimal: as many digits more as a number of rows has."""
    assert term.precision is not None and term.scale is not None
    precision = term.precision + DIGITS_OF_COUNTS
    return result_numeric(precision, term.scale, rounded=term.rounded, room=term.room)


def state_type(term: Type) -> Type:
    """Return the type that sums of `term` are kept in."""
    if term.is_integer:
        return BIGINT
    if term.kind == "numeric":
        return total_type(term)
    assert term.kind == "double precision"
    return DOUBLE


Kept = OneOf["sum", "min", "max"]
Inputs = Sequence[tuple[Value, ...]]


@dataclass(frozen=True)
class HiddenState:
    """One hidden column: the sum over the group's rows of weight times `term`, or its extremum.

    An extremum comes right after the count of the values that it is one of.
    """

    kept: Kept
    term: Scalar


def _no_states(*_: Scalar | None) -> None:
    return None


def _no_value(*_: object) -> Scalar:
    raise TypeError("an aggregate without states has no value from them")


@dataclass(frozen=True)
class AggregateFunction:
    """An aggregate: its result type, its definition on rows, and its hidden state if it has one.

    `type_of` takes the types of the arguments, or None for `*`, and gives None for those that the
    aggregate is not defined on. `evaluate` and `spark` compute it from all rows of a group, in the
    order that the call says, each row with its arguments; the first `needed` are not NULL, or the
    row is left out. The last of `arguments` stands alone in a call with WITHIN GROUP, whose sort
    key is the first.

    `states` gives what is kept of a group so that changes can be added to it, None if only the
    rows determine the result; `value` is the result over the state columns, in their order.

    `order` says where a call says the order of rows: nowhere that counts, in itself (`ORDER BY`),
    or in WITHIN GROUP. `takes` is the type that numbers are cast to. `quotient` marks numerics that
    are computed with more digits than it is right to show, `repeats` that DISTINCT makes a
    difference. `syntax` is how a query writes it, empty if no query does; `note` is what a reader
    of the documentation should know.
    """

    name: str
    type_of: Callable[..., Type | None]
    evaluate: Callable[[Inputs, Type], Value]
    spark: Callable[[GroupRows, Type], exp.Expression]
    syntax: str
    states: Callable[..., tuple[HiddenState, ...] | None] = _no_states
    value: Callable[[tuple[Scalar, ...], Type], Scalar] = _no_value
    arguments: int = 1
    needed: int = 1
    order: OneOf["none", "written", "within"] = "none"
    takes: Type | None = None
    quotient: bool = False
    repeats: bool = True
    note: str = ""
