"""Plan the steps of a refresh, from records alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

from headrace.catalog.records import RefreshMode, Status, StreamTable
from headrace.delta.differentiate import (
    Differentiation,
    only_grows,
    relations_of,
    stage_change,
    stage_full,
    stale_change,
)
from headrace.delta.reduction import reduction
from headrace.engine.steps import ComputeLoop, ComputeStage, Mode, Publish, Step
from headrace.plan.operators import STALE, FullJoin, Net, Operator, OuterSemiAntiJoin, Scan, Top
from headrace.plan.stage import Partitions
from headrace.plan.stages import Stage
from headrace.refresh.strategy import INCREMENTAL
from headrace.relations.definition import Definition
from headrace.render import inputs_of, render


@dataclass(frozen=True)
class Decision:
    """The mode of a refresh, and why.

    `numbers` are those behind the reason; plans do not depend on them.
    """

    mode: Mode
    reason: str
    numbers: str = field(default="", compare=False)

    @property
    def recorded_reason(self) -> str:
        """The reason as the history keeps it."""
        return f"{self.reason}: {self.numbers}" if self.numbers else self.reason


NO_CHANGE = Decision("SKIPPED", "no input changed")
UNREAD = Decision("SKIPPED", "no column that it reads changed")


def decide(
    group: tuple[StreamTable, ...], requested_mode: RefreshMode | None, changed: frozenset[str]
) -> Decision:
    """Return the mode of a refresh by the tables' mode, the requested one and the changes.

    The tables are one, or those of a cycle, which share the mode.
    """
    if any(table.epoch == 0 for table in group):
        return Decision("FULL", "first refresh")
    if requested_mode is RefreshMode.FULL:
        return Decision("FULL", "requested")
    if not changed:
        return NO_CHANGE
    if requested_mode is None and any(table.refresh_mode is RefreshMode.FULL for table in group):
        return Decision("FULL", "refresh_mode is FULL")
    return Decision("DIFFERENTIAL", INCREMENTAL)


def may_skip_unread(group: tuple[StreamTable, ...], requested_mode: RefreshMode | None) -> bool:
    """Return whether a refresh may be skipped over changes that the tables do not read.

    A table that failed is published again even if what made it fail was taken back.
    """
    sound = all(t.epoch and t.status is Status.ACTIVE and not t.failures for t in group)
    return sound and requested_mode is not RefreshMode.FULL


def may_choose(group: tuple[StreamTable, ...], requested_mode: RefreshMode | None) -> bool:
    """Return whether a refresh that could follow the change may be computed in full instead."""
    if requested_mode is not None:
        return requested_mode is RefreshMode.AUTO
    return all(table.refresh_mode is RefreshMode.AUTO for table in group)


def plan_refresh(
    table: StreamTable,
    definition: Definition,
    decision: Decision,
    changed: frozenset[str],
    *,
    follow: bool = True,
    growing: frozenset[str] = frozenset(),
) -> tuple[Step, ...]:
    """Return the steps after the cut. `changed` are the inputs with rows beyond the frontier.

    A stage whose inputs did not change is left out; one that runs counts as changed for the stages
    above it. Without `follow` a recursion that is stratified is recomputed. Inputs that are
    `growing` are expected to have gained rows only, which the step that runs checks.
    """
    if decision.mode == "SKIPPED":
        return ()
    computed = _computed(definition, decision, changed, table.epoch > 0, follow, growing)
    return (*computed, Publish((table.relation,)))


def plan_cycle(
    definitions: tuple[Definition, ...],
    decision: Decision,
    changed: frozenset[str],
    *,
    stored: bool,
    follow: bool = True,
    growing: frozenset[str] = frozenset(),
) -> tuple[Step, ...]:
    """Return the steps of all tables of a cycle: those outside of the loop, then the loop."""
    if decision.mode == "SKIPPED":
        return ()
    outside = [
        step
        for definition in definitions
        for step in _computed(definition, decision, changed, stored, follow, growing)
    ]
    stages = tuple(
        stage for definition in definitions for stage in definition.stages if stage.cycle
    )
    moved = changed | {r for step in outside for r in _written(step)}
    loop = ComputeLoop(stages, decision.mode, loop_reason(stages[0], decision), moved)
    return (*outside, loop, Publish(tuple(definition.relation for definition in definitions)))


def _written(step: ComputeStage | ComputeLoop) -> tuple[str, ...]:
    stages = (step.stage,) if isinstance(step, ComputeStage) else step.stages
    return tuple(stage.relation for stage in stages)


@lru_cache(maxsize=1024)
def _computed(
    definition: Definition,
    decision: Decision,
    changed: frozenset[str],
    stored: bool,
    follow: bool,
    growing: frozenset[str],
) -> tuple[ComputeStage | ComputeLoop, ...]:
    """Return the computing steps, remembered: the same change of the same table is the same text.

    Those of a cycle's loop are left out.
    """
    steps: list[ComputeStage | ComputeLoop] = []
    moved = set(changed)
    for stage in definition.stages:
        if stage.cycle:
            continue
        if stage.variable is not None or stage.recursion is not None:
            if decision.mode != "FULL" and not relations_of(stage.region) & moved:
                continue
            recomputed = stage.recursion is not None or (stage.stratified and not follow)
            mode: Mode = "FULL" if recomputed else decision.mode
            reason = loop_reason(stage, decision)
            if stage.stratified and not follow and decision.mode != "FULL":
                reason = "the recursion is recomputed: stratified_dred is off"
            steps.append(ComputeLoop((stage,), mode, reason, frozenset(moved)))
        elif decision.mode == "FULL":
            steps.append(compute(stage, decision, stage_full(stage, stored=stored)))
        elif relations_of(stage.region) & moved:
            now = frozenset(moved)
            grows = only_grows(stage.region, now, growing)
            steps.append(taking_in(stage, decision, now, grows=grows))
        else:
            continue
        moved.add(stage.relation)
    return tuple(steps)


def loop_reason(stage: Stage, decision: Decision) -> str:
    """Return how a loop takes in a change, in words."""
    if stage.obstacle is not None:
        return f"the recursion is recomputed: its own rows stand under {stage.obstacle}"
    if decision.mode == "FULL":
        return decision.reason
    if stage.levels:
        return "changes are carried from level to level"
    return "rows that lost a derivation are deleted and derived again, then what came is followed"


@lru_cache(maxsize=1024)
def taking_in(
    stage: Stage, decision: Decision, moved: frozenset[str], *, grows: bool = False
) -> ComputeStage:
    """Return the step that takes in the changes of these relations, remembered for the next time.

    Where the stage's region `grows`, no group can be left that a second query has to compute.
    """
    grows = grows and stage.may_be_stale
    step = _watching(compute(stage, decision, stage_change(stage, moved, grows=grows)), moved)
    if not stage.may_be_stale:
        return step
    if grows:
        return replace(step, reason=strategy(stage, grows=True), grows=True)
    recomputing = replace(stage, additive=False)
    touched = compute(recomputing, decision, stage_change(recomputing, moved))
    return replace(
        step,
        stale=compute(recomputing, decision, stale_change(stage, moved)),
        touched=_watching(touched, moved),
    )


def _watching(step: ComputeStage, moved: frozenset[str]) -> ComputeStage:
    """Return the step with the changes of its region among its inputs, read or not.

    The one group without keys is recomputed from the state alone, but only if there is a change.
    """
    names_read = {plan_input.name for plan_input in step.inputs}
    changes = inputs_of(Differentiation(moved).change(step.stage.region))
    watched = (i for i in changes if i.version == "change" and i.name not in names_read)
    return replace(step, inputs=(*step.inputs, *watched))


def compute(stage: Stage, decision: Decision, plan: Operator) -> ComputeStage:
    """Return the step that evaluates `plan` for a stage."""
    reason = decision.reason if decision.mode == "FULL" else strategy(stage)
    tiny = decision.mode == "DIFFERENTIAL"
    text = render(plan, names_of(stage, plan), one_partition=tiny)
    reach = reduction(plan) if tiny else None
    return ComputeStage(stage, decision.mode, reason, plan, inputs_of(plan), text, reach)


def names_of(stage: Stage, plan: Operator) -> tuple[str, ...]:
    """Return the columns of a stage's query: those that it stores, and the mark of stale groups."""
    stored = tuple(physical for physical, _ in stage.stored)
    return (*stored, STALE.id) if STALE in plan.columns else stored


