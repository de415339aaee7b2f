"""The one table of functions: PostgreSQL's meaning, Spark's rendering, Python's evaluation."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.scalar import Call, Literal, Scalar, walk
from headrace.errors import UserError
from headrace.functions.aggregates import (
    AGGREGATE_BY_NAME,
    AGGREGATES,
    AggregateFunction,
    GroupRows,
    Kept,
    state_type,
)
from headrace.functions.aggregates import HiddenState as AggregateState
from headrace.functions.aggregates.deviations import ROOTS
from headrace.functions.aggregates.sums import INTERVAL_PARTS
from headrace.functions.arrays import ARRAY_TESTS, ARRAYS
from headrace.functions.casts import CASTS, castable, convert, widening
from headrace.functions.comparison import COMPARISONS, comparable, order_key
from headrace.functions.conditionals import CHOICES, SUBQUERIES
from headrace.functions.documents import DOCUMENTS
from headrace.functions.fields import FIELDS
from headrace.functions.formats import FORMATS
from headrace.functions.function import EvaluationError, Function, spark_cast
from headrace.functions.intervals import INTERVALS
from headrace.functions.logic import LAZY, LOGIC, chain, common_type
from headrace.functions.moments import MOMENTS, ZONES
from headrace.functions.numbers import NUMBERS, fitted
from headrace.functions.regular import REGULARS
from headrace.functions.rounding import ROUNDINGS
from headrace.functions.strings import STRINGS
from headrace.functions.text import LIKES, TEXTS
from headrace.functions.tries import TRIES
from headrace.types import Type

FUNCTIONS: tuple[Function, ...] = (
    *NUMBERS,
    *ROUNDINGS,
    *ROOTS,
    *COMPARISONS,
    *LOGIC,
    *CHOICES,
    *TEXTS,
    *STRINGS,
    *LIKES,
    *REGULARS,
    *MOMENTS,
    *INTERVALS,
    *INTERVAL_PARTS,
    *FIELDS,
    *FORMATS,
    *ZONES,
    *DOCUMENTS,
    *ARRAYS,
    *ARRAY_TESTS,
    *CASTS,
    *SUBQUERIES,
    *TRIES,
)
FUNCTION_BY_NAME = {function.name: function for function in FUNCTIONS}


# Functions that pass on a bpchar with its blanks, or do not look at them.
_KEEPING_BLANKS = frozenset(
    {"case", "coalesce", "is null", "num_nulls", "num_nonnulls", "with blanks"}
)


def call(name: str, *arguments: Scalar) -> Call:
    """Return a typed call, or UserError if both engines do not agree on these arguments.

    Other functions take a bpchar as text, which has no trailing blanks.
    """
    if name not in _KEEPING_BLANKS:
        arguments = tuple(map(_without_blanks, arguments))
    function = FUNCTION_BY_NAME.get(name)
    result = function.type_of(arguments) if function is not None else None
    if result is None:
        types = ", ".join(argument.type.sql for argument in arguments)
        raise UserError(
            "unsupported-function",
            f"{name}({types}) has no exact counterpart on Spark",
            hint="See docs/sql.md for the functions and operators that are maintained.",
        )
    return Call(name, arguments, result)


def _without_blanks(scalar: Scalar) -> Scalar:
    type_ = scalar.type
    if not type_.keeps_blanks:
        return scalar
    return cast(scalar, Type("text", ordered=type_.ordered, folds=type_.folds))


def cast(scalar: Scalar, target: Type) -> Scalar:
    """Return the scalar brought to another type; itself if it has that type already."""
    if scalar.type == target:
        return scalar
    if isinstance(scalar, Literal) and scalar.value is None:
        return Literal(None, target)
    if isinstance(scalar, Call) and replace(scalar.type, room=target.room) == target:
        return replace(scalar, type=target)
    if not castable(scalar.type, target):
        raise UserError(
            "unsupported-function",
            f"a cast from {scalar.type.sql} to {target.sql} has no exact counterpart on Spark",
        )
    if isinstance(scalar, Literal) and widening(scalar.type, target):
        # A cast that cannot fail is computed here, so Spark sees a plain constant.
        return Literal(convert(scalar.value, scalar.type, target), target)
    return Call("cast", (scalar,), target)


def can_raise(scalar: Scalar) -> bool:
    """Return whether evaluating the scalar can fail on some row."""
    return any(isinstance(node, Call) and _raises(node) for node in walk(scalar))


def tried(scalar: Scalar) -> Scalar | None:
    """Return the expression with NULL wherever it would raise; None if that cannot be written.

    Every expression above a part that may become NULL this way must be strict, so NULL as well.
    """
    if not isinstance(scalar, Call) or not can_raise(scalar):
        return scalar
    arguments = [tried(argument) for argument in scalar.arguments]
    present_arguments = tuple(argument for argument in arguments if argument is not None)
    strict = FUNCTION_BY_NAME[scalar.function].strict and scalar.function not in LAZY
    if not strict or len(present_arguments) < len(arguments):
        return None
    if not _raises(scalar):
        return Call(scalar.function, present_arguments, scalar.type)
    for name in (f"try {scalar.function}", f"try {scalar.type.kind} {scalar.function}"):
        if (
            name in FUNCTION_BY_NAME
            and FUNCTION_BY_NAME[name].type_of(present_arguments) == scalar.type
        ):
            return Call(name, present_arguments, scalar.type)
    return None


def _raises(node: Call) -> bool:
    if node.function == "cast":
        return not widening(node.arguments[0].type, node.type)
    function = FUNCTION_BY_NAME[node.function]
    return function.raises and not function.safe(node.arguments)


__all__ = [
    "AGGREGATES",
    "AGGREGATE_BY_NAME",
    "FUNCTIONS",
    "FUNCTION_BY_NAME",
    "LAZY",
    "AggregateFunction",
    "AggregateState",
    "EvaluationError",
    "Function",
    "GroupRows",
    "Kept",
    "call",
    "can_raise",
    "cast",
    "chain",
    "common_type",
    "comparable",
    "convert",
    "fitted",
    "order_key",
    "spark_cast",
    "state_type",
    "tried",
]
