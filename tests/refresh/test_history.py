"""When the refresh history is pruned, and by which settings."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from headrace.catalog import State
from headrace.engine import Engine
from headrace.errors import Unavailable
from headrace.refresh import refresh
from headrace.refresh.refresh import INTERVAL, LastPruning, prune_history
from headrace.settings import Settings


class PrunedCatalog:
    """Takes down what it is asked to prune."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], datetime, int]] = []
        self.fails = False

    def prune_history(self, tables: Iterable[str], before: datetime, keep: int) -> int:
        self.asked.append((list(tables), before, keep))
        if self.fails:
            raise Unavailable("lease-lost", "another process took over")
        return 0


class PruningEngine:
    def __init__(self, **settings: Any) -> None:
        self.catalog = PrunedCatalog()
        self.last = LastPruning()
        self.given = Settings.of(settings)

    def part(self, kind: type[LastPruning]) -> LastPruning:
        return self.last

    def settings(self, state: State) -> Settings:
        return self.given


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(refresh.time, "monotonic", lambda: now[0])
    return now


def test_at_once_and_then_at_intervals(clock: list[float]) -> None:
    engine = PruningEngine(refresh_history_age=60.0, refresh_history_lines=5)
    given = cast(Engine, engine)
    started = datetime.now(UTC)
    prune_history(given, State(), ["a"])
    clock[0] += INTERVAL - 1
    prune_history(given, State(), ["a"])
    clock[0] += 1
    prune_history(given, State(), ["a", "b"])
    assert [(tables, keep) for tables, _, keep in engine.catalog.asked] == [
        (["a"], 5),
        (["a", "b"], 5),
    ]
    before = engine.catalog.asked[0][1]
    assert started - timedelta(seconds=60) <= before <= datetime.now(UTC) - timedelta(seconds=60)


def test_a_failure_is_logged_and_tried_again_later(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    engine = PruningEngine()
    engine.catalog.fails = True
    prune_history(cast(Engine, engine), State(), ["a"])
    assert [record.message for record in caplog.records] == ["could not prune the refresh history"]
    clock[0] += INTERVAL
    prune_history(cast(Engine, engine), State(), ["a"])
    assert len(engine.catalog.asked) == 2
