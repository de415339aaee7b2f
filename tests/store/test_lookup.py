"""Rows are found by their keys, in files and in memory, and no others are read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.errors import NeedsReinit
from headrace.store import Arrangement, DeltaStore, Keys, Store, layout, lookup, net, parquet
from headrace.store.keys import ABSENT
from headrace.store.lookup import Footer, LookupCost, may_match
from tests.store.conftest import COLUMNS, bag, through_uri, weighted_rows
from tests.store.watched_reads import watched

NAN = math.nan
VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False],
    pa.int16(): [-3, 0, 7],
    pa.int32(): [-3, 0, 7],
    pa.int64(): [-(2**63), 0, 2**63 - 1],
    pa.float32(): [0.0, -0.0, NAN, 1.5],
    pa.float64(): [0.0, -0.0, NAN, 1.5],
    pa.decimal128(38, 18): [Decimal("1.5"), Decimal("-2"), Decimal("1e-18")],
    pa.string(): ["", "a", "ä"],
    pa.binary(): [b"", b"a", b"\0"],
    pa.date32(): [date(1, 1, 1), date(2024, 2, 29)],
    pa.timestamp("us"): [-62_135_596_800_000_000, 0, 1],
    pa.timestamp("us", "UTC"): [-62_135_510_400_000_000, 0, 1],
    pa.list_(pa.string()): [[], ["a"], ["a", None], [""]],
}


def keys_of(*values: int) -> Keys:
    return Keys(pa.table({"c1": pa.array(values, pa.int64())}))


def test_rows_of_all_epochs_with_their_weights(store: Store) -> None:
    pin = store.create("r1", COLUMNS)
    pin = store.append("r1", pin, 1, weighted_rows(*((1, n, f"row {n}") for n in range(100))))
    pin = store.append("r1", pin, 2, weighted_rows((-1, 3, "row 3"), (1, 3, "new"), (1, 100, "a")))
    pin = store.append("r1", pin, 3, weighted_rows((-1, 3, "new"), (-1, 4, "row 4")))
    pin = store.append("r1", pin, 4, weighted_rows((1, 3, "again"), (1, None, "no key")))
    found = store.lookup("r1", pin, keys_of(3, 4, 5, 3, 100, 7_000))
    assert bag(found) == {
        (1, 3, "row 3"): 1,
        (-1, 3, "row 3"): 1,
        (1, 3, "new"): 1,
        (-1, 3, "new"): 1,
        (1, 3, "again"): 1,
        (1, 4, "row 4"): 1,
        (-1, 4, "row 4"): 1,
        (1, 5, "row 5"): 1,
        (1, 100, "a"): 1,
    }
    assert bag(net(found)) == {(1, 3, "again"): 1, (1, 5, "row 5"): 1, (1, 100, "a"): 1}
    assert store.lookup("r1", pin, keys_of()).num_rows == 0
    assert store.lookup("r1", pin, keys_of(-1)).schema == found.schema


def test_nothing_beyond_the_pin_is_found(store: Store) -> None:
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows((1, 1, "a")))
    store.append("r1", pin, 2, weighted_rows((-1, 1, "a")))
    assert bag(store.lookup("r1", pin, keys_of(1))) == {(1, 1, "a"): 1}


@pytest.mark.parametrize("through", [DeltaStore, through_uri])
def test_a_store_that_has_nothing_in_memory_reads_files(tmp_path: Path, through: Any) -> None:
    pin = DeltaStore(tmp_path).create("r1", COLUMNS)
    pin = DeltaStore(tmp_path).append("r1", pin, 1, weighted_rows((1, 1, "a"), (1, 2, "b")))
    pin = DeltaStore(tmp_path).append("r1", pin, 2, weighted_rows((-1, 1, "a"), (1, 3, "c")))
    found = through(tmp_path).lookup("r1", pin, keys_of(1, 3))
    assert bag(found) == {(1, 1, "a"): 1, (-1, 1, "a"): 1, (1, 3, "c"): 1}


def test_a_file_that_is_gone_is_noticed(tmp_path: Path) -> None:
    store = DeltaStore(tmp_path)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows((1, 1, "a")))
    for path in (tmp_path / "r1").glob("*.parquet"):
        path.unlink()
    with pytest.raises(NeedsReinit) as refused:
        DeltaStore(tmp_path).lookup("r1", pin, keys_of(1))
    assert refused.value.code == "store-behind"


def test_row_groups_without_a_wanted_key_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By statistics even keys stay unread; otherwise only the other columns."""
    rows = weighted_rows(*((1, n, f"{n * 7 % 40:03}") for n in range(40)))
    pq.write_table(rows, tmp_path / "part.parquet", row_group_size=10)
    read = watched(monkeypatch)
    monkeypatch.setattr(lookup, "BATCH_ROWS", 3)
    files = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
    footer = lookup.read_footer(files, "part.parquet", COLUMNS.names)

    def find(keys: Keys) -> list[int]:
        groups = may_match(footer, keys)
        found = lookup.read_matching(files, "part.parquet", footer, groups, COLUMNS, keys)
        return found["c1"].to_pylist()

    assert find(keys_of(12, 19, 35, 77)) == [12, 19, 35]
    assert read == [("keys", [1]), ("rows", [1]), ("keys", [3]), ("rows", [3])]
    read.clear()
    assert find(Keys(pa.table({"c2": ["035", "x"]}))) == [5]
    assert read == [("keys", [0]), ("rows", [0]), ("keys", [1]), ("keys", [2]), ("keys", [3])]
    read.clear()
    monkeypatch.setattr(lookup, "BATCH_ROWS", 20)
    assert find(Keys(pa.table({"c2": ["035", "007"]}))) == [1, 5]
    assert read == [("keys", [0, 1]), ("rows", [0]), ("keys", [2, 3])]


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_every_stored_type_can_be_a_key(tmp_path: Path, kind: pa.DataType) -> None:
    columns = pa.schema([("c1", kind), ("c2", pa.int64())])
    values = VALUES[kind]
    rows = pa.table(
        {
            "_weight": pa.array([1] * len(values), pa.int64()),
            "c1": pa.array(values, kind),
            "c2": pa.array(range(len(values)), pa.int64()),
        }
    )
    store = DeltaStore(tmp_path)
    pin = store.append("r1", store.create("r1", columns), 1, rows)
    for reader in (store, DeltaStore(tmp_path)):
        for number in range(len(values)):
            keys = Keys(rows.select(["c1"]).slice(number, 1))
            assert reader.lookup("r1", pin, keys)["c2"].to_pylist() == [number]


