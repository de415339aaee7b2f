"""Queries over files and rows: exact values, bounded results, written parts, calls at once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import HeadraceError, InternalError, Unavailable
from headrace.relations.rows import in_ranges
from headrace.spark import run
from headrace.spark.run import Input, Runner, TooLarge
from headrace.spark.schema import to_schema
from headrace.store import Arrangement
from tests.spark.number_rows import NUMBERS, numbers
from tests.spark.values import bag, logged, read_back, special_table, stored

pytestmark = pytest.mark.spark


def collected(runner: Runner, sql: str, *inputs: Input, **options: object) -> pa.Table:
    result = runner.collect(sql, inputs, **options)  # type: ignore[arg-type]
    assert isinstance(result, pa.Table)
    return result


def test_every_type_comes_back_exactly_from_rows_and_from_files(
    runner: Runner, tmp_path: Path
) -> None:
    table = special_table()
    file = stored(logged(table), tmp_path / "a.parquet")
    for given in (
        Input("a", table.schema, rows=logged(table)),
        Input("a", table.schema, files=(file,)),
    ):
        result = collected(runner, "SELECT * FROM a", given)
        assert to_schema(result, table.schema).schema.equals(table.schema)
        assert bag(result) == bag(table)
    both = Input("a", table.schema, files=(file,), rows=table)
    assert bag(collected(runner, "SELECT * FROM a", both, profile="wide")) == sorted(2 * bag(table))


def test_every_type_is_written_exactly(runner: Runner, tmp_path: Path) -> None:
    table = logged(special_table())
    folder = tmp_path / "parts"
    given = Input("a", table.schema, rows=table)
    runner.write("SELECT * FROM a", [given], str(folder), schema=table.schema)
    assert read_back(folder).schema.equals(table.schema)
    assert bag(read_back(folder)) == bag(table)
    assert {path.suffix for path in folder.iterdir() if path.name[0] != "."} == {".parquet"}
    again = Input("a", table.schema, files=tuple(str(part) for part in folder.glob("*.parquet")))
    assert bag(collected(runner, "SELECT * FROM a", again)) == bag(table)


def test_a_view_has_exactly_the_columns_asked_for(runner: Runner, tmp_path: Path) -> None:
    file = stored(numbers(1, 2), tmp_path / "a.parquet")
    schema = pa.schema([("n", pa.int64())])
    for given in (
        Input("a", schema, files=(file,)),
        Input("a", schema, rows=numbers(1, 2)),
    ):
        assert collected(runner, "SELECT * FROM a ORDER BY 1", given).to_pydict() == {"n": [1, 2]}


def test_an_input_of_nothing_is_an_empty_view(runner: Runner) -> None:
    schema = special_table().schema
    assert collected(runner, "SELECT * FROM a", Input("a", schema)).num_rows == 0
    empty = Input("a", schema, rows=schema.empty_table())
    assert collected(runner, "SELECT COUNT(*) AS n FROM a", empty).to_pydict() == {"n": [0]}


def test_names_may_be_anything(runner: Runner, tmp_path: Path) -> None:
    names = ["a b", "a.b", "A`b", "a`B", "ä", "select"]
    table = pa.table([pa.array([1], pa.int64())] * len(names), names=names)
    file = stored(table, tmp_path / "a.parquet")
    given = Input("some view", table.schema, files=(file,), rows=table)
    result = collected(runner, "SELECT * FROM `some view`", given)
    assert result.column_names == names
    assert result.num_rows == 2


def test_seventy_columns_and_forty_files(runner: Runner, tmp_path: Path) -> None:
    schema = pa.schema([(f"c{number}", pa.int64()) for number in range(70)])
    table = pa.table([pa.array([1], pa.int64())] * 70, schema=schema)
    files = tuple(stored(table, tmp_path / f"{number}.parquet") for number in range(40))
    before = runner.jobs
    total = collected(runner, "SELECT SUM(c0 + c69) AS n FROM a", Input("a", schema, files=files))
    assert total.to_pydict() == {"n": [80]}
    assert runner.jobs - before == 1


def test_a_result_over_the_limit_says_so(runner: Runner) -> None:
    given = Input("a", NUMBERS, rows=numbers(*range(10)))
    assert runner.collect("SELECT n FROM a", [given], limit=9) == TooLarge(9)
    assert collected(runner, "SELECT n FROM a", given, limit=10).num_rows == 10


def test_the_newest_rows_are_read(runner: Runner, tmp_path: Path) -> None:
    files = tuple(stored(numbers(10), tmp_path / f"{number}.parquet") for number in range(2))
    sql = "SELECT SUM(n) AS n FROM a"
    for given, expected in (
        (Input("a", NUMBERS, rows=numbers(1)), 1),
        (Input("a", NUMBERS, rows=numbers(2)), 2),
        (Input("a", NUMBERS, files=files[:1]), 10),
        (Input("a", NUMBERS, files=files[:1], rows=numbers(3)), 13),
        (Input("a", NUMBERS, files=files), 20),
        (Input("a", NUMBERS), None),
    ):
        assert collected(runner, sql, given).to_pydict() == {"n": [expected]}


def test_writing_checks_the_schema_and_never_adds_to_a_folder(
    runner: Runner, tmp_path: Path
) -> None:
    given = [Input("a", NUMBERS, rows=numbers(1))]
    folder = tmp_path / "parts"
    with pytest.raises(InternalError):
        runner.write("SELECT n FROM a", given, str(folder), schema=NUMBERS)
    assert not folder.exists()
    runner.write("SELECT * FROM a", given, str(folder), schema=NUMBERS)
    with pytest.raises(HeadraceError):
        runner.write("SELECT * FROM a", given, str(folder), schema=NUMBERS)
    assert read_back(folder).num_rows == 1


def test_parts_are_ranges_of_a_key_in_order(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executors sort what they write, so that the statistics of row groups tell keys apart."""
    monkeypatch.setitem(run.WRITING, "parquet.block.row.count.limit", "100")
    values = [None, *(n * 7919 % 1000 for n in range(1000))]
    given = [Input("a", NUMBERS, rows=logged(pa.table({"n": pa.array(values, pa.int64())})))]
    folder = tmp_path / "parts"
    runner.write(in_ranges("SELECT * FROM a", Arrangement(("n", "_weight")), 3), given, str(folder))
    parts = [pq.ParquetFile(path) for path in folder.glob("*.parquet")]
    found = sorted((part.read()["n"].to_pylist() for part in parts), key=str)
    assert len(found) == 3
    # Spark sorts NULL before all values.
    together = sorted(found, key=lambda part: part[0] if part[0] is not None else -1)
    assert [n for part in together for n in part] == [None, *range(1000)]
    for part in parts:
        groups = [part.metadata.row_group(i) for i in range(part.num_row_groups)]
        assert {group.num_rows for group in groups[:-1]} == {100}
    runner.write(
        in_ranges("SELECT * FROM a", Arrangement(), 2), given, str(tmp_path / "as they come")
    )
    assert read_back(tmp_path / "as they come").num_rows == 1001


