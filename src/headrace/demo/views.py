"""The demo's stream tables, and samples of their changes as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import psycopg
from psycopg.rows import dict_row


@dataclass(frozen=True)
class DemoView:
    """A stream table of the demo.

    Rows before and after a refresh are matched by `key`. A sample row is described by its `label`
    column and by the first of the `watched` columns that changed.
    """

    name: str
    about: str
    query: str
    key: tuple[str, ...]
    label: str
    watched: tuple[str, ...]

    @property
    def table(self) -> str:
        return f"shop.{self.name}"


def views(lines: int) -> tuple[DemoView, ...]:
    """Return the stream tables of a shop with this many order lines.

    The last one reads every source.
    """
    bar = max(lines // 2, 1)
    return (
        DemoView(
            "best_sellers",
            f"products with a revenue over {bar:,} (join, GROUP BY, HAVING)",
            f"""SELECT p.id, p.name AS product, sum(l.quantity) AS sold,
       sum(l.quantity * l.price) AS revenue
FROM shop.order_lines AS l
JOIN shop.products AS p ON p.id = l.product_id
GROUP BY p.id, p.name
HAVING sum(l.quantity * l.price) > {bar}""",
            ("id",),
            "product",
            ("revenue", "sold"),
        ),
        DemoView(
            "customer_orders",
            "how many orders each customer has made (join, GROUP BY)",
            """SELECT c.id, c.name, c.city, count(*) AS orders
FROM shop.customers AS c
JOIN shop.orders AS o ON o.customer_id = c.id
GROUP BY c.id, c.name, c.city""",
            ("id",),
            "name",
            ("orders", "city"),
        ),
        DemoView(
            "daily_totals",
            "lines, revenue and average of each day (join, COUNT, SUM, AVG)",
            """SELECT o.ordered_on AS day, count(*) AS lines,
       sum(l.quantity * l.price) AS revenue,
       avg(l.quantity * l.price) AS average_line
FROM shop.orders AS o
JOIN shop.order_lines AS l ON l.order_id = o.id
GROUP BY o.ordered_on""",
            ("day",),
            "day",
            ("revenue", "lines", "average_line"),
        ),
        DemoView(
            "large_open_lines",
            "open order lines of five pieces and more (join of four tables)",
            """SELECT l.order_id, l.line, c.name AS customer, p.name AS product,
       l.quantity, l.quantity * l.price AS worth
FROM shop.order_lines AS l
JOIN shop.orders AS o ON o.id = l.order_id
JOIN shop.customers AS c ON c.id = o.customer_id
JOIN shop.products AS p ON p.id = l.product_id
WHERE o.status = 'open' AND l.quantity >= 5""",
            ("order_id", "line"),
            "product",
            ("worth", "customer"),
        ),
    )


Row = Mapping[str, Any]
Rows = Mapping[tuple[Any, ...], Row]


@dataclass(frozen=True)
class ChangedRow:
    """A row that changed: None before means that it is new, None after that it is gone."""

    before: Row | None
    after: Row | None


def read_rows(connection: psycopg.Connection, view: DemoView) -> Rows:
    """Return the served table as an application reads it, by key."""
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(f"SELECT * FROM {view.table}").fetchall()
    return {tuple(row[name] for name in view.key): row for row in rows}


def changes(before: Rows, after: Rows) -> tuple[ChangedRow, ...]:
    """Return all rows that differ, in the order of their keys."""
    keys = sorted(before.keys() | after.keys())
    pairs = (ChangedRow(before.get(key), after.get(key)) for key in keys)
    return tuple(pair for pair in pairs if pair.before != pair.after)


def pick(sample: Sequence[ChangedRow], number: int) -> ChangedRow | None:
    """Return one changed row; each number prefers another kind, so that a reader sees all kinds."""
    kinds = (
        [item for item in sample if item.before is not None and item.after is not None],
        [item for item in sample if item.before is None],
        [item for item in sample if item.after is None],
    )
    for turn in range(3):
        kind = kinds[(number + turn) % 3]
        if kind:
            return kind[number % len(kind)]
    return None


def change_text(view: DemoView, sample: ChangedRow) -> str:
    """Return a sample row in a line."""
    row = sample.after or sample.before
    assert row is not None
    label = f"{value_text(row[view.label])}: "
    if sample.before is None or sample.after is None:
        first = view.watched[0]
        kind = "new" if sample.before is None else "gone"
        return f"{label}{kind}, {first} {value_text(row[first])}"
    before, after = sample.before, sample.after
    column = next((name for name in view.watched if before[name] != after[name]), view.watched[0])
    old, new = value_text(before[column]), value_text(after[column])
    if old == new:
        old, new = str(before[column]), str(after[column])
    return f"{label}{column} {old} → {new}"


def value_text(value: Any) -> str:
    """Return a value as short text: large amounts without their cents."""
    if isinstance(value, Decimal):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.2f}"
    if isinstance(value, int):
        return f"{value:,}"
    return value.isoformat() if isinstance(value, date) else str(value)
