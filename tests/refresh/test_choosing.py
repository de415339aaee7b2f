"""Which way tables go in a sweep, over a catalog and a store in memory: nothing is computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from headrace.catalog import Change
from headrace.catalog.memory import MemoryCatalog
from headrace.catalog.records import (
    DatabaseRecord,
    Effort,
    Refresh,
    RefreshMode,
    Relation,
    Source,
    StageRun,
    StreamTable,
)
from headrace.engine import Engine
from headrace.errors import NeedsReinit
from headrace.refresh import run as sweeps
from headrace.refresh.attempt import Clock, RefreshAttempt
from headrace.refresh.cost_history import CostHistory
from headrace.refresh.plan import Decision, may_choose
from headrace.refresh.run import RefreshRun, RefreshTarget
from headrace.refresh.strategy import CHEAPER, INCREMENTAL, RefreshCosts
from headrace.store import WEIGHT
from headrace.types import INTEGER
from tests.store.memory_store import MemoryStore

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
STORED, CHANGED = 12_000, 1000
TABLE = StreamTable("t", "public", "t", "", (), ("s",), frontier={"s": 1}, epoch=1)
LINE = Refresh("t", 1, "FULL", "", 0, 0, {}, 1, NOON, NOON)


class Catalog(MemoryCatalog):
    """Counts how often it is asked what refreshes took."""

    asked = 0

    def efforts(self, table: str, limit: int) -> tuple[tuple[str, Effort], ...]:
        self.asked += 1
        return super().efforts(table, limit)


class World:
    """A source of which a table has not taken in 1,000 rows, and refreshes that were."""

    def __init__(self, table: StreamTable, *lines: tuple[str, float], to: int = 2) -> None:
        self.catalog, store = Catalog(), MemoryStore()
        pin = store.create("s", pa.schema([("c1", pa.int32())]))
        for epoch, count in ((1, STORED), (to, CHANGED)):
            if epoch > pin.epoch:
                pin = store.append("s", pin, epoch, rows(count))
        relations = (
            Relation("s", (("c1", INTEGER),), ("c1",), pin),
            Relation("t", (("c1", INTEGER),), ("c1",), store.create("t", pa.schema([]))),
        )
        source = Source("s", 1, 1, "public", "s", (), (), "")
        runner = SimpleNamespace(jobs=100)
        self.engine = Engine(cast(Any, None), self.catalog, store, cast(Any, runner))
        history = tuple(
            replace(LINE, mode=mode, effort=Effort({"s": CHANGED}, STORED, seconds))
            for mode, seconds in lines
        )
        with self.catalog.lease("test") as lease:
            self.fence = lease.fence
            database = DatabaseRecord(1, "home", "", 0, epoch=to)
            put = (database, *relations, source, table)
            self.catalog.commit(Change(put=put, refreshes=history), fence=self.fence)

    def look(self, asked: RefreshMode | None = None) -> RefreshAttempt:
        """What a sweep does with the table."""
        state = self.catalog.state()
        sweep = RefreshRun(
            self.engine, state, state.stream_tables, self.fence, RefreshTarget("t", asked)
        )
        sweep.run()
        return sweep.attempts["t"]


def rows(count: int) -> pa.Table:
    weights = pa.array([1] * count, pa.int64())
    return pa.table({WEIGHT: weights, "c1": pa.array(range(count), pa.int32())})


@pytest.fixture(autouse=True)
def advanced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[RefreshAttempt, ...]]:
    """What would have been computed."""
    seen: list[tuple[RefreshAttempt, ...]] = []

    def advance(
        engine: Engine, attempts: tuple[RefreshAttempt, ...], *_: object
    ) -> tuple[object, ...]:
        seen.append(attempts)
        return ()

    monkeypatch.setattr(sweeps, "define", lambda table, state: None)
    monkeypatch.setattr(sweeps, "advance", advance)
    return seen


DEAR = (("FULL", 1.0), ("DIFFERENTIAL", 9.0))
CHEAP = (("FULL", 9.0), ("DIFFERENTIAL", 1.0))


def test_auto_goes_by_what_refreshes_took(advanced: list[tuple[RefreshAttempt, ...]]) -> None:
    dear, cheap = World(TABLE, *DEAR).look(), World(TABLE, *CHEAP).look()
    assert advanced == [(dear,), (cheap,)]
    assert dear.decision == Decision("FULL", CHEAPER)
    assert cheap.decision == Decision("DIFFERENTIAL", INCREMENTAL)
    assert dear.record().reason == (
        "a full recompute is likely cheaper: about 1.06 s against 9.00 s incrementally,"
        " for 1,000 changed rows, with 13,000 stored"
    )
    assert "about 1.00 s against 9.7" in cheap.record().reason
    assert dear.effort is not None
    assert (dear.effort.changed, dear.effort.stored) == ({"s": CHANGED}, STORED + CHANGED)
    assert dear.effort.incremental == 9.0
    assert (dear.effort.full, dear.effort.warm) == (pytest.approx(1.0583, abs=1e-4), True)


def test_differential_never_goes_in_full(advanced: list[tuple[RefreshAttempt, ...]]) -> None:
    world = World(replace(TABLE, refresh_mode=RefreshMode.DIFFERENTIAL), *DEAR)
    attempt = world.look()
    assert advanced == [(attempt,)]
    assert attempt.record().mode == "DIFFERENTIAL"
    assert attempt.record().reason == INCREMENTAL
    assert attempt.effort == Effort({"s": CHANGED}, STORED + CHANGED)
    assert world.catalog.asked == 0


@pytest.mark.parametrize(
    ("mode", "asked", "goes"),
    [
        ("AUTO", None, "FULL"),
        ("AUTO", "DIFFERENTIAL", "DIFFERENTIAL"),
        ("DIFFERENTIAL", "FULL", "FULL"),
        ("DIFFERENTIAL", "AUTO", "FULL"),
        ("FULL", None, "FULL"),
        ("FULL", "DIFFERENTIAL", "DIFFERENTIAL"),
    ],
)
def test_what_is_asked_for_counts_before_the_mode(mode: str, asked: str | None, goes: str) -> None:
    world = World(replace(TABLE, refresh_mode=RefreshMode(mode)), *DEAR)
    assert world.look(None if asked is None else RefreshMode(asked)).decision.mode == goes


def test_a_cycle_chooses_if_all_of_its_tables_do() -> None:
    other = replace(TABLE, relation="u", refresh_mode=RefreshMode.DIFFERENTIAL)
    assert may_choose((TABLE, replace(TABLE, relation="u")), None)
    assert not may_choose((TABLE, other), None)
    assert not may_choose((TABLE,), RefreshMode.DIFFERENTIAL)
    assert may_choose((TABLE, other), RefreshMode.AUTO)


def test_the_history_is_read_once_and_only_if_something_changed() -> None:
    still = World(replace(TABLE, frontier={"s": 2}), *DEAR)
    assert still.look().decision.mode == "SKIPPED"
    assert still.catalog.asked == 0
    world = World(TABLE, *DEAR)
    for _ in range(3):
        assert world.look().decision.mode == "FULL"
    assert world.catalog.asked == 1


def test_what_is_published_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(TABLE, *DEAR)
    done = replace(LINE, mode="DIFFERENTIAL", effort=Effort({"s": CHANGED}, STORED, 0.1))

    def publish(*_: object, **__: object) -> Iterable[Refresh]:
        return (done, replace(done, table="never asked for"))

    monkeypatch.setattr(sweeps, "publish", publish)
    sweep = RefreshRun(world.engine, world.catalog.state(), (), world.fence)
    assert world.look().decision.mode == "FULL"
    for _ in range(4):
        sweep.publish()
    assert world.look().decision.mode == "DIFFERENTIAL"
    assert world.catalog.asked == 1
    assert world.engine.part(CostHistory).of(world.catalog, "never asked for") == RefreshCosts()


def test_a_log_that_cannot_be_counted_is_a_failure_of_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(TABLE)

    def lost(*_: object) -> None:
        raise NeedsReinit("store-behind", "the log is gone")

    monkeypatch.setattr(world.engine.store, "files", lost)
    with pytest.raises(NeedsReinit):
        world.look()
    (line,) = world.catalog.refreshes("t")
    assert (line.error, line.effort) == ("store-behind: the log is gone", None)
    assert world.catalog.efforts("t", 10) == ()


def test_what_a_refresh_took_is_without_the_cut_and_publishing() -> None:
    clock = Clock({"cut": 5.0, "plan": 0.1, "compute": 1.0, "commit": 0.2, "publish": 3.0})
    attempt = RefreshAttempt(TABLE, 2, Decision("FULL", "asked for"), clock, effort=Effort({}, 10))
    assert attempt.record().effort is None, "nothing was computed"
    clock.stages.append(StageRun("t", "FULL", "asked for", 10, 1, 1.3))
    effort = attempt.record().effort
    assert effort is not None
    assert effort.seconds == pytest.approx(1.3)
    assert replace(attempt, effort=None).record().effort is None
