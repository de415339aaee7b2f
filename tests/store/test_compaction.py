"""Compaction: fewer files, and every epoch that can still be asked for reads as before."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import Unavailable
from headrace.store import WEIGHT, DeltaStore, MemoryStore, Pin, Store, net
from headrace.store.compaction import FEWEST_FILES, LARGEST_RATIO, MOST_ROWS, worth_merging
from headrace.store.log import LogFile
from tests.store.conftest import COLUMNS, weighted_rows


def state(store: Store, pin: Pin, upto: int) -> Counter[tuple[object, ...]]:
    rows = net(store.read("r1", pin, 0, upto)).to_pylist()
    return Counter({tuple(list(row.values())[1:]): row[WEIGHT] for row in rows})


def filled(store: Store, epochs: int) -> Pin:
    """A row comes with every epoch and one of two epochs before goes."""
    pin = store.create("r1", COLUMNS)
    for epoch in range(1, epochs + 1):
        pin = store.append("r1", pin, epoch, weighted_rows((1, epoch, "a"), (-1, epoch - 2, "a")))
    return pin


def test_old_files_become_one(store: Store) -> None:
    pin = filled(store, 20)
    before = {epoch: state(store, pin, epoch) for epoch in range(15, 21)}
    changes = {e: store.read("r1", pin, e, 20).to_pylist() for e in range(15, 20)}
    compacted = store.compact("r1", pin, 15)
    assert compacted == Pin(pin.version + 1, pin.epoch)
    assert len(store.files("r1", compacted, 0, 20)) == 6
    assert {epoch: state(store, compacted, epoch) for epoch in range(15, 21)} == before
    assert {e: store.read("r1", compacted, e, 20).to_pylist() for e in range(15, 20)} == changes
    pin = store.append("r1", compacted, 21, weighted_rows((1, 99, "b")))
    assert state(store, pin, 21)[(99, "b")] == 1
    assert store.compact("r1", pin, 15) == pin, "nothing new to sum up"


def test_a_log_that_sums_up_to_nothing_has_no_file(store: Store) -> None:
    pin = store.create("r1", COLUMNS)
    for epoch in range(1, 11):
        sign = 1 if epoch % 2 else -1
        pin = store.append("r1", pin, epoch, weighted_rows((sign, 1, "a")))
    pin = store.compact("r1", pin, 10)
    assert store.files("r1", pin, 0, 10) == ()
    assert store.read("r1", pin, 0, 10).num_rows == 0


def test_an_unpinned_compaction_is_kept(delta: DeltaStore) -> None:
    pin = filled(delta, 12)
    expected = state(delta, pin, 12)
    delta.compact("r1", pin, 12)
    fresh = DeltaStore(delta._place.uri("r1").rsplit("/", 1)[0])
    recovered = fresh.rollback("r1", pin)
    assert recovered == Pin(pin.version + 1, pin.epoch)
    assert state(fresh, recovered, 12) == expected
    assert fresh.rollback("r1", recovered) == recovered
    after = fresh.append("r1", recovered, 13, weighted_rows((1, 13, "z")))
    again = fresh.rollback("r1", recovered)
    assert state(fresh, again, 12) == expected
    assert after.version < again.version


def test_only_the_holder_of_the_pin_compacts(delta: DeltaStore) -> None:
    pin = filled(delta, 12)
    delta.append("r1", pin, 13, weighted_rows((1, 13, "z")))
    with pytest.raises(Unavailable) as caught:
        DeltaStore(delta._place.uri("r1").rsplit("/", 1)[0]).compact("r1", pin, 12)
    assert caught.value.code == "lease-lost"


def files(*rows: int) -> tuple[LogFile, ...]:
    return tuple(LogFile(f"f{i}", count, 1, i, i) for i, count in enumerate(rows, 1))


def test_what_is_worth_merging() -> None:
    small = files(*[10] * FEWEST_FILES)
    assert worth_merging(small, 100) == small
    assert worth_merging(small[1:], 100) == ()
    assert worth_merging(small, FEWEST_FILES - 1) == (), "the newest may still be asked for"
    large = files(10 * LARGEST_RATIO * FEWEST_FILES + 1, *[10] * FEWEST_FILES)
    assert worth_merging(large, 100) == large[1:]
    assert worth_merging(files(MOST_ROWS, *[10] * FEWEST_FILES), 100) != ()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 3000), min_size=1, max_size=300))
def test_the_number_of_files_stays_small(sizes: list[int]) -> None:
    live: tuple[LogFile, ...] = ()
    most = 0
    for epoch, rows in enumerate(sizes, 1):
        live = (*live, LogFile(f"f{epoch}", rows, 1, epoch, epoch))
        chosen = worth_merging(live, epoch)
        if chosen:
            merged = LogFile(f"m{epoch}", sum(f.rows for f in chosen), 1, epoch, epoch)
            live = (*(f for f in live if f not in chosen), merged)
        most = max(most, len(live))
    assert most <= 4 * FEWEST_FILES


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 3)), max_size=3), max_size=30),
    st.data(),
)
def test_any_history_reads_the_same(
    history: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    store = MemoryStore()
    pin = store.create("r1", pa.schema([("c1", pa.int64())]))
    for epoch, rows in enumerate(history, 1):
        table = pa.table(
            {
                WEIGHT: pa.array([w for w, _ in rows], pa.int64()),
                "c1": pa.array([v for _, v in rows], pa.int64()),
            }
        )
        pin = store.append("r1", pin, epoch, table)
        since = data.draw(st.integers(0, epoch))
        before = {e: state(store, pin, e) for e in range(since, epoch + 1)}
        compacted = store.compact("r1", pin, since)
        assert {e: state(store, compacted, e) for e in range(since, epoch + 1)} == before
        pin = compacted
