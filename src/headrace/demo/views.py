"""The shop's stream tables, and how a row of each is told in a line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DemoView:
    """A stream table of the demo.

    Rows before and after a refresh are matched by `key`; a sample row is told by its `label`
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
    """The stream tables of a shop with this many order lines; the last one reads every source."""
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
