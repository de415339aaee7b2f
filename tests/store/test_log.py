"""The Delta log itself: any reader opens it, checkpoints keep it short, nothing is cleaned away."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headrace.errors import InternalError, NeedsReinit
from headrace.store import DeltaStore, Pin
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


def test_a_file_of_many_epochs_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    store = DeltaStore(tmp_path)
    pin = store.create("r1", COLUMNS)
    for epoch in (1, 2, 3):
        pin = store.append("r1", pin, epoch, weighted_rows((1, epoch, "a")))
    pin = store.compact("r1", pin, store.files("r1", pin, 0, 3))
    for reader in (store, DeltaStore(tmp_path)):
        assert [(f.first_epoch, f.last_epoch) for f in reader.files("r1", pin, 0, 3)] == [(1, 3)]
        assert bag(reader.read("r1", pin, 0, 3)) == {(1, epoch, "a"): 1 for epoch in (1, 2, 3)}
        assert reader.files("r1", pin, 3, 3) == ()
        for after, upto in ((0, 2), (1, 3), (2, 2)):
            for read in (reader.files, reader.read, reader.cached):
                with pytest.raises(NeedsReinit) as caught:
                    read("r1", pin, after, upto)
                assert caught.value.code == "epoch-expired"
        with pytest.raises(InternalError):
            reader.rollback("r1", Pin(pin.version, 2))
