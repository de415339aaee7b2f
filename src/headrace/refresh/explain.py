"""Explain a refresh from the same steps that it runs. No Spark is started."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from headrace.catalog.records import OutputColumn, Refresh
from headrace.delta.loop import rounds
from headrace.engine.steps import ComputeLoop, ComputeStage, Publish, Step, TakeCut
from headrace.graph.components import Group
from headrace.graph.network import Network, NetworkEdge
from headrace.plan.describe import describe
from headrace.plan.operators import Operator, Scan
from headrace.plan.stage import Stage
from headrace.publish.served_key import ServedKey, served_key
from headrace.refresh.cost_history import Outlook
from headrace.refresh.plan import decide, plan_cycle, plan_refresh
from headrace.relations.definition import Definition
from headrace.render import PlanInput, inputs_of, render


@dataclass(frozen=True)
class ExplainedStage:
    """One stage: what it reads, how it takes in a change, and the Spark SQL of its delta.

    `read_by` has the stages that read it, each with in how many places.
    """

    relation: str
    mode: str
    reason: str
    reads: tuple[str, ...]
    sql: str
    read_by: tuple[tuple[str, int], ...] = ()

    @property
    def places(self) -> int:
        """The number of places of the query in which its rows are read."""
        return sum(times for _, times in self.read_by)


@dataclass(frozen=True)
class Explanation:
    """A stream table's plan, and the steps of a refresh in which all of its inputs changed.

    Its place among other stream tables is its stratum, how it depends on each table that it reads,
    the component of tables that read each other and the group of several tables, if it is in one.
    `outlook` says how each refresh is chosen, `found` by which access path rows were last found by
    their keys; a query without a table has neither.
    """

    name: str
    query: str
    plan: str
    columns: tuple[OutputColumn, ...]
    key: tuple[str, ...]
    steps: tuple[str, ...]
    stages: tuple[ExplainedStage, ...]
    notices: tuple[str, ...] = ()
    stratum: int = 0
    scc_id: int | None = None
    edges: tuple[NetworkEdge, ...] = ()
    group: int | None = None
    group_others: tuple[str, ...] = ()
    outlook: Outlook | None = None
    found: tuple[str, ...] = ()
    partition_by: str | None = None
    group_declared: str | None = None
    index: ServedKey | None = None

    def __str__(self) -> str:
        parts = [f"stream table {self.name}", "", "columns"]
        parts += [f"  {c.name} {c.served}{_scale(c)}" for c in self.columns]
        without = "none: a bag of rows" if self.scc_id is None else "none: a set of rows"
        parts += ["key", "  " + (", ".join(self.key) or without)]
        if self.index is not None and self.index.is_user_requested:
            parts += ["index", f"  {self.index}"]
        parts += ["partitions", f"  by {self.partition_by}"] if self.partition_by else []
        parts += ["reads", *(f"  {_edge(edge)}" for edge in self.edges)] if self.edges else []
        parts += ["stratum", f"  {self.stratum}"]
        if self.scc_id is not None:
            parts += ["cycle", f"  member of component {self.scc_id}: every row once"]
        parts += ["group"] if self.group is not None or self.group_declared is not None else []
        if self.group is not None:
            parts += [
                f"  member of group {self.group}, with {', '.join(self.group_others)}",
            ]
        if self.group_declared is not None:
            parts += [f"  declared to be of group {self.group_declared}"]
        if self.outlook is not None:
            parts += ["incremental or full", *(f"  {line}" for line in self.outlook.lines())]
        parts += ["rows last found by keys", *(f"  {f}" for f in self.found)] if self.found else []
        parts += ["plan", *("  " + line for line in self.plan.splitlines())]
        parts += ["steps of a refresh", *(f"  {i}. {s}" for i, s in enumerate(self.steps, 1))]
        for number, stage in enumerate(self.stages, 1):
            parts += ["", f"stage {number}: {stage.mode}, {stage.reason}"]
            parts += [f"  reads {', '.join(stage.reads)}"]
            if stage.places > 1:
                readers = ", ".join(f"{name} ({times})" for name, times in stage.read_by)
                parts += [f"  {stage.relation}, shared by {stage.places} places: {readers}"]
            parts += ["  " + line for line in stage.sql.splitlines()]
        parts += ["", *(f"notice: {notice}" for notice in self.notices)] if self.notices else []
        return "\n".join(parts)


def _scale(column: OutputColumn) -> str:
    """Return the fixed scale of a numeric without a scale of its own, as a remark on the column."""
    if column.type.kind != "numeric" or column.type.declared:
        return ""
    how = "rounded" if column.type.rounded else "kept"
    return f" ({how} to {column.type.scale} digits after the point)"


def explain(
    group: Group,
    definitions: tuple[Definition, ...],
    names: dict[str, str],
    notices: tuple[str, ...] = (),
    *,
    follow: bool = True,
    growing: frozenset[str] = frozenset(),
) -> Explanation:
    """Explain a table, or a query before a table is made; `names` gives relations their names.

    The table is the first of `group`, which has all tables of its cycle if it is in one. Of its
    inputs those `growing` are expected to gain rows only.
    """
    table, definition = group[0], definitions[0]
    own = frozenset(table.relation for table in group)
    inputs = frozenset(i for table in group for i in table.inputs) - own
    filled = tuple(replace(table, epoch=max(table.epoch, 1)) for table in group)
    decision = decide(filled, None, inputs)
    if definition.final.cycle:
        planned = plan_cycle(
            definitions, decision, inputs, stored=True, follow=follow, growing=growing
        )
    else:
        planned = plan_refresh(
            filled[0], definition, decision, inputs, follow=follow, growing=growing
        )
    read = dict.fromkeys(i for table in group for i in table.inputs if i in inputs)
    steps: tuple[Step, ...] = (TakeCut(tuple(read)), *planned)
    return Explanation(
        f"{table.schema}.{table.name}",
        table.query,
        describe(definition.plan, names),
        table.columns,
        table.key,
        tuple(_line(step, names) for step in steps),
        tuple(
            _stage(step, definition, names)
            for step in steps
            if isinstance(step, ComputeStage | ComputeLoop)
        ),
        notices,
        partition_by=table.options.get("partition_by"),
        index=served_key(table),
    )


def found_by_keys(refreshes: Iterable[Refresh], names: Mapping[str, str]) -> tuple[str, ...]:
    """Return lines on the inputs of the first of the refreshes that looked up rows by keys."""
    stages = next(
        (refresh.stages for refresh in refreshes if any(s.accesses for s in refresh.stages)), ()
    )
    return tuple(
        f"{access.version} of {names.get(access.relation, access.relation)}:"
        f" {access.kept:,} of {access.rows:,} rows, by {access.keys:,} keys ({access.way})"
        for stage in stages
        for access in stage.accesses
    )


def _stage(
    step: ComputeStage | ComputeLoop, definition: Definition, names: dict[str, str]
) -> ExplainedStage:
    relation = definition.relation
    if isinstance(step, ComputeLoop):
        own = [stage for stage in step.stages if stage.relation == relation]
        stage = own[0] if own else step.stages[-1]
        inputs, sql = inputs_of(stage.region), _rounds(step, stage)
    else:
        stage, inputs, sql = step.stage, step.inputs, step.sql
    return ExplainedStage(
        names.get(stage.relation, stage.relation),
        step.mode,
        step.reason,
        tuple(_read(plan_input, step, names) for plan_input in inputs),
        sql,
        tuple(
            (names.get(reader.relation, reader.relation), times)
            for reader in definition.stages
            if (times := _times(stage.relation, reader.region))
        ),
    )


def _times(relation: str, plan: Operator) -> int:
    """Return how often a plan scans the relation."""
    here = isinstance(plan, Scan) and plan.relation == relation
    return here + sum(_times(relation, child) for child in plan.children)


def _read(plan_input: PlanInput, step: ComputeStage | ComputeLoop, names: dict[str, str]) -> str:
    """Return an input, and the columns by which the rows that a change reaches are looked up."""
    read = f"{plan_input.version} of {names.get(plan_input.relation, plan_input.relation)}"
    reach = step.reduction if isinstance(step, ComputeStage) else None
    if reach is None or (plan_input.relation, plan_input.version) in reach.whole:
        return read
    columns = {
        ", ".join(_names(restriction.scan, restriction.columns)): None
        for restriction in reach.restrictions
        if (restriction.scan.relation, restriction.scan.version)
        == (plan_input.relation, plan_input.version)
    }
    return f"{read} by {' or '.join(columns)}" if columns else read


def _names(scan: Scan, columns: tuple[str, ...]) -> Iterator[str]:
    """Yield the plan's names of physical columns, without the number of the occurrence."""
    columns_by_name = dict(scan.fields)
    for column in columns:
        yield re.sub(r"(_v?\d+)?(_c\d+)?$", "", columns_by_name[column].id)


