"""The pure evaluator: a plan over small bags, straight from the definitions.

It is the third oracle beside Spark and PostgreSQL: no Spark, no SQL, no cleverness. A bag is a
Counter of row tuples whose counts are weights and may be negative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from typing import Any

from headrace.functions import (
    AGGREGATE_BY_NAME,
    FUNCTION_BY_NAME,
    convert,
    fitted,
)
from headrace.functions.numbers import WIDE
from headrace.plan.operators import (
    Accumulate,
    Aggregate,
    Empty,
    Filter,
    GroupState,
    Join,
    Merge,
    Negate,
    Net,
    Operator,
    Project,
    Restrict,
    Scan,
    UnionAll,
)
from headrace.plan.scalar import Call, Column, Literal, Scalar, Value

Bag = Counter[tuple[Value, ...]]
Row = Mapping[Column, Value]
Read = Callable[[Scan], Bag]


def evaluate(plan: Operator, read: Read) -> Bag:
    """The plan's rows; `read` gives a scan's rows with its fields in their order."""
    # Python adds decimals to 28 digits unless told otherwise.
    with localcontext(WIDE):
        return _evaluate(plan, read)


def _evaluate(plan: Operator, read: Read) -> Bag:
    match plan:
        case Scan():
            return read(plan)
        case Empty():
            return Counter()
        case Filter(child=child, condition=condition):
            rows = _rows(child, read)
            return _bag(plan, ((row, w) for row, w in rows if scalar(condition, row) is True))
        case Project(child=child, outputs=outputs):
            bag: Bag = Counter()
            for row, weight in _rows(child, read):
                bag[tuple(scalar(expression, row) for _, expression in outputs)] += weight
            return bag
        case Join(left=left, right=right, condition=condition):
            pairs = (
                ({**a, **b}, v * w) for a, v in _rows(left, read) for b, w in _rows(right, read)
            )
            return _bag(
                plan,
                ((r, w) for r, w in pairs if condition is None or scalar(condition, r) is True),
            )
        case UnionAll(inputs=inputs):
            total: Bag = Counter()
            for child in inputs:
                total.update(evaluate(child, read))
            return total
        case Negate(child=child):
            return Counter({row: -weight for row, weight in evaluate(child, read).items()})
        case Net(child=child):
            return net(evaluate(child, read))
        case Restrict(child=child, touched=touched, keys=keys):
            places = [touched.columns.index(b) for _, b in keys]
            # An update within a group sums up to nothing here, and touches the group all the same.
            seen = {tuple(row[i] for i in places) for row in evaluate(touched, read)}
            rows = _rows(child, read)
            return _bag(plan, ((r, w) for r, w in rows if tuple(r[a] for a, _ in keys) in seen))
        case Aggregate():
            return _aggregate(plan, read)
        case Accumulate(child=child, state=state):
            return Counter(dict.fromkeys(_states(_rows(child, read), state).values(), 1))
        case Merge():
            return _merge(plan, read)
    raise TypeError(f"no definition of {type(plan).__name__}")


def net(bag: Bag) -> Bag:
    """The bag without rows of weight zero."""
    return Counter({row: weight for row, weight in bag.items() if weight})


def _rows(plan: Operator, read: Read) -> list[tuple[Row, int]]:
    columns = plan.columns
    return [
        (dict(zip(columns, row, strict=True)), weight)
        for row, weight in evaluate(plan, read).items()
        if weight
    ]


def _bag(plan: Operator, rows: Any) -> Bag:
    bag: Bag = Counter()
    for row, weight in rows:
        bag[tuple(row[column] for column in plan.columns)] += weight
    return bag


def scalar(expression: Scalar, row: Row) -> Value:
    """An expression's value on one row; EvaluationError where PostgreSQL reports an error."""
    match expression:
        case Column():
            return row[expression]
        case Literal(value=value):
            return value
        case Call(function="case", arguments=arguments, type=type_):
            for test, branch in zip(arguments[:-1:2], arguments[1::2], strict=True):
                if scalar(test, row) is True:
                    return convert(scalar(branch, row), branch.type, type_)
            return convert(scalar(arguments[-1], row), arguments[-1].type, type_)
        case Call(function="coalesce", arguments=arguments, type=type_):
            for argument in arguments:
                value = scalar(argument, row)
                if value is not None:
                    return convert(value, argument.type, type_)
            return None
        case Call(function="cast", arguments=(argument,), type=type_):
            return convert(scalar(argument, row), argument.type, type_)
        case Call(function=name, arguments=arguments, type=type_):
            function = FUNCTION_BY_NAME[name]
            values = [scalar(argument, row) for argument in arguments]
            if function.strict and any(value is None for value in values):
                return None
            value = function.evaluate(*values)
            return value if value is None or not type_.is_number else fitted(value, type_)


