"""The row changes of a writer: inserts, updates and deletes of four tables, in fixed shares.

As many rows are inserted as deleted, the oldest first, so every rate meets tables of one size. Each
writer has ids of its own: no writer waits for another.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

from psycopg import sql

from bench.load.shop import (
    COLUMNS,
    LARGEST_AMOUNT,
    LARGEST_QUANTITY,
    PRODUCTS,
    REGIONS,
    TREE_EDGES,
    TREE_NODES,
    first_id,
    rows_of,
)

Row = tuple[int, ...]

# Of a hundred row changes.
SHARES = {
    ("orders", "insert"): 10,
    ("orders", "update"): 14,
    ("orders", "delete"): 10,
    ("lines", "insert"): 18,
    ("lines", "update"): 22,
    ("lines", "delete"): 18,
    ("customers", "update"): 2,
    ("edges", "insert"): 2,
    ("edges", "update"): 2,
    ("edges", "delete"): 2,
}
# The columns that an update changes.
UPDATED = {
    "orders": ("amount",),
    "lines": ("quantity",),
    "customers": ("region", "credit"),
    "edges": ("a",),
}


@dataclass(frozen=True)
class Batch:
    """Rows of one statement: whole rows, ids with new values, or ids alone."""

    table: str
    verb: str
    rows: tuple[Row, ...]


class Mixer:
    """The transactions of one writer out of several, repeatable by their seed."""

    def __init__(self, number: int, writers: int, orders: int, seed: int) -> None:
        self._number, self._writers = number, writers
        self._random = Random(f"{seed}/{number}")  # noqa: S311  not for secrets
        # Of each table's ids that this writer has, the first and the one after the last.
        rows = rows_of(orders)
        self._ids = {table: [0, len(range(number, rows[table], writers))] for table in rows}
        self._customers = rows["customers"]
        self._cycle = [kind for kind, share in SHARES.items() for _ in range(share)]
        self._random.shuffle(self._cycle)
        self._at = 0

    def transaction(self, size: int) -> list[Batch]:
        """Return the statements of a transaction of so many row changes."""
        length = len(self._cycle)
        kinds = Counter(self._cycle[(self._at + n) % length] for n in range(size))
        self._at = (self._at + size) % length
        return [self._batch(table, verb, count) for (table, verb), count in kinds.items()]

    def _batch(self, table: str, verb: str, count: int) -> Batch:
        ids = self._ids[table]
        match verb:
            case "insert":
                places = range(ids[1], ids[1] + count)
                ids[1] += count
                rows = [self._row(table, self._id(table, place)) for place in places]
            case "delete":
                places = range(ids[0], min(ids[0] + count, ids[1]))
                ids[0] = places.stop
                rows = [(self._id(table, place),) for place in places]
            case _:
                present = range(*ids)
                chosen = self._random.sample(present, min(count, len(present)))
                rows = [self._update(table, self._id(table, place)) for place in chosen]
        return Batch(table, verb, tuple(rows))

    def _id(self, table: str, place: int) -> int:
        return first_id(table) + place * self._writers + self._number

    def _row(self, table: str, id_: int) -> Row:
        draw = self._random.randrange
        match table:
            case "orders":
                return id_, 1 + draw(self._customers), 1 + draw(LARGEST_AMOUNT)
            case "lines":
                order = self._id("orders", draw(*self._ids["orders"]))
                return id_, order, 1 + draw(PRODUCTS), 1 + draw(LARGEST_QUANTITY)
        tree, child = divmod(id_, TREE_EDGES)
        return id_, TREE_NODES * tree + (child + 1) // 2, TREE_NODES * tree + child + 1

    def _update(self, table: str, id_: int) -> Row:
        draw = self._random.randrange
        match table:
            case "orders":
                return id_, 1 + draw(LARGEST_AMOUNT)
            case "lines":
                return id_, 1 + draw(LARGEST_QUANTITY)
            case "customers":
                return id_, 1 + draw(REGIONS), draw(1000)
        # A parent with a lower number keeps a tree a tree.
        tree, child = divmod(id_, TREE_EDGES)
        return id_, TREE_NODES * tree + draw(child + 1)


def statement(batch: Batch) -> tuple[sql.Composed, list[list[int]]]:
    """Return the statement of a batch, whose parameters are an array for each column."""
    table, columns = sql.Identifier(batch.table), COLUMNS[batch.table]
    arrays = [list(column) for column in zip(*batch.rows, strict=True)]
    match batch.verb:
        case "insert":
            text = sql.SQL("INSERT INTO {} ({}) SELECT * FROM ROWS FROM ({})").format(
                table, _names(columns), _arrays(columns)
            )
        case "delete":
            text = sql.SQL("DELETE FROM {} WHERE id = ANY (%s::int[])").format(table)
        case _:
            updated = UPDATED[batch.table]
            assignments = (
                sql.SQL("{0} = new.{0}").format(sql.Identifier(column)) for column in updated
            )
            text = sql.SQL(
                "UPDATE {} AS old SET {} FROM ROWS FROM ({}) AS new (id, {}) WHERE old.id = new.id"
            ).format(
                table,
                sql.SQL(", ").join(assignments),
                _arrays(("id", *updated)),
                _names(updated),
            )
    return text, arrays


def _names(columns: tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def _arrays(columns: tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(sql.SQL("pg_catalog.unnest(%s::int[])") for _ in columns)
