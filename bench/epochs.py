"""Whether a refresh stays as fast as it was: `make bench-epochs`.

Five hundred epochs of small changes over the tables of `floor`: the last twenty refreshes are
compared with the first twenty after a warm-up, the live files of every log are counted after each,
and in the end what was maintained is compared with a fresh copy of the sources, and the store with
what it would take if every relation were written anew. Files that others replaced are kept for
RETENTION seconds, as a reader may need them; here that is short, and waited for in the end, so that
they do not hide the rest.
`ROWS=1000000 EPOCHS=100` take other numbers.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.fs as pafs

from bench.floor import QUERIES, change, milliseconds, project
from headrace.api import Headrace
from headrace.store import net
from headrace.store.parquet import write_part

EPOCHS, WARM_UP, WINDOW = 500, 40, 20
ROWS, RETENTION = 200_000, 10


def live_files(hr: Headrace) -> dict[str, int]:
    """How many files each log's pin names, by relation."""
    engine = hr._engine  # noqa: SLF001
    state = engine.catalog.state()
    return {
        relation.id: len(engine.store.files(relation.id, relation.pin, 0, relation.pin.epoch))
        for relation in state.relations
    }


def megabytes(hr: Headrace, home: Path) -> dict[str, float]:
    """What the store takes: all of it, Delta's logs, the rows that count, these written anew.

    What is neither log nor rows that count waits for its removal.
    """
    engine = hr._engine  # noqa: SLF001
    live = fresh = 0
    with tempfile.TemporaryDirectory() as folder:
        for relation in engine.catalog.state().relations:
            read = (relation.id, relation.pin, 0, relation.pin.epoch)
            live += sum(file.bytes for file in engine.store.files(*read))
            rows = net(engine.store.read(*read))
            fresh += write_part(pafs.LocalFileSystem(), f"{folder}/{relation.id}", rows, 1)
    found = [one for one in (home / "store").rglob("*") if one.is_file()]
    logs = sum(one.stat().st_size for one in found if one.parent.name == "_delta_log")
    everything = sum(one.stat().st_size for one in found)
    sizes = {"store": everything, "logs": logs, "live": live, "fresh": fresh}
    return {name: round(size / 1e6, 2) for name, size in sizes.items()}


def main() -> None:
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    epochs, rows = int(given.get("EPOCHS", EPOCHS)), int(given.get("ROWS", ROWS))
    with project(rows) as (hr, sql):
        hr.set("history_retention", RETENTION)
        for name, query in QUERIES.items():
            hr.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        times: dict[str, list[float]] = {name: [] for name in QUERIES}
        most = 0
        for epoch in range(WARM_UP + epochs):
            change(sql, rows)
            for name in QUERIES:
                times[name].append(milliseconds(lambda name=name: hr.refresh(name)))  # type: ignore[misc]
            most = max(most, *live_files(hr).values())
            if epoch % 50 == 0:
                sys.stderr.write(f"epoch {epoch}\n")
        result: dict[str, object] = {}
        for name, measured in times.items():
            first = statistics.median(measured[WARM_UP : WARM_UP + WINDOW])
            last = statistics.median(measured[-WINDOW:])
            result[name] = {
                "epochs": epochs,
                "first_ms": round(first, 1),
                "last_ms": round(last, 1),
                "last_over_first": round(last / first, 2),
                "most_live_files": most,
                "equal_to_a_fresh_copy": hr.verify(name, source=True).equal,
            }
        # What was replaced has waited for long enough by then, and goes with the next refreshes.
        time.sleep(RETENTION)
        change(sql, rows)
        for name in QUERIES:
            hr.refresh(name)
        result["megabytes"] = sizes = megabytes(hr, hr.home)
        result["store_over_fresh"] = round(sizes["store"] / sizes["fresh"], 2)
        sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
