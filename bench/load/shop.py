"""The application of a load: its tables, their ten stream tables, and the marker rows in them.

Rows with the id 0 are marker rows. Writers leave them alone; a marker transaction gives all of them
one growing number, which every stream table shows in a row of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

Sql = psycopg.Connection[Any]

PRODUCTS, REGIONS, LARGEST_AMOUNT, LARGEST_QUANTITY = 200, 10, 100_000, 100
# Edges form trees of eight nodes: the root is node 8 * tree, and edge 7 * tree + n leads to node
# 8 * tree + n + 1. Tree 0 has the marker edge alone.
TREE_NODES, TREE_EDGES = 8, 7
# Marks are above all values that writers write.
FIRST_MARK = 1_000_000_000

# All columns are integers; the first is the primary key.
COLUMNS = {
    "customers": ("id", "region", "credit"),
    "orders": ("id", "customer", "amount"),
    "lines": ("id", "order_id", "product", "quantity"),
    "edges": ("id", "a", "b"),
}
INDEXES = (("orders", "customer"), ("lines", "order_id"), ("lines", "product"), ("edges", "a"))

MARK = (
    "UPDATE orders SET amount = %(mark)s WHERE id = 0",
    "UPDATE lines SET quantity = %(mark)s WHERE id = 0",
    "UPDATE edges SET b = %(mark)s WHERE id = 0",
)


@dataclass(frozen=True)
class View:
    """A query, its key, the column that shows the mark, and a condition on the marker's row."""

    query: str
    key: tuple[str, ...]
    mark: str
    where: str

    def shown(self, name: str) -> str:
        """Return the query of the mark that a served table shows."""
        return f"SELECT max({self.mark}) FROM {name} WHERE {self.where}"


VIEWS = {
    # aggregates
    "customer_totals": View(
        "SELECT customer, count(*) AS orders, sum(amount) AS amount FROM orders GROUP BY customer",
        ("customer",),
        "amount",
        "customer = 0",
    ),
    "product_totals": View(
        "SELECT product, count(*) AS lines, sum(quantity) AS quantity FROM lines GROUP BY product",
        ("product",),
        "quantity",
        "product = 0",
    ),
    "product_extrema": View(
        "SELECT product, min(quantity) AS least, max(quantity) AS most FROM lines GROUP BY product",
        ("product",),
        "most",
        "product = 0",
    ),
    # joins
    "order_lines": View(
        "SELECT l.id, o.customer, l.product, l.quantity FROM lines l"
        " JOIN orders o ON o.id = l.order_id",
        ("id",),
        "quantity",
        "id = 0",
    ),
    "customer_orders": View(
        "SELECT c.id, c.credit, count(o.id) AS orders, max(o.amount) AS largest FROM customers c"
        " LEFT JOIN orders o ON o.customer = c.id GROUP BY c.id, c.credit",
        ("id", "credit"),
        "largest",
        "id = 0",
    ),
    "region_orders": View(
        "SELECT c.region, count(*) AS orders, sum(o.amount) AS amount FROM orders o"
        " JOIN customers c ON c.id = o.customer GROUP BY c.region",
        ("region",),
        "amount",
        "region = 0",
    ),
    "region_lines": View(
        "SELECT c.region, count(*) AS lines, sum(l.quantity) AS quantity FROM lines l"
        " JOIN orders o ON o.id = l.order_id JOIN customers c ON c.id = o.customer"
        " GROUP BY c.region",
        ("region",),
        "quantity",
        "region = 0",
    ),
    # a window
    "ranked_orders": View(
        "SELECT id, customer, amount, rank() OVER (PARTITION BY customer ORDER BY amount DESC)"
        " AS place, sum(amount) OVER (PARTITION BY customer) AS total FROM orders",
        ("id",),
        "amount",
        "id = 0",
    ),
    # the first rows
    "top_orders": View(
        "SELECT id, customer, amount FROM orders ORDER BY amount DESC, id LIMIT 50",
        ("id",),
        "amount",
        "id = 0",
    ),
    # recursion
    "reached_nodes": View(
        f"WITH RECURSIVE r AS (SELECT a AS root, b AS node FROM edges WHERE a % {TREE_NODES} = 0"
        " UNION SELECT r.root, e.b FROM r JOIN edges e ON e.a = r.node) SELECT root, node FROM r",
        ("root", "node"),
        "node",
        "root = 0",
    ),
}


def rows_of(orders: int) -> dict[str, int]:
    """Return how many rows each table has beside its marker row."""
    return {
        "customers": orders // 20,
        "orders": orders,
        "lines": 2 * orders,
        "edges": orders // 50,
    }


def fill(sql: Sql, orders: int) -> None:
    """Create the tables with their first rows, and the marker rows."""
    rows = rows_of(orders)
    values = {
        "customers": f"i, 1 + i % {REGIONS}, i % 7",
        "orders": f"i, 1 + i % {rows['customers']}, 1 + i * 7919 % {LARGEST_AMOUNT}",
        "lines": f"i, 1 + i % {orders}, 1 + i % {PRODUCTS}, 1 + i * 31 % {LARGEST_QUANTITY}",
        "edges": f"i, i / {TREE_EDGES} * {TREE_NODES} + (i % {TREE_EDGES} + 1) / 2,"
        f" i / {TREE_EDGES} * {TREE_NODES} + i % {TREE_EDGES} + 1",
    }
    for table, columns in COLUMNS.items():
        first = first_id(table)
        defined = ", ".join(f"{column} int NOT NULL" for column in columns)
        zeros = ", ".join("0" for _ in columns)
        sql.execute(f"CREATE TABLE {table} ({defined}, PRIMARY KEY (id))".encode())
        sql.execute(
            f"INSERT INTO {table} SELECT {values[table]}"
            f" FROM generate_series({first}, {first + rows[table] - 1}) i".encode()
        )
        sql.execute(f"INSERT INTO {table} VALUES ({zeros})".encode())
    for table, column in INDEXES:
        sql.execute(f"CREATE INDEX ON {table} ({column})".encode())
    sql.execute("VACUUM ANALYZE")


def first_id(table: str) -> int:
    """Return the first id of a table's rows that are no marker row."""
    return TREE_EDGES if table == "edges" else 1
