"""Whether every stream table is fresh, active, and PostgreSQL's own answer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import psycopg

from bench.soak.shop import ANSWERS
from bench.soak.site import Site, Sql
from headrace.errors import HeadraceError

# Seconds within which everything has to be fresh once faults and writers have paused.
PATIENCE = 300.0


@dataclass
class Check:
    """What a checkpoint found, with writers and faults paused."""

    at: float
    settled: float | None = None
    trouble: str | None = None
    differences: list[str] = field(default_factory=list)
    inactive: list[str] = field(default_factory=list)
    rows: int = 0
    buffer_rows: int = 0


def check(site: Site, patience: float = PATIENCE) -> Check:
    """Wait until the daemon has caught up by itself, then compare all tables in one snapshot."""
    found = Check(round(site.clock(), 1))
    began = time.monotonic()
    found.trouble = _until_fresh(site, began + patience)
    if found.trouble is None:
        found.settled = round(time.monotonic() - began, 1)
    try:
        with site.connect() as connection:
            found.buffer_rows = _buffered(connection)
            with connection.transaction():
                _compare_all(connection, found)
    except psycopg.Error as error:
        found.settled, found.trouble = None, str(error)
    return found


def _compare_all(connection: Sql, found: Check) -> None:
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    for name, answer in ANSWERS.items():
        compare(connection, name, answer, found)
    found.inactive = [
        f"{name} is {status}: {reason}"
        for name, status, reason in connection.execute(
            "SELECT name, status, reason FROM headrace.status WHERE status <> 'ACTIVE'"
        )
    ]


def _until_fresh(site: Site, deadline: float) -> str | None:
    """Wait for all tables; what is in the way at the deadline, None if nothing is."""
    trouble = "the daemon does not serve"
    while time.monotonic() < deadline:
        if not site.until_serving(deadline - time.monotonic()):
            continue
        try:
            with site.project() as project:
                for name in ANSWERS:
                    project.wait_fresh(name, max(1.0, min(20.0, deadline - time.monotonic())))
        except (HeadraceError, psycopg.Error) as error:
            trouble = str(error)
            time.sleep(1)
        else:
            return None
    return trouble


def refreshes(site: Site) -> dict[str, int]:
    """Return how many refreshes of each mode the catalog still remembers."""
    with site.connect() as connection:
        rows = connection.execute("SELECT mode, count(*) FROM headrace.refreshes GROUP BY mode")
        return dict(rows.fetchall())


def compare(connection: Sql, name: str, answer: str, found: Check) -> None:
    """Add the difference of a served table from an answer, as bags."""
    missing, surplus, rows = connection.execute(
        f"WITH served AS (SELECT * FROM {name}), answer AS ({answer})"
        " SELECT (SELECT count(*) FROM (TABLE answer EXCEPT ALL TABLE served) x),"
        " (SELECT count(*) FROM (TABLE served EXCEPT ALL TABLE answer) x),"
        " (SELECT count(*) FROM served)".encode()
    ).fetchall()[0]
    found.rows += rows
    if missing or surplus:
        found.differences.append(f"{name}: {missing} rows missing, {surplus} surplus, of {rows}")


def _buffered(connection: Sql) -> int:
    """Return the rows of all change buffers."""
    names = connection.execute(
        "SELECT format('%I.%I', 'headrace_capture', relname) FROM pg_class WHERE relkind = 'r'"
        " AND relname LIKE 'buffer%' AND relnamespace = to_regnamespace('headrace_capture')"
    ).fetchall()
    total = 0
    for (name,) in names:
        row = connection.execute(f"SELECT count(*) FROM {name}".encode()).fetchone()
        assert row is not None
        total += row[0]
    return total
