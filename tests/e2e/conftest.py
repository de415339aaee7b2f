"""A project on a fresh database and the test run's one Spark."""

from __future__ import annotations

from tests.e2e.live_project import project, sql

__all__ = ("project", "sql")
