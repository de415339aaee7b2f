"""What skipping strata saves a daemon: `make bench-strata`.

A hundred stream tables in five strata, twenty in each: one of the lowest is read by all of the
second, and each of these has one reader in every stratum above. Changes of three kinds are
committed, with and without `enable_stratum_skip`: one of a source whose table nobody reads, one
that no reader of the lowest table sees, and one that no reader of the second stratum sees. For each
kind the last line has, per change, how many tables were refreshed, how many statements PostgreSQL
got (without the question whether there is anything new), how many Spark jobs ran, and the
milliseconds from the commit to the last publish. `ARGS='rounds=3 tables=20'` makes it shorter.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

import headrace
from bench.daemon import LONGEST, Sql, say, serving

SIZES = {"rounds": 10, "tables": 100, "warm_up": 3}
STRATA = 5
NUMBERS = itertools.count(1)
LINES = "SELECT count(*), max(finished_at) FROM headrace.refreshes"


@dataclass(frozen=True)
class Kind:
    """A kind of change, and how many tables it makes a daemon refresh, by the number in a stratum.

    `looked_at` are those without skipping.
    """

    name: str
    statement: str
    refreshed: Callable[[int], int]
    looked_at: Callable[[int], int]


KINDS = (
    Kind("read_by_nobody", "INSERT INTO s1 VALUES (1, 1)", lambda n: 1, lambda n: 1),
    Kind("unseen_by_stratum_2", "INSERT INTO s0 VALUES (1, 0)", lambda n: 1, lambda n: 1 + n),
    Kind(
        "unseen_by_stratum_3",
        "INSERT INTO s0 VALUES (1000 + {}, 0)",
        lambda n: 1 + n,
        lambda n: 1 + 2 * n,
    ),
)


def queries(width: int) -> dict[str, str]:
    """The stream tables, each after what it reads."""
    found = {f"a{i}": f"SELECT k, sum(v) AS v FROM s{i} GROUP BY k" for i in range(width)}
    for i in range(width):
        found[f"b{i}"] = f"SELECT k % 10 AS k, sum(v) + {i} AS v FROM a0 GROUP BY k % 10"
        found[f"c{i}"] = f"SELECT count(*) AS n, max(v) AS v FROM b{i}"
        found[f"d{i}"] = f"SELECT sum(n) AS n, max(v) AS v FROM c{i}"
        found[f"e{i}"] = f"SELECT sum(n) AS n, max(v) AS v FROM d{i}"
    return found


@contextmanager
def counted(own: Sql) -> Iterator[list[int]]:
    """Count the statements of all other connections; the question for news is given as bytes."""
    number = [0]
    execute = psycopg.Cursor.execute

    def counting(self: Any, query: Any, *given: Any, **named: Any) -> Any:
        number[0] += self.connection is not own and not isinstance(query, bytes)
        return execute(self, query, *given, **named)

    psycopg.Cursor.execute = counting  # type: ignore[method-assign]
    try:
        yield number
    finally:
        psycopg.Cursor.execute = execute  # type: ignore[method-assign]


def lines(sql: Sql) -> tuple[int, float]:
    """How many refreshes there were, and when the last one ended."""
    row = sql.execute(LINES).fetchone()
    assert row is not None
    return int(row[0]), row[1].timestamp()


def settled(sql: Sql, expected: int) -> float:
    """Wait until there were so many refreshes and no more; when the last one ended."""
    deadline = time.monotonic() + LONGEST
    while lines(sql)[0] < expected:
        if time.monotonic() > deadline:
            raise SystemExit(f"{lines(sql)[0]} refreshes, not {expected}")
        time.sleep(0.01)
    time.sleep(0.3)
    number, ended = lines(sql)
    if number != expected:
        raise SystemExit(f"{number} refreshes, not {expected}")
    return ended


def measure(
    hr: headrace.Headrace, sql: Sql, kind: Kind, refreshed: int, rounds: int
) -> dict[str, Any]:
    """What one change of a kind costs, at the median."""
    runner = hr._engine.runner  # noqa: SLF001
    took, statements, jobs = [], [], []
    for _ in range(rounds):
        before = lines(sql)[0]
        with counted(sql) as number:
            started, began = runner.jobs, time.time()
            sql.execute(kind.statement.format(next(NUMBERS)))
            took.append(1000 * (settled(sql, before + refreshed) - began))
        statements.append(number[0])
        jobs.append(runner.jobs - started)
    return {
        "refreshed": refreshed,
        "statements": statistics.median(statements),
        "spark_jobs": statistics.median(jobs),
        "ms": round(statistics.median(took)),
    }


def main(arguments: list[str]) -> None:
    sizes = dict(SIZES)
    for name, _, value in (one.partition("=") for one in arguments):
        if name not in sizes:
            raise SystemExit(f"{name} is none of {', '.join(sizes)}")
        sizes[name] = int(value)
    width = sizes["tables"] // STRATA
    result: dict[str, Any] = {"tables": width * STRATA, "strata": STRATA}
    with (
        tempfile.TemporaryDirectory(prefix="headrace-bench-", ignore_cleanup_errors=True) as folder,
        headrace.connect(home=Path(folder)) as hr,
        psycopg.connect(hr.dsn, autocommit=True) as sql,
    ):
        for i in range(width):
            sql.execute(f"CREATE TABLE s{i} (k bigint, v bigint)")
            sql.execute(f"INSERT INTO s{i} SELECT i % 100, i FROM generate_series(1, 1000) i")
        say("creating the stream tables")
        hr.create_stream_tables(
            {name: {"query": query, "schedule": "10ms"} for name, query in queries(width).items()}
        )
        for skipping in (False, True):
            hr.set("enable_stratum_skip", skipping)
            word = "skipping" if skipping else "looking_at_each"
            result[word] = {}
            with serving(hr):
                for kind in KINDS:
                    say(f"{kind.name}, {word}")
                    number = (kind.refreshed if skipping else kind.looked_at)(width)
                    measure(hr, sql, kind, number, sizes["warm_up"])
                    found = measure(hr, sql, kind, number, sizes["rounds"])
                    result[word][kind.name] = found
        result["ticks"] = {
            str(one.stratum): {"refreshed": one.refreshed, "skipped": one.skipped}
            for one in hr.stratum_status()
        }
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
