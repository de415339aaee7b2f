"""Tables that read each other: what is refused when they are made, and that nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.lifecycle.planned_table import FIRST, PlannedTable, TableRequest
from headrace.lifecycle.planning import plan
from headrace.lifecycle.table_spec import TableSpec
from headrace.publish.served import create_served
from headrace.relations.definition import relation_of
from headrace.store import Pin

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


def planned(project: headrace.Headrace, tables: dict[str, str]) -> dict[str, PlannedTable]:
    """What creating the tables together would make."""
    engine = project._engine
    definitions = [TableSpec(FIRST, TableRequest(name, query)) for name, query in tables.items()]
    planned_tables = plan(engine, engine.catalog.state(), definitions).planned_tables
    return {making.table.name: making for making in planned_tables}


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


def types(making: PlannedTable) -> list[tuple[str, str]]:
    return [(column.name, column.served) for column in making.table.columns]


def test_a_cycle_is_refused_while_it_is_not_allowed(project: headrace.Headrace) -> None:
    project.set("allow_circular", False)
    error = refused(project, {"even": EVEN, "odd": ODD})
    assert (error.code, error.hint) == (
        "circular",
        "To allow cycles, turn the setting allow_circular on.",
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


@pytest.mark.parametrize(
    "step",
    [
        "SELECT r.src, h.dst FROM reach r, LATERAL (SELECT max(dst) AS dst FROM edges e"
        " WHERE e.src > r.dst) h",
        "SELECT r.src, h.dst FROM reach r, LATERAL (SELECT dst FROM edges e WHERE e.src = r.dst"
        " ORDER BY dst LIMIT 1) h",
        "SELECT r.src, h.n FROM reach r, LATERAL (SELECT count(*)::int AS n FROM edges e"
        " WHERE e.src = r.dst GROUP BY e.dst) h",
        "SELECT r.src, (SELECT max(dst) FROM edges e WHERE e.src > r.dst) FROM reach r",
        "SELECT r.src, (SELECT max(1 / dst) FROM edges e WHERE e.src = r.dst) FROM reach r",
        "SELECT src, dst FROM reach r WHERE dst < ANY (SELECT dst FROM edges) OR src = 0",
    ],
)
def test_inner_queries_that_the_rounds_cannot_follow(project: headrace.Headrace, step: str) -> None:
    error = refused(project, {"reach": f"{HOPS} UNION {step}"})
    assert error.code == "unsupported-query"
    assert "reads its own cycle under a LATERAL query or a subquery that cannot" in error.message
    assert "equalities of its WHERE" in (error.hint or "")


@pytest.mark.parametrize(
    "step",
    [
        "SELECT r.src, h.dst FROM reach r, LATERAL (SELECT max(e.dst) AS dst FROM edges e"
        " WHERE e.src = r.dst) h",
        "SELECT r.src, h.n FROM reach r LEFT JOIN LATERAL (SELECT count(*)::int AS n FROM edges e"
        " WHERE e.src = r.dst) h ON true",
        "SELECT r.src, h.n FROM reach r JOIN LATERAL (SELECT count(*)::int + r.dst AS n FROM edges"
        " e WHERE e.src = r.dst HAVING count(*) > 1) h ON h.n < 9",
        "SELECT r.src, (SELECT max(dst) FROM edges e WHERE e.src = r.dst) FROM reach r",
        "SELECT src, dst FROM reach r WHERE dst IN (VALUES ((SELECT max(dst) FROM edges)))",
    ],
)
def test_inner_queries_that_the_rounds_follow(project: headrace.Headrace, step: str) -> None:
    reach = planned(project, {"reach": f"{HOPS} UNION {step}"})["reach"]
    assert reach.cycle == {reach.table.relation}


def test_a_recursion_that_joins_itself_inside_of_a_cycle(project: headrace.Headrace) -> None:
    query = (
        f"{HOPS} UNION (WITH RECURSIVE r (src, dst) AS (SELECT src, dst FROM reach UNION"
        " (WITH q AS (TABLE r) SELECT a.src, b.dst FROM q a JOIN q b ON b.src = a.dst)) TABLE r)"
    )
    error = refused(project, {"reach": query})
    assert error.message == "stream table public.reach reads its own cycle under a join with itself"


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


def test_cycles_that_are_there_stay_when_the_settings_are_turned_off(
    project: headrace.Headrace,
) -> None:
    """Rebuilt without a change, they need no permission."""
    blocked = f"{ODD} WHERE NOT EXISTS (SELECT FROM words w WHERE w.n = e.dst)"
    made = planned(project, {"even": EVEN, "odd": blocked})
    engine = project._engine
    with engine.database.session() as connection:
        for making in made.values():
            create_served(connection, making.table)
    project.set("allow_circular", False)
    project.set("stratified_cycle_validation", False)
    state = engine.catalog.state()
    for making in made.values():
        stages = [relation_of(stage, Pin(0, 0)) for stage in making.definition.stages]
        state = state.with_origins((*making.sources, making.table)).with_relations(stages)
    definitions = [TableSpec("asked for", old=making.table) for making in made.values()]
    rebuilt = plan(engine, state, definitions).planned_tables
    assert [making.table.name for making in rebuilt] == ["even", "odd"]
    assert all(making.cycle == {one.table.relation for one in rebuilt} for making in rebuilt)
    # A source that is captured again rebuilds them.
    (edges,) = made["even"].sources
    work = plan(engine, state, (), frozenset({edges.relation}))
    assert (len(work.planned_tables), work.failing) == (2, {})
    # Asking for another query is asking for the cycle.
    project.set("allow_circular", True)
    asked = TableSpec(
        "altered", TableRequest("even", f"{EVEN} WHERE e.src > 0"), made["even"].table
    )
    state = replace(state, settings=engine.catalog.state().settings)
    with pytest.raises(headrace.UserError) as caught:
        plan(engine, state, [asked])
    assert caught.value.code == "unstratifiable"


def test_a_member_cannot_be_full(project: headrace.Headrace) -> None:
    full = {"query": ODD, "refresh_mode": "FULL"}
    error = refused(project, {"even": EVEN, "odd": full})
    assert error.code == "invalid-option"
    assert "public.odd is in a cycle and cannot have refresh_mode FULL" in error.message


def test_a_mistake_in_one_is_reported_as_postgresql_reports_it(project: headrace.Headrace) -> None:
    error = refused(project, {"even": EVEN.replace("e.dst", "e.nothing"), "odd": ODD})
    assert (error.code, error.message) == ("unknown-column", "column e.nothing does not exist")


def test_what_stands_first_on_the_search_path_is_read(dsn: str, tmp_path: Path) -> None:
    """A name stands for a table, or a view, before a stream table that comes later."""
    with psycopg.connect(dsn, autocommit=True) as sql:
        sql.execute("CREATE SCHEMA app")
        sql.execute("CREATE TABLE app.orders (id int, n int)")
        sql.execute("CREATE VIEW app.sums AS SELECT id, n FROM app.orders")
    dsn = psycopg.conninfo.make_conninfo(dsn, options="-c search_path=app,public")
    with headrace.connect(dsn=dsn, home=tmp_path) as opened:
        tables = {
            "public.orders": "SELECT id, n FROM orders",
            "public.sums": "SELECT id FROM sums",
            "ids": "SELECT id FROM public.orders",
        }
        made = planned(opened, tables)
        assert {making.cycle for making in made.values()} == {frozenset()}
        orders, sums, ids = (made[name].table for name in ("orders", "sums", "ids"))
        (source,) = made["orders"].sources
        assert orders.inputs == sums.inputs == (source.relation,)
        assert ids.inputs == (orders.relation,)
        with pytest.raises(headrace.UserError) as caught:
            planned(opened, {"public.orders": "SELECT id, n FROM public.orders"})
        assert caught.value.code == "circular"
