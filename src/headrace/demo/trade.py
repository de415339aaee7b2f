"""Transactions of the shop's customers, drawn by weight, and a thread that runs them."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import astuple, dataclass
from types import TracebackType
from typing import Any

import psycopg

CITIES = ("Lisbon", "Oslo", "Ghent", "Graz", "Porto")


@dataclass(frozen=True)
class TradeTotals:
    """Counts of the shop's writes: transactions, committed rows by kind, and rollbacks."""

    transactions: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    rolled_back: int = 0

    def __add__(self, other: TradeTotals) -> TradeTotals:
        return TradeTotals(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: TradeTotals) -> TradeTotals:
        return TradeTotals(*(a - b for a, b in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class Till:
    """A connection, and the random numbers that choose customers, products and acts."""

    connection: psycopg.Connection
    chance: random.Random

    def do(self, statement: str, *values: Any) -> int:
        """Run a statement; return the number of rows that it touched."""
        return self.connection.execute(statement.encode(), values).rowcount

    def ask(self, question: str, *values: Any) -> int:
        """Return the number that a query returns; 0 for none."""
        row = self.connection.execute(question.encode(), values).fetchone()
        return 0 if row is None or row[0] is None else int(row[0])

    def some(self, table: str) -> int:
        """Return a number in the range of a table's ids; the row itself may be gone."""
        return self.chance.randint(1, max(self.ask(f"SELECT max(id) FROM shop.{table}"), 1))


def order(till: Till) -> TradeTotals:
    """Insert an order with a few lines."""
    number = till.ask(
        "INSERT INTO shop.orders (customer_id, ordered_on, status)"
        " VALUES (%s, current_date, 'open') RETURNING id",
        till.some("customers"),
    )
    lines = till.chance.randint(1, 6)
    for line in range(1, lines + 1):
        till.do(
            "INSERT INTO shop.order_lines"
            " SELECT %s, %s, id, %s, price FROM shop.products WHERE id = %s",
            *(number, line, till.chance.randint(1, 9), till.some("products")),
        )
    return TradeTotals(1, inserted=1 + lines)


def correct(till: Till) -> TradeTotals:
    """Change the quantity of an order line, or delete the line."""
    number = till.some("orders")
    line = " WHERE (order_id, line) = (SELECT order_id, line FROM shop.order_lines"
    line += " WHERE order_id >= %s ORDER BY order_id, line LIMIT 1)"
    if till.chance.random() < 0.2:
        return TradeTotals(1, deleted=till.do("DELETE FROM shop.order_lines" + line, number))
    quantity = till.chance.randint(1, 9)
    statement = "UPDATE shop.order_lines SET quantity = %s" + line
    return TradeTotals(1, updated=till.do(statement, quantity, number))


def ship(till: Till) -> TradeTotals:
    """Mark a few open orders as shipped."""
    shipped = till.do(
        "UPDATE shop.orders SET status = 'shipped' WHERE id IN (SELECT id FROM shop.orders"
        " WHERE id >= %s AND status = 'open' ORDER BY id LIMIT 3)",
        till.some("orders"),
    )
    return TradeTotals(1, updated=shipped)


def cancel(till: Till) -> TradeTotals:
    """Delete an order, and its lines with it."""
    number = till.ask("SELECT max(id) FROM shop.orders WHERE id <= %s", till.some("orders"))
    lines = till.ask("SELECT count(*) FROM shop.order_lines WHERE order_id = %s", number)
    return TradeTotals(1, deleted=till.do("DELETE FROM shop.orders WHERE id = %s", number) + lines)


def move(till: Till) -> TradeTotals:
    """Change the city of a customer."""
    city, number = till.chance.choice(CITIES), till.some("customers")
    return TradeTotals(
        1, updated=till.do("UPDATE shop.customers SET city = %s WHERE id = %s", city, number)
    )


def regret(till: Till) -> TradeTotals:
    """Change many lines, and roll the transaction back."""
    number = till.some("orders")
    till.do(
        "UPDATE shop.order_lines SET quantity = 999 WHERE order_id BETWEEN %s AND %s",
        *(number, number + 50),
    )
    raise psycopg.Rollback


ACTS: tuple[tuple[Callable[[Till], TradeTotals], int], ...] = (
    (order, 50),
    (correct, 22),
    (ship, 12),
    (cancel, 8),
    (move, 4),
    (regret, 4),
)


def trade(till: Till) -> TradeTotals:
    """Run one transaction; return its counts, without rows if it was rolled back."""
    (act,) = till.chance.choices([act for act, _ in ACTS], [weight for _, weight in ACTS])
    done: list[TradeTotals] = []
    with till.connection.transaction():
        done.append(act(till))
    return done[0] if done else TradeTotals(1, rolled_back=1)


def trade_batch(dsn: str, seed: int, transactions: int) -> None:
    """Run some transactions, one after the other."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        till = Till(connection, random.Random(seed))  # noqa: S311
        for _ in range(transactions):
            trade(till)


PAUSE = 0.03


class Writer:
    """Writes while it is entered; `written` may be read at any time."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shop", daemon=True)
        self._failure: psycopg.Error | None = None
        self.written = TradeTotals()

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Wait for the transaction under way, and write no more."""
        self._stop.set()
        self._thread.join()

    def check(self) -> None:
        """Raise the thread's error, if any: capture must never make a statement fail."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            with psycopg.connect(self._dsn, autocommit=True) as connection:
                till = Till(connection, random.Random(7))  # noqa: S311
                while not self._stop.wait(PAUSE):
                    self.written = self.written + trade(till)
        except psycopg.Error as error:
            self._failure = error
