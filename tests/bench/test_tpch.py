"""The parts of the TPC-H bench that its figures rest on: batches, means, the chart."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from math import isclose
from xml.etree import ElementTree

import psycopg
import pytest

from bench.tpch.changes import LINE, ORDER, Shop, apply, batch
from bench.tpch.chart import chart
from bench.tpch.choice import Compared, share
from bench.tpch.figures import Seen, figures, geometric_mean, means
from bench.tpch.growth import growth
from bench.tpch.options import Options, options
from bench.tpch.rounds import Taken
from bench.tpch.schema import add_keys, create_tables, is_loaded
from bench.tpch.spans import Totals
from headrace.catalog.records import Refresh, StageRun

NOW = datetime(2024, 1, 1, tzinfo=UTC)
ORDERS = 80
FILL = f"""
INSERT INTO orders (o_orderkey, {ORDER})
    SELECT i / 8 * 32 + i % 8, 1, 'O', i, DATE '1995-01-01', '', '', 0, ''
    FROM generate_series(1, {ORDERS}) i;
INSERT INTO lineitem (l_orderkey, {LINE})
    SELECT o_orderkey, 1, 1, n, 1, 1, 0, 0, 'N', 'O', o_orderdate, o_orderdate, o_orderdate, '', '', ''
    FROM orders, generate_series(1, 1 + (o_totalprice % 3)::int) n;
