"""A plan as one Spark SQL query over weighted rows.

Every operator becomes a SELECT of its columns, named by their ids, and `_weight`. A table in FROM
is a view that the caller registered (see `inputs`).
"""

from __future__ import annotations

from sqlglot import exp

from headrace.algebra.scalar import Column
from headrace.functions.function import spark_binary, spark_cast, spark_function
from headrace.plan.operators import (
    Accumulate,
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
from headrace.render.groups import accumulate, merge
from headrace.render.inputs import input_name
from headrace.render.matches import (
    AFTER,
    BEFORE,
    SIDE,
    on_side,
    outer_semi_anti_join,
    outer_semi_anti_join_delta,
    sided,
    small_side,
)
from headrace.render.partitions import top, window
from headrace.render.pieces import (
    WEIGHT,
    Nesting,
    aliased,
    as_table,
    bigint,
    columns_named,
    grouped_rows,
    hinted,
    joined,
    named,
    of_table,
    select_weighted,
    weighted,
)
from headrace.render.rows import beside_known, once, part, replicate, unnest, unseen, values
from headrace.render.scalars import column, identifier, render_scalar, text_of
from headrace.render.top_merge import top_merge


def render(
    plan: Operator, names: tuple[str, ...] | None = None, *, one_partition: bool = False
) -> str:
    """Return the query's text. Its columns are `_weight`, then the plan's, under `names` if given.

    With `one_partition` the inputs are known to have one partition each. Joins of such rows have
    one, too, which Spark detects for most of them only with a hint: otherwise it exchanges the
    rows. And a join hashes the side that is known to be small, where it would sort both.
    """
    renderer = _Renderer(one_partition=one_partition)
    columns = plan.columns
    output_names = names or tuple(c.id for c in columns)
    select_list = [
        aliased(column(c.id), name) for c, name in zip(columns, output_names, strict=True)
    ]
    query = exp.Select(expressions=[column(WEIGHT), *select_list]).from_(
        renderer.subquery(plan), copy=False
    )
    whole = renderer.nesting.whole(query)
    if one_partition:
        nodes = list(whole.walk(prune=lambda node: isinstance(node, exp.Column)))
        for node in nodes:
            if isinstance(node, exp.Select) and _joins_freely(node):
                hinted(node, "COALESCE", exp.Literal.number(1))
    return text_of(whole)


def _joins_freely(select: exp.Select) -> bool:
    """Return whether some join takes the partitions of both sides.

    Other joins keep the partitions of the left side.
    """
    return any(join.side != "LEFT" for join in select.args.get("joins") or ())


def rendered(plan: Operator) -> exp.Query:
    """Return the query's tree: `_weight` and the plan's columns by their ids."""
    renderer = _Renderer(one_partition=False)
    return renderer.nesting.whole(renderer.query(plan))


def summed(
    columns: tuple[Column, ...], rows: exp.Expression, plain: frozenset[str] = frozenset()
) -> exp.Select:
    """Return the weights of equal rows added up, zeros dropped."""
    total = spark_function("sum", column(WEIGHT))
    groups, select_list = grouped_rows(columns, plain)
    query = weighted(total, *select_list).from_(rows, copy=False)
    if groups:
        query = query.group_by(*groups, copy=False)
    return query.having(exp.NEQ(this=total.copy(), expression=bigint(0)), copy=False)


class _Renderer:
    """Renders one query."""

    def __init__(self, *, one_partition: bool) -> None:
        self.one_partition = one_partition
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
                    .from_(self.subquery(child), copy=False)
                    .where(render_scalar(condition), copy=False)
                )
            case Project(child=child, outputs=outputs):
                select_list = [named(render_scalar(scalar), c) for c, scalar in outputs]
                return weighted(column(WEIGHT), *select_list).from_(
                    self.subquery(child), copy=False
                )
            case Join():
                return self._join(plan)
            case OuterSemiAntiJoin() | FullJoin():
                names = self.alias(), self.alias()
                left, right = map(self.subquery, plan.children, names)
                select = outer_semi_anti_join(plan, (names[0], left), (names[1], right))
                small = small_side(plan)
                return select if small is None else self._hashing(select, names[small])
            case OuterSemiAntiJoinDelta():
                return self._outer_semi_anti_join_delta(plan)
            case UnionAll(inputs=inputs):
                query: exp.Query = self.query(inputs[0])
                for branch in inputs[1:]:
                    query = exp.Union(this=query, expression=self.query(branch), distinct=False)
                return query
            case Values():
                return values(plan, bigint(1))
            case Unnest(child=child):
                return unnest(plan, self.subquery(child), column(WEIGHT))
            case Replicate(child=child):
                return replicate(plan, self.subquery(child))
            case Negate(child=child):
                minus = exp.Neg(this=column(WEIGHT))
                return weighted(minus, *columns_named(plan.columns)).from_(
                    self.subquery(child), copy=False
                )
            case Net(child=child):
                return summed(plan.columns, self.subquery(child))
            case Restrict():
                return self._restrict(plan)
            case Part(child=child):
                return part(plan, self.subquery(child))
            case Unseen():
                return self._unseen(plan)
            case Window(child=child):
                return window(plan, self.subquery(child), self.alias)
            case Top(child=child):
                return top(plan, self.subquery(child), self.alias)
            case TopMerge(stored=stored, change=change):
                return top_merge(plan, self.subquery(stored), self.subquery(change), self.alias)
            case Accumulate(child=child, state=state):
                return accumulate(state, self.subquery(child), child.columns, self.alias)
            case Merge(stored=stored, change=change):
                return merge(plan, self.subquery(stored), self.subquery(change), self.alias)
        raise TypeError(f"{type(plan).__name__} cannot be rendered")

    def _scan(self, plan: Scan) -> exp.Select:
        table = exp.Table(this=identifier(input_name(plan.relation, plan.version)))
        return weighted(
            column(WEIGHT), *(named(column(physical), c) for physical, c in plan.fields)
        ).from_(table, copy=False)

    def _empty(self, plan: Empty) -> exp.Select:
        nulls = [named(spark_cast(exp.Null(), c.type), c) for c in plan.columns]
        return weighted(bigint(0), *nulls).where(exp.false(), copy=False)

    def _join(self, plan: Join) -> exp.Select:
        left, right = self.alias(), self.alias()
        weight = spark_binary(exp.Mul, of_table(left, WEIGHT), of_table(right, WEIGHT))
        condition = None if plan.condition is None else render_scalar(plan.condition)
        select = weighted(weight, *columns_named(plan.columns))
        select = select.from_(self.subquery(plan.left, left), copy=False)
        kind = "cross" if condition is None else "inner"
        select = joined(select, kind, self.subquery(plan.right, right), condition)
        small = small_side(plan)
        return select if small is None else self._hashing(select, (left, right)[small])

    def _outer_semi_anti_join_delta(self, plan: OuterSemiAntiJoinDelta) -> exp.Select:
        """Return the two joins as one: rows and matches say which of them they are for."""
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
        return outer_semi_anti_join_delta(
            plan, (left, as_table(rows, left)), (right, as_table(matches, right))
        )

    def _restrict(self, plan: Restrict) -> exp.Select:
        """Return a semi join whose keys match null-safe.

        Spark moves a semi join towards the scans, which is as good as can be, but not past what
        brings a scan into one partition: there it is a join with the keys, each of them once.
        """
        child, touched = self.alias(), self.alias()
        matches = exp.and_(
            *(
                exp.NullSafeEQ(this=of_table(child, a.id), expression=of_table(touched, b.id))
                for a, b in plan.keys
            )
        )
        select_list = [of_table(child, name) for name in (WEIGHT, *(c.id for c in plan.columns))]
        select = exp.Select(expressions=select_list).from_(
            self.subquery(plan.child, child), copy=False
        )
        keys = self.subquery(plan.touched, touched)
        if self.one_partition and isinstance(plan.child, Scan):
            names = [column(name) for name in dict.fromkeys(b.id for _, b in plan.keys)]
            each = (
                exp.Select(expressions=names)
                .from_(keys, copy=False)
                .group_by(*(n.copy() for n in names), copy=False)
            )
            matching = joined(select, "inner", as_table(each, touched), matches)
        else:
            matching = joined(select, "left semi", keys, matches)
        return self._hashing(matching, touched)

    def _unseen(self, plan: Unseen) -> exp.Select:
        """Return rows found that are not known.

        The rows found come to the driver, so they can be hashed; the known rows are streamed past
        them.
        """
        found_alias, known_alias = self.alias(), self.alias()
        each = once(plan, self.subquery(plan.found))
        if self.one_partition:
            # Above joins Spark does not see the one partition, and would exchange both sides.
            each = hinted(each, "COALESCE", exp.Literal.number(1))
        rows = as_table(each, found_alias)
        beside = beside_known(
            plan, (found_alias, rows), (known_alias, self.subquery(plan.known, known_alias))
        )
        return unseen(plan, as_table(self._hashing(beside, found_alias), self.alias()))

    def _hashing(self, select: exp.Select, small: str) -> exp.Select:
        """Return the join of a SELECT, with the named side hashed where no exchange is needed."""
        return hinted(select, "SHUFFLE_HASH", identifier(small)) if self.one_partition else select
