"""A world for each test, in the mode that the test asks for by `@pytest.mark.parametrize`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.ingest import transition
from tests.ingest.world import Application, World


@pytest.fixture
def application(dsn: str) -> Iterator[Application]:
    """A session of the user's, in autocommit."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def world(
    dsn: str,
    application: Application,
    mode: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    # Sources go to the log when a test wants it, and not because some time has passed.
    monkeypatch.setattr(transition, "AGAIN", math.inf)
    with headrace.connect(dsn, home=tmp_path) as project:
        yield World(project, dsn, application, mode)
