"""Logs full of rows that came and went: no query may see them, and none may divide by their zeros.

Every table's log holds rows added and removed again, with values that no row has had (zeros among
them); a stage's log holds all of its own past.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from random import Random

import pytest

from headrace.algebra.scalar import Value
from headrace.delta import differentiate
from headrace.delta.differentiate import stage_change, stage_full, stale_change
from headrace.functions.function import EvaluationError
from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.operators import Operator, Scan
from headrace.plan.stages import Stage, cut_stages
from headrace.query import BoundColumn, BoundTable, bind
from headrace.types import INTEGER, TEXT
from tests.delta import raw_logs
from tests.delta.raw_logs import Weighted, evaluate_raw, total
from tests.delta.test_rules_against_reference import World, reader, shown

TABLES = ("t", "u", "v")
TYPES = {"k": INTEGER, "a": INTEGER, "b": INTEGER, "s": TEXT}
STEPS = 4
HISTORIES = 8

JOINED = "FROM t JOIN u ON t.k = u.k AND t.s = u.s"
LEFT = "FROM t LEFT JOIN u ON t.k = u.k"
DIVIDED = "10 / (t.b - u.b)"

# What a division sees must be there, else it may be by zero.
DIVIDING = (
    "SELECT t.k, 10 / t.b AS x FROM t JOIN u ON t.k = u.k",
    f"SELECT t.k, {DIVIDED} AS x {JOINED}",
    f"SELECT t.k {JOINED} AND {DIVIDED} > 2",
    f"SELECT t.k, 10 / (t.b + coalesce(u.b, 1)) AS x {LEFT}",
    f"SELECT t.k, u.a {LEFT} AND t.s = u.s AND {DIVIDED} > 2",
    f"SELECT t.k, u.a FROM t FULL JOIN u ON t.k = u.k AND t.s = u.s AND {DIVIDED} > 2",
    "SELECT t.k, u.b FROM t LEFT JOIN u ON 10 / t.b = u.b",
    "SELECT t.k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND 10 / u.b > t.b)",
    f"SELECT t.k FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND {DIVIDED} > 2)",
    "SELECT t.k FROM t WHERE 10 / t.b NOT IN (SELECT 10 / u.b FROM u WHERE u.a IS NOT NULL)",
    "SELECT t.k, (SELECT max(10 / u.b) FROM u WHERE u.k = t.k) AS x FROM t",
    f"SELECT t.k, sum({DIVIDED}) AS x {JOINED} GROUP BY t.k",
    f"SELECT t.k, max({DIVIDED}) AS x {JOINED} GROUP BY t.k",
    f"SELECT t.k, sum({DIVIDED}) OVER (PARTITION BY t.k) AS x {JOINED}",
    f"SELECT t.k, {DIVIDED} AS x {JOINED} ORDER BY t.k, x LIMIT 2",
    "SELECT t.k, g FROM t JOIN u ON t.k = u.k, generate_series(1, 10 / t.b) AS g",
    "SELECT k FROM t UNION SELECT 10 / b FROM u",
    "SELECT q.k, 10 / q.n AS z FROM (SELECT k, sum(b) AS n FROM t GROUP BY k) q"
    " LEFT JOIN u ON u.k = q.k",
)
# Whether there is a row, which one is the first or the least, is told from rows that are there.
CHOOSING = (
    f"SELECT t.k, u.a {LEFT}",
    "SELECT t.k, u.a FROM t FULL JOIN u ON t.k = u.k AND t.b < u.b",
    f"SELECT t.k, u.a, v.a AS c {LEFT} LEFT JOIN v ON u.a = v.a",
    "SELECT t.k, q.a FROM t FULL JOIN (SELECT u.k, v.a FROM u LEFT JOIN v ON u.b = v.b) q"
    " ON q.k = t.k",
    "SELECT x.k FROM t x WHERE NOT EXISTS (SELECT 1 FROM t y WHERE y.a > x.a)",
    "SELECT t.k FROM t WHERE (t.k, t.a) NOT IN (SELECT u.k, u.a FROM u)",
    "SELECT t.k, t.a IN (SELECT u.a FROM u WHERE u.k = t.k) AS x FROM t",
    "SELECT t.k, t.a > ALL (SELECT u.a FROM u) AS x FROM t",
    f"SELECT t.k, min(t.a) AS x, max(u.a) AS y, count(*) AS n {LEFT} GROUP BY t.k",
    "SELECT min(t.a) AS x, max(u.a) AS y FROM t JOIN u ON t.k = u.k",
    "SELECT count(DISTINCT t.a) AS x, max(t.a) AS y FROM t JOIN u ON t.b = u.b",
    "SELECT k, string_agg(s, ',' ORDER BY a, b) AS x FROM t GROUP BY k HAVING count(*) > 1",
    "SELECT t.k, mode() WITHIN GROUP (ORDER BY u.a) AS x FROM t JOIN u ON t.k = u.k GROUP BY t.k",
    "SELECT k, a, row_number() OVER (PARTITION BY k ORDER BY a, b, s) AS r FROM t",
    "SELECT t.k, t.a, rank() OVER (ORDER BY u.a) AS r FROM t JOIN u ON t.k = u.k",
    f"SELECT t.k, t.a {LEFT} ORDER BY t.a, t.k LIMIT 2 OFFSET 1",
    "SELECT a, s FROM t ORDER BY a FETCH FIRST 2 ROWS WITH TIES",
    f"SELECT DISTINCT ON (t.k) t.k, u.a {LEFT} ORDER BY t.k, u.a DESC",
    f"SELECT q.k, sum(q.n) AS n FROM (SELECT t.k, count(*) AS n {LEFT} GROUP BY t.k, t.b) q"
    " GROUP BY q.k HAVING sum(q.n) > 1",
)
# Weights are added up, so that a row and its opposite cancel; these may read a log raw.
ADDING = (
    "SELECT t.k, q.c FROM t, LATERAL (SELECT count(*) AS c FROM u WHERE u.a < t.a) q",
    "SELECT DISTINCT t.k, u.a FROM t JOIN u ON t.b = u.b",
    "SELECT k, a FROM t EXCEPT SELECT k, a FROM u",
    "SELECT k, a FROM t EXCEPT ALL SELECT k, a FROM u",
    "SELECT k, a FROM t INTERSECT ALL SELECT k, b FROM u",
    "SELECT t.k, avg(u.a) AS x, count(*) AS n FROM t JOIN u ON t.b = u.b GROUP BY t.k",
)


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


def check(query: str, seed: int) -> None:
    """A history of the tables, refreshed step by step; every other one without sums of states."""
    random = Random(seed)
    bound = bind(query, Schema())
    stages = cut_stages(bound.plan, "x")
    if seed % 2:
        stages = tuple(replace(stage, additive=False) for stage in stages)
    gone = {table: [gone_row(random) for _ in range(4)] for table in TABLES}
    at: dict[str, Bag] = {table: Counter(row(random) for _ in range(2)) for table in TABLES}
    world, _ = next_world(random, at, bound.written)
    logs: dict[str, RawLog] = {}
    Raw(World(world.after, world.after), gone, logs).filled(stages)
    for _ in range(STEPS):
        world, expected = next_world(random, world.after, bound.written)
        Raw(world, gone, logs).refreshed(stages)
        assert shown(stages[-1], total(logs["x"].whole)) == expected
    fresh = Raw(World(world.after, world.after), gone, {})
    fresh.filled(stages)
    for name, log in logs.items():
        assert net(total(log.whole)) == net(total(fresh.logs[name].whole)), "the state is the same"


def check_histories(query: str) -> None:
    for seed in range(HISTORIES):
        check(query, seed)


@pytest.mark.parametrize("query", DIVIDING + CHOOSING + ADDING)
def test_rows_that_came_and_went_are_not_seen(query: str) -> None:
    check_histories(query)


@pytest.mark.parametrize("query", DIVIDING)
def test_without_the_guard_they_are_divided_by(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differentiate, "guard_errors", lambda plan: plan)
    with pytest.raises((EvaluationError, AssertionError)):
        check_histories(query)


@pytest.mark.parametrize("query", CHOOSING)
def test_without_netting_they_are_chosen(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_logs, "netted", list)
    with pytest.raises(AssertionError):
        check_histories(query)
