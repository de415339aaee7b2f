"""What a refresh would do, printed from the same steps that it runs. No Spark is started."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.catalog.records import OutputColumn, StreamTable
from headrace.definition import Definition
from headrace.plan.describe import describe
from headrace.refresh.plan import decide, plan_refresh
from headrace.steps import ComputeStage, Publish, Step, TakeCut


@dataclass(frozen=True)
class ExplainedStage:
    """One stage: what it reads, how it takes in a change, and the Spark SQL of its delta."""

    relation: str
    mode: str
    reason: str
    reads: tuple[str, ...]
    sql: str


@dataclass(frozen=True)
class Explanation:
    """A stream table's plan, and the steps of a refresh in which all of its inputs changed."""

    name: str
    query: str
    plan: str
    columns: tuple[OutputColumn, ...]
    key: tuple[str, ...]
    steps: tuple[str, ...]
    stages: tuple[ExplainedStage, ...]
    notices: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [f"stream table {self.name}", "", "columns"]
        parts += [f"  {c.name} {c.served}{_scale(c)}" for c in self.columns]
        parts += ["key", "  " + (", ".join(self.key) or "none: a bag of rows")]
        parts += ["plan", *("  " + line for line in self.plan.splitlines())]
        parts += ["steps of a refresh", *(f"  {i}. {s}" for i, s in enumerate(self.steps, 1))]
        for number, stage in enumerate(self.stages, 1):
            parts += ["", f"stage {number}: {stage.mode}, {stage.reason}"]
            parts += [f"  reads {', '.join(stage.reads)}"]
            parts += ["  " + line for line in stage.sql.splitlines()]
        parts += ["", *(f"notice: {notice}" for notice in self.notices)] if self.notices else []
        return "\n".join(parts)


def _scale(column: OutputColumn) -> str:
    """Numerics without a scale of their own are kept to a fixed one, which is shown."""
    if column.type.kind != "numeric" or column.type.declared:
        return ""
    how = "rounded" if column.type.rounded else "kept"
    return f" ({how} to {column.type.scale} digits after the point)"


def explain(
    table: StreamTable,
    definition: Definition,
    names: dict[str, str],
    notices: tuple[str, ...] = (),
) -> Explanation:
    """Explain a table that exists or is only asked about; `names` gives relations their names."""
    inputs = frozenset(table.inputs)
    filled = replace(table, epoch=max(table.epoch, 1))
    steps: tuple[Step, ...] = (
        TakeCut(table.inputs),
        *plan_refresh(filled, definition, decide(filled, None, inputs), inputs),
    )
    return Explanation(
        f"{table.schema}.{table.name}",
        table.query,
        describe(definition.plan, names),
        table.columns,
        table.key,
        tuple(_line(step, names) for step in steps),
        tuple(
            ExplainedStage(
                names.get(step.stage.relation, step.stage.relation),
                step.mode,
                step.reason,
                tuple(f"{i.version} of {names.get(i.relation, i.relation)}" for i in step.inputs),
                step.sql,
            )
            for step in steps
            if isinstance(step, ComputeStage)
        ),
        notices,
    )


def _line(step: Step, names: dict[str, str]) -> str:
    match step:
        case TakeCut(sources=sources):
            return "take a cut of " + ", ".join(names.get(s, s) for s in sources)
        case ComputeStage(stage=stage, mode=mode, reason=reason):
            return f"compute {names.get(stage.relation, stage.relation)} ({mode}: {reason})"
        case Publish(tables=tables):
            served = ", ".join(names.get(t, t) for t in tables)
            return f"publish {served}: pins, served rows and history in one transaction"
    raise TypeError(f"{type(step).__name__} is no step of a refresh")
