"""Stores to test, and rows to put into them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.store import WEIGHT, DeltaStore, Store
from headrace.store.commit import Commits
from headrace.store.delta import MEMORY_BYTES
from headrace.store.location import StoreLocation
from headrace.store.reader import Reader
from tests.store.memory_store import MemoryStore

COLUMNS = pa.schema([("c1", pa.int64()), ("c2", pa.string())])


def weighted_rows(*rows: tuple[int, int | None, str | None]) -> pa.Table:
    """Rows given as (weight, c1, c2)."""
    return pa.table(
        {
            WEIGHT: pa.array([row[0] for row in rows], pa.int64()),
            "c1": pa.array([row[1] for row in rows], pa.int64()),
            "c2": pa.array([row[2] for row in rows], pa.string()),
        }
    )


def bag(table: pa.Table) -> Counter[tuple[object, ...]]:
    """The (weight, columns…) rows of a table, counted."""
    return Counter(tuple(row.values()) for row in table.to_pylist())


def through_uri(root: Path) -> DeltaStore:
    """A store that reaches its files only through delta-rs, as with an object store."""
    store = DeltaStore(root)
    store._place = StoreLocation(root.as_uri(), {}, local=False)
    store._commits = Commits(store._place)
    store._reader = Reader(store._place, MEMORY_BYTES)
    return store


@pytest.fixture
def delta(tmp_path: Path) -> DeltaStore:
    return DeltaStore(tmp_path)


@pytest.fixture(params=["delta", "uri", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    make: dict[str, Callable[[], Store]] = {
        "delta": lambda: DeltaStore(tmp_path),
        "uri": lambda: through_uri(tmp_path),
        "memory": MemoryStore,
    }
    return make[request.param]()
