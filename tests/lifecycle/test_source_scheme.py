"""Partitions taken over from what a query reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.errors import UserError
from headrace.lifecycle.partitioning import range_scheme, same_partitions
from headrace.lifecycle.planned_table import TableRequest
from headrace.publish.partition_scheme import Scheme, as_scheme, parse_scheme
from tests.lifecycle.made import put_tables
from tests.project.folder import create, write

ZONED = [("2024-01-01 00:00:00+00", "2024-01-08 00:00:00+00")]
TOKYO = [("2024-01-01 09:00:00+09", "2024-01-02 09:00:00+09")]


@pytest.mark.parametrize(
    ("bounds", "scheme"),
    [
        ([("2024-01-31", "2024-02-01")], "day"),
        ([("2024-01-29", "2024-02-05"), ("2024-02-05", "2024-02-12")], "week"),
        ([("2024-02-01", "2024-03-01"), ("2023-12-01", "2024-01-01")], "month"),
        ([("2024-01-01", "2025-01-01")], "year"),
        (ZONED, "week"),
        (TOKYO, "day"),
        ([("2024-02-01", "2024-03-01"), ("2024-03-01", "2024-05-01")], None),
        ([("2024-02-01 12:00:00", "2024-02-02 12:00:00")], None),
        ([("0", "100"), ("-100", "0"), ("900", "1000")], 100),
        ([("50", "150")], None),
        ([("0", "100"), ("100", "300")], None),
        ([("a", "b")], None),
        ([("9999-01-01", "9999-06-01")], None),
        ([("9999-12-31", "infinity")], None),
        ([], None),
    ],
)
def test_what_ranges_are(bounds: list[tuple[str, str]], scheme: str | int | None) -> None:
    found = range_scheme(bounds)
    if scheme is None:
        assert found is None
    elif isinstance(scheme, int):
        assert found == Scheme("", width=scheme)
    else:
        assert found == Scheme("", unit=scheme)


@pytest.mark.parametrize("text", ["source(region)", "source(month(day))", "source(range(id, 7))"])
def test_inherited_schemes_are_marked(text: str) -> None:
    scheme = parse_scheme(text)
    assert scheme is not None and scheme.taken_over
    assert (str(scheme), as_scheme(text)) == (text, text)
    assert same_partitions(text, "source") and same_partitions(text, text)
    assert not same_partitions(text, None) and not same_partitions(None, "source")
    assert not same_partitions("month(day)", "source")
    assert not same_partitions(text, str(scheme).removeprefix("source(").removesuffix(")"))


@pytest.fixture
def project(dsn: str, tmp_path: Path) -> Iterator[headrace.Headrace]:
    """A project with partitioned sources; its Spark never starts."""
    with (
        psycopg.connect(dsn, autocommit=True) as sql,
        headrace.connect(dsn=dsn, home=tmp_path / "home") as opened,
    ):
        sql.execute("CREATE TABLE monthly (day date, v int) PARTITION BY RANGE (day)")
        for month in (1, 2):
            bounds = f"FROM ('2024-{month:02}-01') TO ('2024-{month + 1:02}-01')"
            sql.execute(f"CREATE TABLE m{month} PARTITION OF monthly FOR VALUES {bounds}")
        sql.execute("CREATE TABLE rest PARTITION OF monthly DEFAULT")
        sql.execute("CREATE TABLE listed (region text, day date) PARTITION BY LIST (region)")
        sql.execute("CREATE TABLE hashed (id int, day date) PARTITION BY HASH (id)")
        sql.execute("CREATE TABLE plain (source int, day date)")
        yield opened


def scheme(project: headrace.Headrace, name: str) -> str | None:
    table = project._engine.catalog.state().stream_table("public", name)
    assert table is not None
    found: str | None = table.options.get("partition_by")
    return found


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("SELECT v, day FROM monthly", "source(month(day))"),
        ("SELECT day AS d, sum(v) AS v FROM monthly GROUP BY day", "source(month(d))"),
        ("SELECT p.day, m.day AS other FROM plain p JOIN monthly m ON p.day = m.day", None),
        ("SELECT l.day, l.region AS r FROM listed l JOIN monthly m USING (day)", "source(r)"),
        ("SELECT source, day FROM plain", "source"),
        ("SELECT day + 1 AS day FROM monthly", UserError),
        ("SELECT id, day FROM hashed", UserError),
        ("SELECT day FROM plain", UserError),
    ],
)
def test_the_scheme_of_a_source(
    project: headrace.Headrace, query: str, kept: str | type[UserError] | None
) -> None:
    request = TableRequest.of("t", query, {"partition_by": "source"})
    if kept is UserError:
        with pytest.raises(UserError) as raised:
            put_tables(project, request)
        assert raised.value.code == "invalid-option"
        return
    put_tables(project, request)
    # Of two equal columns either is right.
    either = {"source(month(day))", "source(month(other))"}
    assert scheme(project, "t") in (either if kept is None else {kept})


@pytest.mark.postgres
def test_a_stream_table_above_and_a_folder(project: headrace.Headrace, tmp_path: Path) -> None:
    query = "SELECT day, v FROM monthly"
    put_tables(project, TableRequest.of("below", query, {"partition_by": "source"}))
    above = "SELECT day AS d, count(*) AS n FROM below GROUP BY day"
    put_tables(project, TableRequest.of("above", above, {"partition_by": "source"}))
    assert scheme(project, "above") == "source(month(d))"
    folder = write(
        tmp_path / "folder",
        below=create("below", query, "partition_by = source"),
        above=create("above", above, "partition_by = source"),
    )
    assert {change.act.value for change in project.plan(folder).changes} == {"unchanged"}
