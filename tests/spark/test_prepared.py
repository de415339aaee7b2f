"""Kept plans give what planning again gives, and what would be stale is not kept."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.delta.differentiate import relations_of, stage_change
from headrace.errors import HeadraceError
from headrace.plan.stages import cut_stages
from headrace.query import bind
from headrace.render import render
from headrace.spark import prepared
from headrace.spark.prepared import Room, keeps_nothing, key_of
from headrace.spark.run import Input, Runner
from headrace.spark.session import Spark
from headrace.spark.views import Views
from tests.query.shop import Shop
from tests.render.one_partition import QUERIES, one_row_each
from tests.spark.values import SPECIAL, bag, special_table, stored

NUMBERS = pa.schema([("_weight", pa.int64()), ("n", pa.int64())])
RDD = "(1) MapPartitionsRDD[3] at sql []\n |  ParallelCollectionRDD[1] at sql []"


def numbers(*values: int) -> pa.Table:
    return pa.table([pa.array([1] * len(values)), pa.array(values, pa.int64())], schema=NUMBERS)


def of(name: str, *values: int) -> Input:
    return Input(name, NUMBERS, rows=numbers(*values))


def kept(runner: Runner) -> list[str]:
    """The texts of the plans that a runner's free sessions keep."""
    return [sql for lane in runner._pool._free for sql, _ in lane.plans._kept]


@pytest.fixture
def keeping(ours: Spark) -> Iterator[Runner]:
    runner = Runner(ours)
    yield runner
    runner.close()


@pytest.fixture
def planning(ours: Spark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    """A runner that plans every query again."""
    runner = Runner(ours)
    collect = runner.collect

    def planned_again(*arguments: object, **options: object) -> object:
        with monkeypatch.context() as patched:
            patched.setattr(Views, "exchanges", False)
            return collect(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "collect", planned_again)
    yield runner
    runner.close()


def test_known_operators_keep_nothing() -> None:
    plan = "CollectLimit 3\n+- *(1) Project [a]\n   +- Union\n      :- Scan ExistingRDD arrow[a]\n"
    assert keeps_nothing(plan, RDD)


@pytest.mark.parametrize(
    "line",
    [
        "      +- Exchange SinglePartition, ENSURE_REQUIREMENTS",
        "      +- BroadcastExchange IdentityBroadcastMode",
        "      :  +- Subquery scalar-subquery#1, [id=#2]",
        "      +- InMemoryTableScan [a#1]",
        "      +- Scan In-memory table t [a#1]",
        "      +- BatchEvalPython [f(a#1)]",
        "      +- ReusedExchange [a#1]",
        "the rest of a constant",
        "'",
    ],
)
def test_what_is_not_known_may_keep_something(line: str) -> None:
    assert not keeps_nothing(f"Project [a]\n{line}\n+- Scan ExistingRDD arrow[a]", RDD)


@pytest.mark.parametrize(
    "lineage",
    [
        "",
        RDD.replace("MapPartitionsRDD", "ShuffledRowRDD"),
        f"{RDD}\n |  CachedPartitions: 1; MemorySize: 3 B",
    ],
)
def test_what_runs_as_an_unknown_rdd_may_keep_something(lineage: str) -> None:
    assert not keeps_nothing("Scan ExistingRDD arrow[a]", lineage)


def random_rows(schema: pa.Schema, seed: random.Random, count: int) -> pa.Table:
    """Weighted rows of few different values, some of them NULL."""

    def value(kind: pa.DataType) -> object:
        if seed.random() < 0.15:
            return None
        if pa.types.is_integer(kind):
            return seed.randrange(5)
        if pa.types.is_boolean(kind):
            return seed.random() < 0.5
        if pa.types.is_string(kind):
            return seed.choice(["north", "south", ""])
        return seed.choice(SPECIAL.get(kind, [None]))

    columns = {
        field.name: pa.array([value(field.type) for _ in range(count)], field.type)
        for field in schema
    }
    columns["_weight"] = pa.array([seed.choice([1, 1, 2, -1]) for _ in range(count)], pa.int64())
    return pa.table([columns[name] for name in schema.names], schema=schema)


def filled(inputs: Sequence[Input], seed: random.Random) -> list[Input]:
    return [
        Input(one.name, one.schema, rows=random_rows(one.schema, seed, seed.choice([0, 1, 4, 30])))
        for one in inputs
    ]


@pytest.mark.spark
@pytest.mark.parametrize("name", QUERIES)
def test_random_changes_through_kept_plans(keeping: Runner, planning: Runner, name: str) -> None:
    seed = random.Random(name)
    for stage in cut_stages(bind(QUERIES[name], Shop()).plan, "x"):
        change = stage_change(stage, relations_of(stage.region))
        text, inputs = render(change, one_partition=True), one_row_each(change)
        for _ in range(8):
            rows = filled(inputs, seed)
            with_kept, planned_again = keeping.collect(text, rows), planning.collect(text, rows)
            assert isinstance(with_kept, pa.Table)
            assert isinstance(planned_again, pa.Table)
            assert bag(with_kept) == bag(planned_again)
            assert with_kept.schema == planned_again.schema
    if name != "subqueries":
        assert kept(keeping)
    assert not kept(planning)


@pytest.mark.spark
def test_every_type_goes_through_a_kept_plan(keeping: Runner) -> None:
    table = special_table()
    for start, length in ((0, 8), (0, 0), (3, 4), (2, 1), (0, 0), (0, 8)):
        rows = table.slice(start, length)
        found = keeping.collect("SELECT * FROM a", [Input("a", table.schema, rows=rows)])
        assert isinstance(found, pa.Table)
        assert bag(found) == bag(rows)
    assert kept(keeping) == ["SELECT * FROM a"]


@pytest.mark.spark
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT /*+ REPARTITION(2) */ n FROM a",
        "SELECT n FROM a WHERE n NOT IN (SELECT n FROM b)",
        "SELECT n FROM a WHERE n > (SELECT min(n) FROM b)",
        "SELECT /*+ BROADCAST(b) */ a.n FROM a JOIN b ON b.n < a.n",
    ],
)
def test_queries_whose_state_spark_keeps_are_planned_again(
    keeping: Runner, planning: Runner, sql: str
) -> None:
    for values in ((1, 2, 3), (4, 5), (2, 9), ()):
        rows = [of("a", *values), of("b", *values[:1])]
        found, planned_again = keeping.collect(sql, rows), planning.collect(sql, rows)
        assert isinstance(found, pa.Table)
        assert isinstance(planned_again, pa.Table)
        assert bag(found) == bag(planned_again)
    assert not kept(keeping)


