"""A store that is full, gone or cut short says so by its code, and recovers exactly."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from errno import ENOSPC
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from headrace.errors import NeedsReinit, Unavailable, UserError
from headrace.store import DeltaStore, Pin, vacuum
from headrace.store.location import StoreLocation
from headrace.store.log import LogFile
from tests.store.conftest import COLUMNS, bag, weighted_rows

A, B = (1, 1, "a"), (1, 2, "b")
MANY = weighted_rows(*((1, number, f"row {number * 7919}") for number in range(20_000)))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path, *, leave: int = 0) -> Path:
    """Take all the space but `leave` bytes."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while file.write(b"\0" * 4096):
                pass
        file.truncate(file.tell() // 4096 * 4096 - leave)
    return filler


def append_until_failure(store: DeltaStore, pin: Pin) -> None:
    for epoch in range(pin.epoch + 1, pin.epoch + 11):
        pin = store.append("r1", pin, epoch, MANY)


@pytest.mark.parametrize("leave", [0, 4096, 8192, 12288, 16384])
def test_a_full_disk_and_space_again(small_disk: Path, leave: int) -> None:
    store = DeltaStore(small_disk)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    filler = fill(small_disk, leave=leave)
    with pytest.raises(Unavailable) as error:
        append_until_failure(store, pin)
    assert error.value.code == "store-full"
    filler.unlink()
    pin = store.rollback("r1", pin)
    pin = store.append("r1", pin, 2, weighted_rows(B))
    assert bag(store.read("r1", pin, 0, 2)) == {A: 1, B: 1}
    assert bag(DeltaStore(small_disk).read("r1", pin, 0, 2)) == {A: 1, B: 1}


def test_a_disk_that_is_full_for_the_commit_alone(small_disk: Path) -> None:
    """The rows fit, the log entry does not: delta-rs hides the errno in its text."""
    store = DeltaStore(small_disk)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    fill(small_disk)
    added = LogFile(store.new_folder("r1", 2), 1, 1, 2, 2)
    with pytest.raises(Unavailable) as error:
        store._commits.commit("r1", pin, store._log("r1", pin), added=(added,))
    assert error.value.code == "store-full"
    assert error.value.detail is not None
    assert "\x1b" not in error.value.detail


def test_a_full_disk_at_creation(small_disk: Path) -> None:
    fill(small_disk)
    with pytest.raises(Unavailable) as error:
        DeltaStore(small_disk).create("r1", COLUMNS)
    assert error.value.code == "store-full"


def test_a_failed_write_leaves_no_file(small_disk: Path) -> None:
    store = DeltaStore(small_disk)
    pin = store.create("r1", COLUMNS)
    fill(small_disk, leave=8192)
    with pytest.raises(Unavailable):
        store.append("r1", pin, 1, MANY)
    assert list((small_disk / "r1").glob("*.parquet")) == []


def data(root: Path) -> list[str]:
    """What a relation's folder holds besides its log and the record of unnamed files."""
    return sorted(path.name for path in (root / "r1").iterdir() if path.name[0] != "_")


def named(store: DeltaStore, pin: Pin) -> list[str]:
    return sorted(Path(file.uri).name for file in store.files("r1", pin, 0, pin.epoch))


def test_rows_that_stop_coming_leave_no_file(delta: DeltaStore, tmp_path: Path) -> None:
    def rows() -> Iterator[pa.Table]:
        yield weighted_rows(A)
        yield weighted_rows(B)
        raise RuntimeError("the source is gone")

    pin = delta.create("r1", COLUMNS)
    with pytest.raises(RuntimeError):
        delta.extend("r1", pin, 1, rows())
    assert data(tmp_path) == []


def failing(*_: object, **__: object) -> None:
    raise OSError(ENOSPC, "no space")


def test_a_commit_that_fails_leaves_no_file(
    delta: DeltaStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin = delta.append("r1", delta.create("r1", COLUMNS), 1, weighted_rows(A))
    pin = delta.append("r1", pin, 2, weighted_rows(B))
    chosen = delta.files("r1", pin, 0, 2)
    folder = Path(delta.new_folder("r1", 2))
    folder.mkdir()
    summed = weighted_rows(A, B).add_column(0, "_epoch", pa.array([2, 2], pa.int64()))
    pq.write_table(summed, folder / "part-0.parquet")
    monkeypatch.setattr(DeltaTable, "create_write_transaction", failing)
    for act in (
        lambda: delta.append("r1", pin, 3, weighted_rows(B)),
        lambda: delta.compact("r1", pin, chosen),
        lambda: delta.replace("r1", pin, chosen, str(folder)),
    ):
        with pytest.raises(Unavailable) as error:
            act()
        assert error.value.code == "store-full"
    assert data(tmp_path) == named(delta, pin)


@pytest.mark.parametrize("compaction", [False, True])
def test_a_commit_that_landed_before_it_failed_keeps_its_files(
    delta: DeltaStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compaction: bool
) -> None:
    """A compaction is found and kept, an append is taken back with its file."""
    pin = delta.append("r1", delta.create("r1", COLUMNS), 1, weighted_rows(A))
    pin = delta.append("r1", pin, 2, weighted_rows(B))
    chosen = delta.files("r1", pin, 0, 2) if compaction else ()
    with monkeypatch.context() as patched:
        patched.setattr(StoreLocation, "make_durable", failing)
        with pytest.raises(Unavailable):
            _ = (
                delta.compact("r1", pin, chosen)
                if chosen
                else delta.append("r1", pin, 3, weighted_rows(B))
            )
    assert len(data(tmp_path)) == 3
    back = delta.rollback("r1", pin)
    assert len(delta.files("r1", back, 0, 2)) == (1 if compaction else 2)
    assert bag(DeltaStore(tmp_path).read("r1", back, 0, 2)) == {A: 1, B: 1}
    assert len(data(tmp_path)) == (3 if compaction else 2)


def test_a_rollback_leaves_no_file_beyond_the_pin(delta: DeltaStore, tmp_path: Path) -> None:
    """Neither what it takes out of the log, nor what a writer left that died before its commit."""
    pin = delta.append("r1", delta.create("r1", COLUMNS), 1, weighted_rows(A))
    beyond = delta.append("r1", pin, 2, weighted_rows(B))
    delta.append("r1", beyond, 11, weighted_rows(B))
    Path(delta.files("r1", beyond, 1, 2)[0].uri).unlink()
    dead = Path(delta.new_folder("r1", 2), "_temporary")
    dead.mkdir(parents=True)
    (dead / "part-0.parquet").write_bytes(b"half")
    (tmp_path / "r1" / "rows-10-dead.parquet").write_bytes(b"half")
    summed = Path(delta.new_folder("r1", 1))
    summed.mkdir()
    pin = delta.rollback("r1", pin)
    assert data(tmp_path) == sorted([*named(delta, pin), summed.name]), "one may be read yet"
    assert bag(DeltaStore(tmp_path).read("r1", pin, 0, 1)) == {A: 1}


def test_a_rollback_stands_although_a_file_cannot_be_removed(
    delta: DeltaStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin = delta.append("r1", delta.create("r1", COLUMNS), 1, weighted_rows(A))
    delta.append("r1", pin, 2, weighted_rows(B))
    with monkeypatch.context() as patched:
        patched.setattr(vacuum, "_remove", failing)
        pin = delta.rollback("r1", pin)
    assert pin == Pin(3, 1)
    assert len(data(tmp_path)) == 2
    assert delta.rollback("r1", pin) == pin
    assert data(tmp_path) == named(delta, pin)


def test_a_read_only_disk_is_unreachable(small_disk: Path) -> None:
    store = DeltaStore(small_disk)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for act in (
        lambda: store.append("r1", pin, 2, weighted_rows(B)),
        lambda: store.create("r2", COLUMNS),
    ):
        with pytest.raises(Unavailable) as error:
            act()
        assert error.value.code == "store-unreachable"
    assert bag(DeltaStore(small_disk).read("r1", pin, 0, 1)) == {A: 1}


def test_a_root_that_is_gone_is_unreachable_not_behind(tmp_path: Path) -> None:
    root = tmp_path / "store"
    store = DeltaStore(root)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    shutil.rmtree(root)
    fresh = DeltaStore(root)
    for act in (
        lambda: fresh.files("r1", pin, 0, 1),
        lambda: fresh.rollback("r1", pin),
        lambda: fresh.append("r1", pin, 2, weighted_rows(B)),
    ):
        with pytest.raises(Unavailable) as error:
            act()
        assert error.value.code == "store-unreachable"


def test_a_root_that_is_a_file_is_unreachable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable) as error:
        DeltaStore(tmp_path / "file").create("r1", COLUMNS)
    assert error.value.code == "store-unreachable"


@pytest.mark.parametrize("folder", ["100%", "a*b", "a[b]", "a{b}", "a?", "a\\b"])
def test_a_folder_that_spark_or_delta_would_misread_is_refused(folder: str) -> None:
    with pytest.raises(UserError) as error:
        DeltaStore(f"/tmp/{folder}")
    assert error.value.code == "invalid-option"


@pytest.mark.parametrize("folder", ["plain", "with space", "ünï", "a#b", "a'b\"c", "a:b"])
def test_other_folders_work(tmp_path: Path, folder: str) -> None:
    store = DeltaStore((tmp_path / folder).as_uri())
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    assert Path(store.files("r1", pin, 0, 1)[0].uri).is_file()
    assert bag(DeltaStore(tmp_path / folder).read("r1", pin, 0, 1)) == {A: 1}


def test_an_object_store_keeps_its_address_and_options() -> None:
    place = StoreLocation.of("s3a://bucket/store/", {"AWS_REGION": "eu-central-1"})
    assert place.uri("r1", "x.parquet") == "s3a://bucket/store/r1/x.parquet"
    assert not place.local
    assert place.options == {"AWS_REGION": "eu-central-1"}


def behind(store: DeltaStore, pin: Pin) -> None:
    """All ways to use the relation at the pin say that the log does not reach it."""
    for act in (
        lambda: store.read("r1", pin, 0, pin.epoch),
        lambda: store.rollback("r1", pin),
    ):
        with pytest.raises(NeedsReinit) as error:
            act()
        assert error.value.code == "store-behind"


def test_a_log_shorter_than_its_pin(tmp_path: Path) -> None:
    store = DeltaStore(tmp_path)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    behind(DeltaStore(tmp_path), Pin(pin.version + 1, 2))


def test_a_log_that_cannot_be_read(tmp_path: Path) -> None:
    store = DeltaStore(tmp_path)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    (tmp_path / "r1" / "_delta_log" / f"{0:020d}.json").write_text("{")
    behind(DeltaStore(tmp_path), pin)


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"PAR1")])
def test_a_pinned_file_that_is_gone_or_cut_short(tmp_path: Path, damage: object) -> None:
    store = DeltaStore(tmp_path)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    (path,) = (tmp_path / "r1").glob("*.parquet")
    damage(path)  # type: ignore[operator]
    with pytest.raises(NeedsReinit) as error:
        DeltaStore(tmp_path).read("r1", pin, 0, 1)
    assert error.value.code == "store-behind"


def test_rows_added_by_someone_else_are_noticed(tmp_path: Path) -> None:
    from deltalake import write_deltalake

    store = DeltaStore(tmp_path)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A))
    foreign = weighted_rows(B).add_column(0, "_epoch", pa.array([1], pa.int64()))
    write_deltalake(tmp_path / "r1", foreign, mode="append")
    with pytest.raises(NeedsReinit) as error:
        store.rollback("r1", pin)
    assert error.value.code == "store-behind"
    with pytest.raises(Unavailable) as refused:
        store.append("r1", pin, 2, weighted_rows(B))
    assert refused.value.code == "lease-lost"


def test_rows_deleted_by_someone_else_are_noticed(tmp_path: Path) -> None:
    store = DeltaStore(tmp_path)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows(A, B))
    DeltaTable(tmp_path / "r1").delete("c1 = 1")
    with pytest.raises(NeedsReinit):
        store.rollback("r1", pin)
