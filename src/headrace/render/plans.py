"""A plan as one Spark SQL query over weighted rows.

Every operator becomes a SELECT of its columns, named by their ids, and `_weight`. A table in FROM
is a view that the caller registered (see `inputs`).
"""

from __future__ import annotations

from sqlglot import exp

from headrace.functions.function import spark_binary, spark_cast, spark_function
from headrace.plan.operators import (
    Accumulate,
    Empty,
    Filter,
    FullJoin,
    Join,
    MatchJoin,
    Merge,
    Negate,
    Net,
    Operator,
    Project,
    Rematch,
    Replicate,
    Restrict,
    Scan,
    Top,
    TopMerge,
    UnionAll,
    Unnest,
    Values,
    Window,
)
from headrace.plan.scalar import Column
from headrace.render.groups import accumulate, merge
from headrace.render.inputs import input_name
from headrace.render.matches import AFTER, BEFORE, SIDE, match_join, on_side, rematch, sided
from headrace.render.nesting import Nesting
from headrace.render.partitions import top, window
from headrace.render.pieces import (
    WEIGHT,
    as_table,
    bigint,
    columns_named,
    grouped_rows,
    named,
    of_table,
    select_weighted,
    weighted,
)
from headrace.render.rows import replicate, unnest, values
from headrace.render.scalars import column, identifier, render_scalar
from headrace.render.top_merge import top_merge

_COALESCED = exp.Hint(
    expressions=[exp.Anonymous(this="COALESCE", expressions=[exp.Literal.number(1)])]
)


def render(
    plan: Operator, names: tuple[str, ...] | None = None, *, one_partition: bool = False
) -> str:
    """The query's text. Its columns are `_weight`, then the plan's, under `names` if given.

    With `one_partition` the inputs are known to have one partition each. A union of such rows has
    one, too, but Spark sees that only where it is told: else it exchanges the rows.
    """
    renderer = _Renderer()
    columns = plan.columns
    wanted = names or tuple(c.id for c in columns)
    shown = [
        exp.alias_(column(c.id), name, quoted=True) for c, name in zip(columns, wanted, strict=True)
    ]
    query = exp.Select(expressions=[column(WEIGHT), *shown]).from_(renderer.subquery(plan))
    whole = renderer.nesting.whole(query)
    if one_partition:
        for union in list(whole.find_all(exp.Union)):
            for side in (union.this, union.expression):
                if isinstance(side, exp.Select):
                    side.set("hint", _COALESCED.copy())
    return whole.sql(dialect="spark", pretty=True)


def rendered(plan: Operator) -> exp.Query:
    """The query's tree: `_weight` and the plan's columns by their ids."""
    renderer = _Renderer()
    return renderer.nesting.whole(renderer.query(plan))


def summed(columns: tuple[Column, ...], rows: exp.Expression) -> exp.Select:
    """The weights of equal rows added up, zeros dropped."""
    total = spark_function("sum", column(WEIGHT))
    groups, shown = grouped_rows(columns)
    query = weighted(total, *shown).from_(rows)
    if groups:
        query = query.group_by(*groups)
    return query.having(exp.NEQ(this=total.copy(), expression=bigint(0)))


