"""`python -m fuzz SECONDS=1800 SEED=1`: stream tables on Spark; with `--plan` plans alone.

SHAPE="chain join" tries views of one shape alone. Exit code 1 if anything failed, or was refused
for a reason that fuzz/refusals.py has not. A file of tests/fuzz/examples as argument runs that
example.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

import headrace
from fuzz.example import read_script
from fuzz.plan_way import PlanWay
from fuzz.report import Report
from fuzz.rounds import Rounds, Size
from fuzz.spark_way import SparkWay
from fuzz.ways import Way, connect, run_example
from headrace.embedded import EmbeddedServer
from headrace.spark import profiles

SECONDS, SEED = 1800, 1
# Nearly every query is a new one: code that is generated for it would be compiled for one use.
# Generated code is what all other tests run; here PostgreSQL is the judge of what it means.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
PLANS, STREAM_TABLES = Size(16, 4, shrink_seconds=20), Size(16, 10, shrink_seconds=90)


@contextmanager
def ways(home: Path, *, plan: bool) -> Iterator[tuple[Way, Way | None]]:
    """The way to try, and a second one without Spark in a database of its own."""
    with EmbeddedServer.open(home) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("CREATE DATABASE pure")
        with connect(server.dsn_of("pure")) as connection:
            pure = PlanWay(connection)
            if plan:
                yield pure, None
                return
            tiny = {**profiles.PROFILES["tiny"], **INTERPRETED}
            profiles.PROFILES = {**profiles.PROFILES, "tiny": tiny}
            with (
                headrace.connect(home=home) as hr,
                connect(hr.dsn) as application,
            ):
                yield SparkWay(hr, application), pure


def main() -> None:
    given = dict(argument.split("=", 1) for argument in sys.argv[1:] if "=" in argument)
    plan = "--plan" in sys.argv
    scripts = [Path(argument) for argument in sys.argv[1:] if argument.endswith(".sql")]
    report = Report()
    with (
        tempfile.TemporaryDirectory(prefix="headrace-fuzz-", ignore_cleanup_errors=True) as home,
        ways(Path(home), plan=plan) as (way, pure),
    ):
        if scripts:
            for script in scripts:
                run_example(way, read_script(script.read_text(encoding="utf-8")))
            return
        size = PLANS if plan else STREAM_TABLES
        rounds = Rounds(way, pure, report, size, given.get("SHAPE"))
        rounds.run(int(given.get("SEED", SEED)), float(given.get("SECONDS", SECONDS)))
    for reason, example in report.refused_scripts.items():
        sys.stderr.write(f"refused {report.refused[reason]} times: {reason}\n{example}\n")
    sys.stdout.write(report.json() + "\n")
    sys.exit(1 if report.failures or report.unexpected else 0)


if __name__ == "__main__":
    main()
