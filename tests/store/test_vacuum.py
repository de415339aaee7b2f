"""Vacuum: what no log names is removed once nobody can need it, and nothing else ever."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from headrace.errors import Unavailable
from headrace.store import WEIGHT, DeltaStore, Pin, Store, WrittenParts
from headrace.store import vacuum as module
from headrace.store.location import StoreLocation
from tests.store.conftest import COLUMNS, bag, weighted_rows

AT_ONCE, AN_HOUR = timedelta(0), timedelta(hours=1)


def compacted(store: Store) -> tuple[Pin, Pin]:
    """The pins before and after ten epochs became one file."""
    pin = store.create("r1", COLUMNS)
    for epoch in range(1, 11):
        pin = store.append("r1", pin, epoch, weighted_rows((1, epoch, "a")))
    return pin, store.compact("r1", pin, store.files("r1", pin, 0, 10))


def data_files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*.parquet") if "_delta_log" not in path.parts)


def test_replaced_files_go_and_named_ones_stay(store: Store) -> None:
    _, pin = compacted(store)
    assert store.vacuum("r1", pin, AN_HOUR) == 0
    assert store.vacuum("r1", pin, AT_ONCE) == 10
    assert store.vacuum("r1", pin, AT_ONCE) == 0
    assert bag(store.read("r1", pin, 0, 10)) == {(1, epoch, "a"): 1 for epoch in range(1, 11)}
    after = store.append("r1", pin, 11, weighted_rows((1, 11, "b")))
    assert bag(store.read("r1", after, 10, 11)) == {(1, 11, "b"): 1}


def test_the_wait_starts_when_a_file_is_replaced(
    delta: DeltaStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However old a file is: a frame may have been made of it just now."""
    clock = [1_000_000.0]
    monkeypatch.setattr(module.time, "time", lambda: clock[0])
    old, pin = compacted(delta)
    clock[0] += 100_000
    assert delta.vacuum("r1", pin, AN_HOUR) == 0
    clock[0] += 3_599
    assert DeltaStore(tmp_path).vacuum("r1", pin, AN_HOUR) == 0
    assert bag(DeltaStore(tmp_path).read("r1", old, 0, 10)).total() == 10
    clock[0] += 1
    assert DeltaStore(tmp_path).vacuum("r1", pin, AN_HOUR) == 10
    assert [str(path) for path in data_files(tmp_path)] == [
        file.uri for file in delta.files("r1", pin, 0, 10)
    ]


def test_a_spoilt_record_only_restarts_the_wait(delta: DeltaStore, tmp_path: Path) -> None:
    _, pin = compacted(delta)
    assert delta.vacuum("r1", pin, AN_HOUR) == 0
    (tmp_path / "r1" / module.RECORD).write_text("{")
    assert delta.vacuum("r1", pin, AN_HOUR) == 0
    assert delta.vacuum("r1", pin, AT_ONCE) == 10


def test_a_vacuum_that_was_cut_short_is_taken_up_again(
    delta: DeltaStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, pin = compacted(delta)
    really, removed = module._remove, []

    def three_at_most(place: StoreLocation, entry: pafs.FileInfo) -> None:
        if len(removed) == 3:
            raise OSError("the disk is gone")
        removed.append(entry.path)
        really(place, entry)

    with monkeypatch.context() as patched:
        patched.setattr(module, "_remove", three_at_most)
        with pytest.raises(Unavailable):
            delta.vacuum("r1", pin, AT_ONCE)
    assert DeltaStore(tmp_path).vacuum("r1", pin, AT_ONCE) == 7
    assert bag(DeltaStore(tmp_path).read("r1", pin, 0, 10)).total() == 10


def test_only_a_wait_that_is_over_asks_for_a_vacuum(
    delta: DeltaStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relation that is read but not compacted again gets rid of its replaced files, too."""
    clock = [1_000_000.0]
    monkeypatch.setattr(module.time, "time", lambda: clock[0])
    _, pin = compacted(delta)
    assert not delta.vacuum_is_due("r1", AN_HOUR)
    delta.vacuum("r1", pin, AN_HOUR)
    clock[0] += 3_599
    for store in (delta, DeltaStore(tmp_path)):
        assert not store.vacuum_is_due("r1", AN_HOUR)
    clock[0] += 1
    fresh = DeltaStore(tmp_path)
    for store in (delta, fresh):
        assert store.vacuum_is_due("r1", AN_HOUR)
    (tmp_path / "r1" / module.RECORD).rename(tmp_path / "away")
    assert fresh.vacuum_is_due("r1", AN_HOUR), "the record is read once"
    (tmp_path / "away").rename(tmp_path / "r1" / module.RECORD)
    assert fresh.vacuum("r1", pin, AN_HOUR) == 10
    assert not fresh.vacuum_is_due("r1", AN_HOUR)


def test_parts_that_were_never_registered_go(delta: DeltaStore, tmp_path: Path) -> None:
    pin = delta.append("r1", delta.create("r1", COLUMNS), 1, weighted_rows((1, 1, "a")))
    orphan = Path(delta.new_folder("r1", 3))
    (orphan / "_temporary").mkdir(parents=True)
    (orphan / "_temporary" / "part-0.parquet").write_bytes(b"half")
    registered = Path(delta.new_folder("r1", 3))
    registered.mkdir()
    epochs = pa.array([3], pa.int64())
    rows = weighted_rows((1, 3, "a")).add_column(0, "_epoch", epochs)
    pq.write_table(rows, registered / "part-0.parquet")
    pin = delta.register("r1", pin, 3, str(registered))
    assert len(data_files(tmp_path)) == 3
    assert delta.vacuum("r1", pin, AT_ONCE) == 1
    assert not orphan.exists()
    assert bag(DeltaStore(tmp_path).read("r1", pin, 0, 3)) == {(1, 1, "a"): 1, (1, 3, "a"): 1}


def test_only_the_holder_of_the_pin_vacuums(delta: DeltaStore, tmp_path: Path) -> None:
    _, pin = compacted(delta)
    delta.append("r1", pin, 11, weighted_rows((1, 11, "a")))
    with pytest.raises(Unavailable) as caught:
        DeltaStore(tmp_path).vacuum("r1", pin, AT_ONCE)
    assert caught.value.code == "lease-lost"
    assert len(data_files(tmp_path)) == 12


def test_rows_that_pass_through_are_read_in_batches_and_removed(
    delta: DeltaStore, tmp_path: Path
) -> None:
    pin = delta.create("r1", COLUMNS)
    folders = [Path(delta.new_scratch("r1")) for _ in range(2)]
    for folder in folders:
        folder.mkdir()
        rows = weighted_rows(*((1, n, "a") for n in range(5)))
        pq.write_table(rows, folder / "part-0.parquet")
        pq.write_table(rows.slice(0, 0), folder / "part-1.parquet")
        (folder / ".part-0.parquet.crc").write_bytes(b"?")
    parts = delta.parts(str(folders[0]), weighted_rows().schema)
    assert isinstance(parts, WrittenParts)
    assert [batch.num_rows for batch in parts.to_batches(2)] == [2, 2, 1]
    weights = parts.select([WEIGHT]).to_batches(10)
    assert [batch.to_pydict() for batch in weights] == [{WEIGHT: [1] * 5}]
    parts.discard()
    parts.discard()
    assert [folder.exists() for folder in folders] == [False, True]
    with pytest.raises(Unavailable):
        list(parts.to_batches(2))
    assert delta.rollback("r1", pin) == pin
    assert not folders[1].exists(), "what a dead writer left"
