"""Keys of served tables at every door: created, altered, broken and mended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

import headrace
from headrace.commands.run import run
from headrace.errors import UserError
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e

PAIRS = "SELECT a.id, a.name, b.price FROM a JOIN b ON b.a = a.id"


@pytest.fixture
def pairs(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    """A join that is one to one as long as the application keeps to it."""
    sql.execute("CREATE TABLE a (id int PRIMARY KEY, name text)")
    sql.execute("CREATE TABLE b (a int, price int)")
    sql.execute("INSERT INTO a SELECT i, 'n' || i FROM generate_series(1, 5) i")
    sql.execute("INSERT INTO b SELECT i, 10 * i FROM generate_series(1, 5) i")
    return project


def index(sql: psycopg.Connection, name: str = "pairs") -> list[str]:
    found = sql.execute(
        "SELECT regexp_replace(indexdef, '^.* USING btree ', '') FROM pg_indexes"
        " WHERE tablename = %s ORDER BY 1",
        [name],
    )
    return [text for (text,) in found]


HASH = "(hash_record_extended(ROW(id, name, price), (0)::bigint))"


def test_a_key_that_is_broken_and_mended(pairs: headrace.Headrace, sql: psycopg.Connection) -> None:
    pairs.create_stream_table("pairs", PAIRS, key=["id"], include=["price"])
    assert index(sql) == ["(id) INCLUDE (price) NULLS NOT DISTINCT"]
    assert "  unique on id with price beside it, declared" in str(pairs.explain("pairs"))
    sql.execute("UPDATE b SET price = 11 WHERE a = 1; INSERT INTO a VALUES (6, 'six')")
    refresh = pairs.refresh("pairs")
    assert (refresh.mode, refresh.rows_inserted, refresh.rows_deleted) == ("DIFFERENTIAL", 1, 1)
    assert_served(pairs, sql, "pairs")

    before = sql.execute("SELECT ctid, * FROM pairs").fetchall()
    sql.execute("INSERT INTO b VALUES (2, 99)")
    for _ in range(2):
        with pytest.raises(UserError) as raised:
            pairs.refresh("pairs")
        assert raised.value.code == "key-violated"
        assert "(id)=(2)" in (raised.value.detail or "")
    (status,) = pairs.status()
    assert (status.status, status.reason) == ("ERROR", "(id) is no key of public.pairs")
    assert sql.execute("SELECT ctid, * FROM pairs").fetchall() == before

    sql.execute("DELETE FROM b WHERE price = 20")
    pairs.refresh("pairs")
    (status,) = pairs.status()
    assert status.status == "ACTIVE"
    assert_served(pairs, sql, "pairs")
    pairs.reinit("pairs")
    assert index(sql) == ["(id) INCLUDE (price) NULLS NOT DISTINCT"]
    assert pairs.verify("pairs", source=True).equal


def test_a_table_that_does_not_keep_its_key_is_not_created(
    pairs: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("INSERT INTO b VALUES (2, 99)")
    with pytest.raises(UserError) as raised:
        pairs.create_stream_table("pairs", PAIRS, key="id")
    assert raised.value.code == "key-violated"
    assert len(pairs.status()) == 0
    assert sql.execute("SELECT to_regclass('pairs')").fetchone() == (None,)
    pairs.create_stream_table("pairs", PAIRS)
    with pytest.raises(UserError) as raised:
        pairs.alter_stream_table("pairs", key="id")
    assert raised.value.code == "key-violated"
    assert index(sql) == [HASH]
    sql.execute("DELETE FROM b WHERE price = 99")
    pairs.refresh("pairs")
    pairs.alter_stream_table("pairs", key="id")
    assert index(sql) == ["(id) NULLS NOT DISTINCT"]
    assert_served(pairs, sql, "pairs")


def test_keys_in_statements_and_while_the_table_is_read(
    pairs: headrace.Headrace, sql: psycopg.Connection, dsn: str
) -> None:
    def say(text: str) -> None:
        list(run(pairs._engine, text))

    say(f"CREATE STREAM TABLE pairs WITH (key = 'id', include = 'name, price') AS {PAIRS}")
    assert index(sql) == ["(id) INCLUDE (name, price) NULLS NOT DISTINCT"]
    epoch = pairs.status()[0].epoch
    with psycopg.connect(dsn, autocommit=True) as reader:
        reader.execute("SELECT FROM pairs")
        say("ALTER STREAM TABLE pairs SET (primary_key = true, include = NULL)")
        assert index(sql) == ["(id)"]
        say("ALTER STREAM TABLE pairs SET (primary_key = false, key = 'id, price')")
        assert index(sql) == ["(id, price) NULLS NOT DISTINCT"]
        say("ALTER STREAM TABLE pairs SET (primary_key = NULL, key = NULL)")
        assert index(sql) == [HASH]
        assert reader.execute("SELECT count(*) FROM pairs").fetchone() == (5,)
    # Nothing was computed again.
    assert pairs.status()[0].epoch == epoch
    say("ALTER STREAM TABLE pairs SET (key = id)")
    say(f"ALTER STREAM TABLE pairs AS {PAIRS} WHERE b.price > 10")
    assert index(sql) == ["(id) NULLS NOT DISTINCT"]
    sql.execute("UPDATE b SET price = 5 WHERE a = 3; UPDATE b SET price = 12 WHERE a = 1")
    pairs.refresh("pairs")
    assert_served(pairs, sql, "pairs")


def test_a_key_in_a_project_folder(
    pairs: headrace.Headrace, sql: psycopg.Connection, tmp_path: Path
) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()

    def apply(options: str) -> Any:
        text = f"CREATE STREAM TABLE pairs WITH ({options}) AS {PAIRS};"
        (folder / "pairs.sql").write_text(text)
        plan = pairs.plan(folder)
        pairs.apply(plan)
        return [(change.act.value, change.reason) for change in plan.changes]

    apply("key = 'id'")
    assert index(sql) == ["(id) NULLS NOT DISTINCT"]
    assert apply("key = 'id', include = 'price'") == [("alter", "include: default → price")]
    assert index(sql) == ["(id) INCLUDE (price) NULLS NOT DISTINCT"]


def test_another_primary_key_of_a_partitioned_table(
    pairs: headrace.Headrace, sql: psycopg.Connection
) -> None:
    options = {"key": ["id", "price"], "primary_key": True, "partition_by": "price"}
    pairs.create_stream_table("pairs", PAIRS, **options)
    pairs.alter_stream_table("pairs", include=["name"])
    assert index(sql) == ["(id, price) INCLUDE (name)"]
    sql.execute("UPDATE b SET price = 11 WHERE a = 1")
    assert pairs.refresh("pairs").mode == "DIFFERENTIAL"
    assert_served(pairs, sql, "pairs")


def test_a_foreign_key_does_not_keep_a_table_from_being_published(
    pairs: headrace.Headrace, sql: psycopg.Connection
) -> None:
    options = {"key": ["id", "price"], "primary_key": True, "partition_by": "price"}
    pairs.create_stream_table("pairs", PAIRS, **options, partition_drop_empty=True)
    sql.execute("CREATE TABLE child (id int, price int, FOREIGN KEY (id, price) REFERENCES pairs)")
    sql.execute("DELETE FROM b WHERE a = 1")
    assert pairs.refresh("pairs").mode == "DIFFERENTIAL"
    assert_served(pairs, sql, "pairs")
