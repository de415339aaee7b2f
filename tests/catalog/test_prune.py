"""The refresh history is bounded by age and by count; what choices rest on stays."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from headrace.catalog import Catalog, Change
from headrace.catalog.prune import EFFORTS_KEPT
from headrace.catalog.records import Receipt, Refresh
from tests.catalog import examples

NOON = examples.NOON


def refresh(number: int, **given: object) -> Refresh:
    """A line of so many hours after noon, without an effort, that wrote nothing."""
    ended = NOON + timedelta(hours=number)
    values = {"epoch": number, "finished_at": ended, "error": None, "effort": None, "versions": {}}
    return replace(examples.REFRESH, **{**values, **given})  # type: ignore[arg-type]


def put(catalog: Catalog, *refreshes: Refresh, receipts: tuple[Receipt, ...] = ()) -> None:
    change = Change(put=examples.RECORDS, refreshes=refreshes, receipts=receipts)
    with catalog.lease("test") as lease:
        catalog.commit(change, fence=lease.fence)


def left(catalog: Catalog, table: str = "rtotals") -> list[int]:
    return [line.epoch for line in catalog.refreshes(table, None)]


def test_lines_that_are_too_old_go_and_the_latest_stays(catalog: Catalog) -> None:
    put(catalog, *(refresh(number) for number in range(6)))
    assert catalog.prune_history(["rtotals"], NOON + timedelta(hours=4), 100) == 4
    assert left(catalog) == [5, 4]
    assert catalog.prune_history(["rtotals"], NOON + timedelta(days=9), 100) == 1
    assert left(catalog) == [5]
    assert catalog.prune_history(["rtotals"], NOON + timedelta(days=9), 100) == 0


def test_lines_beyond_the_count_go(catalog: Catalog) -> None:
    put(catalog, *(refresh(number) for number in range(6)))
    assert catalog.prune_history(["rtotals"], NOON, 2) == 4
    assert left(catalog) == [5, 4]
    put(catalog, refresh(6))
    assert [line.id for line in catalog.refreshes("rtotals", 2)] == [7, 6]


def test_what_a_choice_rests_on_stays(catalog: Catalog) -> None:
    effort = examples.REFRESH.effort
    full = [refresh(number, mode="FULL", effort=effort) for number in range(2)]
    changes = [refresh(2 + number, effort=effort) for number in range(EFFORTS_KEPT + 3)]
    put(catalog, *full, *changes)
    before = catalog.efforts("rtotals", EFFORTS_KEPT)
    assert catalog.prune_history(["rtotals"], NOON + timedelta(days=99), 1) == 3
    assert left(catalog)[-3:] == [5, 1, 0]
    assert catalog.efforts("rtotals", EFFORTS_KEPT) == before


def test_the_line_that_built_the_relation_stays(catalog: Catalog) -> None:
    """It says from which epoch on there was a table, where that had no rows."""
    of_predecessor = [refresh(number, versions={"rbefore": number}) for number in range(2)]
    own = [refresh(number, versions={"rtotals": number}) for number in range(2, 5)]
    put(catalog, *of_predecessor, *own)
    assert catalog.prune_history(["rtotals"], NOON + timedelta(days=9), 1) == 3
    assert left(catalog) == [4, 2]


def test_the_first_line_that_a_reader_lacks_stays(catalog: Catalog) -> None:
    """It says for how long the reader has been late, however many lines came since."""
    table = replace(examples.TABLE, epoch=7)
    own = {"versions": {"rtotals": 1}, "rows_deleted": 0}
    refreshes = [refresh(n, rows_inserted=int(n > 2), **own) for n in range(8)]
    relations = [replace(examples.TOTALS, id=f"r{n}") for n in ("late", "fresh", "new")]
    readers = [
        replace(table, relation=f"r{name}", name=name, inputs=("rtotals",), **values)
        for name, values in {
            "late": {"epoch": 1, "frontier": {"rtotals": 1}},
            "fresh": {"epoch": 7, "frontier": {"rtotals": 7}},
            "new": {"epoch": 0, "frontier": {}},
        }.items()
    ]
    records = (*examples.RECORDS, table, *relations, *readers)
    with catalog.lease("test") as lease:
        change = Change(put=records, refreshes=tuple(refreshes))
        catalog.commit(change, fence=lease.fence)
    for _ in range(2):
        catalog.prune_history(["rtotals"], NOON + timedelta(days=9), 1)
        assert left(catalog) == [7, 3, 2, 0]


def test_only_the_tables_named_and_those_that_are_gone(catalog: Catalog) -> None:
    put(catalog, refresh(0), refresh(1), refresh(0, table="rgone"), refresh(9, table="rgone"))
    assert catalog.prune_history([], NOON + timedelta(hours=5), 1) == 1
    assert left(catalog) == [1, 0]
    assert left(catalog, "rgone") == [9]


def test_receipts_go_with_them(catalog: Catalog) -> None:
    receipts = tuple(
        replace(examples.RECEIPT, epoch=number, verified_at=NOON + timedelta(hours=number))
        for number in range(4)
    )
    put(catalog, receipts=receipts)
    catalog.prune_history(["rtotals"], NOON + timedelta(hours=1), 2)
    assert [line.epoch for line in catalog.receipts("rtotals")] == [3, 2]
    catalog.prune_history(["rtotals"], NOON + timedelta(days=9), 2)
    assert [line.epoch for line in catalog.receipts("rtotals")] == [3]


def test_receipts_of_tables_that_are_gone_go_by_their_age(catalog: Catalog) -> None:
    receipts = tuple(
        replace(examples.RECEIPT, table="rgone", epoch=n, verified_at=NOON + timedelta(hours=n))
        for n in range(3)
    )
    put(catalog, receipts=receipts)
    catalog.prune_history([], NOON + timedelta(hours=1), 1)
    assert [line.epoch for line in catalog.receipts("rgone")] == [2, 1]


def test_of_many_cuts_the_first_of_a_minute_stays_and_later_of_a_day(catalog: Catalog) -> None:
    """Cuts every 20 seconds of ten minutes and, ten days before, of every hour of two days."""
    early = [NOON - timedelta(days=10) + timedelta(hours=hour) for hour in range(48)]
    late = [NOON + timedelta(seconds=20 * number) for number in range(30)]
    cuts = [
        replace(examples.CUT, epoch=epoch, cut_at=time) for epoch, time in enumerate(early + late)
    ]
    other = replace(examples.CUT, epoch=3, database=2, cut_at=early[3])
    second = replace(examples.DATABASE, id=2, alias="second")
    with catalog.lease("test") as lease:
        change = Change(put=(examples.DATABASE, second), epochs=(*cuts, other))
        catalog.commit(change, fence=lease.fence)
    for _ in range(2):
        catalog.prune_history([], NOON, 4)
        found = (catalog.cuts(epoch) for epoch in range(len(cuts)))
        kept = sorted({cut.epoch for each in found for cut in each if cut.database == 1})
        assert kept == [0, 24, *range(48, 74, 3), 74, 75, 76, 77]
        assert other in catalog.cuts(99)
