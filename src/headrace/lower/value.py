"""A query as a value, or as one row: a left join with one group for each value that it reads.

Every kind is an aggregate over the inner rows and an expression over its results:

| kind | aggregate | value |
|---|---|---|
| scalar, of an aggregate | its own calls | its select list, NULL where its HAVING does not hold |
| scalar | n = count(*), v = the value | v, an error if n > 1 |
| exists | n = count(*) | n > 0 |
| any | t = count(test), u = count(test is NULL) | t > 0, else NULL if u > 0, else false |

The test of one comparison, `x = ANY (SELECT y …)`, is NULL where x or y is; so it is two simpler
summaries that a hash join can find: whether some y equals x, and how many y there are, NULLs apart.

Where a row has no group the expression is evaluated on empty input, as PostgreSQL would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.algebra.scalar import (
    Call,
    Column,
    Literal,
    Scalar,
    Subquery,
    columns_of,
    substitute,
)
from headrace.functions import call
from headrace.lower.build import Fresh, conjunction, on_empty_input
from headrace.lower.correlate import correlate, depending, inward, raises, reads_of
from headrace.lower.depend import reads_outside
from headrace.plan.extent import compose
from headrace.plan.operators import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    Operator,
    OuterSemiAntiJoin,
    Project,
)
from headrace.types import BIGINT, BOOLEAN


@dataclass(frozen=True)
class CorrelatedGroups:
    """Inner rows, and aggregates over all of them that are for a row."""

    rows: Operator
    calls: tuple[AggregateCall, ...]


@dataclass(frozen=True)
class Summary(CorrelatedGroups):
    """The value is an expression over the aggregates."""

    value: Scalar


def attach_value(
    plan: Operator, enclosing: Operator, subquery: Subquery, fresh: Fresh
) -> tuple[Operator, Scalar]:
    """Return the plan with what the subquery's value needs beside every row, and the value.

    `enclosing` has the columns that the subquery reads, and no fewer values of them than `plan`.
    """
    if subquery.kind == "any":
        sides = _comparison(subquery)
        if sides is not None:
            return _attach_comparison(plan, enclosing, subquery, sides, fresh)
    return _attach(plan, enclosing, _summary(subquery, fresh), fresh)


def attach_row(plan: Operator, inner: Operator, fresh: Fresh, *, padded: bool) -> Operator | None:
    """Return every row beside the one of an inner query that aggregates all that it reads for it.

    A row whose HAVING does not hold is dropped. None if the inner query has another form or reads
    nothing of the row, or if it may have no row for one and such rows shall be `padded`.
    """
    own = tuple((column, column) for column in inner.columns)
    outputs, child = (inner.outputs, inner.child) if isinstance(inner, Project) else (own, inner)
    below = _above_aggregate(child)
    if below is None or not reads_of(inner):
        return None
    aggregate, having = below
    if having is not None and padded:
        return None
    beside, read = _beside(plan, plan, CorrelatedGroups(aggregate.child, aggregate.calls), fresh)
    if having is not None:
        beside = Filter(beside, read(having))
    row_outputs = ((column, column) for column in plan.columns)
    return Project(beside, (*row_outputs, *((column, read(scalar)) for column, scalar in outputs)))


def _attach(
    plan: Operator, enclosing: Operator, summary: Summary, fresh: Fresh
) -> tuple[Operator, Scalar]:
    beside, read = _beside(plan, enclosing, summary, fresh)
    return beside, read(summary.value)


def _beside(
    plan: Operator, enclosing: Operator, groups: CorrelatedGroups, fresh: Fresh
) -> tuple[Operator, Callable[[Scalar], Scalar]]:
    """Return the plan with the aggregates beside every row, and a reader of their expressions."""
    if not reads_of(groups.rows):
        rows = correlate(groups.rows, enclosing, fresh).plan
        return Join(plan, Aggregate(rows, (), groups.calls)), inward
    grouped, on = _grouped(groups, enclosing, fresh)
    empties = {
        aggregate_call.output: on_empty_input(aggregate_call) for aggregate_call in groups.calls
    }

    def read(scalar: Scalar) -> Scalar:
        return substitute(inward(scalar), lambda column: empties.get(column, column))

    return OuterSemiAntiJoin(plan, grouped, "left", on), read


def _summary(subquery: Subquery, fresh: Fresh) -> Summary:
    inner = subquery.plan
    match subquery.kind:
        case "scalar":
            own = _global_aggregate(inner)
            if own is not None:
                return own
            (column,) = inner.columns
            number = AggregateCall(fresh("rows", BIGINT), "count")
            value = AggregateCall(fresh("value", column.type), "any_value", column)
            checked = Call("only row", (number.output, value.output), column.type)
            return Summary(inner, (number, value), checked)
        case "exists":
            number = AggregateCall(fresh("rows", BIGINT), "count")
            return Summary(inner, (number,), _positive(number.output))
        case _:
            return _any(subquery, fresh)


def _comparison(subquery: Subquery) -> tuple[Scalar, Scalar] | None:
    """Return the outside and the inside expression, if the test is one comparison; else None."""
    match subquery.test:
        case Call(function="=" | "<>" | "<" | "<=" | ">" | ">=", arguments=(left, right)):
            for outside, inside in ((left, right), (right, left)):
                if not columns_of(outside) and not reads_outside(inside):
                    return outside, inside
    return None


def _attach_comparison(
    plan: Operator,
    enclosing: Operator,
    subquery: Subquery,
    sides: tuple[Scalar, Scalar],
    fresh: Fresh,
) -> tuple[Operator, Scalar]:
    """Return the plan with the summaries of `x = ANY (SELECT y …)` beside every row, and its value.

    The value is true if some y equals x; else NULL if x or some y is NULL.
    """
    assert subquery.test is not None
    outside, inside = sides
    match_exists = Subquery("exists", Filter(subquery.plan, subquery.test))
    plan, some = _attach(plan, enclosing, _summary(match_exists, fresh), fresh)
    compared = fresh("compared", inside.type)
    rows, known_rows = (
        AggregateCall(fresh(name, BIGINT), "count", column)
        for name, column in (("rows", None), ("known", compared))
    )
    missing = call("is null", outside)
    unknown = call("or", missing, call("<", known_rows.output, rows.output))
    maybe = call("and", _positive(rows.output), unknown)
    totals = Summary(Project(subquery.plan, ((compared, inside),)), (rows, known_rows), maybe)
    plan, unsure = _attach(plan, enclosing, totals, fresh)
    yes, no, neither = (Literal(value, BOOLEAN) for value in (True, False, None))
    return plan, call("case", some, yes, unsure, neither, no)


def _any(subquery: Subquery, fresh: Fresh) -> Summary:
    assert subquery.test is not None
    tested = fresh("test", BOOLEAN)
    true, unknown = fresh("true", BIGINT), fresh("unknown", BIGINT)
    unit, nothing = Literal(1, BIGINT), Literal(None, BIGINT)
    rows = Project(subquery.plan, ((tested, subquery.test),))
    counted = Project(
        rows,
        (
            (true, call("case", tested, unit, nothing)),
            (unknown, call("case", call("is null", tested), unit, nothing)),
        ),
    )
    calls = tuple(
        AggregateCall(fresh(name, BIGINT), "count", column)
        for name, column in (("true_rows", true), ("unknown_rows", unknown))
    )
    some, maybe = (_positive(each.output) for each in calls)
    yes, no, neither = (Literal(value, BOOLEAN) for value in (True, False, None))
    return Summary(counted, calls, call("case", some, yes, maybe, neither, no))


def _positive(count: Scalar) -> Scalar:
    return call(">", count, Literal(0, BIGINT))


def _global_aggregate(plan: Operator) -> Summary | None:
    """Return the summary of a query whose rows are one group; None for other queries.

    Such a query has exactly one row, or none if its HAVING does not hold.
    """
    match _one_project(plan):
        case Aggregate(child=rows, keys=(), calls=calls):
            return Summary(rows, calls, plan.columns[0])
        case Project(child=child, outputs=outputs):
            below = _above_aggregate(child)
            if below is None or len(outputs) != 1:
                return None
            aggregate, condition = below
            ((_, value),) = outputs
            if condition is not None:
                value = call("case", condition, value, Literal(None, value.type))
            return Summary(aggregate.child, aggregate.calls, value)
        case _:
            return None


def _one_project(plan: Operator) -> Operator:
    """Return the same rows with projections that stand above each other as one."""
    while isinstance(plan, Project) and isinstance(plan.child, Project):
        below = dict(plan.child.outputs)
        composed = [(column, compose(scalar, below)) for column, scalar in plan.outputs]
        outputs = tuple((column, scalar) for column, scalar in composed if scalar is not None)
        if len(outputs) < len(composed):
            return plan
        plan = Project(plan.child.child, outputs)
    return plan


def _above_aggregate(plan: Operator) -> tuple[Aggregate, Scalar | None] | None:
    match plan:
        case Aggregate(keys=()):
            return plan, None
        case Filter(child=Aggregate(keys=()) as aggregate, condition=condition):
            return aggregate, condition
        case _:
            return None


def _grouped(
    groups: CorrelatedGroups, enclosing: Operator, fresh: Fresh
) -> tuple[Operator, Scalar | None]:
    """Return one group of inner rows for each value that they are for, and its join condition."""
    if raises(groups.rows):
        return _by_reads(groups, enclosing, fresh)
    rows = correlate(groups.rows, enclosing, fresh)
    own = frozenset(rows.plan.columns)
    keys: dict[Scalar, Column] = {}
    conditions: list[Scalar] = []
    for condition in rows.conditions:
        if not columns_of(condition) & own:
            conditions.append(condition)
            continue
        sides = _equality(condition, own)
        if sides is None:
            # Rows of several groups would match: the values themselves become the groups.
            return _by_reads(groups, enclosing, fresh)
        outside, inside, symbol = sides
        key = keys.setdefault(inside, fresh("key", inside.type))
        conditions.append(call(symbol, outside, key))
    arguments = frozenset[Column]().union(*(aggregate_call.read for aggregate_call in groups.calls))
    outputs = (
        *((key, scalar) for scalar, key in keys.items()),
        *((column, column) for column in sorted(arguments, key=lambda c: c.id)),
    )
    grouped = Aggregate(Project(rows.plan, outputs), tuple(keys.values()), groups.calls)
    return grouped, conjunction(conditions)


def _by_reads(
    groups: CorrelatedGroups, enclosing: Operator, fresh: Fresh
) -> tuple[Operator, Scalar | None]:
    rows = depending(groups.rows, enclosing, fresh)
    keys = tuple(column for column in rows.plan.columns if column not in groups.rows.columns)
    return Aggregate(rows.plan, keys, groups.calls), conjunction(rows.conditions)


def _equality(condition: Scalar, own: frozenset[Column]) -> tuple[Scalar, Scalar, str] | None:
    """Return the sides of `outside = inside`, if exactly the equal inner rows satisfy it."""
    match condition:
        case Call(function="=" | "is not distinct from" as symbol, arguments=(left, right)):
            for outside, inside in ((left, right), (right, left)):
                apart = not columns_of(outside) & own and columns_of(inside) <= own
                if apart and columns_of(inside) and _alike(outside, inside):
                    return outside, inside, symbol
    return None


def _alike(left: Scalar, right: Scalar) -> bool:
    """Return whether both sides compare as they are.

    Two numerics may equal one double precision.
    """
    both_text = left.type.is_text and right.type.is_text
    both_integer = left.type.is_integer and right.type.is_integer
    return left.type.kind == right.type.kind or both_text or both_integer
