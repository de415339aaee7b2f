"""Compaction: fewer files, and every epoch that can still be asked for reads as before."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import NeedsReinit, Unavailable
from headrace.store import WEIGHT, DeltaStore, Pin, Store, net
from headrace.store.compaction import FEWEST_FILES, LARGEST_RATIO, SMALL_ROWS, worth_merging
from headrace.store.log import LogFile, in_order
from tests.forms import examples
from tests.store.conftest import COLUMNS, weighted_rows
from tests.store.memory_store import MemoryStore


def state(store: Store, pin: Pin, upto: int) -> Counter[tuple[object, ...]]:
    rows = net(store.read("r1", pin, 0, upto)).to_pylist()
    return Counter({tuple(list(row.values())[1:]): row[WEIGHT] for row in rows})


def filled(store: Store, epochs: int) -> Pin:
    """A row comes with every epoch and one of two epochs before goes."""
    pin = store.create("r1", COLUMNS)
    for epoch in range(1, epochs + 1):
        pin = store.append("r1", pin, epoch, weighted_rows((1, epoch, "a"), (-1, epoch - 2, "a")))
    return pin


def compact(store: Store, pin: Pin, *kept: int) -> Pin:
    chosen = worth_merging(store.files("r1", pin, 0, pin.epoch), kept)
    return store.compact("r1", pin, chosen) if chosen else pin


def test_old_files_become_one(store: Store) -> None:
    pin = filled(store, 20)
    before = {epoch: state(store, pin, epoch) for epoch in (18, 20)}
    change = store.read("r1", pin, 18, 20).to_pylist()
    compacted = compact(store, pin, 18)
    assert compacted == Pin(pin.version + 1, pin.epoch)
    assert len(store.files("r1", compacted, 0, 20)) == 3
    assert {epoch: state(store, compacted, epoch) for epoch in (18, 20)} == before
    assert store.read("r1", compacted, 18, 20).to_pylist() == change
    pin = store.append("r1", compacted, 21, weighted_rows((1, 99, "b")))
    assert state(store, pin, 21)[(99, "b")] == 1
    assert compact(store, pin, 18) == pin, "nothing new to sum up"


def test_executors_may_make_the_sum(delta: DeltaStore, tmp_path: Path) -> None:
    pin = filled(delta, 12)
    expected = state(delta, pin, 12)
    chosen = worth_merging(delta.files("r1", pin, 0, 12), (10,))
    folder = delta.new_folder("r1", 10)
    Path(folder).mkdir()
    summed = net(delta.read("r1", pin, 0, 10))
    for number in range(2):
        part = summed.slice(number * 2, 2 if number == 0 else None)
        epochs = pa.repeat(pa.scalar(10, pa.int64()), part.num_rows)
        pq.write_table(part.add_column(0, "_epoch", epochs), f"{folder}/part-{number}.parquet")
    compacted = delta.replace("r1", pin, chosen, folder)
    assert compacted == Pin(pin.version + 1, 12)
    found = delta.files("r1", compacted, 0, 12)
    assert [(f.first_epoch, f.last_epoch) for f in found] == [(1, 10), (1, 10), (11, 11), (12, 12)]
    fresh = DeltaStore(tmp_path)
    assert fresh.rollback("r1", pin) == compacted, "an unpinned one is kept"
    assert state(fresh, compacted, 12) == expected


def come_and_gone(store: Store) -> Pin:
    """A row that comes with every odd epoch and goes with the next."""
    pin = store.create("r1", COLUMNS)
    for epoch in range(1, 11):
        sign = 1 if epoch % 2 else -1
        pin = store.append("r1", pin, epoch, weighted_rows((sign, 1, "a")))
    return pin


def assert_nothing_up_to_10(store: Store, pin: Pin) -> None:
    """One file without rows keeps the epochs inside from being read as if they were empty."""
    (file,) = store.files("r1", pin, 0, 10)
    assert (file.rows, file.first_epoch, file.last_epoch) == (0, 1, 10)
    assert store.read("r1", pin, 0, 10).num_rows == 0
    with pytest.raises(NeedsReinit) as expired:
        store.files("r1", pin, 0, 3)
    assert expired.value.code == "epoch-expired"
    pin = store.append("r1", pin, 11, weighted_rows((1, 2, "b")))
    assert state(store, pin, 11) == Counter({(2, "b"): 1})


def test_a_log_that_sums_up_to_nothing_still_knows_its_epochs(store: Store) -> None:
    pin = compact(store, come_and_gone(store))
    assert_nothing_up_to_10(store, pin)


def test_executors_may_find_that_nothing_is_left(delta: DeltaStore) -> None:
    pin = come_and_gone(delta)
    chosen = worth_merging(delta.files("r1", pin, 0, 10), ())
    folder = delta.new_folder("r1", 10)
    Path(folder).mkdir()
    nothing = net(delta.read("r1", pin, 0, 10))
    assert nothing.num_rows == 0
    epochs = pa.array([], pa.int64())
    pq.write_table(nothing.add_column(0, "_epoch", epochs), f"{folder}/part-0.parquet")
    assert_nothing_up_to_10(delta, delta.replace("r1", pin, chosen, folder))


def test_an_unpinned_compaction_is_kept(delta: DeltaStore) -> None:
    pin = filled(delta, 12)
    expected = state(delta, pin, 12)
    compact(delta, pin)
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
    other = DeltaStore(delta._place.uri("r1").rsplit("/", 1)[0])
    with pytest.raises(Unavailable) as caught:
        compact(other, pin)
    assert caught.value.code == "lease-lost"


def files(*rows: int) -> tuple[LogFile, ...]:
    return tuple(LogFile(f"f{i}", count, 1, i, i) for i, count in enumerate(rows, 1))


def test_what_is_worth_merging() -> None:
    small = files(*[10] * FEWEST_FILES)
    assert worth_merging(small, ()) == small
    assert worth_merging(small, (FEWEST_FILES,)) == small
    assert worth_merging(small[1:], ()) == ()
    assert worth_merging(small, (3,)) == (), "a reader stands in between"
    large = files(10 * LARGEST_RATIO * FEWEST_FILES + 1, *[10] * FEWEST_FILES)
    assert worth_merging(large, ()) == large[1:]
    assert worth_merging(files(10 * SMALL_ROWS, *[10] * FEWEST_FILES), ()) != ()


def test_a_reader_that_lags_holds_nothing_back() -> None:
    many = files(*[10] * 40)
    assert worth_merging(many, (20,)) == many[20:]
    merged = LogFile("m", 200, 1, 21, 40)
    assert worth_merging((*many[:20], merged), (20,)) == many[:20]
    assert worth_merging((*many[:20], merged), range(3, 21, 3)) == ()


def test_parts_that_were_written_together_count_if_they_are_small() -> None:
    parts = tuple(LogFile(f"p{i}", 10, 1, 1, 1) for i in range(FEWEST_FILES))
    assert worth_merging(parts, ()) == parts
    large = tuple(replace(part, rows=SMALL_ROWS) for part in parts)
    assert worth_merging(large, ()) == ()
    later = files(*[SMALL_ROWS * FEWEST_FILES] * FEWEST_FILES)[1:]
    assert worth_merging((*large, *later), ()) == (*large, *later)


@settings(max_examples=examples(20), deadline=None)
@given(
    st.lists(st.integers(1, 3000), min_size=1, max_size=1000),
    st.lists(st.integers(1, 1000), max_size=3),
)
def test_the_number_of_files_stays_small(sizes: list[int], lagging: list[int]) -> None:
    live: tuple[LogFile, ...] = ()
    most = 0
    for epoch, rows in enumerate(sizes, 1):
        live = (*live, LogFile(f"f{epoch}", rows, 1, epoch, epoch))
        chosen = worth_merging(live, (*lagging, epoch))
        if chosen:
            first, last = chosen[0].first_epoch, chosen[-1].last_epoch
            merged = LogFile(f"m{epoch}", sum(f.rows for f in chosen), 1, first, last)
            live = in_order((*(f for f in live if f not in chosen), merged))
        assert all(f.last_epoch <= e or e < f.first_epoch for f in live for e in lagging)
        most = max(most, len(live))
    assert most <= (4 + len(lagging)) * FEWEST_FILES


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 3)), max_size=3), max_size=30),
    st.data(),
)
def test_any_history_reads_the_same(
    history: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    """Readers stand anywhere, move to the newest epoch now and then, and find their states."""
    store = MemoryStore()
    pin = store.create("r1", pa.schema([("c1", pa.int64())]))
    readers = [0, 0, 0]
    for epoch, rows in enumerate(history, 1):
        table = pa.table(
            {
                WEIGHT: pa.array([w for w, _ in rows], pa.int64()),
                "c1": pa.array([v for _, v in rows], pa.int64()),
            }
        )
        pin = store.append("r1", pin, epoch, table)
        readers = [data.draw(st.sampled_from((reader, epoch))) for reader in readers]
        before = {e: state(store, pin, e) for e in (*readers, epoch)}
        pin = compact(store, pin, *readers)
        assert {e: state(store, pin, e) for e in (*readers, epoch)} == before
