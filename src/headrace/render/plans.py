"""A plan as one Spark SQL query over weighted rows.

Every operator becomes a SELECT of its columns, named by their ids, and `_weight`. A table in FROM
is a view that the caller registered (see `inputs`).
"""

from __future__ import annotations

from itertools import count

from sqlglot import exp

from headrace.functions.function import spark_binary, spark_cast, spark_function
from headrace.plan.operators import (
    Accumulate,
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
from headrace.plan.scalar import Column
from headrace.render.inputs import input_name
from headrace.render.scalars import column, identifier, render_scalar
from headrace.types import BIGINT, TEXT

WEIGHT = "_weight"


def render(plan: Operator, names: tuple[str, ...] | None = None) -> str:
    """The query's text. Its columns are `_weight`, then the plan's, under `names` if given."""
    renderer = _Renderer()
    columns = plan.columns
    wanted = names or tuple(c.id for c in columns)
    shown = [
        exp.alias_(column(c.id), name, quoted=True) for c, name in zip(columns, wanted, strict=True)
    ]
    query = exp.Select(expressions=[column(WEIGHT), *shown]).from_(renderer.subquery(plan))
    return query.sql(dialect="spark", pretty=True)


def rendered(plan: Operator) -> exp.Query:
    """The query's tree: `_weight` and the plan's columns by their ids."""
    return _Renderer().query(plan)


def summed(columns: tuple[Column, ...], rows: exp.Expression) -> exp.Select:
    """The weights of equal rows added up, zeros dropped.

    Spark's GROUP BY folds -0.0 into 0.0, so floats are grouped by their digits.
    """
    total = spark_function("sum", column(WEIGHT))
    groups: list[exp.Expression] = []
    shown: list[exp.Expression] = []
    for c in columns:
        if c.type.is_float:
            groups.append(spark_cast(column(c.id), TEXT))
            shown.append(_named(spark_function("any_value", column(c.id)), c))
        else:
            groups.append(column(c.id))
            shown.append(column(c.id))
    query = _weighted(total, *shown).from_(rows)
    if groups:
        query = query.group_by(*groups)
    return query.having(exp.NEQ(this=total.copy(), expression=_bigint(0)))


class _Renderer:
    """One query: hands out names for its subqueries."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def alias(self) -> str:
        return f"q{next(self._numbers)}"

    def subquery(self, plan: Operator) -> exp.Expression:
        return exp.Subquery(
            this=self.query(plan), alias=exp.TableAlias(this=identifier(self.alias()))
        )

    def query(self, plan: Operator) -> exp.Query:
        match plan:
            case Scan():
                return self._scan(plan)
            case Empty():
                return self._empty(plan)
            case Filter(child=child, condition=condition):
                return (
                    _select(plan.columns)
                    .from_(self.subquery(child))
                    .where(render_scalar(condition))
                )
            case Project(child=child, outputs=outputs):
                shown = [_named(render_scalar(scalar), c) for c, scalar in outputs]
                return _weighted(column(WEIGHT), *shown).from_(self.subquery(child))
            case Join():
                return self._join(plan)
            case UnionAll(inputs=inputs):
                query: exp.Query = self.query(inputs[0])
                for other in inputs[1:]:
                    query = exp.Union(this=query, expression=self.query(other), distinct=False)
                return query
            case Negate(child=child):
                minus = exp.Neg(this=column(WEIGHT))
                return _weighted(minus, *_columns(plan.columns)).from_(self.subquery(child))
            case Net(child=child):
                return summed(plan.columns, self.subquery(child))
            case Restrict():
                return self._restrict(plan)
            case Accumulate():
                return self._accumulate(plan)
            case Merge():
                return self._merge(plan)
        raise TypeError(f"{type(plan).__name__} cannot be rendered")

    def _scan(self, plan: Scan) -> exp.Select:
        table = exp.Table(this=identifier(input_name(plan.relation, plan.version)))
        return _weighted(
            column(WEIGHT), *(_named(column(physical), c) for physical, c in plan.fields)
        ).from_(table)

    def _empty(self, plan: Empty) -> exp.Select:
        nulls = [_named(spark_cast(exp.Null(), c.type), c) for c in plan.columns]
        return _weighted(_bigint(0), *nulls).where(exp.false())

    def _join(self, plan: Join) -> exp.Select:
        left, right = self.alias(), self.alias()
        weight = spark_binary(exp.Mul, _of(left, WEIGHT), _of(right, WEIGHT))
        condition = None if plan.condition is None else render_scalar(plan.condition)
        return (
            _weighted(weight, *_columns(plan.columns))
            .from_(self._aliased(plan.left, left))
            .join(
                self._aliased(plan.right, right),
                on=condition,
                join_type="inner" if condition is not None else "cross",
            )
        )

    def _aliased(self, plan: Operator, alias: str) -> exp.Subquery:
        return exp.Subquery(this=self.query(plan), alias=exp.TableAlias(this=identifier(alias)))

    def _restrict(self, plan: Restrict) -> exp.Select:
        """A semi join whose keys match null-safe."""
        child, touched = self.alias(), self.alias()
        matches = exp.and_(
            *(
                exp.NullSafeEQ(this=_of(child, a.id), expression=_of(touched, b.id))
                for a, b in plan.keys
            )
        )
        return (
            _select(plan.columns)
            .from_(self._aliased(plan.child, child))
            .join(self._aliased(plan.touched, touched), on=matches, join_type="left semi")
        )

    def _accumulate(self, plan: Accumulate) -> exp.Select:
        state = plan.state
        rows = spark_function("coalesce", spark_function("sum", column(WEIGHT)), _bigint(0))
        sums = []
        for c, term in state.sums:
            weighted = _weighted_term(c, render_scalar(term))
            zero = spark_cast(exp.Literal.number(0), c.type)
            sums.append(
                _named(
                    spark_cast(
                        spark_function("coalesce", spark_function("sum", weighted), zero), c.type
                    ),
                    c,
                )
            )
        query = _weighted(_bigint(1), *_keys(state), _named(rows, state.rows), *sums)
        query = query.from_(self.subquery(plan.child))
        if not state.keys:
            return query
        occupied = exp.NEQ(this=spark_function("sum", column(WEIGHT)), expression=_bigint(0))
        return query.group_by(*(column(key.id) for _, key in state.keys)).having(occupied)

    def _merge(self, plan: Merge) -> exp.Select:
        """Stored sums and changes side by side, summed once; then −old and +new of what differs."""
        state = plan.state
        values = (state.rows, *(c for c, _ in state.sums))
        union = exp.Union(
            this=self._stored_side(plan.stored, values, state),
            expression=self._change_side(plan.change, state),
            distinct=False,
        )
        aliased = exp.Subquery(this=union, alias=exp.TableAlias(this=identifier(self.alias())))
        totals: list[exp.Expression] = []
        moved: list[exp.Expression] = []
        for c in values:
            for side in ("old", "added"):
                total = spark_function("sum", column(f"{side}_{c.id}"))
                totals.append(_aliased_as(spark_cast(total, c.type), f"{side}_{c.id}"))
            moved.append(
                exp.NEQ(
                    this=spark_function("sum", column(f"added_{c.id}")),
                    expression=spark_cast(exp.Literal.number(0), c.type),
                )
            )
        summed = exp.Select(expressions=[*_columns(state.key_columns), *totals]).from_(aliased)
        if state.keys:
            summed = summed.group_by(*_columns(state.key_columns))
        summed = summed.having(exp.or_(*moved))
        return self._two_rows(summed, state, values)

    def _two_rows(
        self, summed: exp.Select, state: GroupState, values: tuple[Column, ...]
    ) -> exp.Select:
        """Each summed group as its old row (weight −1) and its new row (1), if it has them."""
        signs = exp.Lateral(
            this=spark_function("explode", spark_function("array", _bigint(-1), _bigint(1))),
            view=True,
            alias=exp.TableAlias(this=identifier(self.alias()), columns=[identifier(WEIGHT)]),
        )
        shown = []
        for c in values:
            old, added = column(f"old_{c.id}"), column(f"added_{c.id}")
            new = spark_cast(spark_binary(exp.Add, old.copy(), added), c.type)
            is_new = exp.EQ(this=column(WEIGHT), expression=_bigint(1))
            chosen = exp.Case(ifs=[exp.If(this=is_new, true=new)], default=old)
            shown.append(_named(chosen, c))
        inner = exp.Subquery(this=summed, alias=exp.TableAlias(this=identifier(self.alias())))
        query = _weighted(column(WEIGHT), *_columns(state.key_columns), *shown).from_(inner)
        query = query.lateral(signs)
        if not state.keys:
            return query
        wrapped = exp.Subquery(this=query, alias=exp.TableAlias(this=identifier(self.alias())))
        occupied = exp.NEQ(this=column(state.rows.id), expression=_bigint(0))
        return _select((*state.key_columns, *values)).from_(wrapped).where(occupied)

    def _stored_side(
        self, stored: Operator, values: tuple[Column, ...], state: GroupState
    ) -> exp.Select:
        shown: list[exp.Expression] = list(_columns(state.key_columns))
        for c in values:
            shown.append(_aliased_as(_weighted_term(c, column(c.id)), f"old_{c.id}"))
            shown.append(_aliased_as(spark_cast(exp.Literal.number(0), c.type), f"added_{c.id}"))
        return exp.Select(expressions=shown).from_(self.subquery(stored))

    def _change_side(self, change: Operator, state: GroupState) -> exp.Select:
        shown: list[exp.Expression] = _keys(state)
        terms = [(state.rows, column(WEIGHT))]
        terms += [(c, _weighted_term(c, render_scalar(term))) for c, term in state.sums]  # type: ignore[misc]
        for c, term in terms:
            shown.append(_aliased_as(spark_cast(exp.Literal.number(0), c.type), f"old_{c.id}"))
            shown.append(_aliased_as(spark_cast(term, c.type), f"added_{c.id}"))
        return exp.Select(expressions=shown).from_(self.subquery(change))


def _bigint(value: int) -> exp.Expression:
    return spark_cast(exp.Literal.number(value), BIGINT)


def _of(table: str, name: str) -> exp.Column:
    return exp.Column(this=identifier(name), table=identifier(table))


def _columns(columns: tuple[Column, ...]) -> list[exp.Expression]:
    return [column(c.id) for c in columns]


def _keys(state: GroupState) -> list[exp.Expression]:
    """The state's keys computed from the columns of the rows that are grouped."""
    return [_named(column(key.id), c) for c, key in state.keys]


def _aliased_as(expression: exp.Expression, name: str) -> exp.Expression:
    return exp.Alias(this=expression, alias=identifier(name))


def _named(expression: exp.Expression, c: Column) -> exp.Expression:
    return _aliased_as(expression, c.id)


def _weighted(weight: exp.Expression, *shown: exp.Expression) -> exp.Select:
    return exp.Select(expressions=[_aliased_as(weight, WEIGHT), *shown])


def _select(columns: tuple[Column, ...]) -> exp.Select:
    return exp.Select(expressions=[column(WEIGHT), *_columns(columns)])


def _weighted_term(c: Column, term: exp.Expression) -> exp.Expression:
    """weight · term in the type that its sum is kept in."""
    if c.type == BIGINT:
        return spark_binary(exp.Mul, column(WEIGHT), term)
    if c.type.is_float:
        return spark_binary(exp.Mul, spark_cast(column(WEIGHT), c.type), term)
    weight = exp.Cast(this=column(WEIGHT), to=exp.DataType.build("DECIMAL(19,0)", dialect="spark"))
    return spark_cast(spark_binary(exp.Mul, weight, term), c.type)