def strategy(stage: Stage, *, grows: bool = False) -> str:
    """Return how a stage takes in a change, in words; `grows` says that rows only came."""
    again = "; rows whose matches change are matched again" if _matches(stage.region) else ""
    return (_growing_strategy(stage) if grows else _strategy(stage)) + again


def _matches(plan: Operator) -> bool:
    """Return whether rows depend on there being a match: outer, semi and anti joins."""
    return isinstance(plan, (OuterSemiAntiJoin, FullJoin)) or any(map(_matches, plan.children))


def _growing_strategy(stage: Stage) -> str:
    """Return how a stage that may be left with stale groups takes in rows that only came."""
    if stage.partitions is not None:
        scope = "of touched keys " if stage.keys else ""
        return f"rows that came are merged with the first rows {scope}kept; these cannot run short"
    return "rows that came are added to touched groups; none can lose its MIN or MAX"


def _strategy(stage: Stage) -> str:
    if stage.partitions is not None:
        return _partitions_strategy(stage.partitions)
    if stage.state is None:
        return "rows follow the change of their inputs"
    if stage.may_be_stale:
        return "changes are added to touched groups; one that loses its MIN or MAX is recomputed"
    if stage.additive:
        return "changes are added to the stored sums of touched groups"
    if stage.state.calls:
        names = dict.fromkeys(
            call.function + " DISTINCT" * call.distinct for call in stage.state.calls
        )
        return f"touched groups are recomputed: only all their rows determine {', '.join(names)}"
    if any(column.type.is_float for column, _ in stage.state.sums):
        return "touched groups are recomputed: float sums cannot be subtracted from"
    return "touched groups are recomputed"


def _partitions_strategy(partitions: Partitions) -> str:
    """Return how a window or a top takes in a change: rows of a partition depend on each other."""
    if isinstance(partitions.operator, Top) and partitions.rows:
        scope = "of touched keys " if partitions.keys else ""
        return f"changes are merged with the first rows {scope}kept; if these run short, recomputed"
    if isinstance(partitions.operator, Top):
        return f"the first rows{' of touched keys' if partitions.keys else ''} are recomputed"
    if partitions.keys:
        return "touched partitions are recomputed"
    return "the whole window is recomputed: it has no PARTITION BY"


def netted(plan: Operator, relations: frozenset[str]) -> Operator:
    """Return the plan with the changes of these relations netted by the query itself."""
    if isinstance(plan, Scan):
        large = plan.version == "change" and plan.relation in relations
        return Net(plan) if large else plan
    return plan.with_children(*(netted(child, relations) for child in plan.children))
