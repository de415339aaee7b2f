"""What the owner of the application's tables does to them, and users to stream tables."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.soak.plan import Event
from bench.soak.shop import NODES, SENSORS
from bench.soak.site import OWNER, RUNTIME, SCHEDULE, Site, Sql
from headrace.errors import HeadraceError, Transient, Unavailable

# Seconds within which a command that was lost with the daemon is given again.
PATIENCE = 120.0


def truncate(site: Site, event: Event) -> str:
    """Empty a table, and fill it again in the same transaction or not at all."""
    random = event.random()
    table, refill = random.choice(
        (
            ("events", "INSERT INTO events SELECT i % 7, i % 11 FROM generate_series(1, 200) i"),
            (
                "edges",
                f"INSERT INTO edges SELECT i, (i * 3 + 1) % {NODES}"
                f" FROM generate_series(0, {NODES} - 1) i",
            ),
            ("items", ""),
            ("readings_low", ""),
        )
    )
    with _owner(site) as connection, connection.transaction():
        connection.execute(f"TRUNCATE {table}".encode())
        if refill:
            connection.execute(refill.encode())
    return f"TRUNCATE {table}"


def rewrite(site: Site, event: Event) -> str:
    table = event.random().choice(("orders", "customers", "entries", "events"))
    with _owner(site) as connection:
        connection.execute(f"VACUUM FULL {table}".encode())
    return f"VACUUM FULL {table}"


def add_column(site: Site, event: Event) -> str:
    """Add a column that no query names, or drop one that was added before."""
    random = event.random()
    table = random.choice(("orders", "products", "entries", "customers"))
    column = f"extra_{random.randrange(2)}"
    with _owner(site) as connection:
        known = connection.execute(
            "SELECT 1 FROM pg_attribute WHERE attrelid = %s::regclass AND attname = %s",
            (table, column),
        ).fetchone()
        act = f"DROP COLUMN {column}" if known else f"ADD COLUMN {column} int DEFAULT 7"
        connection.execute(f"ALTER TABLE {table} {act}".encode())
    return f"ALTER TABLE {table} {act}"


def widen_column(site: Site, _: Event) -> str:
    """Give a column that stream tables show a longer type."""
    with _owner(site) as connection:
        row = connection.execute(
            "SELECT atttypmod - 4 FROM pg_attribute"
            " WHERE attrelid = 'orders'::regclass AND attname = 'note'"
        ).fetchone()
        assert row is not None
        act = f"ALTER TABLE orders ALTER note TYPE varchar({row[0] + 1})"
        connection.execute(act.encode())
    return act


def partitions(site: Site, event: Event) -> str:
    """Add a partition with rows, or take one away that was added before."""
    number = event.random().randrange(2)
    name, low = f"readings_{number}", SENSORS * (number + 1)
    with _owner(site) as connection:
        known = connection.execute("SELECT to_regclass(%s)", (name,)).fetchone()
        if known != (None,):
            connection.execute(f"ALTER TABLE readings DETACH PARTITION {name}".encode())
            connection.execute(f"DROP TABLE {name}".encode())
            return f"{name} detached and dropped"
        with connection.transaction():
            connection.execute(
                f"CREATE TABLE {name} (LIKE readings INCLUDING ALL);"
                f"INSERT INTO {name} SELECT {low} + i % {SENSORS}, i / {SENSORS}, i"
                " FROM generate_series(0, 99) i;"
                f"ALTER TABLE readings ATTACH PARTITION {name}"
                f" FOR VALUES FROM ({low}) TO ({low + SENSORS});"
                f"GRANT SELECT ON {name} TO {RUNTIME}".encode()
            )
    return f"{name} attached"


def stream_table(site: Site, event: Event) -> str:
    """Create a stream table while everything goes on, and drop it."""
    name = f"extra_{event.seed}"
    query = (
        "SELECT o.status, p.category, sum(i.quantity) AS n FROM orders o JOIN items i"
        " ON i.order_id = o.id JOIN products p ON p.id = i.product GROUP BY o.status, p.category"
    )
    known = "SELECT 1 FROM headrace.stream_tables WHERE name = %s"
    _until(
        site,
        name,
        known,
        True,
        lambda project: project.create_stream_table(  # type: ignore[attr-defined]
            name, query, schedule=SCHEDULE
        ),
    )
    time.sleep(event.hold)
    _until(site, name, known, False, lambda project: project.drop_stream_table(name))  # type: ignore[attr-defined]
    return "a stream table created and dropped"


def _until(
    site: Site, name: str, query: str, wanted: bool, act: Callable[[object], object]
) -> None:
    """Give a command until it is done: the daemon may be lost under it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with site.connect() as connection:
                if (connection.execute(query.encode(), (name,)).fetchone() is not None) == wanted:
                    return
            with site.project() as project:
                act(project)
        except (Transient, Unavailable) as error:
            _wait(deadline, error)


def _wait(deadline: float, error: HeadraceError) -> None:
    if time.monotonic() > deadline:
        raise error
    time.sleep(1)


def _owner(site: Site) -> Sql:
    return site.connect(OWNER, "soak ddl")


DDL: dict[str, Callable[[Site, Event], str]] = {
    "truncate": truncate,
    "rewrite": rewrite,
    "add_column": add_column,
    "widen_column": widen_column,
    "partitions": partitions,
    "stream_table": stream_table,
}
