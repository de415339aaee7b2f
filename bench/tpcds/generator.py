"""What duckdb's tpcds extension gives: the rows of a scale, and the texts of the queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from bench.tpcds.schema import TABLES


@contextmanager
def extension() -> Iterator[Any]:
    """A connection to an empty duckdb with the extension loaded."""
    # Here, because it comes with the bench alone: the rest of the bench is tested without it.
    import duckdb

    file = resources.files("duckdb_extension_tpcds") / f"extensions/v{duckdb.__version__}"
    with resources.as_file(file / "tpcds.duckdb_extension") as path, duckdb.connect() as connection:
        connection.load_extension(str(path))
        yield connection


def texts() -> dict[str, str]:
    """Return each query as duckdb prints it, by its name: q1 to q99."""
    with extension() as connection:
        rows = connection.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall()
    return {f"q{number}": text.strip().rstrip(";") for number, text in sorted(rows)}


def generate(folder: Path, scale: str) -> None:
    """Write the rows of a scale into a folder, a file <table>.csv for every table."""
    folder.mkdir(parents=True, exist_ok=True)
    with extension() as connection:
        connection.execute(f"CALL dsdgen(sf={float(scale)})")
        for table in TABLES:
            connection.execute(f"COPY {table} TO '{folder / table}.csv' (FORMAT csv, HEADER true)")
