"""The two stores of the catalog, one fixture: what holds for one holds for the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.catalog import Catalog, MemoryCatalog, PostgresCatalog
from headrace.source.connection import Database


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.postgres)])
def catalog(request: pytest.FixtureRequest) -> Iterator[Catalog]:
    """An empty catalog, in memory and in PostgreSQL."""
    if request.param == "memory":
        yield MemoryCatalog()
    else:
        opened = PostgresCatalog.open(Database(request.getfixturevalue("dsn")).connect)
        yield opened
        opened.close()


@pytest.fixture
def postgres(dsn: str) -> Iterator[PostgresCatalog]:
    """An empty catalog in PostgreSQL, for what only a server shows."""
    opened = PostgresCatalog.open(Database(dsn).connect)
    yield opened
    opened.close()