def test_a_missing_file_fails_the_query(runner: Runner, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    given = Input("a", NUMBERS, files=(stored(numbers(1), path),))
    path.unlink()
    with pytest.raises(Unavailable) as raised:
        runner.collect("SELECT * FROM a", [given])
    assert raised.value.code == "store-unreachable"


def test_views_of_a_failed_call_are_not_taken_for_those_before(
    runner: Runner, tmp_path: Path
) -> None:
    first = stored(numbers(1), tmp_path / "first.parquet")
    second = stored(numbers(2), tmp_path / "second.parquet")
    before = Input("n", NUMBERS, files=(first,))
    assert collected(runner, "SELECT n FROM n", before)["n"].to_pylist() == [1]
    after = Input("n", NUMBERS, files=(second,))
    missing = Input("m", NUMBERS, files=(str(tmp_path / "missing.parquet"),))
    with pytest.raises(HeadraceError):
        runner.collect("SELECT n.n FROM n, m", [after, missing])
    assert collected(runner, "SELECT n FROM n", before)["n"].to_pylist() == [1]


def test_many_inputs_from_memory_at_once(runner: Runner) -> None:
    given = [Input(f"n{i}", NUMBERS, rows=numbers(i)) for i in range(9)]
    text = "SELECT " + " + ".join(f"n{i}.n" for i in range(9)) + " AS n FROM "
    result = collected(runner, text + ", ".join(f"n{i}" for i in range(9)), *given)
    assert result["n"].to_pylist() == [36]


def test_a_frame_is_a_users_to_keep(runner: Runner) -> None:
    frame = runner.frame("SELECT n FROM a", [Input("a", NUMBERS, rows=numbers(1, 2))])
    collected(runner, "SELECT n FROM a", Input("a", NUMBERS, rows=numbers(7)))
    assert sorted(row.n for row in frame.collect()) == [1, 2]


def test_calls_at_once_do_not_see_each_others_views(runner: Runner) -> None:
    start = threading.Barrier(4)

    def total(number: int) -> list[int]:
        start.wait()
        return [
            collected(
                runner, "SELECT SUM(n) AS n FROM a", Input("a", NUMBERS, rows=numbers(number))
            )
            .column("n")[0]
            .as_py()
            for _ in range(3)
        ]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(total, range(4))) == [[number] * 3 for number in range(4)]


def test_cancel_stops_what_runs(runner: Runner) -> None:
    slow = "SELECT SUM(a.id * b.id % 7) FROM range(1000000) AS a CROSS JOIN range(1000000) AS b"
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(runner.collect, slow, [])
        time.sleep(1.5)
        began = time.monotonic()
        runner.cancel()
        with pytest.raises(HeadraceError) as raised:
            future.result(timeout=10)
        assert time.monotonic() - began < 10
    assert raised.value.code == "spark-failed"
    assert collected(runner, "SELECT 1 AS one").to_pydict() == {"one": [1]}


def test_files_that_are_kept_are_read_from_memory_until_they_are_released(
    runner: Runner, tmp_path: Path
) -> None:
    path = tmp_path / "kept.parquet"
    file = stored(numbers(1, 2), path)
    kept = Input("kept", NUMBERS, files=(file,), kept_for="a loop")
    assert bag(collected(runner, "SELECT n FROM kept", kept)) == ["(1,)", "(2,)"]
    path.unlink()
    more = Input("again", NUMBERS, files=(file,), rows=numbers(3), kept_for="a loop")
    assert bag(collected(runner, "SELECT n FROM again", more)) == ["(1,)", "(2,)", "(3,)"]
    runner.release("a loop")
    with pytest.raises(HeadraceError):
        collected(runner, "SELECT n FROM kept", kept)
