"""Parts that executors wrote are taken in whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import InternalError, Unavailable
from headrace.store import DeltaStore, Pin
from tests.store.conftest import COLUMNS, bag, through_uri, weighted_rows
from tests.store.memory_store import MemoryStore


def write(folder: str, name: str, epochs: list[int | None], **changed: pa.Array) -> None:
    """A part with one row an epoch, in row groups of two rows; columns may be changed."""
    rows = len(epochs)
    columns = {
        "_epoch": pa.array(epochs, pa.int64()),
        "_weight": pa.array([1] * rows, pa.int64()),
        "c1": pa.array(range(rows), pa.int64()),
        "c2": pa.array(["x"] * rows, pa.string()),
    }
    Path(folder).mkdir(exist_ok=True)
    pq.write_table(pa.table({**columns, **changed}), f"{folder}/{name}", row_group_size=2)


@pytest.mark.parametrize("make", [DeltaStore, through_uri])
def test_parts_become_one_commit(tmp_path: Path, make: type[DeltaStore]) -> None:
    store = make(tmp_path)
    pin = store.create("r1", COLUMNS)
    folder = store.new_folder("r1", 4).removeprefix("file://")
    write(folder, "part-0.parquet", [4, 4, 4])
    write(folder, "part-1.parquet", [])
    write(folder, "part-2.parquet", [4])
    write(folder, ".hidden.parquet", [9])
    (Path(folder) / "_SUCCESS").touch()
    address = folder if make is DeltaStore else f"file://{folder}"
    pin = store.register("r1", pin, 4, address, rows=4)
    assert pin == Pin(1, 4)
    files = store.files("r1", pin, 3, 4)
    assert [(file.rows, file.first_epoch, file.last_epoch) for file in files] == [
        (3, 4, 4),
        (1, 4, 4),
    ]
    assert all(
        file.bytes == Path(file.uri.removeprefix("file://")).stat().st_size for file in files
    )
    assert store.read("r1", pin, 0, 4).num_rows == 4
    assert make(tmp_path).files("r1", pin, 0, 4) == files


def test_the_least_weight_of_a_part(delta: DeltaStore, tmp_path: Path) -> None:
    pin = delta.create("r1", COLUMNS)
    folder = delta.new_folder("r1", 1)
    for name, weights in (("a", [1, 2, 3]), ("b", [1, 1, -2]), ("c", [2])):
        epochs: list[int | None] = [1] * len(weights)
        write(folder, f"{name}.parquet", epochs, _weight=pa.array(weights, pa.int64()))
    pin = delta.register("r1", pin, 1, folder)
    files = delta.files("r1", pin, 0, 1)
    assert [file.least_weight for file in files] == [1, -2, 2]
    assert [file.only_adds for file in files] == [True, False, True]
    assert DeltaStore(tmp_path).files("r1", pin, 0, 1) == files, "as the log has it"


def test_empty_parts_make_no_commit(delta: DeltaStore) -> None:
    pin = delta.create("r1", COLUMNS)
    folder = delta.new_folder("r1", 1)
    write(folder, "part-0.parquet", [])
    assert delta.register("r1", pin, 1, folder) == Pin(0, 1)


def test_folders_are_never_the_same(delta: DeltaStore) -> None:
    assert delta.new_folder("r1", 1) != delta.new_folder("r1", 1)


def test_a_folder_that_nobody_wrote_is_an_error(delta: DeltaStore) -> None:
    pin = delta.create("r1", COLUMNS)
    folder = delta.new_folder("r1", 1)
    with pytest.raises(Unavailable) as error:
        delta.register("r1", pin, 1, folder)
    assert error.value.code == "store-unreachable"
    Path(folder).mkdir()
    with pytest.raises(Unavailable):
        delta.register("r1", pin, 1, folder)


@pytest.mark.parametrize(
    "part",
    [
        {"epochs": [5, 5, 5, 6]},
        {"epochs": [4, 4]},
        {"epochs": [5, None]},
        {"epochs": [5], "_weight": pa.array([None], pa.int64())},
        {"epochs": [5], "c1": pa.array([1], pa.int32())},
        {"epochs": [5], "c3": pa.array([1], pa.int32())},
        {"epochs": [5], "_epoch": pa.array([5], pa.int32())},
    ],
    ids=["next", "other", "null", "weight", "type", "additional", "narrow"],
)
def test_a_part_that_does_not_fit_is_refused(delta: DeltaStore, part: dict[str, object]) -> None:
    pin = delta.create("r1", COLUMNS)
    folder = delta.new_folder("r1", 5)
    write(folder, "part-0.parquet", [5])
    write(folder, "part-1.parquet", **part)  # type: ignore[arg-type]
    with pytest.raises(InternalError):
        delta.register("r1", pin, 5, folder)
    assert delta.rollback("r1", pin) == pin


def test_a_part_without_statistics_is_refused(delta: DeltaStore) -> None:
    pin = delta.create("r1", COLUMNS)
    folder = Path(delta.new_folder("r1", 5))
    folder.mkdir()
    rows = weighted_rows((1, 1, "a")).add_column(0, "_epoch", pa.array([5], pa.int64()))
    pq.write_table(rows, folder / "part-0.parquet", write_statistics=False)
    with pytest.raises(InternalError):
        delta.register("r1", pin, 5, str(folder))


def test_a_part_with_spark_s_old_timestamps_is_refused(delta: DeltaStore) -> None:
    pin = delta.create("r1", pa.schema([("c1", pa.timestamp("us", "UTC"))]))
    folder = Path(delta.new_folder("r1", 5))
    folder.mkdir()
    rows = pa.table({"_epoch": [5], "_weight": [1], "c1": pa.array([0], pa.timestamp("us", "UTC"))})
    pq.write_table(rows, folder / "part-0.parquet", use_deprecated_int96_timestamps=True)
    with pytest.raises(InternalError):
        delta.register("r1", pin, 5, str(folder))


def test_a_missing_part_shows_in_the_row_count(delta: DeltaStore) -> None:
    pin = delta.create("r1", COLUMNS)
    folder = delta.new_folder("r1", 1)
    write(folder, "part-0.parquet", [1])
    with pytest.raises(InternalError):
        delta.register("r1", pin, 1, folder, rows=2)


def test_a_folder_of_another_relation_is_refused(delta: DeltaStore) -> None:
    pin = delta.create("r1", COLUMNS)
    delta.create("r2", COLUMNS)
    folder = delta.new_folder("r2", 1)
    write(folder, "part-0.parquet", [1])
    with pytest.raises(InternalError):
        delta.register("r1", pin, 1, folder)


def test_a_stale_pin_cannot_register(delta: DeltaStore) -> None:
    pin = delta.create("r1", COLUMNS)
    delta.append("r1", pin, 1, weighted_rows((1, 1, "a")))
    folder = delta.new_folder("r1", 2)
    write(folder, "part-0.parquet", [2])
    with pytest.raises(Unavailable) as error:
        delta.register("r1", pin, 2, folder)
    assert error.value.code == "lease-lost"


def test_files_that_no_commit_names_do_not_count(delta: DeltaStore, tmp_path: Path) -> None:
    pin = delta.append("r1", delta.create("r1", COLUMNS), 1, weighted_rows((1, 1, "a")))
    write(delta.new_folder("r1", 2), "part-0.parquet", [2])
    write(str(tmp_path / "r1"), "rows-2-dead.parquet", [2])
    fresh = DeltaStore(tmp_path)
    assert fresh.rollback("r1", pin) == pin
    pin = fresh.append("r1", pin, 2, weighted_rows((1, 2, "b")))
    assert bag(fresh.read("r1", pin, 0, 2)) == {(1, 1, "a"): 1, (1, 2, "b"): 1}


def test_the_fake_registers_what_was_written() -> None:
    store = MemoryStore()
    pin = store.create("r1", COLUMNS)
    folder = store.new_folder("r1", 1)
    store.write(folder, weighted_rows((1, 1, "a")))
    store.write(folder, weighted_rows((1, 2, "b"), (1, 3, "c")))
    pin = store.register("r1", pin, 1, folder, rows=3)
    assert pin == Pin(1, 1)
    assert len(store.files("r1", pin, 0, 1)) == 2
    assert store.read("r1", pin, 0, 1).num_rows == 3
