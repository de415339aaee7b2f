"""A stream table's life as a list of actions, each of which may be cut short anywhere.

`perform` can be repeated after a crash: it goes on from whatever it finds. What the application
does meanwhile (`before`, `during`) is done by the test's own connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

import headrace
from headrace.errors import HeadraceError
from tests.crash.transitions import there_and_back

Sql = psycopg.Connection[Any]

TABLES = """
CREATE TABLE customers (id int PRIMARY KEY, region text);
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int, divisor int DEFAULT 1);
CREATE TABLE notes (id int, note text);
CREATE TABLE edges (a int, b int);
INSERT INTO customers SELECT i, 'r' || i % 3 FROM generate_series(0, 9) i;
INSERT INTO orders SELECT i, i % 10, i, 1 FROM generate_series(1, 40) i;
INSERT INTO notes SELECT i, 'note' FROM generate_series(1, 5) i;
INSERT INTO edges VALUES (0, 1), (1, 2), (2, 3), (3, 1), (3, 3), (7, 8);
"""
QUERIES = {
    "regions": "SELECT c.region, count(*) AS orders, sum(o.amount / o.divisor) AS amount"
    " FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region",
    "large": "SELECT region, amount FROM regions WHERE amount > 100",
    "noted": "SELECT note, count(*) AS n FROM notes GROUP BY note",
    "reached": "WITH RECURSIVE r AS (SELECT b FROM edges WHERE a = 0 UNION"
    " SELECT e.b FROM r JOIN edges e ON e.a = r.b) SELECT b FROM r",
}
CYCLE = {
    "odd": "SELECT a, b FROM edges UNION SELECT w.a, e.b FROM even w JOIN edges e ON e.a = w.b",
    "even": "SELECT w.a, e.b FROM odd w JOIN edges e ON e.a = w.b",
}
WALKS = (
    "WITH RECURSIVE r AS (SELECT a, b, true AS odd FROM edges UNION"
    " SELECT r.a, e.b, NOT odd FROM r JOIN edges e ON e.a = r.b) SELECT a, b FROM r WHERE "
)
ANSWERS = {**QUERIES, "odd": f"{WALKS} odd", "even": f"{WALKS} NOT odd"}
"""What each stream table has to show, as PostgreSQL computes it."""


@dataclass(frozen=True)
class Action:
    """Something a user does; `tables` are the stream tables that exist and are fresh after it."""

    name: str
    perform: Callable[[headrace.Headrace], object]
    tables: tuple[str, ...]
    before: str = "SELECT"
    during: Callable[[Sql], AbstractContextManager[object]] = lambda sql: nullcontext()


def create(*names: str) -> Callable[[headrace.Headrace], object]:
    def perform(hr: headrace.Headrace) -> None:
        there = {status.name for status in hr.status()}
        for name in names:
            if f"public.{name}" not in there:
                hr.create_stream_table(name, QUERIES[name])

    return perform


def create_loops(hr: headrace.Headrace) -> None:
    """A recursion, and two tables that read each other."""
    hr.set("allow_circular", True)
    there = {status.name for status in hr.status()}
    if "public.reached" not in there:
        hr.create_stream_table("reached", QUERIES["reached"])
    if "public.odd" not in there:
        hr.create_stream_tables(CYCLE)


def drop_loops(hr: headrace.Headrace) -> None:
    there = {status.name for status in hr.status()}
    for name in ("reached", "odd"):
        if f"public.{name}" in there:
            hr.drop_stream_table(name, cascade=True)


def refresh(*names: str) -> Callable[[headrace.Headrace], object]:
    return lambda hr: [hr.refresh(name) for name in names]


def refresh_in_vain(hr: headrace.Headrace) -> None:
    """A division by zero: the refresh fails, and the old rows stay."""
    with pytest.raises(HeadraceError) as raised:
        hr.refresh("regions")
    assert raised.value.code == "query-failed"


def drop(hr: headrace.Headrace) -> None:
    there = {status.name for status in hr.status()}
    for name in ("regions", "noted"):
        if f"public.{name}" in there:
            hr.drop_stream_table(name, cascade=True)
    # A drop that died after its commit is finished by whoever writes next.
    with hr._engine.writing():
        pass


def alter(hr: headrace.Headrace) -> None:
    """Held still, its query changed to one that needs a new column, and changed back."""
    hr.suspend("noted")
    hr.alter_stream_table("noted", query="SELECT extra, count(*) AS n FROM notes GROUP BY extra")
    hr.alter_stream_table("noted", query=QUERIES["noted"], schedule="1m")
    hr.resume("noted")
    hr.refresh("large")


def give_key(hr: headrace.Headrace) -> None:
    """Another index of a served table, and the one that was there again."""
    hr.alter_stream_table("noted", key="note")
    hr.alter_stream_table("noted", key=None)


def follow_log(hr: headrace.Headrace) -> None:
    """Those with a key are read from the server's log for a while; `notes` has none."""
    there_and_back(hr)
    hr.refresh("large")
    hr.refresh("noted")


def uninstall(hr: headrace.Headrace) -> None:
    hr.uninstall()


@contextmanager
def locked(sql: Sql) -> Iterator[None]:
    """Another session locks a table that must be copied again."""
    with sql.transaction(force_rollback=True):
        sql.execute("LOCK TABLE notes IN ACCESS EXCLUSIVE MODE")
        yield


CHANGE = """
UPDATE orders SET amount = amount + 1, customer = (customer + 1) % 11 WHERE id % 3 = 0;
DELETE FROM orders WHERE id IN (SELECT min(id) FROM orders);
INSERT INTO orders SELECT max(id) + 1, 1, 7, 1 FROM orders;
INSERT INTO notes VALUES (0, NULL)
"""
EVERYTHING = ("regions", "large", "noted")
BROKEN = "UPDATE orders SET divisor = 0 WHERE id = (SELECT max(id) FROM orders)"
MENDED = "UPDATE orders SET divisor = 1"

LOOPS = ("reached", "odd", "even")
OTHER_EDGES = (
    "DELETE FROM edges WHERE a IN (0, 2); INSERT INTO edges VALUES (0, 2), (8, 9), (2, 4), (2, 4)"
)

LIFE: tuple[Action, ...] = (
    Action("create loops", create_loops, LOOPS),
    Action("follow", refresh("reached", "even"), LOOPS, before=OTHER_EDGES),
    Action("drop loops", drop_loops, ()),
    Action("create", create("regions"), ("regions",)),
    Action("create more", create("large", "noted"), EVERYTHING),
    Action("refresh", refresh("large", "noted"), EVERYTHING, before=CHANGE),
    Action(
        "copy again",
        refresh("large", "noted"),
        EVERYTHING,
        before=f"{CHANGE}; TRUNCATE notes; INSERT INTO notes VALUES (1, 'again')",
    ),
    Action(
        "one is busy",
        refresh("large"),
        ("regions", "large"),
        before=f"{CHANGE}; VACUUM FULL notes",
        during=locked,
    ),
    Action("fail", refresh_in_vain, (), before=BROKEN),
    Action("recover", refresh("large", "noted"), EVERYTHING, before=MENDED),
    Action("alter", alter, EVERYTHING, before="ALTER TABLE notes ADD COLUMN extra int"),
    Action("give a key", give_key, EVERYTHING),
    Action("follow the server's log", follow_log, EVERYTHING, before=CHANGE),
    Action("drop", drop, ()),
    Action("create again", create("noted"), ("noted",)),
    Action("uninstall", uninstall, ()),
)
