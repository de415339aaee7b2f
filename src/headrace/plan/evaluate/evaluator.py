"""Every operator and every expression by its definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import localcontext

from headrace.algebra.scalar import Call, Column, Literal, Outer, Scalar, Subquery, Value
from headrace.functions import FUNCTION_BY_NAME, convert, fitted
from headrace.functions.function import EvaluationError
from headrace.functions.numbers import WIDE
from headrace.functions.tables import TABLE_FUNCTION_BY_NAME
from headrace.plan.evaluate.groups import accumulated, aggregated, merged
from headrace.plan.evaluate.partitions import merged_top, topped, windowed
from headrace.plan.operators import (
    Accumulate,
    Aggregate,
    Empty,
    Filter,
    FullJoin,
    Join,
    Merge,
    Negate,
    Net,
    Operator,
    OuterSemiAntiJoin,
    OuterSemiAntiJoinDelta,
    Part,
    Project,
    Recursive,
    Replicate,
    Restrict,
    Scan,
    Top,
    TopMerge,
    UnionAll,
    Unnest,
    Unseen,
    Values,
    Window,
)
from headrace.plan.surface_operators import Lateral, SetOperation

Bag = Counter[tuple[Value, ...]]


def combined(plan: SetOperation, left: Bag, right: Bag) -> Bag:
    """Return the result of the operation on two bags; only rows with positive weights count."""
    # Counters leave out counts that are not positive: & is the lesser, − the difference.
    if not plan.once:
        return left & right if plan.kind == "intersect" else +left - +right
    is_intersection = plan.kind == "intersect"
    return Counter(dict.fromkeys((row for row in +left if (right[row] > 0) == is_intersection), 1))


def unnested(
    plan: Unnest, rows: list[tuple[Row, int]], scalar: Callable[[Scalar, Row], Value]
) -> Iterator[tuple[Row, int]]:
    """Return the rows of `plan` from those of its child; `scalar` evaluates an argument."""
    function = TABLE_FUNCTION_BY_NAME[plan.function]
    types = tuple(column.type for column in plan.outputs)
    added = plan.columns[len(plan.child.columns) :]
    for row, weight in rows:
        function_rows = function.rows([scalar(argument, row) for argument in plan.arguments], types)
        for number, values in enumerate(function_rows, 1):
            yield {**row, **dict(zip(added, (*values, number), strict=False))}, weight
        if plan.keep and not function_rows:
            yield {**row, **dict.fromkeys(added)}, weight


Read = Callable[[Scan], Bag]

MAXIMUM_LEVELS = 10_000


def levels(plan: Recursive, read: Read, evaluate: Callable[[Operator, Read], Bag]) -> Bag:
    """Return the sum of all levels."""
    total: Bag = Counter()
    level = _next(plan, evaluate(plan.base, read), total)
    for _ in range(MAXIMUM_LEVELS):
        total.update(level)
        level = _next(plan, evaluate(plan.step, _reading(plan.variable, level, read)), total)
        if not level:
            return total
    raise EvaluationError(f"a recursive query has more than {MAXIMUM_LEVELS} levels")


def _next(plan: Recursive, found: Bag, total: Bag) -> Bag:
    """Return the rows among the found ones that make the next level."""
    if plan.once:
        return Counter(row for row, weight in found.items() if weight > 0 and row not in total)
    return Counter({row: weight for row, weight in found.items() if weight})


def _reading(variable: str, level: Bag, outside: Read) -> Read:
    """Return a reader of the level's rows for scans of the variable, else of `outside`."""

    def read(scan: Scan) -> Bag:
        if scan.relation != variable:
            return outside(scan)
        places = [int(physical.removeprefix("c")) - 1 for physical, _ in scan.fields]
        bag: Bag = Counter()
        for row, weight in level.items():
            bag[tuple(row[place] for place in places)] += weight
        return bag

    return read


Row = Mapping[Column, Value]


def evaluate(plan: Operator, read: Read) -> Bag:
    """Return the plan's rows; `read` gives a scan's rows with its fields in their order."""
    # Python adds decimals to 28 digits by default.
    with localcontext(WIDE):
        return Evaluator(read).bag(plan)


def scalar(expression: Scalar, row: Row) -> Value:
    """Return an expression's value on one row.

    Raise EvaluationError where PostgreSQL reports an error.
    """
    return Evaluator(lambda scan: Counter()).scalar(expression, row)