def _groups(
    rows: list[tuple[Row, int]], keys: tuple[Column, ...]
) -> dict[tuple[Value, ...], list[tuple[Row, int]]]:
    groups: dict[tuple[Value, ...], list[tuple[Row, int]]] = {}
    if not keys:
        groups[()] = []
    for row, weight in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append((row, weight))
    return groups


def _aggregate(plan: Aggregate, read: Read) -> Bag:
    """From the definition: the values of a group, each as often as it occurs."""
    bag: Bag = Counter()
    for key, rows in _groups(_rows(plan.child, read), plan.keys).items():
        assert all(weight > 0 for _, weight in rows), "a query's own input is a bag"
        values: list[Value] = []
        for call in plan.calls:
            inputs = [
                1 if call.argument is None else row[call.argument]
                for row, weight in rows
                for _ in range(weight)
            ]
            values.append(_aggregated(call.function, inputs, call.output))
        bag[(*key, *values)] += 1
    return bag


def _aggregated(function: str, inputs: list[Value], output: Column) -> Value:
    assert function in AGGREGATE_BY_NAME
    present: list[Any] = [value for value in inputs if value is not None]
    if function == "count":
        return len(present)
    if not present:
        return None
    total = sum(present[1:], start=present[0])
    if function == "sum":
        return fitted(total, output.type)
    if output.type.is_float:
        return float(total / len(present))
    return fitted(
        FUNCTION_BY_NAME["/"].evaluate(Decimal(total), Decimal(len(present))), output.type
    )


def _states(
    rows: list[tuple[Row, int]], state: GroupState
) -> dict[tuple[Value, ...], tuple[Value, ...]]:
    """The state row of each key; no row for an empty group, except the one without key."""
    result = {}
    for key, members in _groups(rows, _key(state)).items():
        count = sum(weight for _, weight in members)
        sums = _sums(members, state)
        if count or not state.keys:
            result[key] = (*key, count, *sums)
    return result


def _key(state: GroupState) -> tuple[Column, ...]:
    return tuple(key for _, key in state.keys)


def _sums(members: list[tuple[Row, int]], state: GroupState) -> list[Value]:
    sums = []
    for column, term in state.sums:
        terms: list[Any] = [scalar(term, row) for row, _ in members]
        weighted = (weight * value for (_, weight), value in zip(members, terms, strict=True))
        sums.append(fitted(sum(weighted, _zero(column)), column.type))
    return sums


def _zero(column: Column) -> Any:
    if column.type.is_float:
        return 0.0
    return 0 if column.type.is_integer else Decimal(0)


def _merge(plan: Merge, read: Read) -> Bag:
    state = plan.state
    old = {row[: len(state.keys)]: row for row, w in net(evaluate(plan.stored, read)).items() if w}
    bag: Bag = Counter()
    for key, members in _groups(_rows(plan.change, read), _key(state)).items():
        count = sum(weight for _, weight in members)
        before = old.get(key)
        previous: list[Any] = [0, *(_zero(column) for column, _ in state.sums)]
        if before is not None:
            previous = list(before[len(state.keys) :])
        added: list[Any] = [count, *_sums(members, state)]
        after = (*key, *(a + b for a, b in zip(previous, added, strict=True)))
        if before is not None:
            bag[before] -= 1
        if after[len(state.keys)] or not state.keys:
            bag[after] += 1
    return net(bag)
