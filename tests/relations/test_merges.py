"""Sums that are made beside refreshes: one a relation, taken once, gone if they fail."""

from __future__ import annotations

import time
from threading import Event
from types import SimpleNamespace

import pytest

from headrace.errors import Unavailable
from headrace.relations.compaction import PAUSE_SECONDS, CompactedRun, MergedFiles, Merges
from headrace.store import LogFile

FILES = tuple(LogFile(f"f{epoch}", 10, 100, epoch, epoch) for epoch in range(1, 6))
WRITTEN = MergedFiles("folder", 7)


def test_a_sum_is_taken_once_it_is_there_and_once_only() -> None:
    merges, go = Merges(), Event()

    def work() -> MergedFiles:
        go.wait()
        return WRITTEN

    merges.begin("r1", FILES[:3], work)
    assert merges.take("r1") is None
    assert merges.being_merged("r1") == FILES[:3]
    assert merges.being_merged("r2") == ()
    go.set()
    merges.wait()
    assert merges.being_merged("r1") == FILES[:3], "until it is taken"
    assert merges.take("r1") == CompactedRun(FILES[:3], WRITTEN)
    assert merges.take("r1") is None
    assert merges.being_merged("r1") == ()
    merges.close()


@pytest.mark.parametrize("error", [Unavailable("store-full", "no space"), MemoryError("much")])
def test_a_failure_is_logged_and_may_be_retried_later(
    error: Exception, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    merges = Merges()

    def fail() -> MergedFiles:
        raise error

    merges.begin("r1", FILES[:3], fail)
    merges.wait()
    assert merges.take("r1") is None
    assert "merge failed" in caplog.text
    merges.begin("r1", FILES[:3], lambda: WRITTEN)
    assert merges.being_merged("r1") == (), "not at once"
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + PAUSE_SECONDS)
    monkeypatch.setattr("headrace.relations.compaction.time", later)
    merges.begin("r1", FILES[:3], lambda: WRITTEN)
    merges.wait()
    assert merges.take("r1") == CompactedRun(FILES[:3], WRITTEN)
    merges.close()


def test_a_relation_is_forgotten_unless_its_sum_is_being_written() -> None:
    merges, go = Merges(), Event()

    def work() -> MergedFiles:
        go.wait()
        return WRITTEN

    merges.begin("r1", FILES[:3], work)
    merges.begin("r2", FILES[:3], lambda: WRITTEN)
    assert merges.forget("r2"), "it has not begun"
    assert merges.forget("r3"), "there is none"
    assert not merges.forget("r1")
    go.set()
    merges.wait()
    assert merges.forget("r1")
    assert merges.take("r1") is None
    merges.close()


def test_nothing_is_begun_after_the_end() -> None:
    merges, go, began = Merges(), Event(), Event()

    def work() -> MergedFiles:
        began.set()
        go.wait()
        return WRITTEN

    merges.begin("r1", FILES[:3], work)
    began.wait()
    merges.begin("r2", FILES[:3], work)
    merges.close()
    merges.begin("r3", FILES[:3], work)
    assert merges.being_merged("r3") == ()
    merges.wait(0.01)
    go.set()
    merges.wait()
    assert merges.take("r1") == CompactedRun(FILES[:3], WRITTEN)
    assert merges.take("r2") is None, "what had only been begun is cancelled"


@pytest.mark.parametrize(
    ("files", "needed", "fits"),
    [
        (FILES, (), True),
        (FILES, (0, 1, 4, 5), True),
        (FILES, (2,), False),
        (FILES, (3,), False),
        (FILES[:3], (), False),
        ((FILES[0], LogFile("other", 10, 100, 2, 4), FILES[4]), (), False),
    ],
    ids=["same", "beside", "first", "between", "cut", "replaced"],
)
def test_a_sum_fits_where_its_files_are_and_nobody_stands_between(
    files: tuple[LogFile, ...], needed: tuple[int, ...], fits: bool
) -> None:
    assert CompactedRun(FILES[1:4], WRITTEN).fits(files, needed) is fits
