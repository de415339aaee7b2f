"""What bind and table_names promise beyond plans."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg import sql

from headrace.delta.differentiate import relations_of, stage_change, stage_full
from headrace.errors import UserError
from headrace.plan.describe import describe
from headrace.plan.operators import Operator, Scan
from headrace.plan.stages import cut_stages
from headrace.query import BoundColumn, BoundTable, bind, table_names
from headrace.query.clauses import MAXIMUM_DEPTH
from headrace.query.identifiers import fold
from headrace.render.native import render_native
from headrace.render.plans import render
from headrace.types import INTEGER
from tests.forms import examples
from tests.query.shop import CUSTOMERS, Shop


class OneTable:
    """A schema of one table."""

    def __init__(self, table: BoundTable) -> None:
        self.table = table

    def resolve(self, schema: str | None, name: str) -> BoundTable | None:
        here = name == self.table.name and schema in (None, self.table.schema)
        return self.table if here else None


# Any characters but NUL, which PostgreSQL has not, and surrogates, which no encoding has.
NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20
)


@given(schema=NAMES, table=NAMES, column=NAMES, alias=NAMES, output=NAMES)
@example(schema="S", table='t"', column="select", alias="from", output="?column?")
@example(schema="pg", table="a.b", column="Ä", alias="ä", output="ﬀ")
@example(schema="s", table="t\n", column=" ", alias="'", output="\\")
def test_quoted_names_are_taken_as_they_are(
    schema: str, table: str, column: str, alias: str, output: str
) -> None:
    bound = BoundTable("r1", schema, table, (BoundColumn(column, "c1", INTEGER, "integer"),))
    s, t, c, a, o = (quoted(name) for name in (schema, table, column, alias, output))
    direct = bind(f"SELECT {s}.{t}.{c} AS {o} FROM {s}.{t}", OneTable(bound))
    assert direct.names == (output,)
    aliased = bind(f"SELECT {a}.{c} FROM {t} AS {a} WHERE {c} > 0", OneTable(bound))
    assert aliased.names == (column,)
    assert table_names(f"SELECT {c} FROM {s}.{t} {a}") == ((schema, table),)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@pytest.mark.postgres
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(name=NAMES.filter(lambda name: not name.startswith("pg_")))
@example(name="x" * 70)
@example(name="é" * 40)
@example(name="日本語" * 10)
def test_names_as_postgres_keeps_them(name: str, dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        query = sql.SQL("SELECT id AS {} FROM (SELECT 1) q (id)").format(sql.Identifier(name))
        cursor = connection.execute(query)
        assert cursor.description is not None
        ours = bind(f"SELECT id AS {quoted(name)} FROM customers", Shop()).names[0]
        assert cursor.description[0].name == ours


@given(st.text("aZzİIßſÉΣK_9", min_size=1, max_size=12))
def test_unquoted_names_fold_ascii_letters_only(name: str) -> None:
    folded = fold(name)
    assert folded.isascii() == name.isascii()
    letters = zip(name, folded, strict=True)
    assert all(a == b or (a.isascii() and a.lower() == b) for a, b in letters)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT 1 FROM a, B, \"B\", s.a", ((None, "a"), (None, "b"), (None, "B"), ("s", "a"))),
        ("SELECT 1 FROM a x JOIN a y ON true", ((None, "a"),)),
        ("WITH q AS (SELECT 1 FROM a) SELECT 1 FROM q, b", ((None, "a"), (None, "b"))),
        ("WITH q AS (SELECT 1 FROM q) SELECT 1 FROM q", ((None, "q"),)),
        ("WITH q AS (SELECT 1 FROM r), r AS (SELECT 1 FROM q) SELECT 1 FROM r", ((None, "r"),)),
        ("WITH RECURSIVE q AS (SELECT 1 FROM a UNION SELECT 1 FROM q) SELECT 1 FROM q",
         ((None, "a"),)),
        ("WITH q AS (SELECT 1 FROM a) SELECT 1 FROM s.q", (("s", "q"),)),
        ("WITH q AS (SELECT 1 FROM a), r AS (SELECT 1 FROM q) SELECT 1 FROM b", ((None, "b"),)),
        ("WITH q AS (SELECT 1 FROM a), r AS (SELECT 1 FROM q) SELECT 1 FROM r", ((None, "a"),)),
        ("SELECT 1 FROM (WITH q AS (SELECT 1 FROM a) SELECT 1 FROM q) x, q",
         ((None, "a"), (None, "q"))),
        ("WITH q AS (WITH a AS (SELECT 1 FROM b) SELECT 1 FROM a) SELECT 1 FROM q, a",
         ((None, "b"), (None, "a"))),
        ("SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE x IN (SELECT y FROM c))",
         ((None, "a"), (None, "b"), (None, "c"))),
        ("SELECT (SELECT 1 FROM a) FROM (SELECT 1 FROM b) q UNION SELECT 1 FROM c",
         ((None, "a"), (None, "b"), (None, "c"))),
        ("SELECT 1 FROM f(1), unnest(x) u, a", ((None, "a"),)),
    ],
)  # fmt: skip
def test_table_names(query: str, names: tuple[tuple[str | None, str], ...]) -> None:
    assert set(table_names(query)) == set(names)
    assert len(table_names(query)) == len(names)


@pytest.mark.parametrize("word", ["OR", "AND"])
def test_long_chains_stay_shallow(word: str) -> None:
    terms = f" {word} ".join(f"(id = {i} OR qty > {i})" for i in range(2000))
    bound = bind(f"SELECT id FROM orders WHERE {terms}", Shop())
    assert "(id_1_c1 = 1999)" in describe(bound.plan)
    assert "1999" in render(bound.plan)


def test_long_lists() -> None:
    items = ", ".join(str(i) for i in range(5000))
    bound = bind(f"SELECT id FROM orders WHERE id IN ({items})", Shop())
    assert "4999" in render(bound.plan)


@pytest.mark.parametrize(
    "deep",
    [
        " + ".join(["id"] * 3000),
        "-" * 0 + "(" * 3000 + "id" + ")" * 3000,
        "NOT " * 3000 + "true",
        "- " * 3000 + "id",
        "CASE WHEN true THEN " * 500 + "1" + " END" * 500,
        "abs(" * 500 + "id" + ")" * 500,
        " || ".join(["note"] * 3000),
    ],
    ids=["sum", "parentheses", "not", "minus", "case", "calls", "concatenation"],
)
def test_deep_nesting_is_refused_not_crashed_on(deep: str) -> None:
    with pytest.raises(UserError, match="nested too deeply") as raised:
        bind(f"SELECT {deep} AS x FROM orders", Shop())
    assert raised.value.code == "unsupported-query"


def test_deepest_expression_still_renders() -> None:
    for operand, sign in (("id", "+"), ("weight", "/"), ("tax", "*"), ("note", "||")):
        text = f" {sign} ".join([operand] * (MAXIMUM_DEPTH - 2))
        bound = bind(f"SELECT {text} AS x FROM orders", Shop())
        assert len(render(bound.plan)) < 300_000


def chain(length: int) -> str:
    """Queries of WITH, each over a join with the one before, and grouped."""
    grouped = (
        "q{} AS (SELECT p.orders, sum(p.n) AS n FROM q{} p JOIN orders o ON o.id = p.orders"
        " GROUP BY p.orders)"
    )
    parts = ["q0 AS (SELECT orders, n FROM lines)"]
    parts += [grouped.format(number, number - 1) for number in range(1, length)]
    return f"WITH {', '.join(parts)} SELECT orders, n FROM q{length - 1}"


def test_deep_queries_render() -> None:
    """Also where little is left of Python's stack, and with expressions as deep as they may be."""
    deepest = " + ".join(["q.n"] * (MAXIMUM_DEPTH - 2))
    bound = bind(f"SELECT {deepest} AS x FROM ({chain(24)}) AS q", Shop())
    for stage in cut_stages(bound.plan, "x"):
        changed = relations_of(stage.region)
        assert render(stage_full(stage, stored=True))
        assert render(stage_change(stage, changed))
    assert "WITH `w1` AS (" in render_native(bound.plan, bound.names)


