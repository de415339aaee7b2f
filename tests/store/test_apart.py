"""Rows kept apart by a column: the same bag in files that readers of one value can leave out."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from headrace.errors import InternalError
from headrace.store import Arrangement, DeltaStore, Pin, Store
from headrace.store import layout as module
from headrace.store.actions import LONGEST, FileBounds, bounds_in, bounds_of
from headrace.store.compaction import worth_merging
from headrace.store.layout import kept_apart
from tests.store.conftest import COLUMNS, bag, weighted_rows

BY_C2 = Arrangement(("c1", "c2"), "c2")
VALUES = (None, "", "a", "b", "it's", "\U0001f600", "é" * 40)


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL_ROWS", 5)


@pytest.mark.parametrize("seed", range(8))
def test_no_value_is_in_two_files(small_files: None, seed: int) -> None:
    chance = random.Random(seed)
    rows = weighted_rows(
        *((chance.choice((-1, 1, 2)), n, chance.choice(VALUES)) for n in range(seed * 9))
    )
    parts = list(kept_apart(rows, BY_C2))
    assert bag(pa.concat_tables(parts)) == bag(rows)
    keys = [(one["c2"] is None, one["c2"], one["c1"]) for p in parts for one in p.to_pylist()]
    assert keys == sorted(keys)
    found = [set(part["c2"].to_pylist()) for part in parts]
    assert sum(map(len, found)) == len(set().union(*found))
    assert all(part.num_rows >= 5 for part in parts[:-1])
    # A file ends with the value with which it is large enough.
    for part in parts:
        last = part["c2"].to_pylist()[-1:]
        assert sum(value not in last for value in part["c2"].to_pylist()) < 5


def test_rows_that_are_not_kept_apart_stay_as_they_are(small_files: None) -> None:
    rows = weighted_rows(*((1, n, "b" if n % 2 else "a") for n in range(20)))
    assert list(kept_apart(rows, Arrangement())) == [rows]


@pytest.mark.parametrize("column", ["c3", "c9"])
def test_columns_that_cannot_be_distinguished_are_a_bug(store: Store, column: str) -> None:
    columns = pa.schema([*COLUMNS, ("c3", pa.float64())])
    with pytest.raises(InternalError):
        store.create("r1", columns, Arrangement(apart=column))


def test_a_log_kept_apart_holds_the_same_rows(store: Store, small_files: None) -> None:
    chance = random.Random(7)
    parted, plain = store.create("r1", COLUMNS, BY_C2), store.create("r2", COLUMNS)
    assert store.arrangement("r1", parted) == BY_C2
    assert store.arrangement("r2", plain) == Arrangement()
    for epoch in range(1, 7):
        rows = weighted_rows(
            *((chance.choice((-1, 1)), chance.randrange(3), chance.choice(VALUES)) for _ in "x" * 9)
        )
        parted = store.append("r1", parted, epoch, rows)
        plain = store.append("r2", plain, epoch, rows)
    parted = store.compact("r1", parted, store.files("r1", parted, 0, 4))
    plain = store.compact("r2", plain, store.files("r2", plain, 0, 4))
    for after, upto in ((0, 6), (0, 4), (4, 6), (5, 6)):
        assert bag(store.read("r1", parted, after, upto)) == bag(
            store.read("r2", plain, after, upto)
        )
    assert store.arrangement("r1", parted) == BY_C2


def test_every_process_knows_it(tmp_path: Path, small_files: None) -> None:
    store = DeltaStore(tmp_path)
    pin = store.append("r1", store.create("r1", COLUMNS, BY_C2), 1, weighted_rows((1, 1, "a")))
    assert DeltaStore(tmp_path).arrangement("r1", pin) == BY_C2
    other = DeltaStore(tmp_path)
    rows = weighted_rows(*((1, n, "ab"[n % 2]) for n in range(20)))
    pin = other.append("r1", pin, 2, rows)
    assert other.files("r1", pin, 0, 2) == DeltaStore(tmp_path).files("r1", pin, 0, 2)
    assert len(other.files("r1", pin, 1, 2)) == 2


def files_for(root: Path, condition: pc.Expression) -> int:
    """How many files another reader of the Delta table opens."""
    dataset = DeltaTable(str(root / "r1")).to_pyarrow_dataset()
    return len(list(dataset.get_fragments(condition)))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), ["", "a", "it's", "é" * 40]),
        (pa.int16(), [-7, 0, 1, 32767]),
        (pa.int64(), [-(2**63), 0, 5, 2**63 - 1]),
        (pa.date32(), [date(1, 1, 1), date(2024, 2, 29), date(2024, 3, 1), date(9999, 12, 31)]),
    ],
    ids=str,
)
def test_another_reader_leaves_out_files_of_other_values(
    tmp_path: Path, small_files: None, kind: pa.DataType, values: list[Any]
) -> None:
    columns = pa.schema([("c1", kind), ("c2", pa.int64())])
    store = DeltaStore(tmp_path)
    given = [value for value in (*values, None) for _ in range(6)]
    rows = pa.table(
        [pa.repeat(1, 30), pa.array(given, kind), pa.array(range(30))],
        schema=pa.schema([("_weight", pa.int64()), *columns]),
    )
    pin = store.append("r1", store.create("r1", columns, Arrangement(apart="c1")), 1, rows)
    assert len(store.files("r1", pin, 0, 1)) == 5
    for value in values:
        condition = pc.field("c1") == pa.scalar(value, kind)
        assert files_for(tmp_path, condition) == 1
        found = DeltaTable(str(tmp_path / "r1")).to_pyarrow_dataset().to_table(filter=condition)
        assert found["c1"].to_pylist() == [value] * 6
    # Also after a compaction of the log and a checkpoint of it.
    for epoch in range(2, 12):
        pin = store.append("r1", pin, epoch, rows.slice(0, 6))
    pin = store.compact("r1", pin, store.files("r1", pin, 0, 11))
    assert pin.version > 10
    assert files_for(tmp_path, pc.field("c1") == pa.scalar(values[2], kind)) == 1


def test_what_executors_wrote_has_bounds_too(tmp_path: Path) -> None:
    store = DeltaStore(tmp_path)
    pin = store.create("r1", COLUMNS, BY_C2)
    folder = store.new_folder("r1", 1)
    Path(folder).mkdir()
    for number, words in enumerate((["a", "b", None], ["c", "d"], [None, None])):
        rows = weighted_rows(*((1, n, word) for n, word in enumerate(words)))
        epochs = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
        path = f"{folder}/part-{number}.parquet"
        pq.write_table(rows.add_column(0, "_epoch", epochs), path, row_group_size=2)
    pin = store.register("r1", pin, 1, folder)
    assert files_for(tmp_path, pc.field("c2") == "d") == 1
    commit = (tmp_path / "r1" / "_delta_log" / f"{pin.version:020d}.json").read_text()
    added = [json.loads(line)["add"] for line in commit.splitlines() if '"add"' in line]
    assert Counter(json.loads(one["stats"])["nullCount"]["c2"] for one in added) == Counter(
        [1, 0, 2]
    )


def test_bounds_in_memory_and_in_a_file_are_the_same(tmp_path: Path) -> None:
    chance = random.Random(3)
    rows = weighted_rows(*((1, n, chance.choice(VALUES)) for n in range(50)))
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=7)
    footer = pq.ParquetFile(tmp_path / "rows.parquet").metadata
    assert bounds_in(footer, "c2") == bounds_of(rows, "c2")
    assert bounds_in(footer, "c1") == bounds_of(rows, "c1") == FileBounds("c1", 0, 49, 0)
    assert bounds_in(footer, None) is None
    pq.write_table(rows, tmp_path / "rows.parquet", write_statistics=False)
    assert bounds_in(pq.ParquetFile(tmp_path / "rows.parquet").metadata, "c2") is None


def test_long_text_and_truth_values_have_no_bounds() -> None:
    for least, greatest in (("a", "x" * (LONGEST + 1)), (False, True), (None, None)):
        statistics = FileBounds("c1", least, greatest, 2).statistics()
        assert statistics == {"nullCount": {"c1": 2}}


def test_files_kept_apart_are_not_compacted_for_ever(tmp_path: Path) -> None:
    store = DeltaStore(tmp_path)
    rows = weighted_rows(*((1, n, f"{n % 40}") for n in range(450_000)))
    pin = store.append("r1", store.create("r1", COLUMNS, BY_C2), 1, rows)
    files = store.files("r1", pin, 0, 1)
    assert len(files) > 3
    assert worth_merging(files, ()) == ()
    assert pin == Pin(1, 1)
