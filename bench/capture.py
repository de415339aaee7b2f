"""What capture costs, by triggers and from the server's log: `make bench-capture`.

One run measures three things. Decoding: changes a second from pgoutput's messages to Arrow columns,
in memory. Ingest: changes a second of one ingest from a database into the source relation. Writing:
what a written row costs the application over one in a table that is not captured, for single-row
statements and statements of 1,000, 10,000 and 100,000 rows, over 3 and 20 columns, by 1, 8 and 50
writers (50 with small statements only), and whether that grows with the size of a statement.
`trigger_unlogged` has change buffers without WAL; `wal_key` has the replica identity that a primary
key gives by itself, `wal_full` REPLICA IDENTITY FULL. No Spark takes part.
`ROWS=1000 ROUNDS=1` makes it short: ROWS is the largest statement, all other sizes follow it.
"""

from __future__ import annotations

import json
import statistics
import sys
from contextlib import ExitStack
from typing import Any

from bench import capture_decode
from bench.capture_ingest import TRANSACTION, ingested
from bench.capture_worlds import WAYS, World, open_world
from bench.capture_writing import cases, written

SIZES = {"ROWS": 100_000, "ROUNDS": 5}
WRITERS = (1, 8, 50)


def say(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def decoded(changes: int, rounds: int) -> dict[str, Any]:
    """The rate of decoding alone, after one round of warm-up."""
    seen = [capture_decode.measure(changes, TRANSACTION) for _ in range(rounds + 1)]
    rate = statistics.median(one.rate for one in seen[1:])
    return {"changes": changes, "changes_per_second": round(rate)}


def measure(worlds: list[World], rows: int, rounds: int) -> dict[str, Any]:
    say("measuring decoding")
    result: dict[str, Any] = {"decoded": decoded(2 * rows, rounds)}
    say("measuring ingest")
    result["ingested"] = ingested([w for w in worlds if w.way != "none"], rows, rounds)
    result |= {"written": [], "growth": []}
    for table in ("narrow", "wide"):
        for writers in WRITERS:
            say(f"measuring writes to the {table} table, {writers} at a time")
            costs, growth = written(worlds, cases(table, writers, rows), rounds)
            result["written"] += costs
            result["growth"] += growth
    return result


def main(arguments: list[str]) -> None:
    sizes = dict(SIZES)
    for name, _, value in (one.partition("=") for one in arguments):
        if name not in sizes or not value.isdigit() or int(value) < 1:
            raise SystemExit(f"{name}={value} is none of {', '.join(sizes)} with a number")
        sizes[name] = int(value)
    with ExitStack() as stack:
        say("starting servers")
        worlds = [stack.enter_context(open_world(way)) for way in WAYS]
        result = measure(worlds, sizes["ROWS"], sizes["ROUNDS"])
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