def _rounds(step: ComputeLoop, stage: Stage) -> str:
    """Return the queries of a loop's rounds, each under the name of the rows that it finds."""
    loop = step.loop
    if loop is None or stage.variable is None:
        return describe(stage.region)
    plans = rounds(loop, stage.variable, step.changed)
    return "\n".join(f"-- {name}\n{render(plan)}" for name, plan in plans.items())


def placed(explanation: Explanation, network: Network, name: str) -> Explanation:
    """Return the explanation with the table's place among all others."""
    group = network.group(name)
    members = () if group is None else network.groups[group - 1].members
    return replace(
        explanation,
        stratum=network.strata[name],
        scc_id=network.component(name).id,
        edges=tuple(edge for edge in network.edges if edge.reader == name),
        group=group,
        group_others=tuple(member for member in members if member != name),
        group_declared=network.declared.get(name),
    )


def _edge(edge: NetworkEdge) -> str:
    how = "monotone" if edge.monotone else f"not monotone ({', '.join(edge.operators)})"
    return f"{edge.read}: {how}"


def _line(step: Step, names: dict[str, str]) -> str:
    match step:
        case TakeCut(sources=sources):
            return "take a cut of " + ", ".join(names.get(s, s) for s in sources)
        case ComputeStage(stage=stage, mode=mode, reason=reason):
            return f"compute {names.get(stage.relation, stage.relation)} ({mode}: {reason})"
        case ComputeLoop(stages=stages, mode=mode, reason=reason):
            loops = ", ".join(names.get(s.relation, s.relation) for s in stages)
            return f"compute {loops} in rounds ({mode}: {reason})"
        case Publish(tables=tables):
            served = ", ".join(names.get(t, t) for t in tables)
            return f"publish {served}: pins, served rows and history in one transaction"
    raise TypeError(f"{type(step).__name__} is no step of a refresh")
