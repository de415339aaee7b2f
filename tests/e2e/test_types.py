"""Every row of the table of types, from the source through capture, copy and Spark to served."""

from __future__ import annotations

from decimal import Decimal

import psycopg
import pytest

import headrace
from headrace.types import KINDS
from tests.e2e.typed_columns import COLUMNS, VALUES, image

pytestmark = pytest.mark.e2e


def test_every_kind_has_values() -> None:
    assert set(VALUES) == {kind.name for kind in KINDS}


def test_round_trip(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute("CREATE TYPE mood AS ENUM ('sad', 'o''k')")
    declared = ", ".join(f"c{i} {type_}" for i, (type_, _) in enumerate(COLUMNS.values()))
    sql.execute(f"CREATE TABLE everything (id int, {declared})")
    longest = max(len(values) for _, values in COLUMNS.values())

    def insert(number: int) -> None:
        values = [values[number % len(values)] for _, values in COLUMNS.values()]
        sql.execute(f"INSERT INTO everything VALUES ({number}, {', '.join(values)})")

    for number in range(longest):
        insert(number)
    sql.execute("INSERT INTO everything (id) VALUES (NULL)")
    columns = ", ".join(f"c{i}" for i in range(len(COLUMNS)))
    project.create_stream_table("shown", f"SELECT {columns} FROM everything")
    assert image(sql, "shown") == image(sql, "everything"), "through the copy"

    for number in range(longest):
        insert(number)
    sql.execute("UPDATE everything SET id = id + 1")
    sql.execute("DELETE FROM everything WHERE id = 1")
    assert project.refresh("shown").mode == "DIFFERENTIAL"
    assert image(sql, "shown") == image(sql, "everything"), "through the triggers"
    assert project.verify("shown", source=True).equal
    frame = project.table("shown")
    assert frame.count() == len(image(sql, "everything"))

    served = sql.execute(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'shown'::regclass AND attnum > 0 ORDER BY attnum"
    ).fetchall()
    given = sql.execute(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'everything'::regclass AND attnum > 1 ORDER BY attnum"
    ).fetchall()
    assert served == given


MISFITS = [
    ("numeric", "'NaN'", "2"),
    ("numeric", "'Infinity'", "2"),
    ("numeric", "123456789012345678901234567890", "2"),
    ("numeric", "0.1234567890123456789", "2"),
    ("date", "'infinity'", "'2024-01-01'"),
    ("date", "'0044-03-15 BC'", "'2024-01-01'"),
    ("timestamp", "'-infinity'", "'2024-01-01'"),
    ("timestamptz", "'infinity'", "'2024-01-01'"),
    ("int[]", "'{{1},{2}}'", "'{1,2}'"),
    ("int[]", "'[2:3]={1,2}'", "'{1,2}'"),
]


def test_a_value_that_does_not_fit_stops_its_readers_and_nothing_else(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    kinds = [kind for kind, _, _ in MISFITS]
    columns = ", ".join(f"m{i} {kind}" for i, kind in enumerate(kinds))
    sql.execute(f"CREATE TABLE odd (id int PRIMARY KEY, {columns})")
    sql.execute("CREATE TABLE fine (id int PRIMARY KEY)")
    project.create_stream_table("reader", "SELECT id, m0 FROM odd")
    project.create_stream_table("other", "SELECT id FROM fine")
    for number, (_, bad, good) in enumerate(MISFITS):
        sql.execute(f"INSERT INTO odd (id, m{number}) VALUES ({number}, {bad})")
        sql.execute(f"INSERT INTO fine VALUES ({number})")
        assert project.refresh("other").rows_inserted == 1
        with pytest.raises(headrace.UserError) as caught:
            project.refresh("reader")
        assert caught.value.code == "table-suspended"
        assert f'"m{number}"' in (caught.value.detail or "")
        assert f"id = {number}" in (caught.value.detail or "")
        status = {table.name: table.status for table in project.status()}
        assert status == {"public.reader": "SUSPENDED", "public.other": "ACTIVE"}
        sql.execute(f"UPDATE odd SET m{number} = {good} WHERE id = {number}")
        project.refresh("reader")
        assert sql.execute("SELECT count(*) FROM reader").fetchone() == (number + 1,)
    assert project.verify("reader", source=True).equal


@pytest.mark.parametrize("by", ["driver", "executors"])
def test_a_first_copy_names_the_value_that_does_not_fit(
    project: headrace.Headrace, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    if by == "executors":
        monkeypatch.setattr("headrace.ingest.small.SMALL_BYTES", 0)
    sql.execute("CREATE TABLE odd (id int PRIMARY KEY, n numeric(5,2), d date)")
    sql.execute("INSERT INTO odd VALUES (1, 1.5, '2024-01-01'), (77, 'NaN', NULL)")
    with pytest.raises(headrace.HeadraceError) as caught:
        project.create_stream_table("reader", "SELECT id, n FROM odd")
    assert '"n" of public.odd' in str(caught.value)
    assert "id = 77" in str(caught.value)
    sql.execute("UPDATE odd SET n = 2 WHERE id = 77")
    project.create_stream_table("reader", "SELECT id, n FROM odd")
    assert sql.execute("SELECT sum(n) FROM reader").fetchone() == (Decimal("3.50"),)