class _Renderer:
    """One query."""

    def __init__(self) -> None:
        self.nesting = Nesting()
        self.alias = self.nesting.alias

    def subquery(self, plan: Operator, name: str | None = None) -> exp.Expression:
        return self.nesting.table(lambda: self.query(plan), name)

    def query(self, plan: Operator) -> exp.Query:
        match plan:
            case Scan():
                return self._scan(plan)
            case Empty():
                return self._empty(plan)
            case Filter(child=child, condition=condition):
                return (
                    select_weighted(plan.columns)
                    .from_(self.subquery(child))
                    .where(render_scalar(condition))
                )
            case Project(child=child, outputs=outputs):
                shown = [named(render_scalar(scalar), c) for c, scalar in outputs]
                return weighted(column(WEIGHT), *shown).from_(self.subquery(child))
            case Join():
                return self._join(plan)
            case MatchJoin() | FullJoin():
                names = self.alias(), self.alias()
                left, right = map(self.subquery, plan.children, names)
                return match_join(plan, (names[0], left), (names[1], right))
            case Rematch():
                return self._rematch(plan)
            case UnionAll(inputs=inputs):
                query: exp.Query = self.query(inputs[0])
                for other in inputs[1:]:
                    query = exp.Union(this=query, expression=self.query(other), distinct=False)
                return query
            case Values():
                return values(plan, bigint(1))
            case Unnest(child=child):
                return unnest(plan, self.subquery(child), column(WEIGHT))
            case Replicate(child=child):
                return replicate(plan, self.subquery(child))
            case Negate(child=child):
                minus = exp.Neg(this=column(WEIGHT))
                return weighted(minus, *columns_named(plan.columns)).from_(self.subquery(child))
            case Net(child=child):
                return summed(plan.columns, self.subquery(child))
            case Restrict():
                return self._restrict(plan)
            case Window(child=child):
                return window(plan, self.subquery(child), self.alias)
            case Top(child=child):
                return top(plan, self.subquery(child), self.alias)
            case TopMerge(stored=stored, change=change):
                return top_merge(plan, self.subquery(stored), self.subquery(change), self.alias)
            case Accumulate(child=child, state=state):
                return accumulate(state, self.subquery(child), child.columns, self.alias)
            case Merge(stored=stored, change=change, state=state):
                sides = self.subquery(stored), self.subquery(change)
                return merge(state, *sides, self.alias)
        raise TypeError(f"{type(plan).__name__} cannot be rendered")

    def _scan(self, plan: Scan) -> exp.Select:
        table = exp.Table(this=identifier(input_name(plan.relation, plan.version)))
        return weighted(
            column(WEIGHT), *(named(column(physical), c) for physical, c in plan.fields)
        ).from_(table)

    def _empty(self, plan: Empty) -> exp.Select:
        nulls = [named(spark_cast(exp.Null(), c.type), c) for c in plan.columns]
        return weighted(bigint(0), *nulls).where(exp.false())

    def _join(self, plan: Join) -> exp.Select:
        left, right = self.alias(), self.alias()
        weight = spark_binary(exp.Mul, of_table(left, WEIGHT), of_table(right, WEIGHT))
        condition = None if plan.condition is None else render_scalar(plan.condition)
        return (
            weighted(weight, *columns_named(plan.columns))
            .from_(self.subquery(plan.left, left))
            .join(
                self.subquery(plan.right, right),
                on=condition,
                join_type="inner" if condition is not None else "cross",
            )
        )

    def _rematch(self, plan: Rematch) -> exp.Select:
        """The two joins as one: rows and matches say which of them they are for."""
        left, right = self.alias(), self.alias()
        rows = sided(plan.touched.columns, self.subquery(plan.touched))
        if not isinstance(plan.change, Empty):
            changed = on_side(AFTER, plan.change.columns, self.subquery(plan.change))
            rows = exp.Union(this=changed, expression=rows, distinct=False)
        states = exp.Union(
            this=on_side(AFTER, plan.after.columns, self.subquery(plan.after)),
            expression=on_side(BEFORE, plan.before.columns, self.subquery(plan.before)),
            distinct=False,
        )
        matches = summed((SIDE, *plan.after.columns), as_table(states, self.alias()))
        return rematch(plan, (left, as_table(rows, left)), (right, as_table(matches, right)))

    def _restrict(self, plan: Restrict) -> exp.Select:
        """A semi join whose keys match null-safe."""
        child, touched = self.alias(), self.alias()
        matches = exp.and_(
            *(
                exp.NullSafeEQ(this=of_table(child, a.id), expression=of_table(touched, b.id))
                for a, b in plan.keys
            )
        )
        return (
            select_weighted(plan.columns)
            .from_(self.subquery(plan.child, child))
            .join(self.subquery(plan.touched, touched), on=matches, join_type="left semi")
        )
