"""Every field of every record comes back from either store as it was put."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.catalog import Catalog, Change
from headrace.catalog.codec import CODECS
from headrace.catalog.records import (
    Receipt,
    Refresh,
    Relation,
    Source,
    StratumTicks,
    StreamTable,
    TierInForce,
)
from tests.catalog import examples

EVERY_EXAMPLE = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def commit(catalog: Catalog, change: Change) -> None:
    with catalog.lease("test", wait=5) as lease:
        catalog.commit(change, fence=lease.fence)


def test_a_codec_names_every_field() -> None:
    for codec in CODECS:
        named = [field.name for field in codec.fields]
        assert sorted(named) == sorted(field.name for field in fields(codec.record))


def test_records_come_back_whole(catalog: Catalog) -> None:
    commit(catalog, Change(put=tuple(reversed(examples.RECORDS))))
    state = catalog.state()
    assert state.databases == (examples.DATABASE,)
    assert state.relations == (examples.ORDERS, examples.TOTALS)
    assert state.sources == (examples.SOURCE,)
    assert state.stream_tables == (examples.TABLE,)


def test_a_record_takes_the_place_of_its_predecessor(catalog: Catalog) -> None:
    commit(catalog, Change(put=examples.RECORDS))
    later = replace(examples.TABLE, name="renamed", epoch=10, frontier={"rorders": 10}, reason=None)
    commit(catalog, Change(put=(later,)))
    assert catalog.state().stream_tables == (later,)


def test_of_two_records_with_one_key_the_later_counts(catalog: Catalog) -> None:
    later = replace(examples.DATABASE, epoch=10)
    commit(catalog, Change(put=(examples.DATABASE, later)))
    assert catalog.state().databases == (later,)


def test_removed_records_are_gone_and_the_others_stay(catalog: Catalog) -> None:
    commit(catalog, Change(put=examples.RECORDS))
    commit(catalog, Change(remove=(examples.TOTALS, examples.TABLE)))
    state = catalog.state()
    assert state.stream_tables == ()
    assert state.relations == (examples.ORDERS,)
    assert state.sources == (examples.SOURCE,)


def test_a_name_changes_hands_in_one_commit(catalog: Catalog) -> None:
    commit(catalog, Change(put=examples.RECORDS))
    relation = replace(examples.TOTALS, id="rnew")
    table = replace(examples.TABLE, relation="rnew")
    commit(catalog, Change(put=(table, relation), remove=(examples.TABLE, examples.TOTALS)))
    assert catalog.state().stream_tables == (table,)


def test_history_is_numbered_and_newest_first(catalog: Catalog) -> None:
    other = replace(examples.REFRESH, table="rother", error=None)
    commit(catalog, Change(refreshes=(examples.REFRESH, other), receipts=(examples.RECEIPT,)))
    commit(catalog, Change(refreshes=(replace(examples.REFRESH, epoch=10),)))
    everything = catalog.refreshes()
    assert [(line.id, line.table, line.epoch) for line in everything] == [
        (3, "rtotals", 10),
        (2, "rother", 9),
        (1, "rtotals", 9),
    ]
    assert catalog.refreshes("rtotals", limit=1) == everything[:1]
    assert catalog.refreshes(limit=None) == everything
    assert everything[2] == replace(examples.REFRESH, id=1)
    assert list(everything[2].phases) == ["stage", "cut", "a"]
    assert catalog.receipts("rtotals") == (replace(examples.RECEIPT, id=1),)
    assert catalog.receipts("rother") == ()


def test_efforts_are_the_latest_of_each_mode_that_succeeded(catalog: Catalog) -> None:
    def line(mode: str, seconds: float, **given: object) -> Refresh:
        effort = replace(examples.REFRESH.effort, seconds=seconds)
        return replace(examples.REFRESH, **{"mode": mode, "error": None, "effort": effort, **given})

    assert catalog.efforts("rtotals", 2) == ()
    lines = [
        line("FULL", 1.0),
        *(line("DIFFERENTIAL", seconds) for seconds in (2.0, 3.0, 4.0)),
        line("DIFFERENTIAL", 5.0, error="the disk was full"),
        line("FULL", 6.0),
        line("DIFFERENTIAL", 7.0, effort=None),
        line("DIFFERENTIAL", 8.0, table="rother"),
    ]
    for one in lines:
        commit(catalog, Change(refreshes=(one,)))
    found = catalog.efforts("rtotals", 2)
    assert [(mode, effort.seconds) for mode, effort in found] == [
        ("FULL", 6.0),
        ("DIFFERENTIAL", 4.0),
        ("DIFFERENTIAL", 3.0),
        ("FULL", 1.0),
    ]
    assert found[0][1] == lines[5].effort


def test_an_epoch_names_the_latest_cut_of_every_database(catalog: Catalog) -> None:
    second = replace(examples.DATABASE, id=2, alias="second")
    cuts = (
        examples.CUT,
        replace(examples.CUT, epoch=12, snapshot="30:30:"),
        replace(examples.CUT, epoch=10, database=2),
    )
    commit(catalog, Change(put=(examples.DATABASE, second), epochs=cuts))
    assert catalog.cuts(8) == ()
    assert catalog.cuts(9) == (cuts[0],)
    assert catalog.cuts(11) == (cuts[0], cuts[2])
    assert catalog.cuts(99) == (cuts[1], cuts[2])


def test_settings_and_the_way_back_to_the_default(catalog: Catalog) -> None:
    catalog.set("time_zone", "Europe/Vienna")
    catalog.set("limits", {"rows": 5})
    catalog.set("off", value=False)
    assert catalog.state().settings == {
        "limits": {"rows": 5},
        "off": False,
        "time_zone": "Europe/Vienna",
    }
    catalog.set("limits", 7)
    catalog.set("time_zone", None)
    assert catalog.state().settings == {"limits": 7, "off": False}


def test_a_request_waits_in_the_queue(catalog: Catalog) -> None:
    first = catalog.request({"verb": "refresh", "table": "shop.totals"}, "anna@host")
    second = catalog.request({"verb": "drop"}, "bert@host")
    assert second > first
    request = catalog.request_state(first)
    assert request is not None
    assert request.command == {"verb": "refresh", "table": "shop.totals"}
    assert (request.id, request.state, request.requested_by) == (first, "queued", "anna@host")
    assert (request.result, request.error, request.started_at, request.finished_at) == (None,) * 4
    assert catalog.request_state(second + 1) is None


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_has_no_word_for_is_refused(catalog: Catalog, value: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        commit(catalog, Change(receipts=(replace(examples.RECEIPT, tolerance=value),)))
    assert catalog.receipts() == ()


def test_a_time_without_zone_is_refused(catalog: Catalog) -> None:
    naive = datetime(2026, 3, 1)  # noqa: DTZ001
    with pytest.raises(ValueError, match="without zone"):
        commit(catalog, Change(put=(replace(examples.DATABASE, cut_at=naive),)))
    assert catalog.state().databases == ()


@EVERY_EXAMPLE
@given(data=st.data())
def test_any_record_comes_back(catalog: Catalog, data: st.DataObject) -> None:
    database = replace(data.draw(examples.databases), id=1)
    relation: Relation = data.draw(examples.relations)
    source: Source = replace(data.draw(examples.sources), relation=relation.id)
    table: StreamTable = replace(data.draw(examples.stream_tables), relation=relation.id)
    before = catalog.state()
    commit(
        catalog,
        Change(
            put=(database, relation, source, table),
            remove=(*before.stream_tables, *before.sources, *before.relations),
        ),
    )
    state = catalog.state()
    assert state.databases == (database,)
    assert state.relations == (relation,)
    assert state.sources == (source,)
    assert state.stream_tables == (table,)


@EVERY_EXAMPLE
@given(refresh=examples.refreshes, receipt=examples.receipts)
def test_any_line_of_history_comes_back(
    catalog: Catalog, refresh: Refresh, receipt: Receipt
) -> None:
    commit(catalog, Change(refreshes=(refresh,), receipts=(receipt,)))
    (latest,) = catalog.refreshes(limit=1)
    assert replace(latest, id=None) == refresh
    assert list(latest.phases) == list(refresh.phases)
    (kept,) = catalog.receipts(limit=1)
    assert replace(kept, id=None) == receipt


def test_ticks_are_added_up_by_stratum(catalog: Catalog) -> None:
    assert catalog.strata_ticks() == ()
    noon, later = examples.NOON, examples.NOON + timedelta(seconds=1)
    upper = StratumTicks(1, 0, 4, True, noon)
    catalog.count_ticks([upper, StratumTicks(0, 4, 0, False, noon)])
    catalog.count_ticks([StratumTicks(0, 1, 2, True, later)])
    assert catalog.strata_ticks() == (StratumTicks(0, 5, 2, True, later), upper)


def test_tiers_take_the_place_of_those_before(catalog: Catalog) -> None:
    later = examples.NOON + timedelta(minutes=5)
    cold = TierInForce("r2", "cold", 0.0, "frozen", later)
    catalog.note_tiers([cold, TierInForce("r1", "hot", 12.4)])
    assert catalog.tiers() == (TierInForce("r1", "hot", 12.4), cold)
    catalog.note_tiers([cold])
    assert catalog.tiers() == (cold,)
    catalog.note_tiers([])
    assert catalog.tiers() == ()
