"""Settings of capture, from where they are set to what they change in the database."""

from __future__ import annotations

import pytest

from headrace.capture.cut import open_cut
from headrace.ingest.copying import live_rows
from headrace.lifecycle.planned_table import TableRequest
from tests.capture.follower import Follower
from tests.ingest.world import TRIGGER, World
from tests.lifecycle.made import put_tables

pytestmark = [pytest.mark.postgres, pytest.mark.parametrize("mode", [TRIGGER])]

BUFFERS = """
SELECT relpersistence FROM pg_class
WHERE relnamespace = 'headrace_capture'::regnamespace AND relname = 'buffer_' || 't'::regclass::oid
"""


@pytest.mark.parametrize(("unlogged", "persistence"), [(False, "p"), (True, "u")])
def test_buffers_are_logged_or_not(world: World, unlogged: bool, persistence: str) -> None:
    world.project.set("unlogged_buffers", unlogged)
    world.run("CREATE TABLE t (a integer)")
    world.follow("t")
    assert world.application.execute(BUFFERS).fetchall() == [(persistence,)]
    world.run("INSERT INTO t VALUES (1)")
    assert world.follows().changed == {"t": 1}


def test_a_copy_has_as_many_parts_as_are_set(world: World) -> None:
    world.run("CREATE TABLE t (a integer, b text)")
    world.run("INSERT INTO t SELECT n, repeat('x', 300) FROM generate_series(1, 20000) n")
    put_tables(world.project, TableRequest("reader", "SELECT a, b FROM t"))
    database = world.engine.database
    follower = Follower(database, "t")
    state = world.engine.catalog.state()
    relation = state.relation(world.source.relation)
    for parts in (1, 5):
        world.project.set("copy_parts", parts)
        settings = world.engine.settings(world.engine.catalog.state())
        with open_cut(database, [follower.source("t")], lock=[follower.oids["t"]]) as cut:
            rows = live_rows(settings, cut, cut.tables[follower.oids["t"]], relation, 1)
            assert len(rows.ranges) == parts
