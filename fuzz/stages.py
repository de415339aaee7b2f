"""The stages of a plan brought along by changes, with the pure evaluator instead of Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fuzz.loops import Fields, is_loop, rearranged, stored_fields
from fuzz.loops import change as loop_change
from fuzz.loops import whole as loop_whole
from fuzz.quick import evaluate
from headrace.algebra.scalar import Value
from headrace.delta.differentiate import relations_of, stage_change, stage_full, stale_change
from headrace.plan.evaluate import Bag, net
from headrace.plan.operators import Operator, Scan
from headrace.plan.stages import Stage, cut_stages
from tests.delta.reduced import reduced


@dataclass(frozen=True)
class Contents:
    """A table's rows, and the physical names of its columns."""

    fields: Fields
    rows: Bag


World = Mapping[str, Contents]


@dataclass
class Log:
    """What a stage has written: before a refresh, and in it."""

    stage: Stage
    before: Bag
    added: Bag

    @property
    def whole(self) -> Bag:
        rows = Counter(self.before)
        rows.update(self.added)
        return net(rows)


class Maintained:
    """A plan's stages and their logs."""

    def __init__(self, plan: Operator, world: World) -> None:
        self.stages = cut_stages(plan, "x")
        self.world = world
        self.logs = filled(self.stages, world)

    @property
    def rows(self) -> Bag:
        """What readers see."""
        last = self.stages[-1]
        stored = self.logs["x"].whole
        return net(evaluate(last.shown(), lambda scan: _at(stored_fields(last), stored, scan)))

    def refresh(self, after: World) -> None:
        """Bring every stage to the tables' new rows by its change alone."""
        for log in self.logs.values():
            log.before, log.added = log.whole, Counter()
        moved = {name for name in after if after[name].rows != self.world[name].rows}
        for stage in self.stages:
            read = reader(self.world, after, self.logs)
            if is_loop(stage):
                if relations_of(stage.region) & moved:
                    log = self.logs[stage.relation]
                    log.added = loop_change(stage, read, log.before, frozenset(moved))
                    moved.add(stage.relation)
                continue
            plan = stage_change(stage, frozenset(moved))
            change = evaluate(plan, read)
            # A refresh reads only the rows that can meet the change.
            if _rounded(net(evaluate(plan, reduced(plan, read)))) != _rounded(net(change)):
                raise AssertionError(f"another change of {stage.relation} over reduced inputs")
            if stage.may_be_stale:
                width = len(stage.keys)
                stale = frozenset(row[:width] for row in change if row[-1])
                change = Counter({row[:-1]: w for row, w in change.items() if not row[-1]})
                if stale:
                    again = stale_change(stage, frozenset(moved))
                    change.update(evaluate(again, reader(self.world, after, self.logs, stale)))
            self.logs[stage.relation].added = net(change)
            moved.add(stage.relation)
        self.world = after

    def difference(self) -> str | None:
        """The stage whose log is not what a full evaluation gives, if there is one."""
        fresh = filled(self.stages, self.world)
        for stage in self.stages:
            name = stage.relation
            if _rounded(self.logs[name].whole) != _rounded(fresh[name].whole):
                return name
        return None


def filled(stages: tuple[Stage, ...], world: World) -> dict[str, Log]:
    """Every stage evaluated anew."""
    logs: dict[str, Log] = {}
    for stage in stages:
        read = reader(world, world, logs)
        full = stage_full(stage, stored=False) if not is_loop(stage) else None
        rows = loop_whole(stage, read) if full is None else evaluate(full, read)
        logs[stage.relation] = Log(stage, Counter(), net(rows))
    return logs


def reader(
    before: World,
    after: World,
    logs: Mapping[str, Log],
    stale: frozenset[tuple[Value, ...]] = frozenset(),
) -> Callable[[Scan], Bag]:
    def read(scan: Scan) -> Bag:
        if scan.version == "stale":
            return Counter(stale)
        if scan.relation in logs:
            log = logs[scan.relation]
            match scan.version:
                case "change":
                    return net(_at(stored_fields(log.stage), log.added, scan))
                case "before":
                    return _at(stored_fields(log.stage), log.before, scan)
            return _at(stored_fields(log.stage), log.whole, scan)
        old, new = before[scan.relation], after[scan.relation]
        match scan.version:
            case "change":
                rows = Counter(new.rows)
                rows.subtract(old.rows)
            case "before":
                rows = old.rows
            case _:
                rows = new.rows
        return net(_at(new.fields, rows, scan))

    return read


def _at(fields: Fields, rows: Bag, scan: Scan) -> Bag:
    """The rows with a scan's columns in its order."""
    return rearranged(rows, fields, (physical for physical, _ in scan.fields))


def _rounded(rows: Bag) -> Bag:
    """Floats to twelve digits: they are added up in another order."""
    return Counter(
        {
            tuple(f"{v:.12g}" if isinstance(v, float) else v for v in row): weight
            for row, weight in rows.items()
        }
    )
