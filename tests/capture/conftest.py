"""A source database for each test: what Headrace sees of it, and an application that writes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from headrace.source.connection import Database


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    with Database(dsn) as opened:
        yield opened


@pytest.fixture
def application(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """A session of the user's, in autocommit."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def slot(dsn: str) -> str:
    """A name for the replication slot of one test: slots are of the whole server."""
    return f"headrace_{zlib.crc32(dsn.encode()):08x}"
