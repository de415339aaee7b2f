"""The newest rows are read from memory, within a bound."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from headrace.store import DeltaStore, Pin
from headrace.store.cache import Recent
from tests.store.conftest import COLUMNS, bag, weighted_rows

A, B = (1, 1, "a"), (1, 2, "b")
SIZE = weighted_rows(A).get_total_buffer_size()


def put(recent: Recent[pa.Table], uri: str, rows: pa.Table) -> None:
    recent.put(uri, rows, rows.get_total_buffer_size())


def test_the_oldest_is_given_up_first() -> None:
    recent = Recent[pa.Table](2 * SIZE)
    for name in ("a", "b", "c"):
        put(recent, name, weighted_rows(A))
    assert [recent.get(name) is not None for name in ("a", "b", "c")] == [False, True, True]


def test_what_exceeds_the_bound_alone_is_not_kept() -> None:
    recent = Recent[pa.Table](SIZE)
    put(recent, "a", weighted_rows(A))
    put(recent, "b", weighted_rows(*[A] * 1000))
    assert recent.get("a") is not None
    assert recent.get("b") is None


def test_what_is_forgotten_frees_its_room() -> None:
    recent = Recent[pa.Table](2 * SIZE)
    put(recent, "r1/a", weighted_rows(A))
    put(recent, "r2/b", weighted_rows(A))
    recent.forget("r1/")
    put(recent, "r2/c", weighted_rows(A))
    assert recent.get("r1/a") is None
    assert recent.get("r2/b") is not None


def test_a_cached_change_needs_no_file(tmp_path: Path) -> None:
    store = DeltaStore(tmp_path)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    pin = store.append("r1", pin, 2, weighted_rows(B))
    for path in (tmp_path / "r1").glob("*.parquet"):
        path.unlink()
    for rows in (store.cached("r1", pin, 1, 2), store.read("r1", pin, 1, 2)):
        assert rows is not None
        assert bag(rows) == {B: 1}


def test_a_part_of_a_change_is_not_enough(tmp_path: Path) -> None:
    store = DeltaStore(tmp_path, memory_bytes=2 * SIZE)
    pin = store.create("r1", COLUMNS)
    for epoch in range(1, 5):
        pin = store.append("r1", pin, epoch, weighted_rows(A))
    assert store.cached("r1", pin, 0, 4) is None
    assert store.cached("r1", pin, 3, 4) is not None
    assert store.read("r1", pin, 0, 4).num_rows == 4


def test_another_process_has_nothing_cached(tmp_path: Path) -> None:
    store = DeltaStore(tmp_path)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    fresh = DeltaStore(tmp_path)
    assert fresh.cached("r1", pin, 0, 1) is None
    fresh.files("r1", pin, 0, 1)
    assert fresh.cached("r1", pin, 0, 1) is None
    assert fresh.cached("r1", Pin(1, 1), 1, 1) is not None


def test_rolled_back_rows_are_not_served_from_memory(tmp_path: Path) -> None:
    store = DeltaStore(tmp_path)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    store.append("r1", pin, 2, weighted_rows(A))
    pin = store.append("r1", store.rollback("r1", pin), 2, weighted_rows(B))
    rows = store.cached("r1", pin, 1, 2)
    assert rows is not None
    assert bag(rows) == {B: 1}