@pytest.mark.spark
def test_files_belong_to_the_plan_and_rows_do_not(keeping: Runner, tmp_path: Path) -> None:
    first = stored(numbers(1), tmp_path / "a.parquet")
    second = stored(numbers(2), tmp_path / "b.parquet")

    def total(files: tuple[str, ...], rows: pa.Table | None) -> object:
        found = keeping.collect("SELECT sum(n) AS n FROM a", [Input("a", NUMBERS, files, rows)])
        assert isinstance(found, pa.Table)
        return found["n"][0].as_py()

    assert total((first,), numbers(10)) == 11
    assert total((first,), numbers(20, 30)) == 51
    assert total((first, second), numbers(20)) == 23
    assert total((first,), None) == 1
    assert total((), numbers(7)) == 7
    assert total((first,), numbers(10)) == 11
    assert len(kept(keeping)) == 4


@pytest.mark.spark
def test_a_failed_plan_is_planned_again(keeping: Runner) -> None:
    sql = "SELECT 6 div n AS n FROM a"

    def sixth(value: int) -> object:
        found = keeping.collect(sql, [of("a", value)])
        assert isinstance(found, pa.Table)
        return found["n"][0].as_py()

    assert sixth(2) == 3
    with pytest.raises(HeadraceError):
        sixth(0)
    assert not kept(keeping)
    assert sixth(3) == 2
    assert sixth(1) == 6
    assert len(kept(keeping)) == 1


@pytest.mark.spark
def test_plans_are_bounded_and_large_rows_are_released(
    keeping: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "MOST_PLANS", 3)
    texts = [f"SELECT n + {number} AS n FROM a" for number in range(5)]
    for sql in (*texts, texts[2]):
        assert keeping.collect(sql, [of("a", 1)])
    assert kept(keeping) == [texts[3], texts[4], texts[2]]
    monkeypatch.setattr(Room, "of", lambda *_: 2 * len(texts[0]))
    many = Input("a", NUMBERS, rows=numbers(*range(10_000)))
    found = keeping.collect(texts[3], [many])
    assert isinstance(found, pa.Table)
    assert found.num_rows == 10_000
    assert kept(keeping) == [texts[2], texts[3]]
    (lane,) = keeping._pool._free
    plan = lane.plans._kept[key_of(texts[3], [many])]
    assert plan.frame.toArrow().num_rows == 0
    again = keeping.collect(texts[3], [many])
    assert isinstance(again, pa.Table)
    assert bag(again) == bag(found)


@pytest.mark.spark
def test_sessions_divide_the_heap(ours: Spark) -> None:
    session, room = ours.new_session("tiny"), Room()
    room.sessions = 1
    whole = room.of(session)
    assert whole > 100_000
    room.sessions = 4
    assert room.of(session) == whole // 4


@pytest.mark.spark
def test_calls_at_once_have_rows_of_their_own(keeping: Runner) -> None:
    sql = "SELECT count(*) AS n, min(n) AS least, max(n) AS most FROM a"

    def seen(value: int) -> object:
        found = keeping.collect(sql, [of("a", *[value] * (value % 7 + 1))])
        assert isinstance(found, pa.Table)
        return found.to_pylist()

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(seen, range(40)))
    assert found == [[{"n": v % 7 + 1, "least": v, "most": v}] for v in range(40)]


@pytest.mark.spark
def test_queries_that_spark_cannot_inspect_are_planned_again(
    keeping: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    from py4j.protocol import Py4JError

    def refuse(*_: str) -> bool:
        raise Py4JError("no such method")

    monkeypatch.setattr(prepared, "keeps_nothing", refuse)
    for value in (1, 2):
        found = keeping.collect("SELECT n FROM a", [of("a", value)])
        assert isinstance(found, pa.Table)
        assert found.to_pydict() == {"n": [value]}
    assert not kept(keeping)


@pytest.mark.spark
def test_without_leaves_every_query_is_planned(
    ours: Spark, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from headrace.spark.jvm_shortcuts import JvmShortcuts

    direct = JvmShortcuts._direct_frame

    def without_plan(bridge: JvmShortcuts, rows: object, *rest: object) -> object:
        frame = direct(bridge, rows, *rest)  # type: ignore[arg-type]
        return frame if isinstance(rows, pa.Table) else object()

    monkeypatch.setattr(JvmShortcuts, "_direct_frame", without_plan)
    runner = Runner(ours)
    with caplog.at_level(logging.WARNING):
        for value in (1, 2, 3):
            found = runner.collect("SELECT n FROM a", [of("a", value)])
            assert isinstance(found, pa.Table)
            assert found.to_pydict() == {"n": [value]}
    assert not kept(runner)
    assert [record.message for record in caplog.records] == ["could not keep plans of queries"]
    runner.close()
