"""What a stream table can be partitioned by, and what is refused, through every door."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

import headrace
from headrace.catalog.records import OutputColumn
from headrace.errors import UserError
from headrace.lifecycle.partitioning import partitions_differ
from headrace.lifecycle.planned_table import TableRequest
from headrace.publish.apply import apply_change
from headrace.publish.partitioning import LISTED as KINDS
from headrace.publish.partitioning import check_partition
from headrace.relations.visible_change import VisibleChange
from headrace.store import WEIGHT
from headrace.types import Type
from headrace.types.kinds import KINDS as ALL
from tests.lifecycle.made import put_tables
from tests.project.folder import create, write

QUERY = "SELECT id, region, amount, noted, weight FROM orders"


def column(kind: str) -> OutputColumn:
    if kind == "numeric":
        type_ = Type("numeric", precision=9, scale=0)
    elif kind == "array":
        type_ = Type("array", element=Type("integer"))
    elif kind == "enum":
        type_ = Type("enum", enum="mood")
    else:
        type_ = Type(kind)
    return OutputColumn("x", type_, type_.sql)


@pytest.mark.parametrize("kind", [kind.name for kind in ALL])
def test_types_whose_texts_tell_values_apart(kind: str) -> None:
    refused = {"real", "double precision", "numeric", "timestamp", "timestamptz", "time"}
    refused |= {"interval", "bytea", "jsonb", "array"}
    assert (kind in KINDS) is (kind not in refused)
    if kind in KINDS:
        check_partition([column(kind)], {"partition_by": "x"})
        return
    with pytest.raises(UserError) as caught:
        check_partition([column(kind)], {"partition_by": "x"})
    assert caught.value.code == "unsupported-type"
    assert column(kind).served in caught.value.message
    assert "date, uuid" in str(caught.value.hint)


def test_the_error_for_a_missing_column_lists_the_existing() -> None:
    with pytest.raises(UserError) as caught:
        check_partition([column("date")], {"partition_by": "X"})
    assert caught.value.code == "unknown-column"
    assert caught.value.hint == "Its columns are x."
    check_partition([column("real")], {"tier": "hot"})


def test_when_partitions_differ() -> None:
    assert not partitions_differ({"tier": "hot"}, {})
    assert not partitions_differ({"partition_by": "x"}, {"partition_by": "x", "tier": "hot"})
    assert partitions_differ({"partition_by": "x"}, {})
    assert partitions_differ({}, {"partition_by": "x"})


@pytest.fixture
def project(dsn: str, tmp_path: Path) -> Iterator[headrace.Headrace]:
    """A project with a stream table that is partitioned; its Spark never starts."""
    with (
        psycopg.connect(dsn, autocommit=True) as sql,
        headrace.connect(dsn=dsn, home=tmp_path / "home") as opened,
    ):
        sql.execute(
            "CREATE TABLE orders (id int PRIMARY KEY, region text, amount numeric(9,2),"
            " noted timestamp, weight float8)"
        )
        put_tables(opened, TableRequest.of("kept", QUERY, {"partition_by": "region"}))
        yield opened


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("by", "code"),
    [
        ("nothing", "unknown-column"),
        ("Region", "unknown-column"),
        ("amount", "unsupported-type"),
        ("noted", "unsupported-type"),
        ("weight", "unsupported-type"),
    ],
)
def test_what_cannot_be_is_refused_at_every_door(
    project: headrace.Headrace, tmp_path: Path, by: str, code: str
) -> None:
    before = project._engine.catalog.state()
    folder = write(tmp_path / "folder", kept=create("kept", QUERY, f"partition_by = '{by}'"))
    doors = (
        lambda: project.create_stream_table("new", QUERY, partition_by=by),
        lambda: project.create_or_replace_stream_table("kept", QUERY, partition_by=by),
        lambda: project.create_stream_tables({"new": {"query": QUERY, "partition_by": by}}),
        lambda: project.alter_stream_table("kept", partition_by=by),
        lambda: project.run(f"CREATE STREAM TABLE new WITH (partition_by = '{by}') AS {QUERY}"),
        lambda: project.run(f"ALTER STREAM TABLE kept SET (partition_by = '{by}')"),
        lambda: project.plan(folder),
        lambda: project.apply(folder),
    )
    for door in doors:
        with pytest.raises(UserError) as caught:
            door()
        assert caught.value.code == code
        assert caught.value.hint
    assert project._engine.catalog.state() == before


@pytest.mark.postgres
def test_a_query_without_the_column_is_refused(project: headrace.Headrace) -> None:
    with pytest.raises(UserError) as caught:
        project.alter_stream_table("kept", query="SELECT id, amount FROM orders")
    assert caught.value.code == "unknown-column"


@pytest.mark.postgres
def test_it_is_shown(project: headrace.Headrace) -> None:
    (status,) = project.status()
    assert status.options == {"partition_by": "region"}
    explanation = project.explain("kept")
    assert explanation.partition_by == "region"
    assert "partitions\n  by region\n" in str(explanation)
    assert "partitions" not in str(project.explain(query=QUERY))


@pytest.mark.postgres
def test_other_options_and_the_name_change_in_place(project: headrace.Headrace, dsn: str) -> None:
    relation = project._engine.catalog.state().stream_tables[0].relation
    with psycopg.connect(dsn, autocommit=True) as sql:
        sql.execute("CREATE SCHEMA elsewhere")
        project.alter_stream_table("kept", tier="cold", rename_to="elsewhere.other")
        kind = "SELECT relkind::text FROM pg_class WHERE oid = 'elsewhere.other'::regclass"
        assert sql.execute(kind).fetchone() == ("p",)
    (table,) = project._engine.catalog.state().stream_tables
    assert table.relation == relation
    assert table.options == {"partition_by": "region", "tier": "cold"}


@pytest.mark.postgres
@pytest.mark.parametrize("keep", [True, False])
def test_it_can_be_taken_out(project: headrace.Headrace, dsn: str, keep: bool) -> None:
    (table,) = project._engine.catalog.state().stream_tables
    schema = pa.schema([(WEIGHT, pa.int64()), *((c.name, c.type.arrow) for c in table.columns)])
    rows = [{WEIGHT: 1, "id": 1, "region": "eu"}, {WEIGHT: 1, "id": 2, "region": None}]
    with psycopg.connect(dsn) as sql:
        apply_change(sql, table, VisibleChange.of(pa.Table.from_pylist(rows, schema)))
    project.uninstall(keep_tables=keep)
    with psycopg.connect(dsn) as sql:
        ours = "SELECT count(*) FROM pg_trigger WHERE tgname = 'headrace_refuse_dml'"
        assert sql.execute(ours).fetchone() == (0,)
        tables = "SELECT count(*) FROM pg_class WHERE relname ~ '^(kept|headrace_part_r[^_]*)$'"
        assert sql.execute(tables).fetchone() == ((3,) if keep else (0,))
        if keep:
            assert sql.execute("DELETE FROM kept").rowcount == 2
