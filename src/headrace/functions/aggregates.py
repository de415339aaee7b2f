"""Aggregate functions: their result types and their hidden state.

Every aggregate here is a scalar expression over state columns. Most are sums, Σ weight · f(x) over
the rows of the group: where they are exact a change only adds to them; float sums are not
(1e20 + 1 − 1e20), so groups with a float sum are recomputed when touched. MIN and MAX keep the
extremum itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from headrace.functions.decimals import LONG_QUOTIENT
from headrace.functions.numbers import as_numeric
from headrace.plan.scalar import Call, Literal, Scalar
from headrace.types import BIGINT, BOOLEAN, DOUBLE, Type, result_numeric

Kept = OneOf["sum", "min", "max"]


@dataclass(frozen=True)
class State:
    """One hidden column: the sum over the group's rows of weight times `term`, or its extremum.

    An extremum comes right after the count of the values that it is one of.
    """

    kept: Kept
    term: Scalar


@dataclass(frozen=True)
class AggregateFunction:
    """An aggregate: its result type, its state over an argument, and its value from that state.

    `type_of` gives None for arguments it is not defined on. `value` combines scalars that stand
    for the state columns, in the order of `states`.
    """

    name: str
    type_of: Callable[[Type | None], Type | None]
    states: Callable[[Scalar | None], tuple[State, ...]]
    value: Callable[[tuple[Scalar, ...], Type], Scalar]


def _present(argument: Scalar) -> Scalar:
    """1 where the argument is not NULL, else 0."""
    missing = Call("is null", (argument,), BOOLEAN)
    return Call("case", (missing, Literal(0, BIGINT), Literal(1, BIGINT)), BIGINT)


def _count_states(argument: Scalar | None) -> tuple[State, ...]:
    term = Literal(1, BIGINT) if argument is None else _present(argument)
    return (State("sum", term),)


def _sum_type(argument: Type | None) -> Type | None:
    """PostgreSQL's result types: bigint for small integers, numeric beyond, floats as they are."""
    match argument:
        case Type(kind="smallint" | "integer"):
            return BIGINT
        case Type(kind="bigint"):
            return result_numeric(38, 0)
        case Type(kind="numeric", scale=int() as scale, rounded=rounded):
            return result_numeric(38, scale, rounded=rounded)
        case Type(kind="real" | "double precision"):
            return argument
        case _:
            return None


def _average_type(argument: Type | None) -> Type | None:
    if argument is None or not argument.is_number:
        return None
    return DOUBLE if argument.is_float else LONG_QUOTIENT


def _sum_states(argument: Scalar | None) -> tuple[State, ...]:
    assert argument is not None
    total = _sum_type(argument.type)
    assert total is not None
    widened: Scalar = argument
    if total.kind == "numeric" and argument.type.is_integer:
        widened = Call("cast", (argument,), as_numeric(argument.type))
    elif total == BIGINT and argument.type != BIGINT:
        widened = Call("cast", (argument,), BIGINT)
    elif argument.type.kind == "real":
        widened = Call("cast", (argument,), DOUBLE)
    zero = Call("cast", (Literal(0, BIGINT),), widened.type)
    filled = Call("coalesce", (widened, zero), widened.type)
    return (State("sum", filled), State("sum", _present(argument)))


def state_type(term: Type) -> Type:
    """The type that sums of `term` are kept in."""
    if term.is_integer:
        return BIGINT
    if term.kind == "numeric":
        assert term.scale is not None
        return result_numeric(38, term.scale, rounded=term.rounded)
    assert term.kind == "double precision"
    return DOUBLE


def _or_null(count: Scalar, value: Scalar, type_: Type) -> Scalar:
    """NULL where no input was present, else the value."""
    empty = Call("=", (count, Literal(0, BIGINT)), BOOLEAN)
    return Call("case", (empty, Literal(None, type_), value), type_)


def _sum_value(states: tuple[Scalar, ...], type_: Type) -> Scalar:
    total, count = states
    if total.type != type_:
        total = Call("cast", (total,), type_)
    return _or_null(count, total, type_)


def _average_value(states: tuple[Scalar, ...], type_: Type) -> Scalar:
    total, count = states
    if total.type.is_integer:
        total = Call("cast", (total,), as_numeric(total.type))
    divisor = Call("cast", (count,), DOUBLE if type_.is_float else as_numeric(BIGINT))
    return _or_null(count, Call("/", (total, divisor), type_), type_)


def _extremum_type(argument: Type | None) -> Type | None:
    """The argument's type without digits or length of its own; text under collation C only."""
    if argument is None or argument.comparison != "ordered":
        return None
    if argument.kind in ("text", "character varying"):
        return Type("text")
    if argument.kind in ("date", "timestamp", "timestamptz") or argument.is_number:
        return replace(argument, declared=False)
    return None


def _extremum_states(kept: Kept) -> Callable[[Scalar | None], tuple[State, ...]]:
    def states(argument: Scalar | None) -> tuple[State, ...]:
        assert argument is not None
        return (State("sum", _present(argument)), State(kept, _without_sign_of_zero(argument)))

    return states


def _without_sign_of_zero(argument: Scalar) -> Scalar:
    """-0.0 equals 0.0, so which of them is the least would depend on the order of rows."""
    if not argument.type.is_float:
        return argument
    zero = Literal(0.0, argument.type)
    is_zero = Call("=", (argument, zero), BOOLEAN)
    return Call("case", (is_zero, zero, argument), argument.type)


AGGREGATES: tuple[AggregateFunction, ...] = (
    AggregateFunction("count", lambda _: BIGINT, _count_states, lambda states, _: states[0]),
    AggregateFunction("sum", _sum_type, _sum_states, _sum_value),
    AggregateFunction("avg", _average_type, _sum_states, _average_value),
    AggregateFunction("min", _extremum_type, _extremum_states("min"), lambda states, _: states[1]),
    AggregateFunction("max", _extremum_type, _extremum_states("max"), lambda states, _: states[1]),
)
AGGREGATE_BY_NAME = {function.name: function for function in AGGREGATES}
