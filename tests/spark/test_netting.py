"""Netting keeps every value apart that PostgreSQL's bits keep apart, and NULLs together."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.spark.copy import write_difference
from headrace.spark.netting import difference_sql, net_sql
from headrace.spark.run import Input, Runner
from tests.spark.values import bag, logged, read_back, special_table, stored

COLUMNS = [("k", "BIGINT"), ("x", "DOUBLE")]
SCHEMA = pa.schema([("_weight", pa.int64()), ("k", pa.int64()), ("x", pa.float64())])
NAN = float("nan")


def rows(*values: tuple[int, int | None, float | None]) -> pa.Table:
    return pa.table(
        [
            pa.array(column, type_)
            for column, type_ in zip(zip(*values, strict=True), SCHEMA.types, strict=True)
        ],
        schema=SCHEMA,
    )


def test_the_text_groups_floats_by_their_text() -> None:
    assert net_sql("v", COLUMNS) == (
        "SELECT SUM(`_weight`) AS `_weight`, `k`, any_value(`x`) AS `x`"
        " FROM `v` GROUP BY `k`, CAST(`x` AS STRING) HAVING SUM(`_weight`) <> 0"
    )


def test_names_are_quoted() -> None:
    assert "`a``b`" in net_sql("v", [("a`b", "INT")])


@pytest.mark.spark
def test_weights_of_equal_rows_are_summed(runner: Runner) -> None:
    change = rows(
        (1, 1, 0.0),
        (1, 1, -0.0),
        (1, 1, -0.0),
        (1, 2, NAN),
        (1, 2, NAN),
        (1, None, None),
        (2, None, None),
        (1, 3, 1.5),
        (-1, 3, 1.5),
        (-1, 4, 1e-300),
    )
    net = runner.collect(net_sql("v", COLUMNS), [Input("v", SCHEMA, rows=change)])
    assert isinstance(net, pa.Table)
    assert bag(net) == bag(
        rows((1, 1, 0.0), (2, 1, -0.0), (2, 2, NAN), (3, None, None), (-1, 4, 1e-300))
    )


@pytest.mark.spark
def test_rows_without_columns_are_counted(runner: Runner) -> None:
    schema = pa.schema([("_weight", pa.int64())])
    for weights, expected in (([2, -1], [1]), ([1, -1], []), ([], [])):
        table = pa.table({"_weight": pa.array(weights, pa.int64())})
        net = runner.collect(net_sql("v", []), [Input("v", schema, rows=table)])
        assert isinstance(net, pa.Table)
        assert net.column("_weight").to_pylist() == expected


@pytest.mark.spark
def test_the_difference_turns_one_bag_into_the_other(runner: Runner) -> None:
    old = rows((1, 1, 0.0), (2, 2, NAN), (1, None, None))
    new = rows((1, 1, -0.0), (1, 2, NAN), (1, None, None), (1, 5, None))
    inputs = [Input("new", SCHEMA, rows=new), Input("old", SCHEMA, rows=old)]
    found = runner.collect(difference_sql("new", "old", COLUMNS), inputs)
    assert isinstance(found, pa.Table)
    assert bag(found) == bag(rows((-1, 1, 0.0), (1, 1, -0.0), (-1, 2, NAN), (1, 5, None)))


@pytest.mark.spark
def test_the_difference_of_files_is_written_for_every_type(runner: Runner, tmp_path: Path) -> None:
    table = special_table()
    first, rest = table.slice(0, 1), table.slice(1)
    old = stored(logged(table), tmp_path / "old.parquet")
    undone = stored(logged(first, epoch=2, weight=-1), tmp_path / "undone.parquet")
    new = stored(logged(first, epoch=3), tmp_path / "new.parquet")
    folder = tmp_path / "difference"
    write_difference(runner, [new], [old, undone], table.schema, 3, str(folder))
    expected = pa.concat_tables([logged(first, 3), logged(rest, 3, -1)])
    written = read_back(folder)
    assert written.schema.names == expected.schema.names
    assert written.schema.types == expected.schema.types
    assert bag(written) == bag(expected)


@pytest.mark.spark
def test_without_old_files_the_difference_is_everything(runner: Runner, tmp_path: Path) -> None:
    table = special_table()
    new = stored(logged(table), tmp_path / "new.parquet")
    write_difference(runner, [new], [], table.schema, 7, str(tmp_path / "d"))
    assert bag(read_back(tmp_path / "d")) == bag(logged(table, 7))
