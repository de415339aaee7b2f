"""What the table of aggregates knows of each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from sqlglot import exp

from headrace.algebra.scalar import Scalar, Value
from headrace.functions.aggregates.group_rows import GroupRows
from headrace.types import Type

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
    rows can tell the result; `value` is the result over the state columns, in their order.

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
