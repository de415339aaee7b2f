"""Plans kept by the rules of their stages, beside a PostgreSQL that says what is right."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from fuzz.plan_way import PlanWay
from fuzz.ways import connect
from headrace.embedded import EmbeddedServer


@pytest.fixture(scope="module")
def plans(server: EmbeddedServer) -> Iterator[PlanWay]:
    """One database for a file: every example starts with an empty schema."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("CREATE DATABASE plans")
        with connect(server.dsn_of("plans")) as own:
            yield PlanWay(own)
        connection.execute("DROP DATABASE plans WITH (FORCE)")
