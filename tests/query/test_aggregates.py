"""Every aggregate on random rows: as PostgreSQL computes it, whole and after a change.

The plan's definition, the state that a stage keeps, and what a change makes of that state must all
be PostgreSQL's answer.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.string import TextLoader

from headrace.algebra.scalar import Value
from headrace.embedded import EmbeddedServer
from headrace.errors import UserError
from headrace.functions import AGGREGATES
from headrace.functions.intervals import INTERVAL
from headrace.plan.evaluate import Bag, evaluate
from headrace.plan.operators import Scan
from headrace.plan.stages import cut_stages
from headrace.query import BoundColumn, BoundQuery, BoundTable, bind
from headrace.refresh.plan import strategy
from headrace.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, TEXT, Type, numeric, result_numeric
from tests.delta.test_rules_against_reference import World, filled, refreshed, shown, whole
from tests.query.test_against_postgres import ours as our_types
from tests.query.test_against_postgres import postgres_types

COLUMNS: tuple[tuple[str, Type], ...] = (
    ("g", INTEGER),
    ("h", Type("smallint")),
    ("i", INTEGER),
    ("b", BIGINT),
    ("n", numeric(10, 2)),
    ("w", result_numeric(38, 18)),
    ("f", DOUBLE),
    ("r", Type("real")),
    ("t", TEXT),
    ("o", BOOLEAN),
    ("d", Type("date")),
    ("y", INTERVAL),
    ("z", Type("bytea")),
    ("c", Type("time")),
)
VALUES: dict[str, tuple[Value, ...]] = {
    "g": (1, 2, 3, None),
    "h": (0, 1, -2, 32767, None),
    "i": (0, 1, 3, -7, 2**31 - 1, None),
    "b": (0, 5, -6, 10**9, 2**53 + 1, None),
    "n": (Decimal("0.10"), Decimal("2.25"), Decimal("-3.00"), Decimal("99999999.99"), None),
    "w": (Decimal("0.5"), Decimal("1E-9"), Decimal("-12345.678"), Decimal(7), None),
    "f": (0.0, -0.0, 0.25, 1.5, -2.0, None),
    "r": (0.5, 1.25, -3.0, None),
    "t": ("a", "B", "", "ab", "é", None),
    "o": (True, False, None),
    "d": (date(2024, 2, 29), date(2023, 1, 1), date(1, 1, 1), None),
    "y": ("P1M", "P1Y2M-3DT4H5M6.789S", "PT-0.000001S", "P17D", "P-1M-1DT-1S", None),
    "z": (b"", b"\x00", b"\x7f\xff", b"\xff", None),
    "c": ("00:00:00", "12:30:00", "12:30:00.5", None),
}
Row = tuple[Value, ...]


class Table:
    """The one table of these tests."""

    bound = BoundTable(
        "t",
        "public",
        "t",
        tuple(BoundColumn(name, f"c{i}", c, c.sql) for i, (name, c) in enumerate(COLUMNS, 1)),
        (),
    )

    def resolve(self, schema: str | None, name: str) -> BoundTable | None:
        return self.bound if name == "t" else None


NUMBERS = ("h", "i", "n", "w", "f", "r")
DEVIATIONS = ("var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev")
REGRESSIONS = ("avgx", "avgy", "count", "intercept", "r2", "slope", "sxx", "sxy", "syy")
PAIRS = ("covar_pop", "covar_samp", "corr", *(f"regr_{name}" for name in REGRESSIONS))
CALLS: tuple[tuple[str, ...], ...] = (
    tuple(f"{f}({c})" for f in ("count", "sum", "avg", "min", "max") for c in (*NUMBERS, "b")),
    tuple(f"{f}({c})" for f in DEVIATIONS for c in NUMBERS),
    tuple(f"{f}(b % 1000)" for f in DEVIATIONS),
    tuple(f"{f}(f, r)" for f in PAIRS) + tuple(f"{f}(i, n)" for f in ("corr", "regr_slope")),
    tuple(f"{f}({c})" for f in ("bit_and", "bit_or", "bit_xor") for c in ("h", "i", "b")),
    tuple(f"{f}(o)" for f in ("bool_and", "bool_or", "every")),
    ("sum(y)", "avg(y)", "sum(y) FILTER (WHERE o)", "min(z)", "max(z)", "min(c)", "max(c)"),
    ("min(t)", "max(t)", "min(d)", "max(d)", "count(*)", "count(t)", "min(b) + max(b) - sum(b)"),
    (
        "string_agg(t, ',' ORDER BY t)",
        "string_agg(t, ', ' ORDER BY i DESC, b, t)",
        "string_agg(t, t ORDER BY d NULLS FIRST, t DESC)",
        "string_agg(t, NULL ORDER BY t)",
        "string_agg(t, ';' ORDER BY t) FILTER (WHERE i > 0)",
    ),
    (
        "array_agg(i ORDER BY i)",
        "array_agg(t ORDER BY i DESC NULLS LAST, b, t)",
        "array_agg(n ORDER BY n DESC) FILTER (WHERE o)",
        "array_agg(f ORDER BY f NULLS FIRST)",
        "array_agg(d ORDER BY d)",
        "array_agg(z ORDER BY z)",
        "array_agg(o ORDER BY i, o)",
        "array_agg(c ORDER BY c)",
        "array_agg(DISTINCT i ORDER BY i DESC)",
        "array_agg(DISTINCT t ORDER BY t) FILTER (WHERE i > 0)",
        "(array_agg(t ORDER BY t))[1]",
        "cardinality(array_agg(w ORDER BY w))",
        "array_to_string(array_agg(h ORDER BY h), '+')",
    ),
    tuple(
        f"percentile_{kind}({p}) WITHIN GROUP (ORDER BY {c} {way})"
        for kind in ("cont", "disc")
        for p in (0, 0.25, 0.5, 1)
        for c, way in (("i", ""), ("n", "DESC"), ("f", "DESC NULLS LAST"))
    ),
    tuple(
        f"{f} WITHIN GROUP (ORDER BY {c})"
        for f in ("mode()", "percentile_disc(0.3)")
        for c in ("i", "t", "t DESC", "d", "n", "w DESC", "o")
    ),
    ("percentile_cont(NULL::float8) WITHIN GROUP (ORDER BY f)",
     "percentile_disc(0.5) WITHIN GROUP (ORDER BY d) FILTER (WHERE o)", "count(*) FILTER (WHERE o)",
     "sum(i) FILTER (WHERE h = 1)",
     "stddev(n) FILTER (WHERE i IS NULL)", "bool_and(i > 0) FILTER (WHERE o)"),
    ("count(DISTINCT i)", "sum(DISTINCT i)", "avg(DISTINCT i)", "min(DISTINCT i)"),
    ("count(DISTINCT t)", "string_agg(DISTINCT t, '-' ORDER BY t DESC)",
     "string_agg(DISTINCT t, ',')"),
    ("count(DISTINCT i)", "count(DISTINCT f)", "sum(DISTINCT n)", "avg(DISTINCT w)", "count(*)",
     "stddev(DISTINCT h)", "bit_xor(DISTINCT i)", "corr(DISTINCT f, r)", "max(DISTINCT t)",
     "string_agg(DISTINCT t, ',' ORDER BY t)", "count(DISTINCT i) FILTER (WHERE o)"),
    ("count(DISTINCT t) FILTER (WHERE o)",),
)  # fmt: skip


def random_rows(source: random.Random, count: int) -> Bag:
    rows: Bag = Counter()
    for _ in range(count):
        row = tuple(source.choice(VALUES[name]) for name, _ in COLUMNS)
        rows[row] += source.choice((1, 1, 2))
    return rows


def reading(rows: Bag) -> Callable[[Scan], Bag]:
    def read(scan: Scan) -> Bag:
        found: Bag = Counter()
        for row, weight in rows.items():
            found[tuple(row[int(name[1:]) - 1] for name, _ in scan.fields)] += weight
        return found

    return read


@pytest.fixture(scope="module")
def database(server: EmbeddedServer) -> Iterator[psycopg.Connection[Any]]:
    """A connection with the table."""
    columns = ", ".join(
        f"{name} {type_.sql}" + ' COLLATE "C"' * type_.is_text for name, type_ in COLUMNS
    )
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        for name in ("interval", "time"):
            connection.adapters.register_loader(name, TextLoader)
        connection.execute("SET intervalstyle = iso_8601")
        connection.execute(f"CREATE TEMP TABLE t ({columns})")
        yield connection


def answer(database: psycopg.Connection[Any], query: str, rows: Bag) -> list[Row]:
    """PostgreSQL's answer to a query over some rows."""
    database.execute("TRUNCATE t")
    with database.cursor() as cursor:
        places = sql.SQL(", ").join(sql.Placeholder() * len(COLUMNS))
        insert = sql.SQL("INSERT INTO t VALUES ({})").format(places)
        cursor.executemany(insert, list(rows.elements()))
    return list(database.execute(query).fetchall())


