"""`make bench-tpcds`: the 99 queries of TPC-DS, kept right under changes, and what they cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from bench.tpcds.changes import Changes
from bench.tpcds.generator import generate, texts
from bench.tpcds.load import add_keys, create_tables, load
from bench.tpcds.spread import spread
from bench.workload.main import main
from bench.workload.options import Options
from bench.workload.run import Workload


def workload(options: Options, folder: Path) -> Workload:
    """Return the queries over data of the chosen scale."""

    def filled(sql: psycopg.Connection[Any]) -> dict[str, int]:
        generate(folder / "data", options.scale)
        create_tables(sql)
        rows = load(sql, folder / "data")
        spread(sql)
        add_keys(sql)
        return rows

    changes = Changes(options.rows, options.seed, options.near_misses)
    return Workload("tpcds", options.wanted(texts()), filled, changes.apply)


if __name__ == "__main__":
    main(workload)
