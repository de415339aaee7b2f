"""Files of a log that are deleted, truncated or overwritten: damage, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.errors import NeedsReinit
from headrace.store import DeltaStore, Pin
from headrace.store.commit import CHECKPOINT_EVERY
from tests.store.conftest import COLUMNS, bag, weighted_rows

RELATION = "r1"
KINDS: dict[str, str] = {
    "data": "rows-1-*.parquet",
    "newest data": "rows-12-*.parquet",
    "first commit": "_delta_log/00000000000000000000.json",
    "middle commit": "_delta_log/00000000000000000011.json",
    "newest commit": "_delta_log/00000000000000000012.json",
    "checkpoint": "_delta_log/*.checkpoint.parquet",
    "pointer to the checkpoint": "_delta_log/_last_checkpoint",
}
# Without these all that counts is still there.
HARMLESS = {"first commit", "pointer to the checkpoint"}


def halve(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def overwrite(file: Path) -> None:
    size = file.stat().st_size
    file.write_bytes(b"\xa5" * size)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "emptied": lambda file: file.write_bytes(b""),
    "halved": halve,
    "overwritten": overwrite,
}


def used(store: DeltaStore, pin: Pin) -> None:
    store.rollback(RELATION, pin)
    store.read(RELATION, pin, 0, pin.epoch)


def without_last_line(file: Path) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]))


@pytest.fixture
def pin(delta: DeltaStore) -> Pin:
    """A log with a checkpoint and some commits after it."""
    pin = delta.create(RELATION, COLUMNS)
    for epoch in range(1, CHECKPOINT_EVERY + 3):
        pin = delta.append(RELATION, pin, epoch, weighted_rows((1, epoch, "x")))
    return pin


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_found_or_harmless(
    delta: DeltaStore, pin: Pin, tmp_path: Path, kind: str, damage: str
) -> None:
    before = bag(delta.read(RELATION, pin, 0, pin.epoch))
    (file,) = (tmp_path / RELATION).glob(KINDS[kind])
    DAMAGES[damage](file)
    store = DeltaStore(tmp_path)
    found = store.damage(RELATION, pin)
    if found is None:
        # Nothing that counts was lost.
        assert kind not in ("data", "newest data", "newest commit", "middle commit")
        store = DeltaStore(tmp_path)
        assert store.rollback(RELATION, pin) == pin
        assert bag(store.read(RELATION, pin, 0, pin.epoch)) == before
        store.append(RELATION, pin, pin.epoch + 1, weighted_rows((1, 99, "x")))
        return
    assert kind not in HARMLESS or damage != "deleted"
    store = DeltaStore(tmp_path)
    with pytest.raises(NeedsReinit) as caught:
        used(store, pin)
    assert caught.value.code == "store-behind"


@pytest.mark.parametrize("damage", ["deleted", "emptied", "halved"])
def test_a_rollback_misses_files(delta: DeltaStore, pin: Pin, tmp_path: Path, damage: str) -> None:
    (file,) = (tmp_path / RELATION).glob(KINDS["data"])
    DAMAGES[damage](file)
    with pytest.raises(NeedsReinit) as caught:
        delta.rollback(RELATION, pin)
    assert caught.value.code == "store-behind"


def test_a_commit_that_is_cut_off_between_two_lines(
    delta: DeltaStore, pin: Pin, tmp_path: Path
) -> None:
    (file,) = (tmp_path / RELATION).glob(KINDS["middle commit"])
    without_last_line(file)
    assert "is truncated" in (delta.damage(RELATION, pin) or "")
    with pytest.raises(NeedsReinit):
        DeltaStore(tmp_path).rollback(RELATION, pin)


def test_an_open_store_does_not_answer_from_memory(
    delta: DeltaStore, pin: Pin, tmp_path: Path
) -> None:
    assert delta.damage(RELATION, pin) is None
    delta.read(RELATION, pin, 0, pin.epoch)
    (file,) = (tmp_path / RELATION).glob(KINDS["data"])
    overwrite(file)
    assert "cannot be read" in (delta.damage(RELATION, pin) or "")


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_newest_commit_if_a_checkpoint_has_it(
    delta: DeltaStore, tmp_path: Path, damage: str
) -> None:
    """Delta-rs adds no commit without it, whatever it has."""
    pin = delta.create(RELATION, COLUMNS)
    for epoch in range(1, CHECKPOINT_EVERY + 1):
        pin = delta.append(RELATION, pin, epoch, weighted_rows((1, epoch, "x")))
    assert pin.version == CHECKPOINT_EVERY
    (file,) = (tmp_path / RELATION).glob(f"_delta_log/*{pin.version}.json")
    DAMAGES[damage](file)
    opened = DeltaStore(tmp_path)
    before = bag(opened.read(RELATION, pin, 0, pin.epoch))
    following = pin.epoch + 1, weighted_rows((1, 99, "x"))
    if damage != "deleted":
        assert opened.damage(RELATION, pin) is None
        pin = opened.append(RELATION, pin, *following)
        reopened = DeltaStore(tmp_path)
        assert reopened.rollback(RELATION, pin) == pin
        assert bag(reopened.read(RELATION, pin, 0, pin.epoch - 1)) == before
        return
    with pytest.raises(NeedsReinit) as caught:
        opened.append(RELATION, pin, *following)
    assert caught.value.code == "store-behind"
    assert "does not exist" in (DeltaStore(tmp_path).damage(RELATION, pin) or "")
    with pytest.raises(NeedsReinit):
        used(DeltaStore(tmp_path), pin)
