"""A stage: one query's worth of a plan, and what is stored of it.

A stage is a region (linear and bilinear operators over relations) that may end in one stateful
operator, followed by a tail computed row by row on what that gives. Its output is a relation whose
log holds

    no stateful operator   c1, c2, …             the region's columns
    an aggregate           k1 …, n, s1 …, m1 …   the state: key, row count, sums, extrema
                           h1 …                  and results that need all rows of the group
                           c1, c2, …, v          the visible columns, and whether HAVING holds
    a window or a top      k1 …                  the key of the partition that the row is in
                           t1, t2, …             the rows of a top that changes are merged with
                           c1, c2, …             the visible columns
    a loop over levels     l                     the level that the row is of
                           c1, c2, …             the visible columns
    a loop over sets       c1, c2, …             the visible columns

so the hidden state and what readers see are written, pinned and rolled back together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from headrace.algebra.scalar import Call, Column, Literal, Scalar
from headrace.functions import call
from headrace.plan.loop import LEVEL, Variable
from headrace.plan.operators import (
    STALE,
    Accumulate,
    Filter,
    GroupState,
    Operator,
    Project,
    Recursive,
    Scan,
    Top,
    Window,
)
from headrace.types import BOOLEAN, Type

Outputs = tuple[tuple[Column, Scalar], ...]


@dataclass(frozen=True)
class Partitions:
    """A window or a top, and the columns under which the keys of its partitions are stored.

    `rows` are the columns under which a top's rows are stored whole, if changes are merged with it.
    """

    operator: Window | Top
    keys: tuple[tuple[Column, Column], ...]
    rows: tuple[tuple[Column, Column], ...] = ()


@dataclass(frozen=True)
class Stage:
    """One query's worth of work: `relation` is written from what `region` reads.

    It ends in groups (`state`), in partitions, or in neither. `outputs` are the visible columns
    over the columns of the state, of the partitions' operator, or of the region; `condition` says
    which of these rows are shown. `additive` says that a change can be added to the stored sums.

    A stage with a `variable` is computed by a loop: one of its own, or with `cycle` the one that
    computes all stream tables of a cycle. A `recursion` that no loop can follow is recomputed
    whenever something below it changes; `obstacle` says why. One that is `stratified` reads
    something outside of which more rows can mean fewer of its own.
    """

    relation: str
    region: Operator
    outputs: tuple[tuple[Column, Scalar], ...]
    state: GroupState | None = None
    partitions: Partitions | None = None
    condition: Scalar | None = None
    additive: bool = True
    variable: Variable | None = None
    levels: bool = False
    cycle: bool = False
    recursion: Recursive | None = None
    obstacle: str | None = None
    stratified: bool = False

    @property
    def stored(self) -> tuple[tuple[str, Column], ...]:
        """Every physical column of the relation with the plan's column."""
        return (*self.state_fields, *self.visible, *self._condition_field)

    @property
    def visible(self) -> tuple[tuple[str, Column], ...]:
        return tuple((f"c{i}", column) for i, (column, _) in enumerate(self.outputs, 1))

    @property
    def keys(self) -> tuple[tuple[Column, Column], ...]:
        """What is recomputed together: stored columns with the region's columns they come from."""
        grouping = self.state or self.partitions
        return () if grouping is None else grouping.keys

    @property
    def state_fields(self) -> tuple[tuple[str, Column], ...]:
        if self.levels:
            return ((LEVEL, self.region.columns[-1]),)
        keys = tuple((f"k{i}", key) for i, (key, _) in enumerate(self.keys, 1))
        if self.state is None:
            rows = () if self.partitions is None else self.partitions.rows
            return (*keys, *((f"t{i}", column) for i, (column, _) in enumerate(rows, 1)))
        sums = tuple((f"s{i}", column) for i, (column, _) in enumerate(self.state.sums, 1))
        extrema = tuple((f"m{i}", each.column) for i, each in enumerate(self.state.extrema, 1))
        calls = tuple((f"h{i}", call.output) for i, call in enumerate(self.state.calls, 1))
        return (*keys, ("n", self.state.rows), *sums, *extrema, *calls)

    @property
    def may_be_stale(self) -> bool:
        """Whether a change can leave groups that must be recomputed from their rows."""
        if self.partitions is not None:
            return self.additive
        return self.state is not None and bool(self.state.extrema) and self.additive

    @property
    def condition_column(self) -> Column | None:
        """Groups that are not shown stay in the state; other rows that are not shown are gone."""
        if self.condition is None or self.state is None:
            return None
        return Column("having", BOOLEAN)

    @property
    def _condition_field(self) -> tuple[tuple[str, Column], ...]:
        column = self.condition_column
        return () if column is None else (("v", column),)

    def tail(self, child: Operator) -> Project:
        """Return the stored columns computed from the state's (or the region's) columns.

        The column that marks stale groups, if the child has it, is kept at the end.
        """
        if self.state is None:
            filtered = child if self.condition is None else Filter(child, self.condition)
            rows = () if self.partitions is None else self.partitions.rows
            marks = _same(column for column in child.columns if column == STALE)
            return Project(filtered, (*self.keys, *rows, *self.outputs, *marks))
        state_columns = _same(self.state.columns)
        marks = _same(column for column in child.columns if column == STALE)
        is_current: Scalar | None = call("not", STALE) if marks else None
        if self.condition is None:
            return Project(child, (*state_columns, *_only_if(is_current, self.outputs), *marks))
        holds: Scalar = call("coalesce", self.condition, Literal(False, BOOLEAN))
        if is_current is not None:
            holds = call("case", is_current, holds, Literal(False, BOOLEAN))
        assert self.condition_column is not None
        visible = _only_if(holds, self.outputs)
        return Project(child, (*state_columns, *visible, (self.condition_column, holds), *marks))

    def computed(self, rows: Operator) -> Operator:
        """Return the stored columns from the region's rows, netted if groups count their rows."""
        if self.partitions is not None:
            return self.tail(replace(self.partitions.operator, child=rows))
        return self.tail(rows if self.state is None else Accumulate(rows, self.state))

    def shown(self) -> Operator:
        """Return the plan that readers of the stage scan: visible columns of the groups shown."""
        if self.condition_column is None:
            return Scan(self.relation, self.visible)
        rows = Scan(self.relation, (*self.visible, *self._condition_field))
        visible = _same(column for _, column in self.visible)
        return Project(Filter(rows, self.condition_column), visible)


def _same(columns: Iterable[Column]) -> Outputs:
    return tuple((column, column) for column in columns)


def _only_if(condition: Scalar | None, outputs: Outputs) -> Outputs:
    """Return the outputs, NULL where the group is not shown: there expressions may raise."""
    if condition is None:
        return outputs
    return tuple(
        (column, Call("case", (condition, value, Literal(None, value.type)), value.type))
        for column, value in outputs
    )


def stage_types(stage: Stage) -> tuple[tuple[str, Type], ...]:
    """Return the physical columns of the stage's relation with their types."""
    return tuple((physical, column.type) for physical, column in stage.stored)
