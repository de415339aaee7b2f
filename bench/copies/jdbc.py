"""Spark's JDBC reader into Parquet, in a process of its own: `python -m bench.copies.jdbc`.

Its input is one JSON object; a line of output has the seconds of each round. The driver is one that
is on this machine already: nothing is downloaded.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

DRIVER = "postgresql-*.jar"
CLASS = "org.postgresql.Driver"
FETCH_ROWS = 10_000
LONGEST = 3600.0


class NotAvailable(Exception):
    """Raised, with the reason, where this machine has no JDBC access to the server."""


def places() -> Iterator[Path]:
    """Yield the folders in which a driver may be."""
    spark = find_spec("pyspark")
    if spark is not None and spark.origin is not None:
        yield Path(spark.origin).parent / "jars"
    home = Path.home()
    yield from (home / ".m2", *sorted(home.glob(".ivy2*")), home / ".cache/coursier")
    yield Path("/usr/share/java")


def find_driver(folders: Iterable[Path]) -> Path:
    """Return the newest driver below some folders; raise NotAvailable if there is none."""
    searched = []
    for folder in folders:
        found = [path for path in sorted(folder.rglob(DRIVER)) if "sources" not in path.name]
        if found:
            return found[-1]
        searched.append(str(folder))
    raise NotAvailable(f"no {DRIVER} in {', '.join(searched)}; DRIVER=file names one")


@dataclass(frozen=True)
class Address:
    """A database as JDBC reaches it."""

    url: str
    user: str
    password: str


def address(dsn: str) -> Address:
    """Return the JDBC address of a database; raise NotAvailable if it has no TCP address."""
    parts = conninfo_to_dict(dsn)
    host = str(parts.get("host") or "")
    if not host or host.startswith("/"):
        raise NotAvailable(
            "the server listens on a Unix socket only, which JDBC does not support;"
            " DSN=postgresql://user@host/database names another"
        )
    url = f"jdbc:postgresql://{host}:{parts.get('port') or 5432}/{parts.get('dbname') or ''}"
    return Address(url, str(parts.get("user") or ""), str(parts.get("password") or ""))


def measure(
    driver: Path, where: Address, table: str, rows: int, parts: int, rounds: int
) -> list[float]:
    """Return the seconds of each round after one of warm-up; raise NotAvailable if it fails."""
    asked = {
        "driver": str(driver),
        "url": where.url,
        "user": where.user,
        "password": where.password,
        "table": table,
        "rows": rows,
        "parts": parts,
        "rounds": rounds,
    }
    done = subprocess.run(
        [sys.executable, "-m", "bench.copies.jdbc"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST,
    )
    if done.returncode:
        raise NotAvailable(f"the JDBC reader failed: {(done.stderr.splitlines() or [''])[-1]}")
    seconds: list[float] = json.loads(done.stdout.splitlines()[-1])
    return seconds


def main() -> None:
    from pyspark.sql import SparkSession

    asked = json.loads(sys.stdin.readline())
    session = (
        SparkSession.builder.master("local[*]")
        .config("spark.jars", asked["driver"])
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    reader = session.read.format("jdbc").options(
        driver=CLASS,
        url=asked["url"],
        user=asked["user"],
        password=asked["password"],
        dbtable=asked["table"],
        fetchsize=FETCH_ROWS,
        partitionColumn="id",
        lowerBound=1,
        upperBound=asked["rows"],
        numPartitions=asked["parts"],
    )
    times = []
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        for number in range(1 + asked["rounds"]):
            target = str(Path(folder) / str(number))
            began = time.perf_counter()
            reader.load().write.parquet(target)
            times.append(time.perf_counter() - began)
        copied = session.read.parquet(target).count()
    session.stop()
    if copied != asked["rows"]:
        raise SystemExit(f"{copied} rows were copied of {asked['rows']}")
    sys.stdout.write(json.dumps(times[1:]) + "\n")


if __name__ == "__main__":
    main()
