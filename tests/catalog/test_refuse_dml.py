"""The trigger that keeps users' DML off served tables."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from headrace.catalog import PostgresCatalog

pytestmark = pytest.mark.postgres

CHANGES = (
    'INSERT INTO "shop.x" VALUES (2)',
    'UPDATE "shop.x" SET id = 3 WHERE false',
    'DELETE FROM "shop.x"',
    'TRUNCATE "shop.x"',
    'MERGE INTO "shop.x" AS t USING (SELECT 1) AS s ON true WHEN MATCHED THEN DELETE',
    'WITH gone AS (DELETE FROM "shop.x" RETURNING *) SELECT * FROM gone',
)


@pytest.fixture
def served(postgres: PostgresCatalog, dsn: str) -> Iterator[psycopg.Connection]:
    """A session with a served table of one row."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute('CREATE TABLE "shop.x" (id integer)')
        connection.execute('INSERT INTO "shop.x" VALUES (1)')
        connection.execute(
            "CREATE TRIGGER headrace_refuse_dml"
            ' BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON "shop.x"'
            " FOR EACH STATEMENT EXECUTE FUNCTION headrace.refuse_dml()"
        )
        yield connection


@pytest.mark.parametrize("change", CHANGES)
def test_a_user_is_refused(served: psycopg.Connection, change: str) -> None:
    with pytest.raises(psycopg.Error) as raised:
        served.execute(change)
    assert raised.value.sqlstate == "HR001"
    diagnostic = raised.value.diag
    assert str(diagnostic.message_primary).startswith('table "shop.x" is a stream table')
    assert 'public."shop.x" holds the result of a query' in str(diagnostic.message_detail)
    assert diagnostic.message_hint
    assert (diagnostic.schema_name, diagnostic.table_name) == ("public", "shop.x")
    assert served.execute('SELECT id FROM "shop.x"').fetchall() == [(1,)]


def test_publish_is_let_through_and_only_in_its_transaction(served: psycopg.Connection) -> None:
    with served.transaction():
        served.execute("SET LOCAL headrace.publishing = on")
        served.execute('INSERT INTO "shop.x" VALUES (2)')
        with served.cursor().copy('COPY "shop.x" FROM STDIN') as copy:
            copy.write_row((3,))
    assert served.execute('SELECT count(*) FROM "shop.x"').fetchone() == (3,)
    with pytest.raises(psycopg.Error):
        served.execute('DELETE FROM "shop.x"')