def maintained(bound: BoundQuery, before: Bag, after: Bag) -> tuple[Bag, Bag]:
    """What is shown after the first refresh, and after a change was taken in."""
    stages = cut_stages(bound.plan, "x")
    logs = filled(stages, World({"t": before}, {"t": before}))
    first = shown(stages[-1], whole(logs["x"]))
    logs, _ = refreshed(stages, World({"t": before}, {"t": after}), logs)
    return first, shown(stages[-1], whole(logs["x"]))


def differences(found: Bag, right: list[Row], types: list[Type]) -> list[str]:
    """Where the rows are not the same, column by column; the first columns tell rows apart."""
    ours = sorted(found.elements(), key=_order)
    theirs = sorted(right, key=_order)
    if len(ours) != len(theirs):
        return [f"{len(ours)} rows, not {len(theirs)}"]
    return [
        f"{left[:1]} column {place}: {a!r}, not {b!r}"
        for left, other in zip(ours, theirs, strict=True)
        for place, (a, b, type_) in enumerate(zip(left, other, types, strict=True))
        if not same(a, b, type_)
    ]


def _order(row: Row) -> tuple[str, ...]:
    return tuple(str(value) for value in row[:4])


def same(ours: Any, theirs: Any, type_: Type) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    element = type_.element
    if element is not None:
        pairs = zip(ours, theirs, strict=False)
        return len(ours) == len(theirs) and all(same(a, b, element) for a, b in pairs)
    if type_.is_float:
        both_nan = math.isnan(ours) and math.isnan(theirs)
        return both_nan or math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-9)
    if type_.rounded:
        scale = min(type_.scale or 0, -theirs.as_tuple().exponent)
        return bool(abs(ours - theirs) <= Decimal(1).scaleb(-scale))
    return bool(ours == theirs)


