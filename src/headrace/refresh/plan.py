"""What a refresh has to do, decided from records alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from headrace.catalog.records import RefreshMode, StreamTable
from headrace.definition import Definition
from headrace.delta.differentiate import relations_of, stage_change, stage_full
from headrace.plan.operators import Net, Operator, Scan
from headrace.plan.stages import Stage
from headrace.render import inputs_of, render
from headrace.steps import ComputeStage, Mode, Publish, Step


@dataclass(frozen=True)
class Decision:
    """Which way a refresh goes, and why."""

    mode: Mode
    reason: str


def decide(table: StreamTable, asked: RefreshMode | None, changed: frozenset[str]) -> Decision:
    """Full or differential, from the table's own mode, the mode asked for and what changed."""
    wanted = asked or table.refresh_mode
    if table.epoch == 0:
        return Decision("FULL", "first refresh")
    if asked is RefreshMode.FULL:
        return Decision("FULL", "asked for")
    if not changed:
        return Decision("SKIPPED", "no input changed")
    if wanted is RefreshMode.FULL:
        return Decision("FULL", "refresh_mode is FULL")
    return Decision("DIFFERENTIAL", "every stage is maintained incrementally")


def plan_refresh(
    table: StreamTable, definition: Definition, decision: Decision, changed: frozenset[str]
) -> tuple[Step, ...]:
    """The steps after the cut. `changed` are the inputs with rows beyond the table's frontier.

    A stage whose inputs did not change is left out; one that runs counts as changed for the
    stages above it.
    """
    if decision.mode == "SKIPPED":
        return ()
    computed = _computed(definition, decision, changed, table.epoch > 0)
    return (*computed, Publish((table.relation,)))


@lru_cache(maxsize=1024)
def _computed(
    definition: Definition, decision: Decision, changed: frozenset[str], stored: bool
) -> tuple[ComputeStage, ...]:
    """The computing steps, remembered: the same change of the same table is the same text."""
    steps: list[ComputeStage] = []
    moved = set(changed)
    for stage in definition.stages:
        if decision.mode == "FULL":
            plan = stage_full(stage, stored=stored)
        elif relations_of(stage.region) & moved:
            plan = stage_change(stage, frozenset(moved))
        else:
            continue
        moved.add(stage.relation)
        steps.append(compute(stage, decision, plan))
    return tuple(steps)


def compute(stage: Stage, decision: Decision, plan: Operator) -> ComputeStage:
    """The step that evaluates `plan` for a stage."""
    names = tuple(physical for physical, _ in stage.stored)
    reason = decision.reason if decision.mode == "FULL" else strategy(stage)
    return ComputeStage(stage, decision.mode, reason, plan, inputs_of(plan), render(plan, names))


def strategy(stage: Stage) -> str:
    """How a stage takes in a change, in words."""
    if stage.state is None:
        return "rows follow the change of their inputs"
    if stage.additive:
        return "changes are added to the stored sums of touched groups"
    return "touched groups are recomputed: float sums cannot be subtracted from"


def netted(plan: Operator, relations: frozenset[str]) -> Operator:
    """The plan with the changes of these relations netted by the query itself."""
    if isinstance(plan, Scan):
        large = plan.version == "change" and plan.relation in relations
        return Net(plan) if large else plan
    return plan.with_children(*(netted(child, relations) for child in plan.children))
