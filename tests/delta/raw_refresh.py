"""Refreshes over raw logs: tables with rows that came and went, and the logs of the stages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from random import Random

from headrace.algebra.scalar import Value
from headrace.delta.differentiate import stage_change, stage_full, stale_change
from headrace.functions.function import EvaluationError
from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.operators import Operator, Scan
from headrace.plan.stages import Stage
from headrace.query import BoundColumn, BoundTable
from headrace.types import INTEGER, TEXT
from tests.delta.raw_logs import Weighted, evaluate_raw, total
from tests.delta.stage_logs import reader
from tests.delta.worlds import World

TABLES = ("t", "u", "v")
TYPES = {"k": INTEGER, "a": INTEGER, "b": INTEGER, "s": TEXT}


class Schema:
    """Three tables of the same columns; relations have their names."""

    def resolve(self, schema: str | None, name: str) -> BoundTable | None:
        if name not in TABLES or schema not in (None, "public"):
            return None
        columns = tuple(
            BoundColumn(column, f"c{i}", type_, type_.sql)
            for i, (column, type_) in enumerate(TYPES.items(), 1)
        )
        return BoundTable(name, "public", name, columns)


@dataclass
class RawLog:
    """A stage's log as it was appended to: all before this refresh, and what this one adds."""

    stage: Stage
    before: list[Weighted]
    added: list[Weighted]

    @property
    def whole(self) -> list[Weighted]:
        return self.before + self.added


@dataclass(frozen=True)
class Raw:
    """One refresh: tables with rows that came and went, and the logs of the stages so far."""

    world: World
    gone: dict[str, list[tuple[Value, ...]]]
    logs: dict[str, RawLog]
    stale: frozenset[tuple[Value, ...]] = frozenset()

    def read(self, scan: Scan) -> list[Weighted]:
        if scan.version == "stale":
            return [(keys, 1) for keys in self.stale]
        log = self.logs.get(scan.relation)
        if log is None:
            names = [f"c{i}" for i in range(1, len(TYPES) + 1)]
            rows = self._table(scan)
        else:
            names = [physical for physical, _ in log.stage.stored]
            rows = {"before": log.before, "change": log.added}.get(scan.version, log.whole)
        places = [names.index(physical) for physical, _ in scan.fields]
        fields = [(tuple(row[i] for i in places), weight) for row, weight in rows]
        return list(net(total(fields)).items()) if scan.version == "change" else fields

    def _table(self, scan: Scan) -> list[Weighted]:
        if scan.version == "change":
            return list(self.world.change(scan.relation).items())
        state = self.world.before if scan.version == "before" else self.world.after
        gone = self.gone[scan.relation]
        return [
            *((row, 1) for row in gone),
            *state[scan.relation].items(),
            *((r, -1) for r in gone),
        ]

    def filled(self, stages: tuple[Stage, ...]) -> None:
        for stage in stages:
            rows = evaluate_raw(stage_full(stage, stored=False), self.read)
            self.logs[stage.relation] = RawLog(stage, [], list(net(total(rows)).items()))

    def refreshed(self, stages: tuple[Stage, ...]) -> None:
        """Every stage brought along by its change; what was added before is the state before."""
        for log in self.logs.values():
            log.before, log.added = log.whole, []
        moved = set(self.world.changed)
        for stage in stages:
            change = evaluate_raw(stage_change(stage, frozenset(moved)), self.read)
            if stage.may_be_stale:
                keys = len(stage.keys)
                stale = frozenset(row[:keys] for row, _ in change if row[-1])
                change = [(row[:-1], weight) for row, weight in change if not row[-1]]
                if stale:
                    again = stale_change(stage, frozenset(moved))
                    change += evaluate_raw(again, replace(self, stale=stale).read)
            self.logs[stage.relation].added = list(net(total(change)).items())
            moved.add(stage.relation)


def row(random: Random) -> tuple[Value, ...]:
    return (
        random.choice([1, 2, 3, None]),
        random.choice([1, 2, 3, -1, None]),
        random.choice([1, 2, 4]),
        random.choice(["x", "y", None]),
    )


def gone_row(random: Random) -> tuple[Value, ...]:
    """A row of the past: it matches others, is less and greater than all, and has zeros."""
    return (
        random.choice([0, 1, 2, 3]),
        random.choice([0, 1, 9, -9, None]),
        random.choice([0, 0, 1, 9]),
        random.choice(["x", "y", "zz"]),
    )


def moved(random: Random, rows: Bag) -> Bag:
    """Some rows gone, some changed in one column, some new; or nothing at all."""
    if random.random() < 0.3:
        return rows
    result: list[tuple[Value, ...]] = [row(random) for _ in range(random.randint(0, 2))]
    for kept in rows.elements():
        if random.random() < 0.6:
            result.append(kept)
        elif random.random() < 0.5:
            place = random.randrange(len(kept))
            result.append((*kept[:place], row(random)[place], *kept[place + 1 :]))
    return Counter(result)


def next_world(random: Random, at: dict[str, Bag], query: Operator) -> tuple[World, Bag]:
    """A step from `at` after which the query has rows, not an error; and these rows."""
    while True:
        after = {table: moved(random, rows) for table, rows in at.items()}
        try:
            return World(at, after), net(evaluate(query, reader(World(after, after), {})))
        except EvaluationError:
            continue
