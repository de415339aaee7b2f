"""Batches of changes like those of a shop: orders come and go, customers, parts and suppliers move.

The orders stand in a queue: first those that were generated, criss-cross through the table, then
those that came since, with ascending keys. Each batch deletes so many orders with their lines from
the front and inserts as many at the end, copied from others further back at prices of their own,
so that no two tie for the last place of a query's LIMIT. It also updates customers, parts and
suppliers, in the proportion that their tables have to orders. What a batch does follows from its
number alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from typing import Any

import psycopg

# Rows of a table for each order.
PER_ORDER = {"customer": 1 / 10, "part": 2 / 15, "supplier": 1 / 150}
# What is updated; each of these columns is read by some query.
UPDATES = {
    "customer": ("c_custkey", "c_acctbal = c_acctbal + 1"),
    "part": ("p_partkey", "p_size = 1 + p_size % 50"),
    "supplier": ("s_suppkey", "s_acctbal = s_acctbal + 1"),
}
ORDER = (
    "o_custkey, o_orderstatus, o_totalprice, o_orderdate, o_orderpriority, o_clerk,"
    " o_shippriority, o_comment"
)
LINE = (
    "l_partkey, l_suppkey, l_linenumber, l_quantity, l_extendedprice, l_discount, l_tax,"
    " l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct,"
    " l_shipmode, l_comment"
)
# The price of a copy: some cents more, up to a hundred thousand copies none the same.
PRICE = "{price} + new % 100000 / 100.0"


@dataclass(frozen=True)
class Shop:
    """How many rows the tables were loaded with, and how many orders a batch inserts.

    Its first batch begins at the place `start` of the queue.
    """

    sizes: dict[str, int]
    orders: int
    start: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.orders <= self.sizes["orders"] // 2:
            raise SystemExit(f"a batch cannot have {self.orders} of {self.sizes['orders']} orders")

    @staticmethod
    def of(sql: psycopg.Connection[Any], change: float, rows: int | None) -> Shop:
        sizes = {}
        for table in ("orders", *UPDATES):
            found = sql.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
            assert found is not None
            sizes[table] = int(found[0])
        count = rows if rows is not None else max(1, round(change * sizes["orders"]))
        return Shop(sizes, count, _place_of_the_first(sql, sizes["orders"]))

    def updated(self, table: str) -> int:
        """How many rows of a table a batch updates."""
        return min(self.sizes[table], max(1, round(self.orders * PER_ORDER[table])))


def apply(sql: psycopg.Connection[Any], shop: Shop, number: int) -> dict[str, int]:
    """Write one batch in one transaction; the rows written by table."""
    written: dict[str, int] = {}
    with sql.transaction():
        for table, statement in batch(shop, number):
            count = sql.execute(statement.encode()).rowcount
            written[table] = written.get(table, 0) + count
    wanted = {"orders": 2 * shop.orders, **{table: shop.updated(table) for table in UPDATES}}
    if any(written[table] != count for table, count in wanted.items()):
        raise SystemExit(f"batch {number} wrote {written} where {wanted} was wanted")
    return written


def batch(shop: Shop, number: int) -> Iterator[tuple[str, str]]:
    """The statements of one batch, each with the table that it writes."""
    count, size = shop.orders, shop.sizes["orders"]
    first = shop.start + number * count
    numbers = f"generate_series({first}::bigint, {first + count - 1}::bigint) AS i"
    gone = f"SELECT {_order_key('i', size)} FROM {numbers}"
    # Half of the queue further on, a batch would insert what it deletes once half has gone.
    pattern, new = _order_key(f"(i + {size // 3})", size), _order_key(f"(i + {size})", size)
    copied = f"(SELECT {pattern} AS pattern, {new} AS new FROM {numbers}) AS copied"
    yield (
        "orders",
        f"INSERT INTO orders (o_orderkey, {ORDER})"
        f" SELECT new, {_dearer(ORDER, 'o_totalprice')}"
        f" FROM {copied} JOIN orders ON o_orderkey = pattern",
    )
    yield (
        "lineitem",
        f"INSERT INTO lineitem (l_orderkey, {LINE})"
        f" SELECT new, {_dearer(LINE, 'l_extendedprice')}"
        f" FROM {copied} JOIN lineitem ON l_orderkey = pattern",
    )
    yield "lineitem", f"DELETE FROM lineitem WHERE l_orderkey IN ({gone})"
    yield "orders", f"DELETE FROM orders WHERE o_orderkey IN ({gone})"
    for table, (key, change) in UPDATES.items():
        count, size = shop.updated(table), shop.sizes[table]
        first = number * count
        numbers = f"generate_series({first}::bigint, {first + count - 1}::bigint) AS i"
        keys = f"SELECT 1 + {_criss_cross('i', size)} FROM {numbers}"
        yield table, f"UPDATE {table} SET {change} WHERE {key} IN ({keys})"


def _dearer(columns: str, price: str) -> str:
    return columns.replace(price, PRICE.format(price=price))


def _place_of_the_first(sql: psycopg.Connection[Any], size: int) -> int:
    """Where the queue begins: as many orders have gone as came after those generated."""
    found = sql.execute("SELECT max(o_orderkey) FROM orders").fetchone()
    assert found is not None
    return max(0, int(found[0]) - 4 * size)


def _order_key(place: str, size: int) -> str:
    """The key of the order at a place of the queue; of 32 keys the generator uses eight."""
    number = f"({_criss_cross(place, size)} + 1)"
    generated = f"{number} / 8 * 32 + {number} % 8"
    return f"CASE WHEN {place} < {size} THEN {generated} ELSE {place} + {3 * size + 1} END"


def _criss_cross(place: str, size: int) -> str:
    """Visits every number below `size` once, then again, each far from the one before."""
    step = max(1, round(size * 0.6180339887))
    while gcd(step, size) != 1:
        step += 1
    return f"({place} % {size} * {step} % {size})"
