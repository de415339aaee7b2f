"""Stages: a plan cut at its stateful operators.

A stage is a region (linear and bilinear operators over relations) that may end in one aggregate,
followed by a tail computed row by row on its groups. Its output is a relation whose log holds

    without aggregate   c1, c2, …                the region's columns
    with aggregate      k1 …, n, s1 …, m1 …      the state: key, row count, sums, extrema
                        c1, c2, …, v             the visible columns, and whether HAVING holds

so the hidden state and what readers see are written, pinned and rolled back together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count

from headrace.functions import AGGREGATE_BY_NAME, Kept, call, state_type
from headrace.plan.compose import compose
from headrace.plan.operators import (
    STALE,
    Aggregate,
    Extremum,
    Filter,
    GroupState,
    Operator,
    Project,
    Scan,
)
from headrace.plan.scalar import Call, Column, Literal, Scalar, substitute
from headrace.types import BIGINT, BOOLEAN, Type

Outputs = tuple[tuple[Column, Scalar], ...]


@dataclass(frozen=True)
class Stage:
    """One query's worth of work: `relation` is written from what `region` reads.

    `outputs` are the visible columns over the columns of the state (or of the region, without
    one); `condition` is HAVING. `additive` says that a change can be added to the stored sums.
    """

    relation: str
    region: Operator
    outputs: tuple[tuple[Column, Scalar], ...]
    state: GroupState | None = None
    condition: Scalar | None = None
    additive: bool = True

    @property
    def stored(self) -> tuple[tuple[str, Column], ...]:
        """Every physical column of the relation with the plan's column."""
        return (*self.state_fields, *self.visible, *self._condition_field)

    @property
    def visible(self) -> tuple[tuple[str, Column], ...]:
        return tuple((f"c{i}", column) for i, (column, _) in enumerate(self.outputs, 1))

    @property
    def state_fields(self) -> tuple[tuple[str, Column], ...]:
        if self.state is None:
            return ()
        keys = tuple((f"k{i}", key) for i, key in enumerate(self.state.key_columns, 1))
        sums = tuple((f"s{i}", column) for i, (column, _) in enumerate(self.state.sums, 1))
        extrema = tuple((f"m{i}", each.column) for i, each in enumerate(self.state.extrema, 1))
        return (*keys, ("n", self.state.rows), *sums, *extrema)

    @property
    def may_be_stale(self) -> bool:
        """Whether a change can leave groups that only their rows can tell."""
        return self.state is not None and bool(self.state.extrema) and self.additive

    @property
    def condition_column(self) -> Column | None:
        return None if self.condition is None else Column("having", BOOLEAN)

    @property
    def _condition_field(self) -> tuple[tuple[str, Column], ...]:
        column = self.condition_column
        return () if column is None else (("v", column),)

    def tail(self, child: Operator) -> Project:
        """The stored columns computed from the state's (or the region's) columns.

        The column that marks stale groups, if the child has it, is kept at the end.
        """
        if self.state is None:
            return Project(child, self.outputs)
        kept = _same(self.state.columns)
        marks = _same(column for column in child.columns if column == STALE)
        known: Scalar | None = call("not", STALE) if marks else None
        if self.condition is None:
            return Project(child, (*kept, *_only_if(known, self.outputs), *marks))
        holds: Scalar = call("coalesce", self.condition, Literal(False, BOOLEAN))
        if known is not None:
            holds = call("case", known, holds, Literal(False, BOOLEAN))
        shown = _only_if(holds, self.outputs)
        assert self.condition_column is not None
        return Project(child, (*kept, *shown, (self.condition_column, holds), *marks))

    def shown(self) -> Operator:
        """What others read of this stage's output: the visible columns of the groups shown."""
        if self.condition_column is None:
            return Scan(self.relation, self.visible)
        rows = Scan(self.relation, (*self.visible, *self._condition_field))
        visible = _same(column for _, column in self.visible)
        return Project(Filter(rows, self.condition_column), visible)


def _same(columns: Iterable[Column]) -> Outputs:
    return tuple((column, column) for column in columns)


def _only_if(condition: Scalar | None, outputs: Outputs) -> Outputs:
    """NULL where the group is not shown: its expressions may raise and are nobody's business."""
    if condition is None:
        return outputs
    return tuple(
        (column, Call("case", (condition, value, Literal(None, value.type)), value.type))
        for column, value in outputs
    )