def net(bag: Bag) -> Bag:
    """Return the bag without rows of weight zero."""
    return Counter({row: weight for row, weight in bag.items() if weight})


@dataclass(frozen=True)
class Evaluator:
    """Evaluates plans and expressions; an inner query's has the row that it is evaluated for."""

    read: Read
    row: Row | None = None
    enclosing: Evaluator | None = None

    def bag(self, plan: Operator) -> Bag:
        """Return the plan's rows with their weights; some may have weight zero."""
        match plan:
            case Scan():
                return self.read(plan)
            case Empty():
                return Counter()
            case Values(rows=rows):
                return Counter(tuple(self.scalar(value, {}) for value in row) for row in rows)
            case Filter(child=child, condition=condition):
                return self._of(plan, (r for r in self.rows(child) if self._holds(condition, r[0])))
            case Project(child=child, outputs=outputs):
                bag: Bag = Counter()
                for row, weight in self.rows(child):
                    bag[tuple(self.scalar(value, row) for _, value in outputs)] += weight
                return bag
            case Join(left=left, right=right, condition=condition):
                pairs = (
                    ({**a, **b}, v * w) for a, v in self.rows(left) for b, w in self.rows(right)
                )
                return self._of(plan, (r for r in pairs if self._holds(condition, r[0])))
            case OuterSemiAntiJoin():
                return self._match(plan)
            case FullJoin():
                return self.bag(plan.divided())
            case OuterSemiAntiJoinDelta():
                return self.bag(plan.written_out())
            case Lateral():
                return self._lateral(plan)
            case SetOperation(left=left, right=right):
                return combined(plan, self.bag(left), self.bag(right))
            case Replicate(child=child, times=times):
                copies = (
                    (row, weight * self._times(times, row)) for row, weight in self.rows(child)
                )
                return self._of(plan, copies)
            case Unnest(child=child):
                return self._of(plan, unnested(plan, self.rows(child), self.scalar))
            case UnionAll(inputs=inputs):
                total: Bag = Counter()
                for child in inputs:
                    total.update(self.bag(child))
                return total
            case Negate(child=child):
                return Counter({row: -weight for row, weight in self.bag(child).items()})
            case Net(child=child):
                return net(self.bag(child))
            case Restrict():
                return self._restrict(plan)
            case Part(child=child, sign=sign):
                factor = 1 if sign == "added" else -1
                signed = ((row, weight * factor) for row, weight in self.bag(child).items())
                return Counter({row: weight for row, weight in signed if weight > 0})
            case Unseen(found=found_plan, known=known_plan):
                known_bag = self.bag(known_plan)
                once = (row for row, weight in self.bag(found_plan).items() if weight > 0)
                return Counter(row for row in once if known_bag[row] <= 0)
            case Aggregate(child=child):
                return aggregated(plan, self.rows(child))
            case Window(child=child):
                return windowed(plan, self.rows(child))
            case Top(child=child):
                return topped(plan, self.rows(child))
            case TopMerge(stored=stored, change=change):
                return merged_top(plan, self.rows(stored), self.rows(change))
            case Recursive():
                return levels(plan, self.read, lambda p, read: replace(self, read=read).bag(p))
            case Accumulate(child=child, state=state):
                return accumulated(state, self.rows(child), self.scalar)
            case Merge(stored=stored, change=change):
                return net(merged(plan, net(self.bag(stored)), self.rows(change), self.scalar))
        raise TypeError(f"no definition of {type(plan).__name__}")

    def rows(self, plan: Operator) -> list[tuple[Row, int]]:
        """Return the plan's rows by their columns, those of weight zero left out."""
        columns = plan.columns
        return [
            (dict(zip(columns, row, strict=True)), weight)
            for row, weight in self.bag(plan).items()
            if weight
        ]

    def _of(self, plan: Operator, rows: Iterable[tuple[Row, int]]) -> Bag:
        bag: Bag = Counter()
        for row, weight in rows:
            bag[tuple(row[column] for column in plan.columns)] += weight
        return bag

    def _holds(self, condition: Scalar | None, row: Row) -> bool:
        return condition is None or self.scalar(condition, row) is True

    def _times(self, times: Scalar, row: Row) -> int:
        value = self.scalar(times, row)
        assert isinstance(value, int) and value >= 0
        return value

    def _match(self, plan: OuterSemiAntiJoin) -> Bag:
        rights = self.rows(plan.right)
        nothing = dict.fromkeys(plan.right.columns)
        joined_rows: list[tuple[Row, int]] = []
        for row, weight in self.rows(plan.left):
            pairs = [({**row, **right}, w) for right, w in rights]
            matches = [(pair, w) for pair, w in pairs if self._holds(plan.condition, pair)]
            if plan.kind == "left":
                joined_rows += [(pair, weight * w) for pair, w in matches]
                joined_rows += [] if matches else [({**row, **nothing}, weight)]
            elif bool(matches) == (plan.kind == "semi"):
                joined_rows.append((row, weight))
        return self._of(plan, joined_rows)

    def _lateral(self, plan: Lateral) -> Bag:
        nothing = dict.fromkeys(plan.rows.plan.columns)
        joined_rows: list[tuple[Row, int]] = []
        for row, weight in self.rows(plan.child):
            inner = Evaluator(self.read, row, self).rows(plan.rows.plan)
            pairs = [({**row, **inner_row}, weight * w) for inner_row, w in inner]
            matches = [(pair, w) for pair, w in pairs if self._holds(plan.condition, pair)]
            joined_rows += matches
            joined_rows += [] if matches or not plan.keep else [({**row, **nothing}, weight)]
        return self._of(plan, joined_rows)

    def _restrict(self, plan: Restrict) -> Bag:
        places = [plan.touched.columns.index(b) for _, b in plan.keys]
        # An update within a group adds up to nothing here, and touches the group all the same.
        touched_keys = {tuple(row[i] for i in places) for row in self.bag(plan.touched)}
        rows = self.rows(plan.child)
        return self._of(
            plan, (r for r in rows if tuple(r[0][a] for a, _ in plan.keys) in touched_keys)
        )

    def scalar(self, expression: Scalar, row: Row) -> Value:
        """Return an expression's value on one row.

        Raise EvaluationError where PostgreSQL reports an error.
        """
        match expression:
            case Column():
                return row[expression]
            case Literal(value=value):
                return value
            case Outer(scalar=outside):
                assert self.enclosing is not None and self.row is not None
                return self.enclosing.scalar(outside, self.row)
            case Subquery():
                return Evaluator(self.read, row, self).value(expression)
            case Call(function="case", arguments=arguments, type=type_):
                for test, branch in zip(arguments[:-1:2], arguments[1::2], strict=True):
                    if self.scalar(test, row) is True:
                        return convert(self.scalar(branch, row), branch.type, type_)
                return convert(self.scalar(arguments[-1], row), arguments[-1].type, type_)
            case Call(function="coalesce", arguments=arguments, type=type_):
                for argument in arguments:
                    value = self.scalar(argument, row)
                    if value is not None:
                        return convert(value, argument.type, type_)
                return None
            case Call(function="and" | "or" as name, arguments=(first, second)):
                decided = name == "or"
                left = self.scalar(first, row)
                # As in PostgreSQL, the second is not evaluated where the first has decided.
                if left is decided:
                    return left
                return FUNCTION_BY_NAME[name].evaluate(left, self.scalar(second, row))
            case Call(function="cast", arguments=(argument,), type=type_):
                return convert(self.scalar(argument, row), argument.type, type_)
            case Call(function=name, arguments=arguments, type=type_):
                function = FUNCTION_BY_NAME[name]
                values = [self.scalar(argument, row) for argument in arguments]
                if function.strict and any(value is None for value in values):
                    return None
                value = function.evaluate(*values)
                return value if value is None or not type_.is_number else fitted(value, type_)

    def value(self, subquery: Subquery) -> Value:
        """Return the value of an inner query for the row that this evaluator is for."""
        rows = self.rows(subquery.plan)
        match subquery.kind:
            case "exists":
                return bool(rows)
            case "scalar":
                if sum(weight for _, weight in rows) > 1:
                    raise EvaluationError("more than one row returned by a subquery")
                return rows[0][0][subquery.plan.columns[0]] if rows else None
            case _:
                assert subquery.test is not None
                tests = [self.scalar(subquery.test, row) for row, _ in rows]
                return True if True in tests else None if None in tests else False
