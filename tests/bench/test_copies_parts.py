"""The parts of the comparison of copies that need neither a server nor Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.copies.jdbc import NotAvailable, address, find_driver
from bench.copies.options import options
from bench.copies.run import figures


def test_options_are_read_and_checked(tmp_path: Path) -> None:
    driver = tmp_path / "postgresql-1.jar"
    driver.touch()
    given = options(["ROWS=500", "ROUNDS=2", f"DRIVER={driver}", "DSN=dbname=bench"])
    assert (given.rows, given.rounds, given.driver) == (500, 2, driver)
    assert given.dsn == "dbname=bench"
    for wrong in ("ROWS=0", "ROWS=many", "ROUNDS=-1", f"DRIVER={tmp_path / 'none'}", "NAME=1"):
        with pytest.raises(SystemExit):
            options([wrong])


def test_rates_and_ratios_are_medians() -> None:
    seconds = {"copy_to_text": [1.0, 2.0, 4.0], "first_copy": [2.0, 8.0, 4.0]}
    assert figures(seconds, 1000) == {
        "rows_per_second": {"copy_to_text": 500, "first_copy": 250},
        "first_copy_over": {"copy_to_text": 2.0},
    }


def test_the_newest_driver_is_found(tmp_path: Path) -> None:
    with pytest.raises(NotAvailable, match="DRIVER=file"):
        find_driver([tmp_path, tmp_path / "missing"])
    folder = tmp_path / "org" / "postgresql"
    folder.mkdir(parents=True)
    for name in ("postgresql-42.1.jar", "postgresql-42.2.jar", "postgresql-42.2-sources.jar"):
        (folder / name).touch()
    (folder / "other-43.jar").touch()
    assert find_driver([tmp_path / "missing", tmp_path]).name == "postgresql-42.2.jar"


def test_the_address_for_jdbc() -> None:
    where = address("postgresql://me:hidden@host.example:5433/shop")
    assert where.url == "jdbc:postgresql://host.example:5433/shop"
    assert (where.user, where.password) == ("me", "hidden")
    assert address("host=localhost dbname=x user=me").url == "jdbc:postgresql://localhost:5432/x"
    for dsn in ("postgresql://me@/shop?host=/run/postgresql", "dbname=shop"):
        with pytest.raises(NotAvailable, match="Unix socket"):
            address(dsn)
