"""The 22 queries, unedited, as duckdb's tpch extension prints them."""

from __future__ import annotations

from importlib import resources


def queries() -> dict[str, str]:
    """Each query's text by its name: q1 to q22."""
    # Here, because it comes with the bench alone: the rest of the bench is tested without it.
    import duckdb

    file = resources.files("duckdb_extension_tpch") / f"extensions/v{duckdb.__version__}"
    with (
        resources.as_file(file / "tpch.duckdb_extension") as extension,
        duckdb.connect() as connection,
    ):
        connection.load_extension(str(extension))
        rows = connection.execute("SELECT query_nr, query FROM tpch_queries()").fetchall()
    return {f"q{number}": text.strip().rstrip(";") for number, text in sorted(rows)}
