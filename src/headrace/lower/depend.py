"""depend: an inner query for many rows at once; conditions on the enclosing row move to its top.

pull: conditions on the enclosing row move from inside a query to its top.

    σ[e = outer(s) ∧ q](R)   →   σ[q](R)  and the condition  e = outer(s)

The rest is a query of its own, and the conditions become those of a join with it.

depend: D holds, once each, the values that the inner query reads of the enclosing rows. Instead of
evaluating Q(d) for each of them, D is pushed into Q, and every row carries the d that it is for:

    depend(Q)  =  Σ over d in D of  Q(d) × {d}

| operator | rule |
|---|---|
| a plan that reads no enclosing column | D × Q |
| Filter, Project, Unnest, Replicate | over depend(child), the columns of d kept |
| Join | D on the side that needs it; on both, joined also on d |
| OuterSemiAntiJoin | D on the preserved side |
| FullJoin | as the left and the anti join that it is |
| Aggregate, Window, Top | d joins the keys; an aggregate without keys has a row for every d |
| UnionAll | each input |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from headrace.algebra.scalar import Column, Outer, Scalar, columns_of, map_outers, outer_reads, walk
from headrace.lower.build import Fresh, conjunction, keep, on_empty_input, same, selects
from headrace.plan.operators import (
    Aggregate,
    Filter,
    FullJoin,
    Join,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Replicate,
    Top,
    UnionAll,
    Unnest,
    Values,
    Window,
)
from headrace.plan.passes.push_filters import conjuncts
from headrace.plan.rename import made_in, renamed


def is_correlated(plan: Operator) -> bool:
    """Return whether the plan reads anything of the query around it."""
    return next(outer_reads(plan), None) is not None


def reads_outside(scalar: Scalar) -> bool:
    return any(isinstance(node, Outer) for node in walk(scalar))


def pull(plan: Operator) -> tuple[Operator, tuple[Scalar, ...]] | None:
    """Return the plan without the conditions that read the enclosing row, and these conditions.

    The plan keeps its columns, and gains those that the conditions read. None if it reads the
    enclosing row anywhere else.
    """
    if not is_correlated(plan):
        return plan, ()
    match plan:
        case Filter(child=child, condition=condition):
            below = pull(child)
            if below is None:
                return None
            inside, pulled = below
            terms = conjuncts(condition)
            own = conjunction(term for term in terms if not reads_outside(term))
            outward = tuple(term for term in terms if reads_outside(term))
            return inside if own is None else Filter(inside, own), (*pulled, *outward)
        case Project(child=child, outputs=outputs):
            if any(reads_outside(scalar) for _, scalar in outputs):
                return None
            below = pull(child)
            if below is None:
                return None
            inside, pulled = below
            return Project(inside, (*outputs, *_read(pulled, inside, plan))), pulled
        case Join(left=left, right=right, condition=condition):
            below_left, below_right = pull(left), pull(right)
            if below_left is None or below_right is None:
                return None
            (first, from_left), (second, from_right) = below_left, below_right
            terms = () if condition is None else conjuncts(condition)
            own = conjunction(term for term in terms if not reads_outside(term))
            outward = tuple(term for term in terms if reads_outside(term))
            return Join(first, second, own), (*from_left, *from_right, *outward)
        case OuterSemiAntiJoin(left=left, right=right, condition=condition):
            if is_correlated(right) or (condition is not None and reads_outside(condition)):
                return None
            below = pull(left)
            return None if below is None else (plan.with_children(below[0], right), below[1])
        case _:
            return None


def _read(
    conditions: tuple[Scalar, ...], inside: Operator, outer: Operator
) -> tuple[tuple[Column, Column], ...]:
    """Return the columns that conditions read and a projection would drop."""
    read = frozenset[Column]().union(*map(columns_of, conditions))
    output_columns = frozenset(outer.columns)
    return tuple((c, c) for c in inside.columns if c in read and c not in output_columns)


Carried = tuple[Operator, tuple[Column, ...]]
"""A plan whose rows carry the enclosing values that they are for, and the columns of these."""


@dataclass(frozen=True)
class Depend:
    """Pushes D into inner queries.

    `values` is D: a plan whose columns stand for `reads`, expressions of the enclosing query.
    """

    fresh: Fresh
    values: Operator
    reads: tuple[Scalar, ...]

    def plan(self, plan: Operator) -> Carried:
        """Return the inner query for every d, its own columns first, then those of d."""
        carried, keys = self._carry(plan)
        return keep(carried, (*plan.columns, *keys)), keys

    def _copy(self) -> Carried:
        """Return D under columns of its own, as every place that D is joined at needs them.

        The columns inside D are renamed, too: they are the enclosing query's, which stands beside
        the inner query.
        """
        names = {column: self.fresh("outer", column.type) for column in made_in(self.values)}
        copy = renamed(self.values, names)
        return copy, copy.columns

    def _carry(self, plan: Operator) -> Carried:
        if not is_correlated(plan):
            values, keys = self._copy()
            return values if plan == Values((), ((),)) else Join(values, plan), keys
        match plan:
            case Filter(child=child):
                carried, keys = self.plan(child)
                return Filter(carried, self._bound(plan.condition, keys)), keys
            case Project(child=child, outputs=outputs):
                carried, keys = self.plan(child)
                bound = tuple((c, self._bound(scalar, keys)) for c, scalar in outputs)
                return Project(carried, (*bound, *((key, key) for key in keys))), keys
            case Unnest(child=child) | Replicate(child=child):
                carried, keys = self.plan(child)
                scalars = tuple(self._bound(scalar, keys) for scalar in plan.scalars)
                return plan.with_children(carried).with_scalars(scalars), keys
            case Values():
                return self._union(selects(plan))
            case Join():
                return self._join(plan)
            case OuterSemiAntiJoin():
                return self._match(plan)
            case FullJoin():
                return self.plan(plan.divided())
            case Aggregate():
                return self._aggregate(plan)
            case Window(child=child, keys=own) | Top(child=child, keys=own):
                carried, keys = self.plan(child)
                return replace(plan, child=carried, keys=(*own, *keys)), keys
            case UnionAll(inputs=inputs):
                return self._union(inputs)
        raise TypeError(f"{type(plan).__name__} cannot depend on an enclosing row")

    def _bound(self, scalar: Scalar, keys: tuple[Column, ...]) -> Scalar:
        places: Mapping[Scalar, Column] = dict(zip(self.reads, keys, strict=True))
        return map_outers(scalar, lambda outer: bound(outer, places))

    def _join(self, plan: Join) -> Carried:
        left, right = plan.left, plan.right
        if is_correlated(left) and is_correlated(right):
            (left, keys), (right, others) = self.plan(left), self.plan(right)
        elif is_correlated(right):
            right, keys = self.plan(right)
            others = keys
        else:
            left, keys = self.plan(left)
            others = keys
        terms = () if plan.condition is None else (self._bound(plan.condition, keys),)
        both = () if others is keys else same(keys, others)
        return Join(left, right, conjunction((*terms, *both))), keys

    def _match(self, plan: OuterSemiAntiJoin) -> Carried:
        left, keys = self.plan(plan.left)
        terms = () if plan.condition is None else (self._bound(plan.condition, keys),)
        right = plan.right
        if is_correlated(right):
            right, others = self.plan(right)
            terms = (*terms, *same(keys, others))
        return OuterSemiAntiJoin(left, right, plan.kind, conjunction(terms)), keys

    def _aggregate(self, plan: Aggregate) -> Carried:
        carried, keys = self.plan(plan.child)
        groups = Aggregate(carried, (*plan.keys, *keys), plan.calls)
        if plan.keys:
            return groups, keys
        values, own = self._copy()
        matched = OuterSemiAntiJoin(values, groups, "left", conjunction(same(own, keys)))
        call_outputs = tuple((call.output, on_empty_input(call)) for call in plan.calls)
        return Project(matched, (*call_outputs, *((key, key) for key in own))), own

    def _union(self, inputs: tuple[Operator, ...]) -> Carried:
        columns = inputs[0].columns
        keys = tuple(self.fresh("outer", column.type) for column in self.values.columns)
        branches = []
        for branch in inputs:
            carried, own = self.plan(branch)
            outputs = (*zip(columns, columns, strict=True), *zip(keys, own, strict=True))
            branches.append(Project(carried, outputs))
        return UnionAll(tuple(branches)) if len(branches) > 1 else branches[0], keys


def bound(outer: Outer, places: Mapping[Scalar, Scalar]) -> Scalar:
    """Return the column that stands for an expression of the enclosing query.

    An expression that reads only queries further out stays as it is.
    """
    return places.get(outer.scalar, outer.scalar)