def test_every_aggregate_is_tried() -> None:
    text = " ".join(call for calls in CALLS for call in calls)
    missing = [f.name for f in AGGREGATES if f.syntax and f"{f.name}(" not in text]
    assert not missing


@pytest.mark.postgres
@pytest.mark.parametrize("grouped", [True, False], ids=["grouped", "global"])
@pytest.mark.parametrize("calls", CALLS, ids=lambda calls: calls[0])
def test_random_rows(
    calls: tuple[str, ...], grouped: bool, database: psycopg.Connection[Any]
) -> None:
    shown_ = ", ".join(f"{call} AS c{i}" for i, call in enumerate(calls))
    key, group = ("g, ", " GROUP BY g") if grouped else ("", "")
    query = f"SELECT {key}{shown_} FROM t{group}"
    bound = bind(query, Table())
    types = [column.type for column in bound.plan.columns]
    source = random.Random(query)
    before: Bag = Counter()
    assert postgres_types(database, query) == our_types(database, types)
    for size in (3, 9, 1, 0, 6):
        after = random_rows(source, size)
        right = answer(database, query, after)
        assert not differences(evaluate(bound.plan, reading(after)), right, types)
        assert not differences(evaluate(bound.written, reading(after)), right, types)
        first, second = maintained(bound, before, after)
        assert not differences(first, answer(database, query, before), types)
        assert not differences(second, right, types)
        before = after


GROUPS = (
    "ROLLUP (g)",
    "ROLLUP (g, o)",
    "CUBE (g, o)",
    "CUBE (g, (o, h))",
    "GROUPING SETS (g, o, ())",
    "GROUPING SETS ((g, o), (g), (), ())",
    "g, ROLLUP (o, h)",
    "ROLLUP (g), CUBE (o)",
    "GROUPING SETS (g, ROLLUP (o, h)), GROUPING SETS ((h), ())",
    "GROUPING SETS (GROUPING SETS (g, (o)), CUBE (h, g))",
    "DISTINCT ROLLUP (g, o), ROLLUP (g)",
    "ROLLUP (g), ROLLUP (g, o)",
    "(g, o), ()",
    "g, (o)",
    "ROLLUP (1, o)",
    "CUBE (g, o), g",
)


@pytest.mark.postgres
@pytest.mark.parametrize("group", GROUPS)
def test_grouping_sets(group: str, database: psycopg.Connection[Any]) -> None:
    columns = [name for name in ("g", "o", "h") if f"{name}" in group.replace("1", "g")]
    query = (
        f"SELECT {', '.join(columns)}, grouping({', '.join(columns)}) AS m, count(*) AS n,"
        f" sum(i) AS s, max(t) AS t, g + 1 AS k FROM t GROUP BY {group}"
        f" HAVING count(*) > 0 OR grouping({columns[0]}) = 1"
    )
    bound = bind(query, Table())
    source = random.Random(query)
    before: Bag = Counter()
    for size in (4, 8, 0, 5):
        after = random_rows(source, size)
        right = Counter(answer(database, query, after))
        assert evaluate(bound.plan, reading(after)) == right
        assert evaluate(bound.written, reading(after)) == right
        assert maintained(bound, before, after)[1] == right
        before = after


