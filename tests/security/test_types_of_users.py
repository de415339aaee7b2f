"""Casts, operators and domains of the owner of a type: none of them runs with our rights."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.capture.changes import change_batches
from headrace.capture.cut import open_cut
from headrace.errors import NeedsReinit
from headrace.source.connection import Database
from headrace.source.describe import user_objects
from tests.capture.follower import Follower
from tests.security.conftest import Attacker

pytestmark = pytest.mark.postgres


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    with Database(dsn) as opened:
        yield opened


@pytest.mark.parametrize("setting", ["array_nulls = on", "array_nulls = off"])
def test_casts_of_an_enum(people: Attacker, database: Database, setting: str) -> None:
    """They run neither in the triggers, which have the setup role's rights, nor in copies."""
    follower = Follower(database, "people", schema="app")
    follower.tick()
    people.execute(f"SET {setting}")
    people.execute("INSERT INTO app.people VALUES (6, 'ok', 'sad', ARRAY['sad', NULL]::app.mood[])")
    people.execute("UPDATE app.people SET cup = 7 WHERE id = 6")
    assert follower.tick().copied == {}
    assert people.ran() == []
    assert follower.bag("people") == {
        (1, "sad", "sad", ("sad", None, "happy"), 1): 1,
        (2, "ok", None, (), 2): 1,
        (3, None, "happy", None, 3): 1,
        (6, "ok", "sad", ("sad", None), 7): 1,
    }


def test_casts_of_an_enum_in_row_triggers(people: Attacker, database: Database) -> None:
    people.execute(
        "CREATE TABLE app.parts (id integer, mood app.mood, moods app.mood[])"
        " PARTITION BY RANGE (id);"
        "CREATE TABLE app.part PARTITION OF app.parts FOR VALUES FROM (0) TO (100)"
    )
    follower = Follower(database, "parts", schema="app")
    follower.tick()
    people.execute("INSERT INTO app.parts VALUES (1, 'ok', '{ok}')")
    people.execute("UPDATE app.parts SET mood = 'sad'")
    assert follower.tick().copied == {}
    assert people.ran() == []
    assert follower.bag("parts") == {(1, "sad", ("ok",)): 1}


def test_a_value_that_does_not_fit_is_shown_without_casts(
    people: Attacker, database: Database
) -> None:
    follower = Follower(database, "people", schema="app")
    follower.tick()
    people.execute("INSERT INTO app.people VALUES (7, 'ok', 'sad', '[0:1]={ok,sad}')")
    source = follower.source("people")
    with open_cut(database, [source], previous=follower.snapshot) as cut:
        with pytest.raises(NeedsReinit) as error:
            list(change_batches(database, source, follower.snapshot, cut.cut.snapshot, 10))
        assert "[0:1]={ok,sad}" in str(error.value)
        live = cut.find_misfit(cut.tables[source.oid])
        assert live is not None and "[0:1]={ok,sad}" in str(live)
    assert people.ran() == []


def test_operators_and_functions_of_a_domain(attacker: Attacker, database: Database) -> None:
    """An operator on exactly these types would be preferred to PostgreSQL's, were it looked for."""
    attacker.execute(
        "CREATE DOMAIN app.amount AS numeric;"
        "CREATE FUNCTION app.compare(app.amount, app.amount) RETURNS boolean LANGUAGE sql AS"
        " $$SELECT app.note('operator') IS NULL$$;"
        "CREATE OPERATOR app.= (FUNCTION = app.compare, LEFTARG = app.amount,"
        " RIGHTARG = app.amount);"
        "CREATE OPERATOR app.> (FUNCTION = app.compare, LEFTARG = app.amount,"
        " RIGHTARG = app.amount);"
        "CREATE FUNCTION app.scale(app.amount) RETURNS integer LANGUAGE sql AS"
        " $$SELECT length(app.note('function'))$$;"
        "CREATE TABLE app.bills (id integer, amount app.amount)"
    )
    attacker.execute("SET search_path = app, pg_catalog")
    follower = Follower(database, "bills", schema="app")
    follower.tick()
    attacker.execute("INSERT INTO bills VALUES (1, 1.50), (2, NULL)")
    assert attacker.execute("SELECT count(*) FROM bills WHERE amount = '1.50'") == [(0,)]
    assert {how for _, _, how in attacker.ran()} == {"operator"}, "the trojan works"
    assert follower.tick().copied == {}
    assert attacker.ran() == []


