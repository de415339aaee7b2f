"""`make bench-job`: the Join Order Benchmark, kept right under changes, and what it costs."""

from __future__ import annotations

from pathlib import Path

from bench.job.data import TITLES, Movies
from bench.job.families import FAMILIES
from bench.job.render import queries
from bench.workload.main import main
from bench.workload.options import Options
from bench.workload.run import Workload


def workload(options: Options, folder: Path) -> Workload:  # noqa: ARG001
    """Return the queries over data of the chosen scale."""
    movies = Movies(round(TITLES * float(options.scale)), options.rows, options.seed)
    return Workload("job", options.wanted(queries(FAMILIES)), movies.load, movies.change)


if __name__ == "__main__":
    main(workload)
