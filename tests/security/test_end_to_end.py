"""The whole way of a row past the traps of the owner of its table: capture, refresh, verify."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import headrace
from tests.security.conftest import Attacker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

BY_MOOD = "SELECT mood, count(*) AS n, max(id) AS latest FROM app.people GROUP BY mood"


def test_types_of_the_attacker(
    people: Attacker, admin: psycopg.Connection[Any], dsn: str, tmp_path: Path, spark: SparkSession
) -> None:
    """Every step reads or writes enums; the stream tables are right, and no trojan ran."""
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as project:
        project.create_stream_table("by_mood", BY_MOOD, partition_by="mood")
        project.create_stream_table("moody", "SELECT id, mood, moods FROM app.people")
        project.create_stream_table("several", "SELECT mood, n FROM by_mood WHERE n > 1")
        people.execute(
            "INSERT INTO app.people VALUES (5, 'ok', 'ok', '{ok}'), (6, 'sad', NULL, NULL)"
        )
        people.execute("UPDATE app.people SET mood = 'happy' WHERE id = 1")
        people.execute("DELETE FROM app.people WHERE id = 3")
        for name in ("by_mood", "moody", "several"):
            project.refresh(name)
            assert project.verify(name).equal
            assert project.verify(name, oracle="postgres").equal
            assert people.ran_as_others() == []
        project.reinit("by_mood")
        assert project.verify("by_mood", source=True).equal
    rows = admin.execute("SELECT concat(mood), n, latest FROM by_mood").fetchall()
    assert sorted(rows) == [("happy", 1, 1), ("ok", 2, 5), ("sad", 1, 6)]
    assert admin.execute("SELECT concat(mood), n FROM several").fetchall() == [("ok", 2)]
    assert people.ran_as_others() == []
