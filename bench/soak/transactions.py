"""What writers of a soak do: transactions of many forms, each on keys of one writer alone.

Writers never touch the same rows, so none waits for another, and every wait has another cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from bench.soak.shop import ACCOUNTS, CUSTOMERS, NODES, ORDERS, PRODUCTS, SENSORS

# The pairs of entries that a writer leaves before it deletes the oldest.
PAIRS = 300
# Seconds for which a transaction stays open without a statement, at most.
IDLE = 4.0

ORDER = (
    "INSERT INTO orders VALUES (%s, %s, %s, %s, %s) ON CONFLICT (id) DO UPDATE"
    " SET status = excluded.status, amount = excluded.amount, customer = excluded.customer"
)


@dataclass(frozen=True)
class Statement:
    """SQL with its parameters, and seconds to wait after it."""

    text: str
    parameters: tuple[object, ...] = ()
    pause: float = 0.0


@dataclass(frozen=True)
class Transaction:
    """Statements that are committed together; `end` is COMMIT, ROLLBACK or PREPARE."""

    statements: tuple[Statement, ...]
    end: str = "COMMIT"


@dataclass
class Habits:
    """The transactions of one writer, of so many, from its own random numbers."""

    number: int
    writers: int
    random: Random
    pairs: list[int] = field(default_factory=list)
    next_pair: int = 0

    def __iter__(self) -> Iterator[Transaction]:
        weighted = [act for act, weight in FORMS for _ in range(weight)]
        while True:
            yield self.random.choice(weighted)(self)

    def key(self, upper: int) -> int:
        """A key below a bound that belongs to this writer."""
        return self.random.randrange(self.number, upper, self.writers)

    def order(self, number: int) -> Statement:
        status, amount = f"s{self.random.randrange(5)}", self.random.randrange(1, 100_000) / 100
        note = f"n{self.random.randrange(9)}"
        return Statement(
            ORDER, (number, self.random.randrange(CUSTOMERS + 3), status, amount, note)
        )


def transfer(habits: Habits) -> Transaction:
    """Two entries that add up to zero, in two statements, or the same pair gone."""
    random, pair = habits.random, habits.next_pair * habits.writers + habits.number
    habits.next_pair += 1
    statements = []
    if len(habits.pairs) > PAIRS:
        gone = habits.pairs[0]
        statements.append(Statement("DELETE FROM entries WHERE pair = %s", (gone,)))
    one, other = random.sample(range(ACCOUNTS), 2)
    amount = random.randrange(1, 1000)
    entry = "INSERT INTO entries VALUES (%s, %s, %s, %s)"
    statements += [
        Statement(entry, (pair, 0, one, -amount), random.random() * 0.05),
        Statement(entry, (pair, 1, other, amount)),
    ]
    return Transaction(tuple(statements))


def sell(habits: Habits) -> Transaction:
    """An order and its items."""
    number = habits.key(ORDERS)
    lines = range(1, habits.random.randrange(2, 5))
    item = (
        "INSERT INTO items VALUES (%s, %s, %s, %s) ON CONFLICT (order_id, line) DO UPDATE"
        " SET quantity = excluded.quantity, product = excluded.product"
    )
    products = PRODUCTS + 3
    return Transaction(
        (
            habits.order(number),
            *(
                Statement(
                    item,
                    (number, line, habits.random.randrange(products), habits.random.randrange(9)),
                )
                for line in lines
            ),
        )
    )


def cancel(habits: Habits) -> Transaction:
    number = habits.key(ORDERS)
    return Transaction(
        (
            Statement("DELETE FROM items WHERE order_id = %s", (number,)),
            Statement("DELETE FROM orders WHERE id = %s", (number,)),
        )
    )


def in_bulk(habits: Habits) -> Transaction:
    """Some hundred rows in one statement."""
    status = f"s{habits.random.randrange(5)}"
    rest = habits.number
    return Transaction(
        (
            Statement(
                "UPDATE orders SET status = %s, amount = amount + 1 WHERE id %% %s = %s"
                " AND id < %s AND amount < 5000",
                (status, habits.writers, rest, habits.random.randrange(ORDERS)),
            ),
        )
    )


def master_data(habits: Habits) -> Transaction:
    region, category = f"r{habits.random.randrange(6)}", f"c{habits.random.randrange(6)}"
    price = habits.random.randrange(1, 10_000) / 100
    return Transaction(
        (
            Statement(
                "UPDATE customers SET region = %s WHERE id = %s", (region, habits.key(CUSTOMERS))
            ),
            Statement(
                "INSERT INTO products VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE"
                " SET price = excluded.price, category = excluded.category",
                (habits.key(PRODUCTS), category, price),
            ),
        )
    )


def graph(habits: Habits) -> Transaction:
    a, b = habits.key(NODES), habits.random.randrange(NODES)
    if habits.random.random() < 0.5:
        return Transaction((Statement("DELETE FROM edges WHERE a = %s", (a,)),))
    return Transaction(
        (Statement("INSERT INTO edges VALUES (%s, %s) ON CONFLICT DO NOTHING", (a, b)),)
    )


def events(habits: Habits) -> Transaction:
    """Equal rows of a table without a key; each writer has kinds of its own."""
    kind = habits.number + habits.writers * habits.random.randrange(4)
    value = habits.random.randrange(11)
    return Transaction(
        (
            Statement("INSERT INTO events VALUES (%s, %s), (%s, %s)", (kind, value, kind, value)),
            Statement(
                "DELETE FROM events WHERE ctid = ANY (ARRAY (SELECT ctid FROM events"
                " WHERE kind = %s LIMIT %s))",
                (kind, habits.random.randrange(5)),
            ),
        )
    )


def measure(habits: Habits) -> Transaction:
    """Rows of partitions, some of which move to the other partition."""
    sensor = habits.key(SENSORS)
    at, value = habits.random.randrange(12), habits.random.randrange(100)
    reading = (
        "INSERT INTO readings VALUES (%s, %s, %s) ON CONFLICT (sensor, at) DO UPDATE"
        " SET value = excluded.value"
    )
    moved = (sensor + SENSORS // 2) % SENSORS
    return Transaction(
        (
            Statement(reading, (sensor, at, value)),
            Statement("DELETE FROM readings WHERE sensor = %s AND at = 12", (moved,)),
            Statement(
                "UPDATE readings SET sensor = %s, at = 12 WHERE sensor = %s AND at = %s",
                (moved, sensor, at),
            ),
        )
    )


def left_open(habits: Habits) -> Transaction:
    """A transaction that has written and then stands still for seconds."""
    pause = habits.random.uniform(1, IDLE)
    first = habits.order(habits.key(ORDERS))
    return Transaction(
        (Statement(first.text, first.parameters, pause), habits.order(habits.key(ORDERS)))
    )


def given_up(habits: Habits) -> Transaction:
    return Transaction(transfer(habits).statements[-1:], end="ROLLBACK")


def in_parts(habits: Habits) -> Transaction:
    """A savepoint that is rolled back inside what is committed."""
    return Transaction(
        (
            habits.order(habits.key(ORDERS)),
            Statement("SAVEPOINT part"),
            Statement("DELETE FROM orders WHERE id = %s", (habits.key(ORDERS),)),
            Statement("ROLLBACK TO part"),
            habits.order(habits.key(ORDERS)),
        )
    )


def prepared(habits: Habits) -> Transaction:
    """Committed in two phases, with a pause between."""
    return Transaction((habits.order(habits.key(ORDERS)),), end="PREPARE")


# Every form with how often it occurs, relative to the others.
FORMS: tuple[tuple[Callable[[Habits], Transaction], int], ...] = (
    (transfer, 8),
    (sell, 6),
    (cancel, 5),
    (master_data, 2),
    (graph, 1),
    (events, 3),
    (measure, 3),
    (in_bulk, 1),
    (left_open, 1),
    (given_up, 1),
    (in_parts, 1),
    (prepared, 1),
)
