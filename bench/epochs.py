"""Whether a refresh stays as fast as it was: `make bench-epochs`.

Two hundred epochs of small changes over the tables of `floor`: the last twenty refreshes are
compared with the first twenty after a warm-up, the live files of every log are counted after each,
and in the end what was maintained is compared with a fresh copy of the sources.
"""

from __future__ import annotations

import json
import statistics
import sys

from bench.floor import QUERIES, change, milliseconds, project
from headrace.api import Headrace

EPOCHS, WARM_UP, WINDOW = 200, 40, 20
ROWS = 200_000


def live_files(hr: Headrace) -> dict[str, int]:
    """How many files each log's pin names, by relation."""
    engine = hr._engine  # noqa: SLF001
    state = engine.catalog.state()
    return {
        relation.id: len(engine.store.files(relation.id, relation.pin, 0, relation.pin.epoch))
        for relation in state.relations
    }


def main() -> None:
    with project(ROWS) as (hr, sql):
        for name, query in QUERIES.items():
            hr.create_stream_table(name, query)
        times: dict[str, list[float]] = {name: [] for name in QUERIES}
        most = 0
        for epoch in range(WARM_UP + EPOCHS):
            change(sql, ROWS)
            for name in QUERIES:
                times[name].append(milliseconds(lambda name=name: hr.refresh(name)))  # type: ignore[misc]
            most = max(most, *live_files(hr).values())
            if epoch % 50 == 0:
                sys.stderr.write(f"epoch {epoch}\n")
        result = {}
        for name, measured in times.items():
            first = statistics.median(measured[WARM_UP : WARM_UP + WINDOW])
            last = statistics.median(measured[-WINDOW:])
            result[name] = {
                "epochs": EPOCHS,
                "first_ms": round(first, 1),
                "last_ms": round(last, 1),
                "last_over_first": round(last / first, 2),
                "most_live_files": most,
                "equal_to_a_fresh_copy": hr.verify(name, source=True).equal,
            }
        sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
