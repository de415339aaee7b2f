"""The log of each test's database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from headrace.source.connection import Database
from tests.capture.wal.log import Log


@pytest.fixture
def log(database: Database, application: psycopg.Connection[Any]) -> Iterator[Log]:
    opened = Log(database, application)
    yield opened
    opened.close()
