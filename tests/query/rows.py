"""A table of documents, and queries that make rows of what it holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import psycopg

from headrace.plan.evaluate import Bag
from headrace.plan.operators import Scan
from headrace.query import BoundTable
from headrace.types import BIGINT, INTEGER, TEXT, Type
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
        ),
        (2, "[]", "{}", "", -3, timestamp(2024, 3, 1)),
        (3, None, None, None, None, None),
        (4, '["[1, 2]", "", [], [[]], -0.000001]', '{"": ""}', "x  y, z\t\n.*\\", 5,
         timestamp(9999, 12, 28)),
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
        cursor.executemany("INSERT INTO docs VALUES (%s, %s, %s, %s, %s, %s)", DOCUMENTS.rows)


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
)
"""Each with every kind of row that its function gives."""
