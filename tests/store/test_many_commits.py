"""Many commits: the log of Delta stays short, and every reader of Delta still opens it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.dataset as pads
import pytest
from deltalake import DeltaTable

from headrace.store import DeltaStore, Pin, commit, net
from headrace.store import location as place
from headrace.store.commit import CHECKPOINT_EVERY, VERSIONS_KEPT
from headrace.store.compaction import worth_merging
from tests.store.conftest import COLUMNS, bag, weighted_rows

EPOCHS = VERSIONS_KEPT + 6 * CHECKPOINT_EVERY


def test_the_log_of_delta_stays_short(tmp_path: Path) -> None:
    store = DeltaStore(tmp_path)
    pin = store.create("r1", COLUMNS)
    pins: list[Pin] = []
    for epoch in range(1, EPOCHS + 1):
        pin = store.append("r1", pin, epoch, weighted_rows((1, epoch, "a"), (-1, epoch - 2, "a")))
        if chosen := worth_merging(store.files("r1", pin, 0, epoch), (epoch,)):
            pin = store.compact("r1", pin, chosen)
        pins.append(pin)
    entries = list((tmp_path / "r1" / "_delta_log").iterdir())
    most = VERSIONS_KEPT + 2 * CHECKPOINT_EVERY
    assert len(entries) <= most + most // CHECKPOINT_EVERY + 2
    expected = {(1, EPOCHS, "a"): 1, (1, EPOCHS - 1, "a"): 1, (-1, 0, "a"): 1, (-1, -1, "a"): 1}
    table = DeltaTable(str(tmp_path / "r1"))
    assert table.version() == pin.version
    found = pads.dataset(table.file_uris()).to_table()
    assert found.num_rows == sum(f.rows for f in store.files("r1", pin, 0, EPOCHS))
    fresh = DeltaStore(tmp_path)
    assert bag(net(fresh.read("r1", pin, 0, EPOCHS))) == expected
    recent = next(one for one in pins if one.version >= pin.version - VERSIONS_KEPT + 1)
    assert fresh.files("r1", recent, 0, recent.epoch), "readers may be so far behind"
    assert DeltaStore(tmp_path).rollback("r1", pin) == pin


@pytest.mark.parametrize("fails", [False, True])
def test_a_checkpoint_is_on_disk_before_what_it_sums_up_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    really, forced = place.force, []
    log = tmp_path / "r1" / "_delta_log"
    first = log / f"{0:020d}.json"

    def force(path: Path) -> None:
        if path.parent == log and "checkpoint" in path.name:
            forced.append((path.name, first.exists()))
            if fails:
                raise OSError("the disk is gone")
        really(path)

    monkeypatch.setattr(place, "force", force)
    monkeypatch.setattr(commit, "VERSIONS_KEPT", 0)
    store = DeltaStore(tmp_path)
    pin = store.create("r1", COLUMNS)
    for epoch in range(1, CHECKPOINT_EVERY + 1):
        pin = store.append("r1", pin, epoch, weighted_rows((1, epoch, "a")))
    checkpoint = f"{pin.version:020d}.checkpoint.parquet"
    both = [(checkpoint, True), ("_last_checkpoint", True)]
    assert forced == (both[:1] if fails else both)
    assert first.exists() == fails
    assert len(DeltaStore(tmp_path).files("r1", pin, 0, pin.epoch)) == CHECKPOINT_EVERY