INSERT INTO customer SELECT i, '', '', 1, '', 0, '', '' FROM generate_series(1, {ORDERS // 10}) i;
INSERT INTO part SELECT i, '', '', '', '', 50, '', 0, '' FROM generate_series(1, 12) i;
INSERT INTO supplier SELECT i, '', '', 1, '', 0, '' FROM generate_series(1, 2) i;
"""  # noqa: E501


def taken(seconds: float, mode: str = "DIFFERENTIAL") -> Taken:
    stage = StageRun("r1h1", mode, "why", 10, 2, seconds)
    refresh = Refresh("r1", 1, mode, "why", 1, 1, {}, 1, NOW, NOW, stages=(stage,))
    return Taken(seconds, refresh, {"cut": seconds}, Totals(1000, 0, 1))


def seen() -> Seen:
    return Seen(
        1.0,
        1,
        [taken(9.0), taken(0.1), taken(0.2), taken(0.3)],
        {"files": [2.0, 2.0, 2.0], "copies": [0.5, 0.6, 0.7]},
        asked_postgres=True,
        judged_by="postgres",
    )


STAGES = {"r1h1": ("h1", ["orders"]), "r1": ("table", ["h1"])}


@pytest.mark.postgres
def test_batches_are_a_queue(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql:
        assert not is_loaded(sql)
        create_tables(sql)
        sql.execute(FILL.encode())
        add_keys(sql)
        shop = Shop.of(sql, 0.25, None)
        assert (shop.orders, shop.updated("customer"), shop.updated("supplier")) == (20, 2, 1)
        keys = {key for (key,) in sql.execute("SELECT o_orderkey FROM orders")}
        generated, gone = keys, set()
        for number in range(5):
            written = apply(sql, shop, number)
            now = {key for (key,) in sql.execute("SELECT o_orderkey FROM orders")}
            left, came = keys - now, now - keys
            assert (len(left), len(came), written["orders"]) == (20, 20, 40)
            assert min(came) > max(keys)
            lines = {key for (key,) in sql.execute("SELECT DISTINCT l_orderkey FROM lineitem")}
            assert lines == now
            gone |= left
            keys = now
        # Four batches replaced all that was generated, the fifth the first that came.
        assert gone > generated
        assert len(gone) == ORDERS + 20
        # Another run goes on where this one ended.
        assert (shop.start, Shop.of(sql, 0.1, None).start) == (0, 100)
        assert is_loaded(sql)


def test_a_batch_follows_from_its_number() -> None:
    shop = Shop({"orders": 1500, "customer": 150, "part": 200, "supplier": 10}, 15)
    assert list(batch(shop, 1)) == list(batch(shop, 1)) != list(batch(shop, 2))
    with pytest.raises(SystemExit):
        replace(shop, orders=751)


def test_geometric_mean() -> None:
    mean = geometric_mean([2.0, 8.0])
    assert mean is not None and isclose(mean, 4.0)
    assert geometric_mean([]) is None


def test_figures_leave_out_the_warm_up_and_take_the_faster_recompute() -> None:
    found = figures(seen(), ["orders"], STAGES)
    assert found["refresh_ms"] == 200.0
    assert (found["full_ms"], found["full_over_refresh"]) == (600.0, 3.0)
    assert (found["postgres_timed_out"], found["postgres_over_refresh"]) == (True, 100.0)
    assert found["strategy"] == {"DIFFERENTIAL": 3}
    assert [stage["stage"] for stage in found["stages"]] == ["h1"]
    assert found["equal"] is True


def test_a_problem_is_not_equal() -> None:
    wrong = replace(seen(), problems=["in the end: missing 1"])
    assert figures(wrong, ["orders"], STAGES)["equal"] is False


def test_means_name_the_worst() -> None:
    one = figures(seen(), ["orders"], STAGES)
    result = means([one, {**one, "full_over_refresh": 0.75, "stages": []}])
    assert result["full_over_refresh"] == 1.5
    assert result["full_over_refresh_computed"] == 3.0
    assert result["full_over_refresh_lowest"] == 0.75


def test_growth_is_of_equal_changes() -> None:
    one = {"scale": "0.1", "orders_each_way": 15, "queries": {"q1": {"refresh_ms": 100.0}}}
    times = {"q1": {"refresh_ms": 150.0}, "q2": {"refresh_ms": 9.0}, "q3": {"problems": []}}
    other = {"scale": "1", "orders_each_way": 15, "queries": times}
    found = growth(one, other)
    assert (found["queries"], found["mean"], found["highest"]) == ({"q1": 1.5}, 1.5, 1.5)
    with pytest.raises(SystemExit):
        growth(one, {**other, "orders_each_way": 16})


def test_chart_has_a_bar_for_every_figure() -> None:
    one = figures(seen(), ["orders"], STAGES)
    result = {
        "scale": "1",
        "change": 0.001,
        "postgres_limit_s": 20,
        "machine": {"cores": 2},
        "queries": {"q1": one, "q2": {**one, "full_ms": None, "full_over_refresh": None}},
    }
    root = ElementTree.fromstring(chart(result))
    bars = [r for r in root.iter("{http://www.w3.org/2000/svg}rect") if r.get("height") == "5"]
    assert len(bars) == 5


def test_options() -> None:
    given = options(["SCALE=1", "CHANGE=0.01", "ONLY=q1,q5", "SKIP=full", "ROUNDS=2"])
    assert given == Options(
        scale="1", change=0.01, only=frozenset({"q1", "q5"}), skip=frozenset({"full"}), rounds=2
    )
    for wrong in ("SKIP=lunch", "MODE=SLOW", "SIZE=1"):
        with pytest.raises(SystemExit):
            options([wrong])


def test_a_choice_is_right_near_the_better_way() -> None:
    chosen = {mode: taken(1.0, mode).refresh for mode in ("DIFFERENTIAL", "FULL", "SKIPPED")}
    near = Compared(chosen["FULL"], chosen["DIFFERENTIAL"], {"DIFFERENTIAL": [1.0], "FULL": [1.1]})
    far = Compared(chosen["FULL"], chosen["DIFFERENTIAL"], {"DIFFERENTIAL": [1.0], "FULL": [1.2]})
    idle = Compared(chosen["SKIPPED"], None, {"DIFFERENTIAL": [1.0], "FULL": [1.2]})
    assert [near.is_right(near.first), near.is_right(near.learnt)] == [True, True]
    assert [far.is_right(far.first), far.is_right(far.learnt)] == [False, True]
    assert [idle.is_right(idle.first), idle.is_right(idle.learnt)] == [None, None]
    found = {0.01: {"q1": near, "q2": far}, 0.2: {"q1": idle}}
    assert (share(found, "first"), share(found, "learnt")) == (0.5, 1.0)


def test_batches_go_on_where_those_of_another_size_ended() -> None:
    def gone(shop: Shop, number: int) -> str:
        return next(text for table, text in batch(shop, number) if text.startswith("DELETE"))

    shop = Shop({"orders": 100, "customer": 10, "part": 10, "supplier": 10}, 10)
    assert gone(replace(shop, start=20), 1) == gone(shop, 3)
    assert gone(replace(shop, orders=5, start=30), 0).count("generate_series(30::bigint, 34") == 1
