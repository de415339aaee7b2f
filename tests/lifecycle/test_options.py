"""The options of stream tables: which values they take, and that they are kept as given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import headrace
from headrace.catalog.records import RefreshMode, StreamTable
from headrace.errors import UserError
from headrace.lifecycle.alter import KEEP, Alteration
from headrace.lifecycle.planned_table import TableRequest
from headrace.statements.options import MODES, OPTIONS, checked
from tests.lifecycle.made import put_tables

QUERY = "SELECT id FROM orders"


@pytest.mark.parametrize(
    ("option", "given", "kept"),
    [
        ("schedule", " 30s ", "30s"),
        ("schedule", "*/5 * * * *", "*/5 * * * *"),
        ("schedule", "calculated", "calculated"),
        ("refresh_mode", "full", "FULL"),
        ("diamond_consistency", "Atomic", "atomic"),
        ("diamond_consistency", "none", "none"),
        ("diamond_schedule_policy", "SLOWEST", "slowest"),
        ("tier", "frozen", "frozen"),
        ("tier", "auto", "auto"),
        ("max_change_rows", 1, 1),
        ("max_change_rows", "1000", 1000),
        ("cdc_mode", "WAL", "wal"),
        ("cdc_mode", "auto", "auto"),
        ("append_only", True, True),
        ("append_only", "FALSE", False),
        ("append_only", "on", True),
        ("unspecified_order", "By_Value", "by_value"),
        ("initialize", "Off", False),
        ("initialize", True, True),
        ("partition_by", 'A "b" c', 'A "b" c'),
        ("partition_by", "Month( day)", "month( day)"),
        ("partition_by", "range(id,100)", "range(id, 100)"),
        ("partition_ahead", "3", 3),
        ("partition_drop_empty", "on", True),
        ("key", 'a,"b, c"', 'a, "b, c"'),
        ("key", ["a", "b, c"], 'a, "b, c"'),
        ("primary_key", "true", True),
        ("include", " x ", "x"),
        *((option.name, None, None) for option in OPTIONS),
    ],
)
def test_values_that_are_kept(option: str, given: object, kept: object) -> None:
    assert checked({option: given}) == {option: kept}


@pytest.mark.parametrize(
    ("option", "given"),
    [
        ("schedule", "now and then"),
        ("schedule", ""),
        ("schedule", 30),
        ("refresh_mode", "sometimes"),
        ("diamond_consistency", "some"),
        ("diamond_schedule_policy", "fast"),
        ("tier", "lukewarm"),
        ("tier", 1),
        ("max_change_rows", 0),
        ("max_change_rows", -1),
        ("max_change_rows", "1.5"),
        ("max_change_rows", "²"),
        ("max_change_rows", True),
        ("max_change_rows", 2.0),
        ("cdc_mode", "log"),
        ("append_only", "yes, please"),
        ("append_only", 1),
        ("initialize", "later"),
        ("partition_by", ""),
        ("partition_by", 3),
        ("partition_by", "range(id, 0)"),
        ("partition_ahead", 101),
        ("partition_drop_empty", "maybe"),
        ("key", ""),
        ("key", "a, a"),
        ("include", [1]),
        ("primary_key", "maybe"),
    ],
)
def test_values_that_are_refused(option: str, given: object) -> None:
    with pytest.raises(UserError) as caught:
        checked({option: given})
    assert caught.value.code == "invalid-option"
    assert caught.value.hint


def test_the_error_for_unknown_options_lists_the_known() -> None:
    with pytest.raises(UserError) as caught:
        checked({"tier": "hot", "colour": "blue"})
    assert caught.value.code == "invalid-option"
    assert "'colour'" in caught.value.message
    for option in OPTIONS:
        assert option.name in (caught.value.hint or "")


def test_the_modes_are_those_of_the_records() -> None:
    assert tuple(RefreshMode) == MODES


def test_requests_and_alterations_of_options() -> None:
    given = {"schedule": "1m", "refresh_mode": None, "tier": "WARM", "max_change_rows": None}
    assert TableRequest.of("t", QUERY, given) == TableRequest(
        "t", QUERY, "1m", RefreshMode.AUTO, {"tier": "warm"}
    )
    assert Alteration.of({**given, "diamond_consistency": KEEP}) == Alteration(
        KEEP, "1m", RefreshMode.AUTO, KEEP, {"tier": "warm", "max_change_rows": None}
    )
    assert Alteration.of({"schedule": KEEP, "refresh_mode": KEEP}) == Alteration()
    assert TableRequest.of("t", QUERY, {"initialize": "false"}) == TableRequest(
        "t", QUERY, initialize=False
    )
    assert TableRequest.of("t", QUERY, {"initialize": None}) == TableRequest("t", QUERY)
    for value in (None, True, "false"):
        with pytest.raises(UserError, match="initialize"):
            Alteration.of({"initialize": value})


@pytest.fixture
def project(dsn: str, tmp_path: Path) -> Iterator[headrace.Headrace]:
    """A project with one stream table; its Spark never starts."""
    with (
        psycopg.connect(dsn, autocommit=True) as sql,
        headrace.connect(dsn=dsn, home=tmp_path) as opened,
    ):
        sql.execute("CREATE TABLE orders (id int PRIMARY KEY)")
        put_tables(opened, TableRequest.of("kept", QUERY, {"tier": "warm", "schedule": "1m"}))
        yield opened


def kept(project: headrace.Headrace) -> StreamTable:
    (table,) = project._engine.catalog.state().stream_tables
    return table


@pytest.mark.postgres
def test_alter_changes_what_is_given_and_keeps_the_rest(project: headrace.Headrace) -> None:
    relation = kept(project).relation
    assert (kept(project).options, kept(project).schedule) == ({"tier": "warm"}, "1m")
    status = project.alter_stream_table("kept", max_change_rows=5, diamond_consistency="none")
    assert status.options == {"tier": "warm", "max_change_rows": 5, "diamond_consistency": "none"}
    project.alter_stream_table("kept", tier=None, schedule=None, refresh_mode="FULL")
    assert kept(project).options == {"max_change_rows": 5, "diamond_consistency": "none"}
    assert (kept(project).schedule, kept(project).refresh_mode) == (None, "FULL")
    project.alter_stream_table("kept", refresh_mode=None)
    assert kept(project).refresh_mode == "AUTO"
    project.run("ALTER STREAM TABLE kept SET (tier = Cold, max_change_rows = NULL)")
    assert kept(project).options == {"tier": "cold", "diamond_consistency": "none"}
    project.run("ALTER STREAM TABLE kept SET (max_change_rows = 12)")
    assert kept(project).options["max_change_rows"] == 12
    assert kept(project).relation == relation, "altered in place"


@pytest.mark.postgres
def test_replacing_sets_all_options_again(project: headrace.Headrace) -> None:
    project.create_or_replace_stream_table("kept", QUERY, max_change_rows=7)
    assert (kept(project).options, kept(project).schedule) == ({"max_change_rows": 7}, None)
    project.run(f"CREATE OR REPLACE STREAM TABLE kept WITH (tier = hot) AS {QUERY}")
    assert kept(project).options == {"tier": "hot"}


@pytest.mark.postgres
@pytest.mark.parametrize(
    "wrong", [{"colour": "blue"}, {"tier": "blue"}, {"max_change_rows": 0}, {"schedule": "blue"}]
)
def test_wrong_options_are_refused_at_every_door(
    project: headrace.Headrace, wrong: dict[str, Any]
) -> None:
    before = kept(project)
    ((name, value),) = wrong.items()
    doors = (
        lambda: project.create_stream_table("new", QUERY, **wrong),
        lambda: project.create_or_replace_stream_table("kept", QUERY, **wrong),
        lambda: project.create_stream_tables({"new": {"query": QUERY, **wrong}}),
        lambda: project.alter_stream_table("kept", **wrong),
        lambda: project.run(f"CREATE STREAM TABLE new WITH ({name} = '{value}') AS {QUERY}"),
        lambda: project.run(f"ALTER STREAM TABLE kept SET ({name} = '{value}')"),
    )
    for door in doors:
        with pytest.raises(UserError) as caught:
            door()
        assert caught.value.code == "invalid-option"
    assert kept(project) == before
