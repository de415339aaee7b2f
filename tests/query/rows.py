"""A table of documents, and queries that make rows of what it holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import psycopg

from headrace.plan.evaluate import Bag
from headrace.plan.operators import Scan
from headrace.query import BoundTable
from headrace.types import BIGINT, INTEGER, TEXT, Type, array_of
from tests.functions.engines import adapted
from tests.query import shop
from tests.query.shop import Shop, Table, timestamp

DOCUMENTS = Table(
    "docs",
    (
        ("id", INTEGER, "integer"),
        ("list", Type("jsonb"), "jsonb"),
        ("object", Type("jsonb"), "jsonb"),
        ("words", replace(TEXT, folds=True), 'text COLLATE "C"'),
        ("big", BIGINT, "bigint"),
        ("at", Type("timestamp"), "timestamp"),
        ("tags", array_of(replace(TEXT, folds=True)), 'text[] COLLATE "C"'),
        ("numbers", array_of(INTEGER), "integer[]"),
    ),
    (("id",),),
    (
        (
            1,
            '["a", 1, 1.10, null, {"b": [1, 2.50], "long": {}}, true, "\\"é\\"\\n\\u001f/\\\\"]',
            '{"\\"": "\\t", "k": "v", "n": 1.50, "no": null, "deep": {"x": ["y", 2]}}',
            "a,,b,",
            9223372036854775800,
            timestamp(2024, 2, 28, 12),
            ("a", "b", None),
            (3, 1, 2, 1),
        ),
        (2, "[]", "{}", "", -3, timestamp(2024, 3, 1), (), (None,)),
        (3, *[None] * 7),
        (4, '["[1, 2]", "", [], [[]], -0.000001]', '{"": ""}', "x  y, z\t\n.*\\", 5,
         timestamp(9999, 12, 28), ("a", "b", None), (1,)),
    ),
)  # fmt: skip


class Documents(Shop):
    """The shop with the documents."""

    def resolve(self, schema: str | None, name: str) -> BoundTable | None:
        return DOCUMENTS.bound if name == "docs" else super().resolve(schema, name)


def read(scan: Scan) -> Bag:
    """A scan's rows for the pure evaluator."""
    if scan.relation != DOCUMENTS.bound.relation:
        return shop.read(scan)
    physical = [column.physical for column in DOCUMENTS.bound.columns]
    places = [physical.index(name) for name, _ in scan.fields]
    return Counter(tuple(row[place] for place in places) for row in DOCUMENTS.rows)


def load(connection: psycopg.Connection[Any]) -> None:
    """Make all tables with their rows."""
    shop.load(connection)
    connection.execute(DOCUMENTS.ddl)
    with connection.cursor() as cursor:
        rows = [[adapted(value) for value in row] for row in DOCUMENTS.rows]
        places = ", ".join(["%s"] * len(rows[0]))
        cursor.executemany(f"INSERT INTO docs VALUES ({places})", rows)


