"""The queries computed anew by Spark, nothing stored: over the project's files, and over copies.

A copy is plain Parquet of a table's present rows, without weights; the query is TPC-H's own text.
Both run on all cores, and of both the result is collected.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import headrace
from bench.tpch.rounds import engine_of, seconds
from bench.tpch.schema import KEYS
from headrace.algebra.scalar import Column
from headrace.plan.operators import Scan
from headrace.relations.definition import define
from headrace.relations.input_reader import InputReader
from headrace.relations.recursion import materialised
from headrace.render import inputs_of
from headrace.render.native import render_native
from headrace.spark.jvm_shortcuts import quoted
from headrace.store import WEIGHT
from headrace.verify.recompute import MOST_ROUNDS, at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A first time takes longer than those after it, but not so many times.
HOPELESS = 3.0


def over_files(hr: headrace.Headrace, name: str) -> Callable[[], int]:
    """The query over the files that refreshes read, as `verify` recomputes it; gives its rows."""
    engine = engine_of(hr)
    state = engine.catalog.state()
    table = state.stream_table("public", name)
    assert table is not None
    plan, inputs = materialised(
        engine, define(table, state).plan, at(engine, state, table), MOST_ROUNDS
    )
    text = render_native(plan, tuple(column.name for column in table.columns))

    def run() -> int:
        return int(engine.runner.collect(text, inputs, profile="wide").num_rows)  # type: ignore[union-attr]

    return run


def over_copies(session: SparkSession, query: str) -> Callable[[], int]:
    """The query as it is written, over the views of a session; gives its rows."""
    return lambda: int(session.sql(query).toArrow().num_rows)


def copies(hr: headrace.Headrace, folder: Path) -> SparkSession:
    """A session with a view of every source: its present rows, copied into a folder."""
    engine = engine_of(hr)
    state = engine.catalog.state()
    session = hr._spark.new_session("wide")  # noqa: SLF001
    reading = InputReader(engine.store, state, {}, limit=0)
    for source in state.sources:
        columns = {c.name: c for c in source.columns if c.type is not None}
        fields = tuple((c.physical, Column(c.physical, c.type)) for c in columns.values() if c.type)
        (wanted,) = inputs_of(Scan(source.relation, fields))
        key = columns[KEYS[source.name].partition(",")[0]].physical
        rows = _present(wanted.name, tuple(c.physical for c in columns.values()), key)
        shown = ", ".join(
            f"rtrim({quoted(c.physical)}) AS {quoted(name)}"
            if c.type is not None and c.type.kind == "character"
            else f"{quoted(c.physical)} AS {quoted(name)}"
            for name, c in columns.items()
        )
        place = str(folder / source.name)
        engine.runner.write(f"SELECT {shown} FROM ({rows})", [reading.input(wanted)], place)
        session.read.parquet(place).createOrReplaceTempView(quoted(source.name))
    return session


def _present(log: str, columns: tuple[str, ...], key: str) -> str:
    """The rows of a log that no other takes away, each once, as a primary key allows.

    Netting them all would take longer than all that is measured: only rows whose key was ever
    taken away are.
    """
    listed, log, key = ", ".join(map(quoted, columns)), quoted(log), quoted(key)
    gone = f"(SELECT DISTINCT {key} FROM {log} WHERE {WEIGHT} < 0)"
    return (
        f"SELECT {listed} FROM {log} LEFT ANTI JOIN {gone} USING ({key}) UNION ALL "
        f"SELECT {listed} FROM {log} LEFT SEMI JOIN {gone} USING ({key}) "
        f"GROUP BY {listed} HAVING sum({WEIGHT}) > 0"
    )


def timed(
    run: Callable[[], int], rows: int, times: int, most: float | None = None
) -> tuple[list[float], str | None]:
    """Seconds of each time after one of warm-up, and what is wrong, if anything.

    If the first takes longer than `most`, it is the only one. Only the number of rows is looked at:
    the values are compared elsewhere.
    """
    from pyspark.errors import PySparkException

    found: list[int] = []
    try:
        first = seconds(lambda: found.append(run()))
        problem = None if found == [rows] else f"computed anew: {found[0]} rows, {rows} are served"
        if most is not None and first > most:
            return [first], problem
        return [seconds(run) for _ in range(times)], problem
    except PySparkException as error:
        return [], f"not computed anew: {str(error).splitlines()[0]}"
