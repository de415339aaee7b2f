"""Writing served tables with enums whose owner sets traps: casts, and another type of the name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from headrace.catalog import PostgresCatalog, new_relation_id
from headrace.catalog.records import OutputColumn, StreamTable
from headrace.errors import Transient, UserError
from headrace.publish.apply import apply_change
from headrace.publish.partitions import partitions
from headrace.publish.replace import replace_served
from headrace.publish.served import create_served
from headrace.relations.visible_change import VisibleChange
from headrace.source.connection import Database
from headrace.store import WEIGHT
from headrace.types import Type
from headrace.verify.served import read_served
from tests.security.conftest import Attacker

pytestmark = pytest.mark.postgres

MOOD = Type("enum", enum="app.mood")
INTEGER = Type("integer")
Connection = psycopg.Connection[Any]
Row = tuple[Any, ...]


@pytest.fixture
def home(dsn: str, people: Attacker) -> Iterator[Connection]:
    """A session of ours in the home database."""
    with Database(dsn) as database:
        PostgresCatalog.open(database.connect).close()
        with database.session() as connection:
            yield connection


def served(*columns: tuple[str, Type], key: tuple[str, ...] = (), **options: Any) -> StreamTable:
    outputs = tuple(OutputColumn(name, type_, type_.sql) for name, type_ in columns)
    return StreamTable(
        new_relation_id(), "public", "t", "", outputs, inputs=(), key=key, options=options
    )


def change(table: StreamTable, *rows: Row) -> VisibleChange:
    names = [WEIGHT, *(column.name for column in table.columns)]
    types = [pa.int64(), *(column.type.arrow for column in table.columns)]
    columns = [pa.array([row[i] for row in rows], type_) for i, type_ in enumerate(types)]
    return VisibleChange.of(pa.table(dict(zip(names, columns, strict=True))))


def rows_of(home: Connection) -> Counter[Row]:
    return Counter(home.execute("SELECT id, concat(mood) FROM public.t").fetchall())


SHAPES = {
    "keyed": {"key": ("mood", "id")},
    "keyed by the enum alone": {"key": ("mood",)},
    "bag": {},
    "partitioned": {"partition_by": "mood"},
    "partitioned and keyed": {"key": ("mood", "id"), "partition_by": "mood"},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_changes(people: Attacker, home: Connection, shape: str) -> None:
    table = served(("id", INTEGER), ("mood", MOOD), **SHAPES[shape])
    with home.transaction():
        create_served(home, table)
        apply_change(home, table, change(table, (1, 1, "sad"), (1, 2, "ok"), (1, 3, None)))
    with home.transaction():
        apply_change(home, table, change(table, (-1, 1, "sad"), (1, 4, "happy"), (-1, 3, None)))
    assert rows_of(home) == {(2, "ok"): 1, (4, "happy"): 1}
    if "partition_by" in SHAPES[shape]:
        found = {value for one in partitions(home, table) for value in one.values}
        assert found == {"sad", "ok", "happy", None}
    assert people.ran() == []


def test_rows_of_too_many_partitions(
    people: Attacker, home: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.publish.partitions.MOST_PARTITIONS", 1)
    table = served(("id", INTEGER), ("mood", MOOD), partition_by="mood")
    with home.transaction():
        create_served(home, table)
        apply_change(home, table, change(table, (1, 1, "sad"), (1, 2, "ok"), (1, 3, "ok")))
    with home.transaction():
        apply_change(home, table, change(table, (-1, 1, "sad"), (-1, 2, "ok")))
    assert rows_of(home) == {(3, "ok"): 1}
    assert people.ran() == []


def test_a_column_of_another_type(people: Attacker, home: Connection) -> None:
    """Values are not cast from or to a type of users: the rows are written again."""
    old = served(("id", INTEGER), ("mood", MOOD))
    with home.transaction():
        create_served(home, old)
        apply_change(home, old, change(old, (1, 1, "sad")))
    for type_ in (Type("text"), MOOD):
        new = replace(
            old,
            relation=new_relation_id(),
            columns=(old.columns[0], OutputColumn("mood", type_, type_.sql)),
        )
        with home.transaction():
            replace_served(home, old, new, change(new, (1, 1, "ok")))
        assert rows_of(home) == {(1, "ok"): 1}
        old = new
    assert people.ran() == []


SWAP = """
ALTER TYPE app.mood RENAME TO real_mood;
CREATE DOMAIN app.mood AS text CHECK (app.note('check') IS NOT NULL);
"""


def test_a_domain_that_got_the_name_of_the_enum(people: Attacker, home: Connection) -> None:
    """Its constraints would run when rows are written to a column of that name."""
    table = served(("id", INTEGER), ("mood", MOOD), partition_by="mood")
    with home.transaction():
        create_served(home, table)
        apply_change(home, table, change(table, (1, 1, "sad")))
    people.execute(SWAP)
    people.execute("SELECT 'x'::app.mood")
    assert people.ran() == [("attacker", "attacker", "check")], "the trojan works"
    with home.transaction():
        apply_change(home, table, change(table, (-1, 1, "sad"), (1, 1, "ok")))
    assert rows_of(home) == {(1, "ok"): 1}
    assert people.ran() == []


@pytest.mark.parametrize("column", [MOOD, Type("array", element=MOOD)])
def test_a_domain_in_a_new_served_table(people: Attacker, home: Connection, column: Type) -> None:
    people.execute(SWAP)
    table = served(("id", INTEGER), ("mood", column))
    with pytest.raises(Transient, match=r"type app\.mood.* is not the enum"), home.transaction():
        create_served(home, table)
    plain = served(("id", INTEGER))
    with home.transaction():
        create_served(home, plain)
        apply_change(home, plain, change(plain, (1, 1)))
    with pytest.raises(Transient, match=r"type app\.mood.* is not the enum"), home.transaction():
        replace_served(home, plain, table, change(table, (1, 1, None)))
    assert people.ran() == []


def test_a_table_in_the_place_of_the_served_one(people: Attacker, home: Connection) -> None:
    """The owner of a schema may drop what is in it, and make a trap with the same name."""
    table = replace(served(("id", INTEGER), ("mood", MOOD)), schema="app")
    with home.transaction():
        create_served(home, table)
        apply_change(home, table, change(table, (1, 1, "sad")))
    people.execute(
        "DROP TABLE app.t; CREATE TABLE app.t (id integer, mood app.mood);"
        "CREATE FUNCTION app.trap() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN PERFORM app.note('trigger'); RETURN NEW; END$$;"
        "CREATE TRIGGER trap BEFORE INSERT ON app.t FOR EACH ROW EXECUTE FUNCTION app.trap();"
        "GRANT ALL ON app.t TO PUBLIC"
    )
    for act in (
        lambda: apply_change(home, table, change(table, (1, 2, "ok"))),
        lambda: replace_served(home, table, table, change(table, (1, 2, "ok"))),
    ):
        with pytest.raises(UserError) as refused, home.transaction():
            act()
        assert refused.value.code == "untrusted-object"
        assert refused.value.message == "app.t belongs to role attacker"
    assert people.ran() == []


def test_a_trigger_on_the_served_table(people: Attacker, home: Connection) -> None:
    table = served(("id", INTEGER), ("mood", MOOD))
    with home.transaction():
        create_served(home, table)
    home.execute("GRANT TRIGGER ON public.t TO attacker")
    people.execute(
        "CREATE FUNCTION app.trap() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN PERFORM app.note('trigger'); RETURN NEW; END$$;"
        "CREATE TRIGGER trap BEFORE INSERT ON public.t FOR EACH ROW EXECUTE FUNCTION app.trap()"
    )
    with pytest.raises(UserError) as refused, home.transaction():
        apply_change(home, table, change(table, (1, 2, "ok")))
    assert refused.value.code == "untrusted-object"
    assert "trigger trap of public.t runs function app.trap() of role attacker" in str(
        refused.value
    )
    assert people.ran() == []


def test_a_view_in_place_of_a_served_table_is_not_read(
    home: Connection, people: Attacker, dsn: str
) -> None:
    table = replace(served(("id", INTEGER)), schema="app", name="st")
    people.execute("CREATE VIEW app.st AS SELECT length(app.note('view')) AS id")
    people.execute("GRANT SELECT ON app.st TO PUBLIC")
    with Database(dsn) as database, pytest.raises(UserError) as refused:
        read_served(database, table)
    assert refused.value.code == "untrusted-object"
    assert people.ran() == []