@pytest.mark.postgres
@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 AS one FROM t GROUP BY ()",
        "SELECT 1 AS one FROM t HAVING count(*) > 2",
        "SELECT 1 AS one FROM t HAVING true",
        "SELECT 'x' AS x, 2 AS y FROM t GROUP BY g",
        "SELECT count(*) AS n FROM t WHERE false GROUP BY GROUPING SETS (g, (), ())",
        "SELECT g, o, 100 * sum(i) / nullif(count(i), 0) AS c, sum(i) + sum(i) AS d FROM t"
        " GROUP BY g, o",
        "SELECT g + 1 AS a, (g + 1) * 2 AS b, count(*) AS n FROM t GROUP BY g + 1",
        "SELECT CASE WHEN sum(i) > 3 THEN max(t) ELSE 'none' END AS c FROM t GROUP BY o",
        "SELECT f, count(*) AS n FROM t GROUP BY f",
        "SELECT DISTINCT f FROM t",
        "SELECT coalesce(g, 0) AS g, grouping(coalesce(g, 0)) AS m FROM t"
        " GROUP BY ROLLUP (coalesce(g, 0))",
        "SELECT count(*) AS n FROM (SELECT g, count(DISTINCT i) AS c FROM t GROUP BY CUBE (g)) AS q"
        " GROUP BY c",
    ],
)
def test_groups(query: str, database: psycopg.Connection[Any]) -> None:
    bound = bind(query, Table())
    source = random.Random(query)
    before: Bag = Counter()
    for size in (4, 9, 0, 5):
        after = random_rows(source, size)
        right = Counter(answer(database, query, after))
        assert evaluate(bound.plan, reading(after)) == right
        assert maintained(bound, before, after)[1] == right
        before = after


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("string_agg(t, ',')", "unsupported-query"),
        ("string_agg(i, ',' ORDER BY i)", "unsupported-function"),
        ("string_agg(t ORDER BY t)", "invalid-query"),
        ("string_agg(DISTINCT t, ',' ORDER BY i)", "invalid-query"),
        ("any_value(t)", "unsupported-function"),
        ("xmlagg(t)", "unsupported-function"),
        ("corr(i)", "invalid-query"),
        ("corr(t, i)", "unsupported-function"),
        ("sum(t)", "unsupported-function"),
        ("sum(*)", "invalid-query"),
        ("sum(DISTINCT *)", "invalid-query"),
        ("sum()", "invalid-query"),
        ("sum(i, b)", "invalid-query"),
        ("sum(count(i))", "invalid-query"),
        ("count(DISTINCT (i, b))", "unsupported-query"),
        ("mode(i)", "invalid-query"),
        ("mode() WITHIN GROUP (ORDER BY i, b)", "invalid-query"),
        ("sum(i) WITHIN GROUP (ORDER BY i)", "invalid-query"),
        ("percentile_cont(0.5)", "invalid-query"),
        ("percentile_cont(2) WITHIN GROUP (ORDER BY i)", "invalid-query"),
        ("percentile_cont(i) WITHIN GROUP (ORDER BY i)", "unsupported-query"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY t)", "unsupported-function"),
        ("bool_and(i)", "unsupported-function"),
        ("bit_and(n)", "unsupported-function"),
        ("grouping(i)", "invalid-query"),
        ("length(DISTINCT t)", "unsupported-function"),
        ("length(t) WITHIN GROUP (ORDER BY t)", "invalid-query"),
    ],
)
def test_refused(call: str, code: str) -> None:
    with pytest.raises(UserError) as caught:
        bind(f"SELECT {call} AS c FROM t GROUP BY g", Table())
    assert caught.value.code == code


def test_too_many_sets() -> None:
    with pytest.raises(UserError, match="grouping sets") as caught:
        bind("SELECT count(*) FROM t GROUP BY CUBE (g, h, i, b, n, o, d)", Table())
    assert caught.value.code == "unsupported-query"


ADDED = "changes are added to the stored sums of touched groups"
EXTREMA = "changes are added to touched groups; one that loses its MIN or MAX is recomputed"
WHOLE = "touched groups are recomputed: only all their rows determine "


@pytest.mark.parametrize(
    ("calls", "reasons"),
    [
        ("stddev(n), bool_or(o), avg(i)", [ADDED]),
        ("stddev(w)", [WHOLE + "stddev"]),
        ("corr(i, n), sum(i)", [WHOLE + "corr"]),
        ("string_agg(t, ',' ORDER BY t), bit_or(i)", [WHOLE + "string_agg, bit_or"]),
        ("sum(f)", ["touched groups are recomputed: float sums cannot be subtracted from"]),
        ("count(DISTINCT i)", [ADDED, ADDED]),
        ("count(DISTINCT i), max(i)", [ADDED, EXTREMA]),
        ("count(DISTINCT i), sum(i)", [WHOLE + "count DISTINCT"]),
    ],
)
def test_how_it_is_maintained(calls: str, reasons: list[str]) -> None:
    stages = cut_stages(bind(f"SELECT g, {calls} FROM t GROUP BY g", Table()).plan, "x")
    assert [strategy(stage) for stage in stages] == reasons
