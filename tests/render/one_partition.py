"""Queries that Spark can run in one task, with one row for each of their inputs."""

from __future__ import annotations

import pyarrow as pa

from headrace.plan.operators import Operator
from headrace.render import inputs_of
from headrace.spark.run import Input
from tests.delta.reduced import scans

QUERIES = {
    "joins": "SELECT c.region, sum(l.n) AS n FROM lines l JOIN orders o ON o.id = l.orders"
    " JOIN customers c ON c.id = o.customer GROUP BY c.region",
    "one join beside another": "SELECT l.item, c.vip FROM lines l JOIN orders o ON o.id = l.orders"
    " JOIN (SELECT c.id, d.vip FROM customers c JOIN customers d ON d.region = c.region) c"
    " ON c.id = o.customer",
    "outer joins": "SELECT c.id, o.id AS o, l.n FROM customers c LEFT JOIN orders o"
    " ON o.customer = c.id LEFT JOIN lines l ON l.orders = o.id",
    "full join": "SELECT c.id, o.id AS o FROM customers c FULL JOIN orders o ON o.customer = c.id",
    "subqueries": "SELECT c.vip, count(*) AS n FROM customers c WHERE EXISTS (SELECT 1 FROM orders"
    " o JOIN lines l ON l.orders = o.id WHERE o.customer = c.id) AND c.id NOT IN"
    " (SELECT customer FROM orders WHERE qty > 1) GROUP BY c.vip",
    "one subquery": "SELECT c.vip, count(*) AS n FROM customers c WHERE c.id > 7 AND EXISTS"
    " (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.qty > 1) GROUP BY c.vip",
    "no such row": "SELECT c.id FROM customers c WHERE NOT EXISTS"
    " (SELECT 1 FROM orders o WHERE o.customer = c.id)",
    "set operations": "SELECT c.id FROM customers c JOIN orders o ON o.customer = c.id"
    " EXCEPT SELECT orders FROM lines",
    "first rows": "SELECT o.id, c.region FROM orders o JOIN customers c ON c.id = o.customer"
    " ORDER BY o.id LIMIT 3",
    "windows": "SELECT o.id, rank() OVER (PARTITION BY c.vip ORDER BY o.id) AS r FROM orders o"
    " JOIN customers c ON c.id = o.customer JOIN lines l ON l.orders = o.id",
}


def one_row_each(plan: Operator) -> list[Input]:
    """Every input of a plan, with a row: Spark leaves out what it sees to have none."""
    types = {
        (scan.relation, name): column.type
        for scan in scans(plan).values()
        for name, column in scan.fields
    }
    inputs = []
    for wanted in inputs_of(plan):
        kinds = [(name, types[wanted.relation, name].arrow) for name in wanted.columns]
        schema = pa.schema([("_weight", pa.int64()), *kinds])
        row = pa.table([pa.nulls(1, field.type) for field in schema], schema=schema)
        inputs.append(Input(wanted.name, schema, rows=row))
    return inputs
