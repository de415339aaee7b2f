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

Sql = psycopg.Connection[Any]

TABLES = """
CREATE TABLE customers (id int PRIMARY KEY, region text);
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int, divisor int DEFAULT 1);
CREATE TABLE notes (id int, note text);
INSERT INTO customers SELECT i, 'r' || i % 3 FROM generate_series(0, 9) i;
INSERT INTO orders SELECT i, i % 10, i, 1 FROM generate_series(1, 40) i;
INSERT INTO notes SELECT i, 'note' FROM generate_series(1, 5) i;
"""
QUERIES = {
    "regions": "SELECT c.region, count(*) AS orders, sum(o.amount / o.divisor) AS amount"
    " FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region",
    "large": "SELECT region, amount FROM regions WHERE amount > 100",
    "noted": "SELECT note, count(*) AS n FROM notes GROUP BY note",
}


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


def uninstall(hr: headrace.Headrace) -> None:
    hr.uninstall()


@contextmanager
def locked(sql: Sql) -> Iterator[None]:
    """Somebody is busy with a table that is to be copied anew."""
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

LIFE: tuple[Action, ...] = (
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
    Action("drop", drop, ()),
    Action("create again", create("noted"), ("noted",)),
    Action("uninstall", uninstall, ()),
)
