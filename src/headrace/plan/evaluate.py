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
    order_key,
)
from headrace.functions.numbers import WIDE
from headrace.plan.operators import (
    Accumulate,
    Aggregate,
    Empty,
    Extremum,
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
    if function in ("min", "max"):
        best: Value = (min if function == "min" else max)(present, key=order_key)
        # As the state keeps it, without the sign of zero.
        return 0.0 if isinstance(best, float) and best == 0 else best
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
            extrema = [_best(each, members) for each in state.extrema]
            result[key] = (*key, count, *sums, *extrema)
    return result


def _best(extremum: Extremum, members: list[tuple[Row, int]], sign: int = 1) -> Value:
    """The extremum over the rows whose weight has the sign."""
    values = [scalar(extremum.term, row) for row, weight in members if weight * sign > 0]
    return _better(extremum, *values)


def _better(extremum: Extremum, *values: Value) -> Value:
    present = [value for value in values if value is not None]
    choose = min if extremum.kept == "min" else max
    return choose(present, key=order_key) if present else None


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
    width = len(state.keys)
    old = {row[:width]: row for row in net(evaluate(plan.stored, read))}
    nothing: tuple[Any, ...] = (0, *(_zero(column) for column, _ in state.sums))
    nothing += (None,) * len(state.extrema)
    bag: Bag = Counter()
    for key, members in _groups(_rows(plan.change, read), _key(state)).items():
        before = old.get(key)
        previous = nothing if before is None else before[width:]
        added: list[Any] = [sum(weight for _, weight in members), *_sums(members, state)]
        totals = [a + b for a, b in zip(previous, added, strict=False)]
        present = dict(zip(state.totals, totals, strict=True))
        bests = [
            _merged(each, value, members, left=bool(present[each.present]))
            for each, value in zip(state.extrema, previous[len(totals) :], strict=True)
        ]
        stays = bool(totals[0]) or not state.keys
        stale = stays and any(is_stale for _, is_stale in bests)
        mark = (stale,) if state.extrema else ()
        if before is not None:
            bag[(*before, *mark)] -= 1
        if stays:
            bag[(*key, *totals, *(best for best, _ in bests), *mark)] += 1
    return net(bag)


def _merged(
    extremum: Extremum, old: Value, members: list[tuple[Row, int]], *, left: bool
) -> tuple[Value, bool]:
    """The new extremum, and whether it cannot be told; `left` says that some value is left."""
    inserted, deleted = _best(extremum, members), _best(extremum, members, -1)
    if not left:
        return None, False
    if not _as_good(extremum, deleted, old):
        return _better(extremum, old, inserted), False
    if _as_good(extremum, inserted, old):
        return inserted, False
    return None, True


def _as_good(extremum: Extremum, value: Value, old: Value) -> bool:
    best = _better(extremum, value, old)
    return value is not None and bool(order_key(best) == order_key(value))