FUNCTIONS: tuple[str, ...] = (
    "SELECT id, e, n FROM docs, jsonb_array_elements(list) WITH ORDINALITY AS j (e, n)",
    "SELECT id, j.key, j.value FROM docs LEFT JOIN jsonb_each(object) AS j ON TRUE",
    "SELECT id, value, ordinality FROM docs, jsonb_array_elements_text(list) WITH ORDINALITY",
    "SELECT id, value FROM docs LEFT JOIN jsonb_array_elements_text(list) AS e ON TRUE",
    "SELECT id, e.* FROM docs, jsonb_each_text(object) AS e",
    "SELECT id, e, e.value FROM docs, jsonb_array_elements_text(list) AS e WHERE e <> 'a'",
    "SELECT id, generate_series(1, id) FROM docs WHERE id > 1",
    "SELECT *, unnest(ARRAY[n, orders]) AS number FROM lines",
    "SELECT DISTINCT jsonb_array_elements_text(list) FROM docs",
    "SELECT id, (SELECT max(x) FROM (SELECT string_to_table(words, ',') AS x) AS q) FROM docs",
    "SELECT id FROM docs WHERE id IN (SELECT generate_series(2, d.id) FROM docs AS d)",
    "SELECT id, e.key, e.n FROM docs, jsonb_each_text(object) WITH ORDINALITY AS e (key, text, n)",
    "SELECT id, k FROM docs, jsonb_object_keys(object) AS k",
    "SELECT id, s, ordinality FROM docs, string_to_table(words, ',') WITH ORDINALITY AS s",
    "SELECT id, s FROM docs, string_to_table(words, '') AS s",
    "SELECT id, s FROM docs, string_to_table(words, '.*\\') AS s",
    "SELECT id, s FROM docs, string_to_table(words, ',', '') AS s",
    "SELECT id, s FROM docs, string_to_table(words, ',', NULL) AS s",
    "SELECT id, s FROM docs, unnest(string_to_array(words || ',q', ',')) AS s",
    "SELECT id, s FROM docs, regexp_split_to_table(words, ',') AS s",
    "SELECT id, s FROM docs LEFT JOIN regexp_split_to_table(words, '\\s+') AS s ON TRUE",
    "SELECT id, g FROM docs, generate_series(CASE WHEN big > 5 THEN big END, big + 7, 3) AS g",
    "SELECT id, g FROM docs, generate_series(1, id, 2) AS g",
    "SELECT id, g FROM docs, generate_series(3, id, -1) AS g",
    "SELECT id, g FROM docs LEFT JOIN generate_series(big, 0) AS g ON TRUE WHERE id > 1",
    "SELECT id, g FROM docs, generate_series(0.25, id, 0.75) AS g",
    "SELECT id, g FROM docs, generate_series(id, 1.5, -0.5) AS g",
    "SELECT id, g FROM docs, generate_series(at, at + interval '1 day', interval '8 hours') AS g",
    "SELECT id, g FROM docs, generate_series(at, at - interval '1 day', '-9:30') AS g",
    "SELECT id, g FROM docs, generate_series(at::date, at::date + 2, '1 day') AS g WHERE id < 4",
    "SELECT id, g FROM docs, generate_series(date '9999-01-28', at::date, '3 months') AS g",
    "SELECT d.id, g FROM docs AS d, unnest(ARRAY[d.id, NULL, 7]) AS g",
    "SELECT d.id, u.* FROM docs AS d, unnest(ARRAY[d.id, 2], ARRAY['x', words, NULL]) AS u (a)",
    "SELECT d.id, v.* FROM docs AS d, LATERAL (VALUES (d.big, 'b'), (d.id, d.words)) AS v (n, w)",
    "SELECT id, v.* FROM docs, (VALUES (1, 'a', NULL), (2, NULL, 2.50)) AS v (x, y, z)",
    "SELECT id, one.x FROM docs, (SELECT 1 AS x) AS one",
    "SELECT count(*) FROM docs, (VALUES (1), (2), (2)) AS v",
    "SELECT id, t FROM docs, unnest(tags) AS t",
    "SELECT id, t, n FROM docs LEFT JOIN unnest(tags) WITH ORDINALITY AS u (t, n) ON TRUE",
    "SELECT id, u.* FROM docs, unnest(tags, numbers) AS u (t, n)",
    "SELECT id, u.* FROM docs, unnest(numbers, ARRAY[id]) WITH ORDINALITY AS u (a, b)",
    "SELECT id, u FROM docs, unnest(tags || 'x'::text) AS u WHERE u = ANY (tags) OR id = 3",
    "SELECT id, unnest(numbers) FROM docs",
    "SELECT d.id, (SELECT sum(n) FROM unnest(d.numbers) AS n) AS total FROM docs AS d",
    "SELECT tags, count(*) FROM docs GROUP BY tags",
    "SELECT DISTINCT tags FROM docs",
    "SELECT numbers FROM docs UNION SELECT ARRAY[id::bigint] FROM docs",
    "SELECT tags FROM docs EXCEPT SELECT ARRAY['a', 'b', NULL] FROM docs",
    "SELECT a.id, b.id AS other FROM docs AS a JOIN docs AS b ON a.tags = b.tags",
    "SELECT a.id, b.id AS other FROM docs AS a LEFT JOIN docs AS b ON a.id = ANY (b.numbers)",
    "SELECT id, ARRAY[id, 2], numbers[2], (ARRAY[words])[1] AS w, tags::varchar[] FROM docs",
    "SELECT id, array_agg(id) OVER (ORDER BY id DESC ROWS 1 PRECEDING) FROM docs",
    "SELECT count(DISTINCT tags) AS c, array_agg(big / 2 ORDER BY id) AS h FROM docs",
    "SELECT array_agg(big / 3.0 ORDER BY id DESC) AS h FROM docs WHERE id > 1",
    "SELECT max(id) FILTER (WHERE numbers @> ARRAY[1]) AS m FROM docs GROUP BY tags && '{a}'",
)
"""Each with every kind of row that its function gives."""