def test_a_cast_to_a_domain_is_refused(attacker: Attacker, database: Database) -> None:
    """What a query of ours means is looked at before it is run; a column of a domain is fine."""
    attacker.execute(
        "CREATE DOMAIN app.word AS text CHECK (app.note('check') IS NOT NULL);"
        "CREATE TABLE app.words (id integer, word app.word)"
    )
    with database.session() as connection:
        for query in ("SELECT id::text::app.word FROM app.words", "SELECT 'a'::app.word AS word"):
            (found,) = user_objects(connection, query, ["public"])
            assert (found.kind, found.identity) == ("type", "app.word")
        query = "SELECT word FROM app.words WHERE word IN (SELECT word FROM app.words)"
        assert user_objects(connection, query, ["public"]) == ()
    assert attacker.ran() == []


def test_constraints_of_a_domain_run_as_whoever_writes(
    attacker: Attacker, database: Database
) -> None:
    attacker.execute(
        "CREATE DOMAIN app.word AS text CHECK (app.note('check') IS NOT NULL);"
        "CREATE TABLE app.words (id integer, word app.word, words app.word[])"
    )
    follower = Follower(database, "words", schema="app")
    follower.tick()
    attacker.execute("INSERT INTO app.words VALUES (1, 'a', '{b}')")
    attacker.execute("UPDATE app.words SET word = 'c'")
    follower.tick()
    ran = attacker.ran()
    assert {who for who, _, _ in ran} == {"attacker"}
    assert follower.bag("words") == {(1, "c"): 1}, "an array of domains is not captured"


LATER = {
    "enum": ("name text", "name", "app.mood USING 'sad'"),
    "domain": ("name text", "name", "app.some_mood USING 'sad'"),
    "number": ("cup integer", "cup", "app.mood USING 'sad'"),
    "column of a domain": ("name app.word", "name", "app.mood USING 'sad'"),
}


@pytest.mark.parametrize("parted", [False, True])
@pytest.mark.parametrize("later", LATER)
def test_a_column_that_gets_a_type_of_users_later(
    people: Attacker, database: Database, later: str, parted: bool
) -> None:
    """Its cast is no part of what the trigger does with the setup role's rights."""
    column, name, type_ = LATER[later]
    people.execute("CREATE DOMAIN app.word AS text")
    partition = " PARTITION BY RANGE (id)" if parted else ""
    people.execute(f"CREATE TABLE app.things (id integer, {column}){partition}")
    if parted:
        people.execute("CREATE TABLE app.part PARTITION OF app.things DEFAULT")
    follower = Follower(database, "things", schema="app")
    follower.tick()
    people.execute(f"ALTER TABLE app.things ALTER {name} TYPE {type_}")
    people.execute("INSERT INTO app.things VALUES (1, 'ok')")
    people.execute("UPDATE app.things SET id = 2")
    assert follower.tick().copied
    assert people.ran() == []


RENAMED = {
    "a document named like a function": ("to_jsonb jsonb", "to_jsonb", "'1'"),
    "a document named like another function": ("to_json jsonb", "to_json", "'1'"),
    "text named like the alias": ("image text", "image", "'x'"),
    "an enum named like a function": ("row_to_json app.mood", "row_to_json", "'ok'"),
    "a boolean named like a variable": ("found boolean", "found", "true"),
    "a number named like a variable": ("tg_relid integer", "tg_relid", "1"),
}


@pytest.mark.parametrize("column", RENAMED)
def test_a_column_without_its_name_is_no_call_of_a_function(
    people: Attacker, database: Database, column: str
) -> None:
    """PostgreSQL reads `row.name` as a call if the row has no such column, with casts of users."""
    definition, name, value = RENAMED[column]
    people.execute(f"CREATE TABLE app.things (id integer, {definition}, mood app.mood)")
    follower = Follower(database, "things", schema="app")
    follower.tick()
    people.execute(f"INSERT INTO app.things VALUES (1, {value}, 'ok')")
    assert follower.tick().copied == {}, "it is recorded under its name"
    people.execute(f"ALTER TABLE app.things RENAME {name} TO other")
    people.execute(f"INSERT INTO app.things VALUES (2, {value}, 'ok')")
    people.execute(f"ALTER TABLE app.things RENAME other TO {name}")
    assert people.ran() == []
    assert follower.tick().copied
    assert sum(follower.bag("things").values()) == 2
    assert people.ran() == []