@pytest.mark.parametrize(
    "deep",
    [
        chain(40),
        "SELECT 1 AS x FROM " + "(SELECT * FROM " * 40 + "lines" + ") AS q" * 40,
        "SELECT 1 AS x FROM " + "(SELECT * FROM " * 400 + "lines" + ") AS q" * 400,
        "SELECT 1 AS x FROM lines" + " CROSS JOIN lines" * 200,
        "SELECT 1 AS x FROM " + "(" * 200 + "lines" + " CROSS JOIN orders)" * 200,
    ],
    ids=["with", "derived", "too deep to parse", "joins", "parentheses"],
)
def test_queries_that_are_too_deep_are_refused(deep: str) -> None:
    with pytest.raises(UserError) as raised:
        bind(deep, Shop())
    assert raised.value.code in ("unsupported-query", "invalid-query"), raised.value


def test_queries_do_not_explode() -> None:
    doubled = ["q0 AS (SELECT n FROM lines)"]
    doubled += [f"q{i} AS (SELECT a.n FROM q{i - 1} a, q{i - 1} b)" for i in range(1, 30)]
    with pytest.raises(UserError, match="more than 256 tables"):
        bind(f"WITH {', '.join(doubled)} SELECT n FROM q29", Shop())
    inner = "(SELECT n FROM lines) AS q"
    for _ in range(20):
        inner = f"(SELECT n + n AS n FROM {inner}) AS q"
    bound = bind(f"SELECT n FROM {inner} WHERE n > 1", Shop())
    assert len(render(bound.plan)) < 100_000
    grouped = inner.replace("(SELECT n FROM lines)", "(SELECT sum(n) AS n FROM lines)")
    stages = cut_stages(bind(f"SELECT n FROM {grouped} WHERE n > 1", Shop()).plan, "x")
    assert sum(len(render(stage_full(stage, stored=False))) for stage in stages) < 300_000