Rows = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc"), st.booleans()), max_size=20)


@given(Rows, Rows)
@example([], [(0, "a", True)])
@example([(0, "a", True), (1, "b", True)], [(0, "b", True), (1, "a", True)])
def test_keys_of_several_columns_are_numbered(
    wanted: list[tuple[int, str, bool]], rows: list[tuple[int, str, bool]]
) -> None:
    keys = Keys(_table(wanted))
    assert len(keys) == len(set(wanted))
    numbers = dict(zip(wanted, keys.own.tolist(), strict=True))
    assert sorted(numbers.values()) == list(range(len(keys)))
    assert keys.find(_table(rows)).tolist() == [numbers.get(row, ABSENT) for row in rows]


def _table(rows: list[tuple[int, str, bool]]) -> pa.Table:
    kinds = {"a": pa.int32(), "b": pa.string(), "c": pa.bool_()}
    return pa.table(
        {name: pa.array([row[i] for row in rows], kinds[name]) for i, name in enumerate(kinds)}
    )


@given(Rows, Rows)
@example([], [])
@example([(0, "a", True)], [(0, "b", True)])
def test_equal_keys_are_the_same_set(
    wanted: list[tuple[int, str, bool]], rows: list[tuple[int, str, bool]]
) -> None:
    once = list(dict.fromkeys(rows))
    assert Keys(_table(wanted)).are(_table(once)) is (set(wanted) == set(once))
    assert Keys(_table(wanted)).are(_table(list(dict.fromkeys(reversed(wanted)))))
    assert not Keys(_table(wanted)).are(_table(once).rename_columns(["a", "b", "d"]))


def test_null_is_a_value_of_its_own() -> None:
    keys = Keys(pa.table({"c1": pa.array([1, None], pa.int64())}))
    rows = pa.table({"c1": pa.array([2, None, 1], pa.int64())})
    assert keys.has(rows).tolist() == [False, True, True]
    assert keys_of(1, 2).has(rows).tolist() == [True, False, True]


whole = st.one_of(st.integers(-3, 3), st.sampled_from([-(2**63), 2**63 - 1, 1 << 40]))


