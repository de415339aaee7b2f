"""lower: every query inside an expression becomes a join.

| written | lowered |
|---|---|
| WHERE … AND [NOT] EXISTS, [NOT] IN, ANY, ALL | semi and anti joins |
| any of them elsewhere, a scalar subquery | its value beside the row (`value`) |
| LATERAL, of an aggregate | a left join with its groups (`value`) |
| LATERAL | a join |
| VALUES with any of them | SELECTs without FROM |
| EXCEPT, INTERSECT | counted groups; in a recursive query matches |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headrace.algebra.scalar import (
    Call,
    Literal,
    Scalar,
    Subquery,
    columns_of,
    map_outer,
    outer_scalars,
)
from headrace.errors import UserError
from headrace.functions import call
from headrace.lower.build import Fresh, conjunction, keep, selects
from headrace.lower.correlate import correlate, inline, inline_kept, inward
from headrace.lower.set_operations import as_matches, counted
from headrace.lower.value import attach_row, attach_value
from headrace.plan.operators import (
    Filter,
    FullJoin,
    Join,
    Matching,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Recursive,
    UnionAll,
    Values,
)
from headrace.plan.passes.push_filters import conjuncts
from headrace.plan.surface_operators import Lateral, SetOperation
from headrace.types import BOOLEAN

FALSE, TRUE = Literal(False, BOOLEAN), Literal(True, BOOLEAN)


def lower(plan: Operator, fresh: Fresh) -> Operator:
    """Return the plan without `Subquery`, `Outer`, `Lateral` and `SetOperation`.

    The rows and columns are the same.
    """
    return Lowering(fresh).plan(plan)


@dataclass(frozen=True)
class Lowering:
    fresh: Fresh

    def plan(self, plan: Operator) -> Operator:
        """Return the plan lowered, but for what it reads of a query around it."""
        if isinstance(plan, Recursive):
            # A loop can maintain matches of its own rows, but no counts.
            plan = replace(plan, step=as_matches(plan.step, self.fresh))
        plan = plan.with_children(*(self.plan(child) for child in plan.children))
        if isinstance(plan, SetOperation):
            return counted(plan, self.fresh)
        if not any(_has_subquery(scalar) for scalar in plan.scalars):
            return plan
        match plan:
            case Lateral():
                return self._lateral(plan)
            case Filter():
                return self._filter(plan)
            case Join():
                terms = () if plan.condition is None else conjuncts(plan.condition)
                plain = conjunction(term for term in terms if not _has_subquery(term))
                others = conjunction(term for term in terms if _has_subquery(term))
                assert others is not None
                return self._filter(Filter(replace(plan, condition=plain), others))
            case OuterSemiAntiJoin():
                return self._match(plan)
            case FullJoin():
                return self.plan(plan.divided())
            case Values():
                return self.plan(UnionAll(selects(plan)))
        (child,) = plan.children
        attached, scalars = self._values(child, child, plan.scalars)
        whole = plan.with_children(attached).with_scalars(tuple(scalars))
        return whole if isinstance(plan, Project) else keep(whole, plan.columns)

    def _filter(self, plan: Filter) -> Operator:
        terms = conjuncts(plan.condition)
        plain = conjunction(term for term in terms if not _has_subquery(term))
        rows = plan.child if plain is None else Filter(plan.child, plain)
        enclosing = rows
        others: list[Scalar] = []
        for term in terms:
            match term:
                case Subquery(kind="exists" | "any"):
                    rows = self._existence(rows, enclosing, term, "semi")
                case Call(function="not", arguments=(Subquery(kind="exists" | "any") as inner,)):
                    rows = self._existence(rows, enclosing, inner, "anti")
                case _ if _has_subquery(term):
                    others.append(term)
        rows, values = self._values(rows, enclosing, others)
        condition = conjunction(values)
        return keep(rows if condition is None else Filter(rows, condition), plan.columns)

    def _existence(
        self, rows: Operator, enclosing: Operator, subquery: Subquery, kind: Matching
    ) -> Operator:
        """Return rows by whether the subquery is true (semi) or false (anti) for them.

        NOT IN is false for a row as soon as some comparison is not false, NULL included.
        """
        inner = correlate(self.plan(subquery.plan), enclosing, self.fresh)
        conditions = inner.conditions
        if subquery.test is not None:
            rows, (test,) = self._values(rows, enclosing, (inward(subquery.test),))
            if kind == "anti":
                test = call("not", call("is not distinct from", test, FALSE))
            conditions = (*conditions, test)
        return OuterSemiAntiJoin(rows, inner.plan, kind, conjunction(conditions))

    def _values(
        self, rows: Operator, enclosing: Operator, scalars: Sequence[Scalar]
    ) -> tuple[Operator, list[Scalar]]:
        """Return the rows with the columns that subqueries need, and the expressions over them."""
        values: dict[Scalar, Scalar] = {}
        for scalar in scalars:
            for node in _subqueries(scalar):
                if node not in values:
                    rows, values[node] = self._value(rows, enclosing, node)
        return rows, [_replaced(scalar, values) for scalar in scalars]

    def _value(
        self, rows: Operator, enclosing: Operator, subquery: Subquery
    ) -> tuple[Operator, Scalar]:
        nested = [read for read in outer_scalars(subquery) if _has_subquery(read)]
        if nested:
            # The value that the subquery is compared with is itself that of a subquery.
            rows, nested_values = self._values(rows, enclosing, nested)
            enclosing = rows
            reads = dict(zip(nested, nested_values, strict=True))
            subquery = map_outer(subquery, lambda read: reads.get(read, read))
        lowered = replace(subquery, plan=self.plan(subquery.plan))
        return attach_value(rows, enclosing, lowered, self.fresh)

    def _match(self, plan: OuterSemiAntiJoin) -> Operator:
        """Return the outer join, with subqueries of its condition on the side that they read."""
        assert plan.condition is not None
        left, right = plan.left, plan.right
        condition = plan.condition
        for node in _subqueries(plan.condition):
            if columns_of(node) <= frozenset(right.columns):
                right, (value,) = self._values(right, plan.right, (node,))
            elif columns_of(node) <= frozenset(left.columns):
                left, (value,) = self._values(left, plan.left, (node,))
            else:
                raise _refusal("a subquery that reads both sides of an outer join")
            condition = _replaced(condition, {node: value})
        return keep(OuterSemiAntiJoin(left, right, plan.kind, condition), plan.columns)

    def _lateral(self, plan: Lateral) -> Operator:
        rows = self.plan(plan.rows.plan)
        always = plan.condition is None or plan.condition == TRUE
        if plan.keep:
            attached = inline_kept(rows, plan.child) if always else None
        else:
            attached = inline(rows, plan.child)
        if attached is None and (always or not plan.keep):
            attached = attach_row(plan.child, rows, self.fresh, padded=plan.keep)
        if attached is not None:
            if plan.condition is not None and not always:
                attached = self._filter(Filter(attached, plan.condition))
            return keep(attached, plan.columns)
        inner = correlate(rows, plan.child, self.fresh)
        own = () if plan.condition is None else (plan.condition,)
        condition = conjunction((*inner.conditions, *own))
        if plan.keep:
            joined: Operator = OuterSemiAntiJoin(plan.child, inner.plan, "left", condition)
        else:
            joined = Join(plan.child, inner.plan, condition)
        if any(map(_has_subquery, own)):
            joined = self.plan(joined)
        return keep(joined, plan.columns)


def _subqueries(scalar: Scalar) -> Iterator[Subquery]:
    """Return the subqueries of an expression that stand inside no other."""
    if isinstance(scalar, Subquery):
        yield scalar
    elif isinstance(scalar, Call):
        for argument in scalar.arguments:
            yield from _subqueries(argument)


def _has_subquery(scalar: Scalar) -> bool:
    return next(_subqueries(scalar), None) is not None


def _replaced(scalar: Scalar, values: dict[Scalar, Scalar]) -> Scalar:
    if scalar in values:
        return values[scalar]
    if isinstance(scalar, Call):
        return replace(scalar, arguments=tuple(_replaced(a, values) for a in scalar.arguments))
    return scalar


def _refusal(what: str) -> UserError:
    return UserError(
        "unsupported-query",
        f"{what} is not maintained",
        hint="Make the inner query a stream table of its own.",
    )
