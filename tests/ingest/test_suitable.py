"""Which sources go to the log: the obstacle is reported, and nothing is changed in vain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headrace.capture.wal import availability as possible
from headrace.capture.wal.availability import Server
from headrace.capture.wal.identity import ReplicaIdentity
from headrace.catalog.records import CaptureMode
from headrace.ingest import wal_eligibility
from headrace.ingest.attempts import CaptureAttempts
from headrace.source.table import SourceColumn, SourceTable
from headrace.types import Type
from tests.ingest.world import TRIGGER, World

SERVER = Server(180004, False, "logical", 10, 1, False, "headrace", True)
TABLE = SourceTable(1, "public", "t", (SourceColumn(1, "a", "integer", Type("integer")),))
KEY = ReplicaIdentity("key", (1,), 2)
NONE = ReplicaIdentity("none", reason="it has no primary key", curable=True)


@pytest.mark.parametrize(
    ("server", "identity", "asked", "reason"),
    [
        ({}, KEY, {}, None),
        ({"wal_level": "replica"}, NONE, {"unasked": True}, "wal_level is replica"),
        ({"bounded": False}, KEY, {}, None),
        ({"bounded": False}, NONE, {"unasked": True}, "max_slot_wal_keep_size is unlimited"),
        ({}, NONE, {}, "it has no primary key"),
        ({}, NONE, {"may_change": True}, None),
        ({}, replace(NONE, curable=False), {"may_change": True}, "it has no primary key"),
        ({}, replace(KEY, key=(1, 2)), {}, "a column of its key cannot be stored"),
        ({}, None, {}, "the table does not exist"),
    ],
)
def test_the_first_obstacle_is_reported(
    server: dict[str, Any],
    identity: ReplicaIdentity | None,
    asked: dict[str, bool],
    reason: str | None,
) -> None:
    found = possible.obstacle(replace(SERVER, **server), TABLE, identity, **asked)
    assert (found is None) is (reason is None)
    if found is not None and reason is not None:
        assert found.reason.startswith(reason) and found.remedy


@pytest.mark.postgres
@pytest.mark.parametrize("mode", [TRIGGER])
def test_an_identity_is_changed_only_where_the_log_can_be_read_then(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def identity() -> Any:
        query = "SELECT relreplident FROM pg_class WHERE relname = 't'"
        return world.application.execute(query).fetchone()

    world.run("CREATE TABLE t (a integer)", "INSERT INTO t VALUES (1), (1)")
    world.follow("t")
    world.project.set("auto_replica_identity", True)
    world.project.set("cdc_mode", "auto")
    with monkeypatch.context() as patched:
        patched.setattr(
            wal_eligibility, "read_server", lambda *_: replace(SERVER, wal_level="replica")
        )
        world.engine.part(CaptureAttempts).followed_at.clear()
        world.cut()
    assert identity() == ("d",)
    assert (world.source.mode, world.source.mode_reason) == (
        CaptureMode.TRIGGER,
        "wal_level is replica",
    )
    world.engine.part(CaptureAttempts).followed_at.clear()
    world.cut()
    assert identity() == ("f",)
    assert world.source.mode is CaptureMode.WAL
