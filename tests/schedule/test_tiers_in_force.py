"""Tiers as they are shown: in force, by how many reads, and what comes next."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from headrace.catalog.records import StreamTable, TierInForce
from headrace.schedule.state import ScheduleState
from headrace.schedule.tiers import FROZEN_AFTER, ReadActivity, ScanCounters
from headrace.schedule.tiers_in_force import tiers_in_force
from headrace.settings import Settings
from tests.catalog import examples
from tests.schedule.simulation import START

MINUTE = timedelta(minutes=1)
SETTINGS = Settings()


def table(name: str, tier: str | None, *inputs: str) -> StreamTable:
    options = {} if tier is None else {"tier": tier}
    return replace(examples.TABLE, relation=name, inputs=inputs, options=options)


def read(a_minute: int) -> ReadActivity:
    """Looked at every minute for an hour."""
    reads = ReadActivity.begin(ScanCounters(START, 0, 0))
    for minute in range(1, 61):
        reads = reads.then(ScanCounters(START + minute * MINUTE, minute * a_minute, 0))
    return reads


def in_force(tables: list[StreamTable], reads: dict[str, ReadActivity]) -> dict[str, TierInForce]:
    memory = ScheduleState()
    memory.reads.update(reads)
    known = {one.relation: one for one in tables}
    return {one.relation: one for one in tiers_in_force(known, SETTINGS, memory)}


def test_only_what_depends_on_reads_is_shown() -> None:
    tables = [table("a", "auto"), table("b", "cold"), table("c", "warm"), table("d", None)]
    found = in_force(tables, {name: read(5) for name in "abcd"})
    assert found.keys() == {"a", "b"}
    assert found["b"] == TierInForce("b", "cold", 5.0), "it was said by hand, so it stays"
    assert (found["a"].tier, found["a"].reads_per_minute, found["a"].next_tier) == (
        "warm",
        5.0,
        "cold",
    )


def test_readers_keep_a_table_from_cooling_down() -> None:
    below, above = table("below", "auto"), table("above", "auto", "below")
    unread, busy = read(0), read(20)
    found = in_force([below, above], {"below": unread, "above": busy})
    assert (found["below"].tier, found["below"].reads_per_minute) == ("hot", 0.0)
    assert found["below"].next_tier == found["above"].next_tier == "warm"
    assert found["below"].next_at == found["above"].next_at
    kept = in_force([below, table("above", "hot", "below")], {"below": unread})
    assert kept["below"] == TierInForce("below", "hot", 0.0), "whatever its own reads are"


def test_a_table_that_nobody_reads_freezes() -> None:
    quiet = read(1)
    found = in_force(
        [table("a", "auto")], {"a": quiet.then(ScanCounters(START + 70 * MINUTE, 60, 0))}
    )
    frozen_at = START + 60 * MINUTE + FROZEN_AFTER
    assert found["a"] == TierInForce("a", "cold", 0.0, "frozen", frozen_at)
