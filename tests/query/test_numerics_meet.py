"""Queries in which numerics of different digits meet: as in PostgreSQL to the last digit.

Joins, subqueries, set operations and HAVING over tables whose values differ in their last digit. A
query that needs one type for both is refused if a column's declared digits have no room in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from headrace.algebra.scalar import Value
from headrace.errors import UserError
from headrace.functions import EvaluationError
from headrace.plan.evaluate import evaluate
from headrace.plan.operators import Scan
from headrace.query import BoundColumn, BoundTable, bind
from headrace.query.refusal import spelled
from headrace.types import INTEGER, Type, numeric
from tests.functions.numeric_pairs import PLAIN, Row, pairs, rows

EXACT = (
    "SELECT x.id, y.id AS other FROM x JOIN y ON x.m = y.m",
    "SELECT x.id, y.id AS other FROM x LEFT JOIN y ON x.m = y.m AND x.id < y.id",
    "SELECT x.id, y.id AS other FROM x FULL JOIN y ON x.m = y.m",
    "SELECT x.id, y.id AS other FROM x JOIN y ON x.m < y.m AND x.id = y.id",
    "SELECT m, x.id FROM x JOIN y USING (m)",
    "SELECT m, x.id, y.id AS other FROM x LEFT JOIN y USING (m)",
    "SELECT m, y.id FROM x RIGHT JOIN y USING (m)",
    "SELECT x.id FROM x, y WHERE x.m = y.m",
    "SELECT id FROM x WHERE m IN (SELECT m FROM y)",
    "SELECT id FROM x WHERE m NOT IN (SELECT m FROM y WHERE m IS NOT NULL)",
    "SELECT id, m NOT IN (SELECT m FROM y) AS b FROM x",
    "SELECT id FROM x WHERE (m, id) IN (SELECT m, id FROM y)",
    "SELECT id FROM x WHERE EXISTS (SELECT FROM y WHERE y.m = x.m)",
    "SELECT id FROM x WHERE NOT EXISTS (SELECT FROM y WHERE y.m = x.m AND y.id = x.id)",
    "SELECT id FROM x WHERE m >= ALL (SELECT m FROM y WHERE y.id = x.id)",
    "SELECT id FROM x WHERE m < ANY (SELECT m FROM y WHERE y.id <> x.id)",
    "SELECT id, (SELECT count(*) FROM y WHERE y.m = x.m) AS n FROM x",
    "SELECT id FROM x WHERE m = (SELECT max(m) FROM y)",
    "SELECT id % 3 AS g FROM x GROUP BY id % 3 HAVING max(m) > (SELECT min(m) FROM y)",
    "SELECT DISTINCT x.m FROM x JOIN y ON x.m = y.m",
)
COMMON = (
    "SELECT m FROM x UNION SELECT m FROM y",
    "SELECT m FROM x UNION ALL SELECT m FROM y",
    "SELECT m FROM x INTERSECT SELECT m FROM y",
    "SELECT m FROM x INTERSECT ALL SELECT m FROM y",
    "(SELECT m FROM x UNION ALL SELECT 1.00 FROM x) INTERSECT ALL SELECT m FROM y",
    "SELECT max(m) FROM x GROUP BY id EXCEPT ALL SELECT -m FROM y",
    "SELECT coalesce(sum(m), 0) FROM x GROUP BY id UNION ALL SELECT abs(m) FROM y",
    "SELECT m FROM x EXCEPT SELECT m FROM y",
    "SELECT m FROM x EXCEPT ALL SELECT m FROM y",
    "SELECT m FROM x FULL JOIN y USING (m)",
    "SELECT m, count(*) FROM (SELECT m FROM x UNION ALL SELECT m FROM y) AS u GROUP BY m",
    "SELECT coalesce(x.m, y.m) AS m FROM x JOIN y USING (id)",
)


class Tables:
    """x(id, m) and y(id, m)."""

    def __init__(self, left: Type, right: Type) -> None:
        self._types = {"x": left, "y": right}

    def resolve(self, schema: str | None, name: str) -> BoundTable | None:
        if name not in self._types:
            return None
        type_ = self._types[name]
        columns = (
            BoundColumn("id", "c1", INTEGER, "integer"),
            BoundColumn("m", "c2", type_, type_.sql),
        )
        return BoundTable(name, "public", name, columns, (("id",),))


@pytest.fixture
def connection(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        yield connection


def fill(connection: psycopg.Connection[Any], types: tuple[Type, Type], found: list[Row]) -> None:
    connection.execute("DROP TABLE IF EXISTS x, y")
    for name, type_, place in (("x", types[0], 0), ("y", types[1], 1)):
        connection.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, m {type_.sql})")
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {name} VALUES (%s, %s)",
                [(n, row[place]) for n, row in enumerate(found)],
            )


def check(
    connection: psycopg.Connection[Any], query: str, types: tuple[Type, Type], found: list[Row]
) -> str | None:
    """What is wrong with the answer, if something is."""
    try:
        bound = bind(query, Tables(*types))
    except UserError as error:
        named = any(type_.spark in error.message or type_.sql in error.message for type_ in types)
        if query in COMMON and error.code == "unsupported-type" and named:
            return None
        return f"{query} over {types} is refused: {error}"

    def read(scan: Scan) -> Counter[tuple[Value, ...]]:
        place = {"x": 0, "y": 1}[scan.relation]
        stored = [{"c1": n, "c2": row[place]} for n, row in enumerate(found)]
        return Counter(tuple(row[name] for name, _ in scan.fields) for row in stored)

    right = Counter(connection.execute(query).fetchall())
    for plan in (bound.plan, bound.written):
        try:
            ours = Counter(evaluate(plan, read).elements())
        except EvaluationError as error:
            if query in COMMON and "out of range" in str(error) and PLAIN in types:
                return None
            return f"{query} over {', '.join(map(spelled, types))}: {error}"
        if ours != right:
            differ = f"extra {ours - right}, missing {right - ours}"
            return f"{query} over {', '.join(map(spelled, types))}: {differ}"
    return None


@pytest.mark.postgres
def test_queries_over_pairs(connection: psycopg.Connection[Any]) -> None:
    smallest = [(numeric(38, 3), PLAIN), (numeric(38, 2), numeric(38, 10))]
    wrong: list[str] = []
    for n, types in enumerate([*smallest, *pairs(14, seed=3)]):
        found = list(rows(*types, seed=n))[:16]
        fill(connection, types, found)
        wrong += filter(None, (check(connection, q, types, found) for q in (*EXACT, *COMMON)))
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:20])


SUMS = (
    "SELECT sum(a) <= 0.1 * sum(b) FROM s",
    "SELECT sum(a) < 0.1 * sum(b) FROM s",
    "SELECT sum(a) = sum(b) / 10 FROM s",
    "SELECT sum(k) <= 0.5 * sum(k) + 9.4 FROM s",
    "SELECT sum(a) * sum(a) > sum(b) * 0.1 FROM s",
    "SELECT sum(a) - 0.1 * sum(b) > 0 FROM s",
    "SELECT id FROM s WHERE m <= n",
    "SELECT id FROM s WHERE m < n",
    "SELECT id FROM s WHERE m = o",
    "SELECT id FROM s WHERE n IN (0.12345678901234567890123, 1.0000000000000001::float8)",
    "SELECT id FROM s WHERE m IN (1.0000000000000001, 0.12345678901234567890123, '1.000')",
    "SELECT id FROM s GROUP BY id HAVING sum(m) < sum(n)",
    "SELECT id FROM s GROUP BY id HAVING sum(a) BETWEEN 0.1 * sum(b) AND sum(n)",
)
COLUMNS = (
    ("id", INTEGER),
    ("a", numeric(7, 2)),
    ("b", numeric(7, 2)),
    ("k", INTEGER),
    ("m", numeric(38, 3)),
    ("n", PLAIN),
    ("o", numeric(38, 10)),
    ("p", numeric(38, 30)),
    ("q", numeric(20, 0)),
)


class Sums:
    """The table s of sums and long numerics."""

    def resolve(self, schema: str | None, name: str) -> BoundTable:
        columns = (BoundColumn(n, n, type_, type_.sql) for n, type_ in COLUMNS)
        return BoundTable("s", "public", "s", tuple(columns), (("id",),))


@pytest.mark.postgres
@pytest.mark.parametrize("last", ["0.995", "1.00", "9.94", "9.95", "10.00", "10.01"])
def test_sums_that_nearly_are_equal(connection: psycopg.Connection[Any], last: str) -> None:
    one, other = Decimal("1.00"), Decimal(last)
    near = Decimal("1.000") + Decimal(last).scaleb(-15)
    stored = [
        (1, one, other, 18, Decimal("1.000"), near, Decimal("1.0000000000"), None, 1),
        (
            2,
            Decimal(0),
            Decimal("0.00"),
            1,
            Decimal("-1.000"),
            -near,
            Decimal("-0.9999999999"),
            1,
            2,
        ),
    ]
    connection.execute(f"CREATE TABLE s ({', '.join(f'{n} {t.sql}' for n, t in COLUMNS)})")
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO s VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)", stored)
    # What PostgreSQL has rounded on the way in is what both compute with.
    kept = connection.execute("SELECT * FROM s ORDER BY id").fetchall()
    places = {name: i for i, (name, _) in enumerate(COLUMNS)}

    def read(scan: Scan) -> Counter[tuple[Value, ...]]:
        return Counter(tuple(row[places[name]] for name, _ in scan.fields) for row in kept)

    for query in (*SUMS, *ONE_TYPE):
        bound = bind(query, Sums())
        right = connection.execute(query).fetchall()
        assert Counter(evaluate(bound.plan, read).elements()) == Counter(right), query


def test_a_sum_has_as_many_digits_as_it_needs() -> None:
    def stored(expression: str) -> str:
        return bind(f"SELECT {expression} AS x FROM s", Sums()).plan.columns[0].type.spark

    assert stored("sum(a)") == "DECIMAL(26,2)"
    assert stored("sum(a * b)") == "DECIMAL(33,4)"
    assert stored("sum(k)") == "BIGINT"
    assert stored("sum(n)") == "DECIMAL(38,18)"
    assert stored("0.1 * sum(b)") == "DECIMAL(27,3)"


ONE_TYPE = (
    "SELECT coalesce(sum(a), n) AS x FROM s GROUP BY n",
    "SELECT CASE WHEN count(*) > 1 THEN sum(a) ELSE max(n) END AS x FROM s",
    "SELECT CASE WHEN id > 1 THEN sum(b::bigint) ELSE n END AS x FROM s GROUP BY id, n",
    "SELECT greatest(sum(a), max(n), 0) AS x, least(sum(id::bigint), min(o)) AS y FROM s",
    "SELECT sum(id::bigint) AS x FROM s UNION SELECT n FROM s",
    "SELECT n AS x FROM s EXCEPT SELECT sum(b) FROM s",
    "SELECT x FROM (SELECT sum(a) AS x FROM s) p FULL JOIN (SELECT n AS x FROM s) q USING (x)",
    "SELECT x FROM (VALUES (1::bigint * 3, 2)) AS v (x, y) UNION ALL SELECT n FROM s",
    "SELECT id FROM s WHERE ARRAY[n, 1] = (SELECT ARRAY[sum(a), min(n)] FROM s)",
    "SELECT coalesce(p, 0) AS x, coalesce('1.5', p) AS y, greatest(p, 12345678) AS z FROM s",
    "SELECT id, sum(a) OVER (ORDER BY p RANGE 10 PRECEDING) AS x FROM s",
)
"""What needs one type, which holds every declared column; only sums may be too large for it."""


REFUSED = (
    "SELECT CASE WHEN id > 1 THEN m ELSE o END AS x FROM s",
    "SELECT greatest(m, n) AS x FROM s",
    "SELECT m + n AS x FROM s",
    "SELECT m FROM s UNION SELECT o FROM s",
    "SELECT CASE id WHEN 1 THEN m WHEN 2 THEN 0 ELSE n END AS x FROM s",
    "SELECT coalesce(p, 123456789) AS x FROM s",
    "SELECT coalesce(p, '123456789') AS x FROM s",
    "SELECT coalesce(p, 123456789.5, n) AS x FROM s",
    "SELECT m FROM s AS x FULL JOIN (SELECT o AS m FROM s) AS y USING (m)",
    "SELECT coalesce(sum(m), n) AS x FROM s GROUP BY n",
    "SELECT coalesce(max(m), max(n)) AS x FROM s",
    "SELECT coalesce(-m, n) AS x FROM s",
    "SELECT coalesce(m::numeric, n) AS x FROM s",
    "SELECT lag(m) OVER (ORDER BY id) AS x FROM s UNION SELECT n FROM s",
    "SELECT x + p FROM (SELECT m AS x, p FROM s UNION SELECT 0, 0 FROM s) AS u",
    "SELECT coalesce(floor(m), p) AS x FROM s",
    "SELECT id::bigint AS x FROM s UNION SELECT p FROM s",
    "SELECT id + p AS x FROM s",
    "SELECT unnest(ARRAY[m, 0]) AS x FROM s UNION SELECT n FROM s",
    "SELECT id FROM s WHERE n * n > 2",
    "SELECT n * n AS x, count(*) FROM s GROUP BY n * n",
    "SELECT DISTINCT n * o AS x FROM s",
    "SELECT id FROM s WHERE ARRAY[m] = ARRAY[n]",
    "SELECT id, sum(a) OVER (ORDER BY m RANGE 0.12345 PRECEDING) AS x FROM s",
)


@pytest.mark.parametrize("query", REFUSED)
def test_what_no_numeric_holds_is_refused(query: str) -> None:
    with pytest.raises(UserError, match="needs more than 38 digits") as refusal:
        bind(query, Sums())
    assert refusal.value.code == "unsupported-type"
    assert "numeric" in refusal.value.message
    assert refusal.value.hint is not None


def test_a_sum_too_large_for_the_common_type_is_an_error() -> None:
    """Twenty digits before the point are left beside the 18 after it of a plain numeric."""

    def answer(query: str, *terms: str) -> list[tuple[Value, ...]]:
        stored = {name: Decimal(1) for name, _ in COLUMNS} | {"id": 1}
        rows_ = [stored | {"q": Decimal(term)} for term in terms]
        return list(
            evaluate(
                bind(query, Sums()).plan,
                lambda scan: Counter(tuple(row[n] for n, _ in scan.fields) for row in rows_),
            )
        )

    half = "5" + "0" * 19
    fits, too_large = (half, half[:-1]), (half, half)
    for query in (
        "SELECT coalesce(sum(q), max(n)) AS x FROM s",
        "SELECT CASE WHEN count(*) > 0 THEN sum(q) ELSE max(n) END AS x FROM s",
        "SELECT greatest(sum(q), max(n)) AS x FROM s",
        "SELECT sum(q) AS x FROM s UNION ALL SELECT n FROM s WHERE id < 0",
    ):
        assert answer(query, *fits) == [(sum(map(Decimal, fits)),)], query
        with pytest.raises(EvaluationError, match="out of range"):
            answer(query, *too_large)


def test_the_greatest_constant_of_38_digits() -> None:
    nines = "9" * 38
    table = BoundTable(
        "r_x", "public", "x", (BoundColumn("n", "c1", numeric(38, 0), "numeric(38,0)"),), ()
    )

    class Schema:
        def resolve(self, schema: str | None, name: str) -> BoundTable:
            return table

    plan = bind(f"SELECT n FROM x WHERE n = {nines}", Schema()).plan
    values = (Decimal(nines), Decimal(nines) - 1)
    assert evaluate(plan, lambda _: Counter((v,) for v in values)) == {(Decimal(nines),): 1}
