"""Groups as users ask for them: of tables in a catalog, by PostgreSQL, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.lifecycle.planned_table import TableRequest
from headrace.observe.group_status import GroupMember
from headrace.refresh.scope import consistency_groups
from headrace.settings import Settings
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres

QUERIES = {
    "totals": "SELECT region, sum(amount) AS total FROM orders GROUP BY region",
    "counts": "SELECT region, count(*) AS n FROM orders GROUP BY region",
    "averages": "SELECT region, total / n AS average FROM totals JOIN counts USING (region)",
    "best": "SELECT region FROM averages WHERE average > 10",
}


@pytest.fixture
def project(dsn: str, tmp_path: Path) -> Iterator[headrace.Headrace]:
    """A project with a diamond and a table that reads its end; its Spark never starts."""
    with (
        psycopg.connect(dsn, autocommit=True) as sql,
        headrace.connect(dsn=dsn, home=tmp_path) as opened,
    ):
        sql.execute("CREATE TABLE orders (id int PRIMARY KEY, region text, amount bigint)")
        put_tables(opened, *(TableRequest.of(name, query, {}) for name, query in QUERIES.items()))
        yield opened


def policies(project: headrace.Headrace) -> list[tuple[str, str | None, bool]]:
    return [(one.name, one.policy, one.atomic) for one in project.diamond_groups()]


def test_groups_are_listed_with_members_epochs_and_policy(project: headrace.Headrace) -> None:
    assert project.diamond_groups() == (
        GroupMember(1, "public.counts", False, 0, "fastest", True),
        GroupMember(1, "public.totals", False, 0, "fastest", True),
        GroupMember(1, "public.averages", True, 0, "fastest", True),
    )
    groups = {one.name: one.group for one in project.status()}
    assert groups == {
        "public.totals": 1,
        "public.counts": 1,
        "public.averages": 1,
        "public.best": None,
    }


def test_options_and_settings_decide_what_a_group_does(project: headrace.Headrace) -> None:
    names = ("public.counts", "public.totals", "public.averages")
    project.set("diamond_schedule_policy", "slowest")
    assert policies(project) == [(name, "slowest", True) for name in names]
    project.alter_stream_table("averages", diamond_schedule_policy="fastest")
    assert policies(project) == [(name, "fastest", True) for name in names]
    project.alter_stream_table("counts", diamond_consistency="none")
    assert policies(project) == [(name, None, False) for name in names]
    project.alter_stream_table("counts", diamond_consistency=None)
    assert policies(project) == [(name, "fastest", True) for name in names]
    project.set("diamond_consistency", "none")
    assert policies(project) == [(name, None, False) for name in names]


def test_explain_names_the_others_of_the_group(project: headrace.Headrace) -> None:
    explained = project.explain("totals")
    assert (explained.group, explained.group_others) == (1, ("public.counts", "public.averages"))
    line = "member of group 1, with public.counts, public.averages"
    assert f"group\n  {line}\nincremental or full\n" in str(explained)
    alone = project.explain("best")
    assert (alone.group, alone.group_others) == (None, ())
    assert "member of group" not in str(alone)


def test_explain_of_a_query_shows_the_group_that_it_would_be_in(
    project: headrace.Headrace,
) -> None:
    explained = project.explain(query="SELECT region, id FROM best JOIN orders USING (region)")
    assert explained.group == 1
    assert set(explained.group_others) == {f"public.{name}" for name in QUERIES}


def test_groups_follow_a_drop(project: headrace.Headrace) -> None:
    project.drop_stream_table("averages", cascade=True)
    assert project.diamond_groups() == ()
    assert {one.group for one in project.status()} == {None}


def test_a_group_that_is_declared(project: headrace.Headrace) -> None:
    """Tables that meet nowhere: as one by an option, which every door has."""
    project.alter_stream_table("best", group=" sales ")
    assert [one.name for one in project.diamond_groups()][-1] == "public.averages"
    project.run("ALTER STREAM TABLE averages SET (group = 'sales')")
    found = project.diamond_groups()
    assert {(one.name, one.declared, one.atomic) for one in found} == {
        ("public.counts", None, True),
        ("public.totals", None, True),
        ("public.averages", "sales", True),
        ("public.best", "sales", True),
    }
    assert {one.name: one.options for one in project.status()}["public.best"] == {"group": "sales"}
    explained = project.explain("best")
    assert explained.group_others == ("public.counts", "public.totals", "public.averages")
    assert "declared to be of group sales" in str(explained)
    # Without diamonds the declared ones stay together.
    project.set("diamond_consistency", "none")
    apart = consistency_groups(
        project._engine.catalog.state(), Settings(diamond_consistency="none")
    )
    assert sorted(len(members) for members in apart.values()) == [0, 0, 2, 2]
    project.set("diamond_consistency", None)
    project.drop_stream_table("best")
    assert all(one.name != "public.best" for one in project.diamond_groups())
    project.alter_stream_table("averages", group=None)
    assert {one.declared for one in project.diamond_groups()} == {None}


@pytest.mark.parametrize("name", ["", " ", "x" * 64, "a\nb", 5])
def test_what_no_group_is_called(project: headrace.Headrace, name: object) -> None:
    with pytest.raises(headrace.UserError) as caught:
        project.alter_stream_table("best", group=name)  # type: ignore[arg-type]
    assert caught.value.code == "invalid-option"