def cut_stages(plan: Operator, relation: str) -> tuple[Stage, ...]:
    """The stages of a plan in the order they are computed; the last writes `relation`.

    Hidden relations of the earlier ones are named after it.
    """
    earlier: list[Stage] = []
    numbers = count(1)

    def cut(node: Operator, name: str) -> Stage:
        peeled = _peel(node)
        if peeled is None:
            region = inner(node)
            return Stage(name, region, tuple((column, column) for column in region.columns))
        aggregate, outputs, condition = peeled
        region = inner(aggregate.child)
        return _aggregate_stage(name, region, aggregate, outputs, condition)

    def inner(node: Operator) -> Operator:
        """The region below: every aggregate in it becomes a relation of its own."""
        if _peel(node) is not None:
            stage = cut(node, f"{relation}h{next(numbers)}")
            earlier.append(stage)
            return stage.shown()
        return node.with_children(*(inner(child) for child in node.children))

    last = cut(plan, relation)
    return (*earlier, last)


def _peel(node: Operator) -> tuple[Aggregate, Outputs, Scalar | None] | None:
    """Projections and filters above an aggregate as one list of outputs and one condition.

    None where there is no aggregate, or where the expressions would become too large: then what
    is above belongs to the next stage.
    """
    match node:
        case Aggregate():
            return node, tuple((column, column) for column in node.columns), None
        case Project(child=child, outputs=outputs):
            peeled = _peel(child)
            if peeled is None:
                return None
            aggregate, below, condition = peeled
            composed = _composed(outputs, below)
            return None if composed is None else (aggregate, composed, condition)
        case Filter(child=child, condition=condition):
            peeled = _peel(child)
            if peeled is None:
                return None
            aggregate, below, earlier = peeled
            own = compose(condition, dict(below))
            if own is None:
                return None
            both = own if earlier is None else call("and", earlier, own)
            return aggregate, below, both
        case _:
            return None


def _composed(outputs: Outputs, below: Outputs) -> Outputs | None:
    composed: list[tuple[Column, Scalar]] = []
    for column, scalar in outputs:
        whole = compose(scalar, dict(below))
        if whole is None:
            return None
        composed.append((column, whole))
    return tuple(composed)


def _replacing(scalars: dict[Column, Scalar]) -> Callable[[Column], Scalar]:
    return lambda column: scalars.get(column, column)


def _aggregate_stage(
    name: str, region: Operator, aggregate: Aggregate, outputs: Outputs, condition: Scalar | None
) -> Stage:
    rows = Column("group_rows", BIGINT)
    sums: dict[Scalar, Column] = {Literal(1, BIGINT): rows}
    extrema: dict[tuple[Kept, Scalar], Extremum] = {}
    keys = tuple(
        (Column(f"group_key_{i}", key.type), key) for i, key in enumerate(aggregate.keys, 1)
    )
    values: dict[Column, Scalar] = {key: column for column, key in keys}
    for aggregate_call in aggregate.calls:
        function = AGGREGATE_BY_NAME[aggregate_call.function]
        columns: list[Column] = []
        for state in function.states(aggregate_call.argument):
            if state.kept == "sum":
                columns.append(_sum_column(state.term, sums))
            else:
                column = Column(
                    f"group_{state.kept}_{len(extrema) + 1}", aggregate_call.output.type
                )
                new = Extremum(column, state.kept, state.term, present=columns[-1])
                columns.append(extrema.setdefault((state.kept, state.term), new).column)
        values[aggregate_call.output] = function.value(tuple(columns), aggregate_call.output.type)
    kept = tuple((column, term) for term, column in sums.items() if column != rows)
    in_state = _replacing(values)
    return Stage(
        name,
        region,
        tuple((column, substitute(scalar, in_state)) for column, scalar in outputs),
        GroupState(keys, rows, kept, tuple(extrema.values())),
        None if condition is None else substitute(condition, in_state),
        additive=not any(column.type.is_float for column, _ in kept),
    )


def _sum_column(term: Scalar, sums: dict[Scalar, Column]) -> Column:
    """The column that keeps the sum of the term; equal terms share one."""
    return sums.setdefault(term, Column(f"group_sum_{len(sums)}", state_type(term.type)))


def stage_types(stage: Stage) -> tuple[tuple[str, Type], ...]:
    """The physical columns of the stage's relation with their types."""
    return tuple((physical, column.type) for physical, column in stage.stored)
