"""Tables that read each other: what is refused when they are made, and that nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.lifecycle.check import FIRST, Making, Request
from headrace.lifecycle.planning import plan
from headrace.lifecycle.wish import Wish

pytestmark = pytest.mark.postgres

HOPS = "SELECT src, dst FROM edges"
EVEN = "SELECT o.src, e.dst FROM odd o JOIN edges e ON e.src = o.dst"
ODD = f"{HOPS} UNION SELECT v.src, e.dst FROM even v JOIN edges e ON e.src = v.dst"


@pytest.fixture
def project(dsn: str, tmp_path: Path) -> Iterator[headrace.Headrace]:
    """A project whose Spark never starts: what is refused is refused before it is needed."""
    with (
        psycopg.connect(dsn, autocommit=True) as sql,
        headrace.connect(dsn=dsn, home=tmp_path) as opened,
    ):
        sql.execute("CREATE TABLE edges (src int, dst int)")
        sql.execute(
            'CREATE TABLE words (word text COLLATE "C", other text COLLATE "C.utf8", n bigint)'
        )
        opened.set("allow_circular", True)
        yield opened


def planned(project: headrace.Headrace, tables: dict[str, str]) -> dict[str, Making]:
    """What creating the tables together would make."""
    engine = project._engine
    wishes = [Wish(FIRST, Request(name, query)) for name, query in tables.items()]
    makings = plan(engine, engine.catalog.state(), wishes).makings
    return {making.table.name: making for making in makings}


def refused(
    project: headrace.Headrace, tables: dict[str, str | dict[str, str]]
) -> headrace.UserError:
    """The error of creating the tables together, which leaves nothing."""
    with pytest.raises(headrace.UserError) as caught:
        project.create_stream_tables(tables)
    assert project.status() == ()
    assert project._engine.catalog.state().relations == ()
    with psycopg.connect(project.dsn) as sql:
        left = "SELECT count(*) FROM pg_class WHERE relname = ANY(%s)"
        assert sql.execute(left, [list(tables)]).fetchone() == (0,)
    return caught.value


def types(making: Making) -> list[tuple[str, str]]:
    return [(column.name, column.served) for column in making.table.columns]


def test_a_cycle_is_refused_while_it_is_not_allowed(project: headrace.Headrace) -> None:
    project.set("allow_circular", False)
    error = refused(project, {"even": EVEN, "odd": ODD})
    assert (error.code, error.hint) == (
        "circular",
        "If that is meant, turn the setting allow_circular on.",
    )
    assert "public.even → public.odd → public.even" in (error.detail or "")
    error = refused(project, {"reach": f"{HOPS} UNION TABLE reach"})
    assert "public.reach → public.reach" in (error.detail or "")


def test_members_know_each_other_by_their_new_relations(project: headrace.Headrace) -> None:
    made = planned(project, {"even": EVEN, "odd": ODD, "ends": "SELECT dst FROM even"})
    even, odd, ends = made["even"], made["odd"], made["ends"]
    assert list(made) == ["even", "odd", "ends"]
    assert types(even) == types(odd) == [("src", "integer"), ("dst", "integer")]
    assert even.cycle == odd.cycle == {even.table.relation, odd.table.relation}
    assert ends.cycle == frozenset()
    assert even.sources == odd.sources, "the table that both read is one source"
    assert odd.table.relation in even.table.inputs
    assert even.table.relation in odd.table.inputs
    assert [making.definition.final.cycle for making in made.values()] == [True, True, False]
    assert (even.table.key, odd.table.key) == ((), ())


def test_a_table_alone_may_read_itself(project: headrace.Headrace) -> None:
    query = f"{HOPS} UNION SELECT r.src, e.dst FROM reach r JOIN edges e ON e.src = r.dst"
    reach = planned(project, {"reach": query})["reach"]
    assert reach.table.relation in reach.table.inputs
    assert reach.cycle == {reach.table.relation}
    assert reach.definition.final.cycle


def test_columns_are_those_of_the_part_that_begins(project: headrace.Headrace) -> None:
    # Names come from the first branch, also if another one begins.
    tables = {"a": "SELECT n AS m FROM b UNION SELECT src FROM edges", "b": "SELECT m AS n FROM a"}
    made = planned(project, tables)
    assert (types(made["a"]), types(made["b"])) == ([("m", "integer")], [("n", "integer")])
    # A beginning may read no table at all.
    tables = {"a": "SELECT 1 AS n UNION SELECT dst FROM a JOIN edges ON n = src"}
    assert types(planned(project, tables)["a"]) == [("n", "integer")]
    # Three in a row, of which only the last begins, in a query of WITH.
    tables = {
        "a": "SELECT x FROM b",
        "b": "SELECT x FROM c",
        "c": "WITH q AS (SELECT n AS x FROM words UNION SELECT x FROM a) SELECT x FROM q",
    }
    assert [types(one) for one in planned(project, tables).values()] == [[("x", "bigint")]] * 3
    # A table that has the name of its recursive query of WITH.
    tables = {
        "r": "WITH RECURSIVE r AS (SELECT src FROM edges UNION SELECT dst FROM r"
        " JOIN edges USING (src)) SELECT src FROM r UNION SELECT src FROM s",
        "s": "SELECT src FROM r",
    }
    assert [types(one) for one in planned(project, tables).values()] == [[("src", "integer")]] * 2


def test_what_a_collation_promises_is_lost_on_the_way_round(project: headrace.Headrace) -> None:
    def folds(tables: dict[str, str]) -> list[bool]:
        return [m.table.columns[0].type.folds for m in planned(project, tables).values()]

    tables = {"a": "SELECT word FROM words UNION SELECT word FROM b", "b": "SELECT word FROM a"}
    assert folds(tables) == [True, True]
    tables["b"] += " UNION ALL SELECT other FROM words"
    assert folds(tables) == [False, False]


def test_a_type_that_changes_when_the_cycle_closes(project: headrace.Headrace) -> None:
    tables = {
        "a": "SELECT src AS n FROM edges UNION SELECT n FROM b",
        "b": "SELECT n FROM a UNION SELECT n FROM words",
    }
    error = refused(project, tables)
    assert error.code == "cycle-columns"
    assert "public.a" in error.message
    assert error.detail == "Column n is integer in the part that begins, bigint overall."
    assert error.hint == "Cast it to bigint in the part that begins."
    tables["a"] = tables["a"].replace("src AS n", "src::bigint AS n")
    assert types(planned(project, tables)["a"]) == [("n", "bigint")]
    halves = "SELECT src * 1.5 AS x FROM edges UNION SELECT x * 0.5 FROM a WHERE x > 1"
    error = refused(project, {"a": halves})
    assert error.detail == (
        "Column x is numeric with 1 digits in the part that begins, numeric with 2 digits overall."
    )
    assert error.hint == "Cast it to the same numeric(p, s) in all parts."


def test_no_part_begins(project: headrace.Headrace) -> None:
    error = refused(project, {"a": "SELECT n FROM b", "b": "SELECT n FROM a"})
    assert error.code == "cycle-columns"
    assert error.message.startswith("no part of public.a, public.b can be computed without")
    assert "UNION" in (error.hint or "")
    error = refused(project, {"a": "SELECT src FROM edges WHERE EXISTS (TABLE a)"})
    assert error.message.startswith("no part of public.a can be computed without itself")


def test_a_cycle_that_is_not_monotone(project: headrace.Headrace) -> None:
    for odd, operator in (
        (f"{HOPS} e WHERE NOT EXISTS (SELECT FROM even v WHERE v.dst = e.dst)", "NOT EXISTS"),
        (f"{HOPS} EXCEPT TABLE even", "EXCEPT"),
        (f"{HOPS} UNION SELECT src, max(dst) FROM even GROUP BY src", "aggregate"),
        (f"{HOPS} UNION (SELECT src, dst FROM even ORDER BY src, dst LIMIT 3)", "LIMIT"),
        (f"{HOPS} UNION SELECT src, v.dst FROM edges LEFT JOIN even v USING (src)", "outer join"),
    ):
        error = refused(project, {"even": f"{HOPS} UNION {EVEN}", "odd": odd})
        assert error.code == "unstratifiable"
        assert f"public.odd reads public.even under {operator}" in error.message
        assert "public.odd → public.even → public.odd" in (error.detail or "")
    error = refused(project, {"a": f"{HOPS} UNION (TABLE edges EXCEPT TABLE a)"})
    assert error.message == "stream table public.a reads itself under EXCEPT"


def test_what_the_rounds_cannot_follow(project: headrace.Headrace) -> None:
    highest = "SELECT max(e.dst) AS dst FROM edges e WHERE e.src = r.dst"
    query = f"{HOPS} UNION SELECT r.src, h.dst FROM reach r, LATERAL ({highest}) h"
    error = refused(project, {"reach": query})
    assert error.code == "unsupported-query"
    assert "public.reach reads its own cycle under an outer join" in error.message


def test_what_stands_outside_may_be_negated(project: headrace.Headrace) -> None:
    blocked = f"{ODD} WHERE NOT EXISTS (SELECT FROM words w WHERE w.n = e.dst)"
    many = f"{EVEN} WHERE e.src IN (SELECT src FROM edges GROUP BY src HAVING count(*) > 1)"
    assert list(planned(project, {"even": many, "odd": blocked})) == ["even", "odd"]
    project.set("stratified_cycle_validation", False)
    error = refused(project, {"even": EVEN, "odd": blocked})
    assert error.code == "unstratifiable"
    assert "public.odd is in a cycle and uses NOT EXISTS" in error.message
    assert "stratified_cycle_validation" in (error.detail or "")
    assert list(planned(project, {"even": EVEN, "odd": ODD})) == ["even", "odd"]


def test_a_member_cannot_be_full(project: headrace.Headrace) -> None:
    full = {"query": ODD, "refresh_mode": "FULL"}
    error = refused(project, {"even": EVEN, "odd": full})
    assert error.code == "invalid-option"
    assert "public.odd is in a cycle and cannot have refresh_mode FULL" in error.message


def test_a_mistake_in_one_is_told_as_postgresql_tells_it(project: headrace.Headrace) -> None:
    error = refused(project, {"even": EVEN.replace("e.dst", "e.nothing"), "odd": ODD})
    assert (error.code, error.message) == ("unknown-column", "column e.nothing does not exist")