def test_long_unions() -> None:
    branches = " UNION ALL ".join(f"SELECT n + {i} AS n FROM lines" for i in range(250))
    bound = bind(f"SELECT n, count(*) FROM ({branches}) AS q GROUP BY n", Shop())
    assert render_native(bound.plan, bound.names).count("UNION ALL") == 249
    (stage,) = cut_stages(bound.plan, "x")
    assert render(stage_change(stage, frozenset({"r_lines"}))).count("UNION ALL") == 250


def test_expressions_do_not_explode() -> None:
    """Nesting that repeats its operand stays within reason, or is refused."""
    inner = "vip"
    for _ in range(14):
        inner = f"({inner} BETWEEN false AND true)"
    with pytest.raises(UserError, match="too deeply"):
        bind(f"SELECT {inner} AS x FROM customers", Shop())


def test_a_column_added_later_changes_nothing() -> None:
    query = "SELECT region, count(*) FROM customers GROUP BY region"
    before = CUSTOMERS.bound
    more = BoundColumn("aa", "c9", INTEGER, "integer")
    after = BoundTable(
        before.relation, before.schema, before.name, (more, *before.columns), before.keys
    )
    assert bind(query, OneTable(before)).plan == bind(query, OneTable(after)).plan


def test_scans_read_only_what_is_used() -> None:
    bound = bind("SELECT c.region FROM orders o JOIN customers c ON c.id = o.customer", Shop())
    assert [len(scan.fields) for scan in scans(bound.plan)] == [1, 2]
    assert [len(scan.fields) for scan in scans(bound.written)] == [10, 5]


def scans(plan: Operator) -> list[Scan]:
    if isinstance(plan, Scan):
        return [plan]
    return [scan for child in plan.children for scan in scans(child)]


def test_order_by_is_a_notice() -> None:
    assert bind("SELECT id FROM orders ORDER BY now(), 1 DESC", Shop()).notices
    assert not bind("SELECT id FROM orders;", Shop()).notices
