"""An index beside a file finds what the file holds, and may be missing at any moment."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.store import (
    Arrangement,
    DeltaStore,
    Keys,
    LogFile,
    LookupCost,
    index,
    layout,
    parquet,
)
from headrace.store.index import Indexes
from tests.store.conftest import COLUMNS, bag, weighted_rows
from tests.store.watched_reads import watched

WANTED = pa.schema(
    [("_weight", pa.int64()), ("a", pa.int32()), ("b", pa.int64()), ("c", pa.string())]
)
numbers = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([-(2**31), 2**31 - 1]))
rows = st.lists(st.tuples(numbers, st.integers(0, 2), st.sampled_from("xyz")), max_size=30)


def table(given_rows: list[tuple[int | None, int, str]]) -> pa.Table:
    columns = [[row[place] for row in given_rows] for place in range(3)]
    return pa.table([range(len(given_rows)), *columns], schema=WANTED)


def file_of(of: pa.Table, uri: str = "r1/one.parquet") -> LogFile:
    return LogFile(uri, of.num_rows, of.nbytes, 1, 1, None)


def over(of: pa.Table, **more: Any) -> Indexes:
    return Indexes(lambda _, names: of.select([*names]), **more)


def built(indexes: Indexes) -> None:
    """Wait until nothing is made in the background."""
    if (builder := indexes._builder) is not None:
        builder.join(60)


@given(rows, rows, st.sampled_from([["a"], ["b"], ["a", "b"], ["a", "c"], ["b", "c", "a"]]))
@example([(1, 1, "x"), (None, 1, "x"), (1, 2, "y")], [(1, 1, "x")], ["a", "c"])
def test_an_index_finds_what_a_comparison_of_all_rows_does(
    stored: list[tuple[int | None, int, str]],
    wanted: list[tuple[int | None, int, str]],
    names: list[str],
) -> None:
    known, keys = table(stored), Keys(table(wanted).select(names))
    indexes, file = over(known), file_of(known)
    assert indexes.find(file, keys, WANTED) is None
    indexes.make(file, keys, WANTED.names)
    found, right = indexes.find(file, keys, WANTED), keys.matching(known)
    if not keys.integers:
        assert found is None
    else:
        assert found is not None and found.equals(right)
        reached = indexes.compared_rows(file, keys, WANTED.names)
        assert reached is not None and right.num_rows <= reached <= known.num_rows


def test_more_rows_than_wanted_are_not_all() -> None:
    known = table([(1, n % 3, "x") for n in range(50)])
    indexes, file = over(known), file_of(known)
    one, two = Keys(known.select(["a"])), Keys(known.select(["a", "b"]))
    for keys in (one, two):
        indexes.make(file, keys, WANTED.names)
    found = indexes.find(file, one, WANTED, 10)
    assert found is not None and found.num_rows == 11
    assert indexes.find(file, two, WANTED, 10) is None
    whole = indexes.find(file, two, WANTED, 50)
    assert whole is not None and whole.num_rows == 50


def test_what_is_asked_for_twice_is_made_in_the_background(monkeypatch: Any) -> None:
    monkeypatch.setattr(index, "FEWEST_ROWS", 2)
    known = table([(n, 0, "x") for n in range(5)])
    indexes, file, keys = over(known), file_of(known), Keys(known.select(["a"]))
    small = file_of(known.slice(0, 1), "small")
    for _ in range(2):
        assert indexes.find(file, keys, WANTED) is None
        indexes.request(file, keys, ["a", "_weight"])
        indexes.request(small, keys, ["a", "_weight"])
    built(indexes)
    assert indexes.compared_rows(file, keys, ["a", "_weight"]) == 5
    assert indexes.compared_rows(file, keys, WANTED.names) is None
    assert indexes.compared_rows(small, keys, ["a"]) is None
    indexes.request(file, keys, WANTED.names)
    built(indexes)
    assert indexes.find(file, keys, WANTED) == known
    indexes.forget([file])
    assert indexes.find(file, keys, WANTED) is None


@pytest.mark.parametrize("failure", [FileNotFoundError, MemoryError, KeyError])
def test_what_cannot_be_made_stops_nothing(monkeypatch: Any, failure: type[Exception]) -> None:
    monkeypatch.setattr(index, "FEWEST_ROWS", 1)
    known, tried = table([(1, 1, "x")]), Counter[str]()

    def read(uri: str, names: Collection[str]) -> pa.Table:
        tried[uri] += 1
        if uri == "gone":
            raise failure
        return known.select([*names])

    indexes, keys = Indexes(read), Keys(known.select(["a"]))
    for uri in ("gone", "gone", "here", "here"):
        indexes.request(file_of(known, uri), keys, WANTED.names)
    built(indexes)
    assert indexes.find(file_of(known, "gone"), keys, WANTED) is None
    assert indexes.find(file_of(known, "here"), keys, WANTED) == known
    indexes.request(file_of(known, "gone"), keys, WANTED.names)
    built(indexes)
    assert tried["gone"] == len(WANTED) + 1


def test_what_is_forgotten_while_it_is_made_is_not_kept(monkeypatch: Any) -> None:
    monkeypatch.setattr(index, "FEWEST_ROWS", 1)
    known = table([(1, 1, "x")])
    file, keys = file_of(known), Keys(known.select(["a"]))

    def read(uri: str, names: Collection[str]) -> pa.Table:
        indexes.forget(prefix="r1/")
        return known.select([*names])

    indexes = Indexes(read)
    for _ in range(2):
        indexes.request(file, keys, WANTED.names)
    built(indexes)
    assert not indexes._kept


def test_an_index_takes_no_descriptors_and_leaves_space(monkeypatch: Any, tmp_path: Path) -> None:
    known = table([(n, 0, "x") for n in range(100)])
    keys = Keys(known.select(["a"]))
    space = shutil.disk_usage(tmp_path)

    def free(_: object) -> Any:
        taken = sum(kept.size for kept in indexes._kept.values())
        return space._replace(free=20_000 - taken)

    monkeypatch.setattr(index.shutil, "disk_usage", free)
    indexes, before = over(known, folder=tmp_path), len(os.listdir("/dev/fd"))
    for number in range(20):
        indexes.make(file_of(known, f"{number}"), keys, WANTED.names)
    assert 4_000 < sum(kept.size for kept in indexes._kept.values()) <= 20_000 // 4
    assert len(os.listdir("/dev/fd")) == before
    assert not list(tmp_path.iterdir())


def test_what_is_not_used_makes_room() -> None:
    known = table([(n, 0, "x") for n in range(100)])
    keys, names = Keys(known.select(["a"])), ["_weight", "a"]
    # Two columns of 8 and 4 bytes a row, and the order of 12.
    indexes = over(known, most_bytes=3000)
    first, second = file_of(known, "first"), file_of(known, "second")
    indexes.make(first, keys, names)
    indexes.make(second, keys, names)
    assert indexes.compared_rows(first, keys, names) == 100
    assert indexes.compared_rows(second, keys, names) is None
    for piece, kept in indexes._kept.items():
        kept.used -= (piece[0] == "first") * index.UNUSED_SECONDS
    indexes.make(second, keys, names)
    assert indexes.compared_rows(first, keys, names) is None
    assert indexes.compared_rows(second, keys, names) == 100


def test_row_groups_that_leave_fewer_rows_are_read(tmp_path: Path, monkeypatch: Any) -> None:
    """A column with many values is in every row of a file that is sorted by another."""
    monkeypatch.setattr(layout, "GROUP_ROWS", 10)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 10)
    columns = pa.schema([("t", pa.int64()), ("d", pa.int64())])
    rows = pa.table(
        {"_weight": [1] * 400, "t": [n // 10 for n in range(400)], "d": [*range(10)] * 40}
    )
    store = DeltaStore(tmp_path)
    pin = store.append("r1", store.create("r1", columns, Arrangement(("t", "d"))), 1, rows)
    keys = Keys(pa.table({"t": pa.array([7] * 10), "d": pa.array(range(10))}))
    reader = DeltaStore(tmp_path)
    assert reader.lookup("r1", pin, keys, by="index").num_rows == 10
    assert reader.lookup_cost("r1", pin, keys) == LookupCost(10)
    assert reader.lookup("r1", pin, keys)["t"].to_pylist() == [7] * 10
    one = Keys(pa.table({"t": [7], "d": [3]}))
    assert reader.lookup_cost("r1", pin, one).rows <= 10
    assert reader.lookup("r1", pin, one).num_rows == 1


def test_a_store_finds_rows_without_reading_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DeltaStore(tmp_path)
    pin = store.create("r1", COLUMNS)
    for epoch in (1, 2):
        new = weighted_rows(*((1, 100 * epoch + n, f"row {n}") for n in range(50)))
        pin = store.append("r1", pin, epoch, new)
    keys = Keys(pa.table({"c1": pa.array([105, 211, 7], pa.int64())}))
    reader = DeltaStore(tmp_path)
    expected = bag(reader.lookup("r1", pin, keys))
    assert bag(reader.lookup("r1", pin, keys, by="index")) == expected
    read = watched(monkeypatch)
    assert reader.lookup_cost("r1", pin, keys) == LookupCost(2, indexed=True)
    assert bag(reader.lookup("r1", pin, keys)) == expected
    assert bag(reader.lookup("r1", pin, keys, upto=1)) == {(1, 105, "row 5"): 1}
    assert not read
    assert bag(reader.lookup("r1", pin, keys, by="pruned")) == expected
    assert read
    pin = reader.compact("r1", pin, reader.files("r1", pin, 0, 2))
    assert not reader._reader._indexes._kept
    assert [entry.name for entry in tmp_path.iterdir()] == ["r1"]
