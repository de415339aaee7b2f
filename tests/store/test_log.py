"""The Delta log itself: any reader opens it, checkpoints keep it short, nothing is cleaned away."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from headrace.errors import InternalError
from headrace.store import DeltaStore, LogFile, Pin
from headrace.store.commit import CHECKPOINT_EVERY
from tests.store.conftest import COLUMNS, bag, weighted_rows


def test_delta_reads_the_table(tmp_path: Path) -> None:
    store = DeltaStore(tmp_path)
    pin = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows((1, 1, "a")))
    store.append("r1", pin, 2, weighted_rows((-1, 1, "a")))
    rows = DeltaTable(tmp_path / "r1").to_pyarrow_table()
    assert rows.column_names == ["_epoch", "_weight", "c1", "c2"]
    assert bag(rows) == {(1, 1, 1, "a"): 1, (2, -1, 1, "a"): 1}


def test_checkpoints_change_nothing_and_remove_nothing(tmp_path: Path) -> None:
    store = DeltaStore(tmp_path)
    pin = store.create("r1", COLUMNS)
    commits = 2 * CHECKPOINT_EVERY + 3
    for epoch in range(1, commits + 1):
        pin = store.append("r1", pin, epoch, weighted_rows((1, epoch, "a")))
    log = tmp_path / "r1" / "_delta_log"
    assert len(list(log.glob("*.checkpoint.parquet"))) == 2
    assert len(list(log.glob("*.json"))) == commits + 1
    fresh = DeltaStore(tmp_path)
    assert fresh.files("r1", pin, 0, commits) == store.files("r1", pin, 0, commits)
    for version in range(commits + 1):
        assert len(DeltaStore(tmp_path).files("r1", Pin(version, version), 0, version)) == version


def test_cleaning_is_off_for_every_writer(tmp_path: Path) -> None:
    DeltaStore(tmp_path).create("r1", COLUMNS)
    settings = DeltaTable(tmp_path / "r1").metadata().configuration
    assert settings["delta.enableExpiredLogCleanup"] == "false"


def test_a_failed_checkpoint_does_not_undo_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(table: DeltaTable) -> None:
        raise OSError("no space")

    monkeypatch.setattr(DeltaTable, "create_checkpoint", fail)
    store = DeltaStore(tmp_path)
    pin = store.create("r1", COLUMNS)
    with caplog.at_level(logging.WARNING):
        for epoch in range(1, CHECKPOINT_EVERY + 2):
            pin = store.append("r1", pin, epoch, weighted_rows((1, epoch, "a")))
    assert pin.version == CHECKPOINT_EVERY + 1
    assert [record.message for record in caplog.records] == ["checkpoint failed"]


def test_rollback_survives_a_checkpoint_in_what_it_removes(tmp_path: Path) -> None:
    store = DeltaStore(tmp_path)
    pin = pinned = store.append("r1", store.create("r1", COLUMNS), 1, weighted_rows((1, 1, "a")))
    for epoch in range(2, CHECKPOINT_EVERY + 5):
        pin = store.append("r1", pin, epoch, weighted_rows((1, epoch, "a")))
    back = DeltaStore(tmp_path).rollback("r1", pinned)
    assert bag(DeltaStore(tmp_path).read("r1", back, 0, 1)) == {(1, 1, "a"): 1}


def test_a_file_of_many_epochs_is_told_and_filtered(tmp_path: Path) -> None:
    """What compaction will write: one file with the epochs 1 to 3."""
    store = DeltaStore(tmp_path)
    pin = store.create("r1", COLUMNS)
    rows = weighted_rows(*((1, epoch, "a") for epoch in (1, 2, 3)))
    path = tmp_path / "r1" / "many.parquet"
    pq.write_table(rows.add_column(0, "_epoch", pa.array([1, 2, 3], pa.int64())), path)
    many = LogFile(str(path), 3, path.stat().st_size, 1, 3)
    store._commits.commit("r1", pin, store._log("r1", pin), added=(many,))
    store, pin = DeltaStore(tmp_path), Pin(1, 3)
    assert store.files("r1", pin, 1, 2) == (many,)
    assert not many.inside(1, 2)
    assert many.inside(0, 3)
    assert bag(store.read("r1", pin, 1, 2)) == {(1, 2, "a"): 1}
    assert bag(store.read("r1", pin, 0, 3)) == {(1, epoch, "a"): 1 for epoch in (1, 2, 3)}
    assert store.cached("r1", pin, 1, 2) is None
    assert store.files("r1", pin, 3, 3) == ()
    with pytest.raises(InternalError):
        store.rollback("r1", Pin(1, 2))
