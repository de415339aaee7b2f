"""Options that have no effect where they are given, or a limit: a notice at every door."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.lifecycle.planned_table import TableRequest
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres

ABOVE = "SELECT amount FROM below"


@pytest.fixture
def project(dsn: str, tmp_path: Path) -> Iterator[headrace.Headrace]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id bigint PRIMARY KEY, amount bigint)")
    with headrace.connect(dsn, home=tmp_path) as opened:
        put_tables(opened, TableRequest("below", "SELECT amount FROM orders"))
        yield opened


def notices(project: headrace.Headrace, name: str) -> tuple[str, ...]:
    (found,) = (one.notices for one in project.status() if one.name == f"public.{name}")
    assert project.explain(name).notices == found
    return found


def notice(option: str) -> str:
    return (
        f"{option} has no effect: public.above reads only stream tables; give it to those that"
        " read the source"
    )


def test_an_option_of_sources_on_a_table_without_any(project: headrace.Headrace) -> None:
    options = {"append_only": True, "cdc_mode": "auto"}
    put_tables(
        project,
        TableRequest("above", ABOVE, options=options),
        TableRequest(
            "both", "SELECT o.amount FROM below JOIN orders o USING (amount)", options=options
        ),
    )
    assert notices(project, "above") == (notice("cdc_mode"), notice("append_only"))
    assert notices(project, "both") == notices(project, "below") == ()


def test_a_statement_says_it(project: headrace.Headrace) -> None:
    put_tables(project, TableRequest("above", ABOVE))
    assert project.alter_stream_table("below", append_only=True).notices == ()
    altered = project.alter_stream_table("above", append_only=True)
    assert altered.notices == (notice("append_only"),)
    (done,) = project.run("ALTER STREAM TABLE above SET (append_only = false)")
    assert done.notices == (notice("append_only"),)
    (done,) = project.run("ALTER STREAM TABLE above SUSPEND")
    assert done.notices == ()


def test_sources_of_a_table_without_rows_are_not_known(project: headrace.Headrace) -> None:
    query = "SELECT id FROM orders"
    made = project.create_stream_table("ids", query, initialize=False, append_only=True)
    assert made.notices == ()


def test_values_beyond_the_limit_share_a_partition(project: headrace.Headrace) -> None:
    query = "SELECT id, amount, CAST(id AS text) AS name, id > 5 AS large FROM orders"

    def made(name: str, partition_by: str) -> None:
        options = {"partition_by": partition_by}
        put_tables(project, TableRequest(name, query, options=options))

    made("by_name", "name")
    made("by_id", "id")
    made("by_large", "large")
    made("by_range", "range(id, 1000)")
    said = "partition_by gives a partition to each of the first 256 values of {}, and later ones"
    assert notices(project, "by_name") == (f"{said.format('name')} share one more",)
    assert notices(project, "by_id") == (
        f"{said.format('id')} share one more; partition_by = 'range(id, 100000)' makes ranges",
    )
    assert notices(project, "by_large") == notices(project, "by_range") == ()


def test_a_tier_without_a_schedule(project: headrace.Headrace) -> None:
    tier = "tier has no effect on when public.below is refreshed: the table has no schedule"
    assert project.alter_stream_table("below", tier="cold").notices == (tier,)
    assert notices(project, "below") == (tier,)
    for schedule in ("1m", "calculated"):
        assert project.alter_stream_table("below", schedule=schedule).notices == ()
    assert project.alter_stream_table("below", tier=None, schedule=None).notices == ()
    query = "SELECT id FROM orders"
    made = project.create_stream_table("ids", query, initialize=False, tier="hot")
    assert made.notices == (tier.replace("below", "ids"),)