@given(st.lists(whole), st.lists(st.one_of(st.none(), whole)))
def test_whole_numbers_are_found_near_each_other_and_far_apart(
    wanted: list[int], rows: list[int | None]
) -> None:
    table = pa.table({"c1": pa.array(rows, pa.int64())})
    assert keys_of(*wanted).has(table).tolist() == [row in wanted for row in rows]


def test_some_columns_up_to_an_epoch(store: Store) -> None:
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows((1, 1, "a")))
    pin = store.append("r1", pin, 2, weighted_rows((-1, 1, "a"), (1, 1, "b")))
    found = store.lookup("r1", pin, keys_of(1), ["c2"], 1)
    assert found.to_pylist() == [{"_weight": 1, "c2": "a"}]
    assert store.lookup("r1", pin, keys_of(1), ["c2"]).num_rows == 3


def test_no_more_rows_than_wanted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "BATCH_ROWS", 10)
    pin = store.create("r1", COLUMNS)
    for epoch in (1, 2, 3):
        pin = store.append("r1", pin, epoch, weighted_rows(*((1, 1, str(n)) for n in range(50))))
    assert store.lookup("r1", pin, keys_of(1), most=149).num_rows > 149
    assert store.lookup("r1", pin, keys_of(1), most=150).num_rows == 150


def test_a_file_is_not_read_further_than_wanted(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(lookup, "BATCH_ROWS", 10)
    store = DeltaStore(tmp_path)
    rows = weighted_rows(*((1, 1, str(n)) for n in range(50)))
    pin = store.append("r1", store.create("r1", COLUMNS), 1, rows)
    assert DeltaStore(tmp_path).lookup("r1", pin, keys_of(1), most=5).num_rows == 10


def test_a_sorted_file_is_read_where_the_keys_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "GROUP_ROWS", 10)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 10)
    store = DeltaStore(tmp_path)
    mixed = [n * 37 % 1000 for n in range(1000)]
    pin = store.create("r1", COLUMNS, Arrangement(("c1",)))
    pin = store.append("r1", pin, 1, weighted_rows(*((1, n, f"row {n}") for n in mixed)))
    reader, keys = DeltaStore(tmp_path), keys_of(5, 7, 500, 2_000)
    assert reader.arrangement("r1", pin) == Arrangement(("c1",))
    assert reader.lookup_cost("r1", pin, keys) == LookupCost(20)
    read = watched(monkeypatch)
    expected = {(1, n, f"row {n}"): 1 for n in (5, 7, 500)}
    assert bag(reader.lookup("r1", pin, keys)) == expected
    assert read == [("keys", [0, 50]), ("rows", [0, 50])]
    read.clear()
    assert bag(reader.lookup("r1", pin, keys, by="scan")) == expected
    assert read == [("keys", list(range(100))), ("rows", [0, 50])]


def test_a_footer_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each column of a key; a file without such a row is not opened again."""
    store = DeltaStore(tmp_path)
    pin = store.create("r1", COLUMNS)
    for epoch in (1, 2):
        pin = store.append("r1", pin, epoch, weighted_rows((1, epoch, "a")))
    read: list[set[str]] = []

    def footer(files: pafs.FileSystem, path: str, names: Iterable[str]) -> Footer:
        read.append(set(names))
        return lookup.read_footer(files, path, names)

    monkeypatch.setattr("headrace.store.reader.read_footer", footer)
    reader = DeltaStore(tmp_path)
    for _ in range(3):
        assert reader.lookup_cost("r1", pin, keys_of(1)) == LookupCost(1)
        assert reader.lookup("r1", pin, keys_of(1, 2)).num_rows == 2
    assert read == [{"c1"}, {"c1"}]
    texts = Keys(pa.table({"c2": ["b"]}))
    assert reader.lookup_cost("r1", pin, texts) == LookupCost(0)
    assert reader.lookup_cost("r1", pin, keys_of(3)) == LookupCost(0)
    assert read[2:] == [{"c1", "c2"}, {"c1", "c2"}]
    for path in (tmp_path / "r1").glob("*.parquet"):
        path.unlink()
    assert reader.lookup("r1", pin, keys_of(3)).num_rows == 0
    with pytest.raises(NeedsReinit):
        reader.lookup("r1", pin, keys_of(1))
