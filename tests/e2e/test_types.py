"""Every row of the table of types, from the source through capture, copy and Spark to served."""

from __future__ import annotations

from decimal import Decimal

import psycopg
import pytest

import headrace
from headrace.types import KINDS

pytestmark = pytest.mark.e2e

# For each kind: how a column is declared, and values with the special ones among them.
VALUES: dict[str, tuple[str, list[str]]] = {
    "boolean": ("boolean", ["true", "false"]),
    "smallint": ("smallint", ["-32768", "32767", "0"]),
    "integer": ("integer", ["-2147483648", "2147483647"]),
    "bigint": ("bigint", ["-9223372036854775808", "9223372036854775807"]),
    "real": ("real", ["'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "3.4028235e38", "1e-45"]),
    "double precision": (
        "double precision",
        ["'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "1.7976931348623157e308", "5e-324", "0.1"],
    ),
    "numeric": ("numeric(38,10)", ["1234567890123456789012345678.0123456789", "-0.0000000001"]),
    "text": ("text", ["''", "' '", "'Ünïcödé 🚀'", "E'tab\\tquote\"\\nline\\\\.'", "'NULL'"]),
    "character varying": ("varchar(5)", ["''", "'ab   '", "'äöü'"]),
    "character": ("char(4)", ["''", "'ab'", "'abcd'"]),
    "bytea": ("bytea", ["'\\x'", "'\\x00ff5c'"]),
    "date": ("date", ["'0001-01-01'", "'9999-12-31'", "'1582-10-10'", "'1970-01-01'"]),
    "timestamp": (
        "timestamp",
        ["'0001-01-01 00:00:00'", "'9999-12-30 23:59:59.999999'", "'1900-01-01 12:34:56.789'"],
    ),
    "timestamptz": (
        "timestamptz",
        ["'0001-01-02 00:00:00+00'", "'9999-12-30 23:59:59.999999+00'", "'2024-03-31 02:30+01'"],
    ),
    "time": ("time", ["'00:00'", "'23:59:59.999999'", "'24:00'"]),
    "interval": ("interval", ["'1 year -2 mons 3 days 04:05:06.7'", "'0'", "'-1 second'"]),
    "uuid": ("uuid", ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"]),
    "enum": ("mood", ["'sad'", "'o''k'"]),
    "jsonb": ("jsonb", ["'null'", '\'{"b": 1.00, "a": [null, "x"]}\'']),
    "array": ("int[]", ["'{}'", "'{1,NULL,-3}'", "'{NULL}'"]),
}
ARRAYS: dict[str, tuple[str, list[str]]] = {
    "numerics": ("numeric(9,2)[]", ["'{1.5,NULL}'", "'{}'", "'{-0.01,1234567.89}'"]),
    "texts": ("text[]", ['\'{"a,b","\\"","\\\\",NULL,"NULL",""," "}\'', "E'{ü,\"\\n\"}'"]),
    "floats": ("real[]", ["'{0.1,NaN,-0,Infinity}'", "'{1e-45}'"]),
    "bytes": ("bytea[]", ["ARRAY['\\x00ff5c'::bytea, '']"]),
    "moments": ("timestamptz[]", ["'{2024-03-31 02:30+01,0001-01-02 00:00+00}'"]),
    "days": ("date[]", ["'{0001-01-01,9999-12-31}'"]),
    "truths": ("bool[]", ["'{t,f,NULL}'"]),
    "spans": ("interval[]", ["'{1 mon,-3 days}'"]),
    "moods": ("mood[]", ["ARRAY['sad', 'o''k']::mood[]"]),
    "documents": ("jsonb[]", ["ARRAY['{\"b\": 1.00}', 'null']::jsonb[]"]),
}
COLUMNS = {**VALUES, **ARRAYS}


def test_every_kind_has_values() -> None:
    assert set(VALUES) == {kind.name for kind in KINDS}


def image(sql: psycopg.Connection, table: str) -> list[tuple[str | None, ...]]:
    """The table's rows as PostgreSQL prints them, without the number of each."""
    columns = ", ".join(f"c{i}::text" for i in range(len(COLUMNS)))
    return sorted(sql.execute(f"SELECT {columns} FROM {table}"), key=repr)


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
