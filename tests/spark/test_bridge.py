"""The short way into a session gives what PySpark's own way gives, and gives way to it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headrace.spark.jvm_shortcuts import JvmShortcuts
from headrace.spark.schema import struct
from headrace.spark.session import Spark
from tests.spark.values import bag, special_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ONE = pa.schema([("n", pa.int64())])
OTHER = pa.schema([("n", pa.string()), ("m", pa.bool_())])


@pytest.fixture
def session(ours: Spark) -> SparkSession:
    return ours.new_session("tiny")


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the views that PySpark was asked to make."""
    from pyspark.sql.classic.dataframe import DataFrame

    asked: list[str] = []
    through = DataFrame.createOrReplaceTempView

    def noted(frame: DataFrame, name: str) -> None:
        asked.append(name)
        through(frame, name)

    monkeypatch.setattr(DataFrame, "createOrReplaceTempView", noted)
    return asked


def numbers(*values: int) -> pa.Table:
    return pa.table([pa.array(values, pa.int64())], schema=ONE)


def lists() -> pa.Table:
    return pa.table({"l": pa.array([[1, None], [], None], pa.list_(pa.int32()))})


@pytest.mark.parametrize("table", [special_table(), lists(), special_table().slice(2, 3)])
def test_rows_are_those_that_pyspark_takes_in(session: SparkSession, table: pa.Table) -> None:
    short = JvmShortcuts(session).frame(table, table.schema)
    long = session.createDataFrame(table, struct(table.schema))
    assert short.schema == long.schema
    assert bag(short.toArrow()) == bag(long.toArrow()) == bag(table)


def test_a_chunk_is_a_partition(session: SparkSession) -> None:
    bridge = JvmShortcuts(session)
    assert bridge.frame(numbers(1, 2), ONE).rdd.getNumPartitions() == 1
    two = pa.concat_tables([numbers(1), numbers(2)])
    assert bridge.frame(two, ONE).rdd.getNumPartitions() == 2
    assert bridge.frame(numbers(), ONE).toArrow().num_rows == 0


def test_a_view_has_the_rows_that_it_was_shown_last(
    session: SparkSession, commands: list[str]
) -> None:
    bridge = JvmShortcuts(session)

    def shown(table: pa.Table) -> object:
        bridge.show("a `b", table.schema, bridge.frame(table, table.schema))
        return session.sql("SELECT * FROM `a ``b`").toArrow().to_pylist()

    assert shown(numbers(1, 2)) == [{"n": 1}, {"n": 2}]
    assert shown(numbers(3)) == [{"n": 3}]
    assert shown(numbers()) == []
    assert len(commands) == 1
    other = pa.table([["x"], [True]], schema=OTHER)
    assert shown(other) == [{"n": "x", "m": True}]
    assert shown(numbers(4)) == [{"n": 4}]
    assert len(commands) == 3
    bridge.drop("a `b")
    assert not session.catalog.tableExists("`a ``b`")
    assert shown(numbers(5)) == [{"n": 5}]
    assert len(commands) == 4


def test_what_is_refused_goes_the_long_way(
    session: SparkSession,
    commands: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bridge = JvmShortcuts(session)
    bridge.show("a", ONE, bridge.frame(numbers(1), ONE))

    def gone() -> object:
        return session._jvm.org.apache.spark.sql.NoSuchThing.call()  # type: ignore[union-attr]

    monkeypatch.setattr(bridge, "_in_jvm", gone)
    with caplog.at_level(logging.WARNING):
        for value in (2, 3):
            bridge.show("a", ONE, bridge.frame(numbers(value), ONE))
            assert session.sql("SELECT n FROM a").toArrow().to_pydict() == {"n": [value]}
    assert commands == ["`a`"] * 3
    assert [record.message for record in caplog.records] == [
        "could not pass inputs to Spark directly"
    ]


def test_rows_for_several_tasks_are_divided(session: SparkSession) -> None:
    frame = JvmShortcuts(session).frame(numbers(*range(25)), ONE, 10)
    assert frame.rdd.getNumPartitions() == 3
    assert sorted(frame.toArrow()["n"].to_pylist()) == list(range(25))
