"""Sources declared append-only: an alert reports the first update or delete once, all is right."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.ingest.append_only import growing
from tests.alerts import heard_so_far, listen
from tests.ingest.world import KEY, MODES, TRIGGER, World

pytestmark = pytest.mark.postgres


def alerts(world: World) -> list[dict[str, str]]:
    """Return the alerts since the last call."""
    return heard_so_far(world.application)


def declare(world: World, asked: bool | None, table: str = "reader_1") -> None:
    world.project.alter_stream_table(table, append_only=asked)


def is_growing(world: World) -> bool:
    return world.source.relation in growing(world.engine.catalog.state())


def shown(world: World) -> tuple[Any, ...]:
    (one,) = world.project.check_cdc_health()
    return one.append_only, one.level, one.alert


@pytest.fixture
def declared(world: World) -> World:
    """A source with a few rows that its reader declares append-only."""
    world.run("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    world.follow("t")
    assert shown(world) == (None, "fine", None)
    declare(world, True)
    listen(world.application)
    return world


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("first", ["UPDATE t SET v = 9 WHERE id = 1", "DELETE FROM t WHERE id = 1"])
def test_the_first_update_or_delete_reverts_it(declared: World, first: str) -> None:
    for statement in (
        "INSERT INTO t VALUES (3, 3)",
        "INSERT INTO t SELECT i, i FROM generate_series(4, 9) i",
    ):
        declared.run(statement)
        declared.follows()
        assert declared.source.shrunk_at is None and is_growing(declared)
    assert shown(declared)[:2] == ("declared", "fine")
    declared.run("INSERT INTO t VALUES (10, 10)", first)
    declared.follows()
    at = declared.engine.catalog.state().database(1).epoch
    assert declared.source.shrunk_at == at and not is_growing(declared)
    (alert,) = alerts(declared)
    assert (alert["name"], alert["code"]) == ("public.t", "not-append-only")
    assert f"(epoch {at})" in alert["message"]
    assert shown(declared) == ("reverted", "warning", alert["message"])
    assert f"public.t: {alert['message']}" in declared.project.explain("reader_1").notices
    declared.run("DELETE FROM t WHERE id = 2")
    declared.follows()
    assert declared.source.shrunk_at == at, "the first one counts"
    assert alerts(declared) == [], "and is reported once"


@pytest.mark.parametrize("mode", [TRIGGER, KEY])
def test_what_came_and_went_between_two_cuts_is_no_change(declared: World) -> None:
    declared.run("INSERT INTO t VALUES (3, 3)", "UPDATE t SET v = 4 WHERE id = 3")
    declared.run("INSERT INTO t VALUES (5, 5)", "DELETE FROM t WHERE id = 5")
    declared.follows()
    assert declared.source.shrunk_at is None and alerts(declared) == []


@pytest.mark.parametrize("mode", [TRIGGER])
def test_a_copy_that_finds_rows_gone_reverts_it(declared: World) -> None:
    declared.run("TRUNCATE t", "INSERT INTO t VALUES (2, 2), (3, 3)")
    declared.follows(copied=True)
    assert declared.source.shrunk_at is not None and len(alerts(declared)) == 1


@pytest.mark.parametrize("mode", [TRIGGER])
def test_a_copy_that_only_finds_more_does_not(declared: World) -> None:
    declared.run("TRUNCATE t", "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    declared.follows(copied=True)
    assert declared.source.shrunk_at is None and alerts(declared) == []


@pytest.mark.parametrize("mode", [TRIGGER])
def test_it_can_be_declared_again(declared: World) -> None:
    declared.run("DELETE FROM t WHERE id = 1")
    declared.follows()
    assert declared.source.shrunk_at is not None
    declare(declared, True)
    assert declared.source.shrunk_at is not None, "that it was already"
    declare(declared, None)
    assert shown(declared) == (None, "fine", None)
    assert declared.project.explain("reader_1").notices == ()
    declare(declared, True)
    assert declared.source.shrunk_at is None and is_growing(declared)
    assert len(alerts(declared)) == 1
    declared.run("DELETE FROM t WHERE id = 2")
    declared.follows()
    assert len(alerts(declared)) == 1, "once more"


@pytest.mark.parametrize("mode", [TRIGGER])
def test_undeclared_sources_report_nothing(declared: World) -> None:
    declared.run("DELETE FROM t WHERE id = 1")
    declared.follows()
    assert len(alerts(declared)) == 1
    declare(declared, None)
    declared.run("DELETE FROM t WHERE id = 2")
    declared.follows()
    assert declared.source.shrunk_at is None and alerts(declared) == []
    assert shown(declared) == (None, "fine", None)


@pytest.mark.parametrize("mode", [TRIGGER])
def test_a_long_buffer_is_compacted(declared: World) -> None:
    """What ingest appends to the log is what is left of the buffer."""
    declared.project.set("compact_threshold", 10)
    declared.run("INSERT INTO t SELECT i, 0 FROM generate_series(11, 40) i")
    declared.run("UPDATE t SET v = 1 WHERE id > 10", "DELETE FROM t WHERE id > 12")
    assert declared.follows().changed == {"t": 2}
    assert declared.source.shrunk_at is None
