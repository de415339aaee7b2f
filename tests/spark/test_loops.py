"""The rounds of loops on Spark, over logs in a store, against their definitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headrace.catalog import State
from headrace.catalog.records import Relation
from headrace.delta.fixed_point import NotConverged
from headrace.engine import Engine
from headrace.plan.evaluate import Bag
from headrace.plan.loop import Loop
from headrace.refresh.loop import compute_loop
from headrace.relations.input_reader import InputReader
from headrace.relations.recursion import least_fixed_point
from headrace.relations.rows import arrow_schema
from headrace.spark.run import Input, Runner
from headrace.spark.session import Spark
from headrace.store import WEIGHT, DeltaStore, net
from headrace.types import INTEGER
from tests.delta.loop_examples import PHYSICAL, SETS, changed, levels, random_rows
from tests.delta.loops import least

pytestmark = pytest.mark.spark
OUTSIDE = ("blocked", "edges", "other")
LIMIT = 1000


@dataclass
class Recording:
    """A runner that keeps what it was asked."""

    runner: Runner
    texts: list[str] = field(default_factory=list)

    def collect(self, text: str, inputs: list[Input], **options: Any) -> pa.Table:
        self.texts.append(text)
        return self.runner.collect(text, inputs, **options)

    def release(self, name: str) -> None:
        self.runner.release(name)


@dataclass
class Logs:
    """Relations in a store, written epoch by epoch."""

    store: DeltaStore
    runner: Recording
    relations: dict[str, Relation] = field(default_factory=dict)
    epoch: int = 0

    @property
    def engine(self) -> Engine:
        return cast(Engine, SimpleNamespace(store=self.store, runner=self.runner))

    def create(self, name: str) -> None:
        columns = tuple((physical, INTEGER) for physical in PHYSICAL[name])
        empty = Relation(name, columns, (), cast(Any, None))
        pin = self.store.create(name, arrow_schema(empty))
        self.relations[name] = replace(empty, pin=pin)

    def append(self, changes: Mapping[str, Bag | pa.Table]) -> None:
        for name, change in changes.items():
            rows = change if isinstance(change, pa.Table) else table(change, name)
            if rows.num_rows:
                relation = self.relations[name]
                pin = self.store.append(name, relation.pin, self.epoch, rows)
                self.relations[name] = replace(relation, pin=pin)

    def reading(self, taken_in: int) -> InputReader:
        state = State().with_relations(self.relations.values())
        frontier = dict.fromkeys(self.relations, taken_in)
        return InputReader(self.store, state, frontier, LIMIT)


@pytest.fixture(scope="module")
def runner(spark: SparkSession) -> Iterator[Runner]:
    opened = Runner(Spark.open(spark))
    yield opened
    opened.close()


@pytest.fixture
def logs(runner: Runner, tmp_path: Any) -> Logs:
    return Logs(DeltaStore(str(tmp_path)), Recording(runner))


def table(bag: Bag, name: str) -> pa.Table:
    rows = [(weight, *row) for row, weight in bag.items()]
    types = [pa.int64(), *(pa.int32() for _ in PHYSICAL[name])]
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
    return pa.table(arrays, [WEIGHT, *PHYSICAL[name]])


def bag(rows: pa.Table) -> Bag:
    return Counter(
        {tuple(values[1:]): values[0] for values in map(tuple, map(dict.values, rows.to_pylist()))}
    )


def minus(one: Bag, other: Bag) -> Bag:
    return Counter({row: one[row] - other[row] for row in {*one, *other} if one[row] != other[row]})


def stored(logs: Logs, loop: Loop) -> dict[str, Bag]:
    reading = logs.reading(logs.epoch)
    return {name: bag(net(reading.stored(logs.relations[name]))) for name in loop.relations}


def check(logs: Logs, loop: Loop, random: Random, *, forward: bool = False) -> None:
    """Filled in full, then a change, then in full again over what is stored."""
    for name in (*OUTSIDE, *loop.relations):
        logs.create(name)
    now: dict[str, Bag] = {name: Counter() for name in OUTSIDE}
    shrunk = False
    for full in (True, False, True):
        after = (
            {name: changed(random, one, 5, forward=forward) for name, one in now.items()}
            if logs.epoch
            else {name: random_rows(random, 5, 10, forward=forward) for name in OUTSIDE}
        )
        taken_in = logs.epoch
        logs.epoch += 1
        logs.append({name: minus(after[name], now[name]) for name in OUTSIDE})
        now = after
        logs.runner.texts.clear()
        rows, iterations = compute_loop(
            logs.engine,
            loop,
            logs.reading(taken_in),
            full=full,
            stored=taken_in > 0,
            changed=frozenset(OUTSIDE),
            most=50,
        )
        assert iterations > 0
        read_stored = any(
            f"`{name}_before`" in text for name in loop.relations for text in logs.runner.texts
        )
        assert not (full and read_stored)
        shrunk |= any(weight < 0 for one in rows.values() for weight in one[WEIGHT].to_pylist())
        logs.append(rows)
        assert stored(logs, loop) == least(loop, PHYSICAL, now)
    assert shrunk


def test_a_loop_over_sets(logs: Logs) -> None:
    check(logs, SETS["blocked edges"], Random(3))


def test_a_loop_over_levels(logs: Logs) -> None:
    check(logs, levels(blocked=True), Random(6), forward=True)


def test_a_loop_without_end(logs: Logs) -> None:
    loop = levels()
    for name in (*OUTSIDE, "paths"):
        logs.create(name)
    logs.epoch = 1
    logs.append({"edges": Counter({(0, 1): 1, (1, 1): 1})})
    with pytest.raises(NotConverged) as raised:
        compute_loop(
            logs.engine,
            loop,
            logs.reading(0),
            full=True,
            stored=False,
            changed=frozenset({"edges"}),
            most=4,
        )
    assert (raised.value.iterations, raised.value.rows) == (5, 1)


def test_a_fixed_point_by_whole_queries(logs: Logs) -> None:
    """What verify compares with, found without any of the rounds' plans."""
    loop = SETS["two tables"]
    for name in OUTSIDE:
        logs.create(name)
    logs.epoch = 1
    edges = random_rows(Random(3), 5, 9)
    logs.append({"edges": edges})
    bodies = {variable.relation: variable.body for variable in loop.variables}
    found = least_fixed_point(logs.engine, bodies, logs.reading(1), 20)
    outside = {"edges": edges, "blocked": Counter[Any](), "other": Counter[Any]()}
    assert {name: bag(net(rows)) for name, rows in found.items()} == least(loop, PHYSICAL, outside)
