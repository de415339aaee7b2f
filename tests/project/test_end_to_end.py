"""A folder that is planned, applied, changed and pruned, with everything in each other's way."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.engine.steps import DropTables, Publish, Step
from headrace.errors import UserError
from tests.project.folder import create, write

pytestmark = pytest.mark.e2e

WIDE = "SELECT id, amount FROM orders"


def test_a_folder_is_followed(computing: headrace.Headrace, dsn: str, tmp_path: Path) -> None:
    folder = write(
        tmp_path / "folder",
        # Each reads the one after it.
        a=create("top", "SELECT id FROM counts WHERE n > 0"),
        b=create("counts", "SELECT id, count(*) AS n FROM wide GROUP BY id"),
        deep__c=create("wide", WIDE, "tier = warm") + create("other", "SELECT amount FROM wide"),
    )
    plan = computing.plan(folder)
    assert [one.act.value for one in plan.changes] == ["create"] * 4
    assert computing.status() == ()
    computing.apply(plan)
    assert len({one.finished_at for one in computing.history()}) == 1, "made together"
    assert computing.plan(folder, prune=True).nothing_to_do
    with pytest.raises(UserError) as caught:
        computing.apply(plan)
    assert caught.value.code == "stale-plan"

    # `wide` loses the column that `other` reads, which therefore has to go first; `top` no longer
    # reads `counts`, which therefore can go only afterwards; `new` reads what is rebuilt.
    write(
        folder,
        a=create("top", "SELECT id FROM wide", "max_change_rows = 7"),
        c=create("wide", "SELECT id FROM orders", "tier = cold"),
        d=create("new", "SELECT id FROM top"),
    )
    plan = computing.plan(folder, prune=True)
    assert {one.name[1]: (one.act.value, one.rebuilt_readers) for one in plan.changes} == {
        "counts": ("drop", ()),
        "new": ("create", ()),
        "other": ("drop", ()),
        "top": ("rebuild", ()),
        "wide": ("rebuild", ("public.top",)),
    }
    with pytest.raises(UserError) as caught:
        computing.apply(folder)
    assert caught.value.code == "has-dependents", "without prune the readers stay"

    steps: list[str] = []

    def watch(when: str, step: Step) -> None:
        if when == "before" and isinstance(step, DropTables):
            state = computing._engine.catalog.state()
            steps.extend(f"drop {t.name}" for t in state.stream_tables if t.relation in step.tables)
        elif when == "before":
            steps.append(type(step).__name__)

    computing._engine.watch = watch
    done = computing.apply(plan)
    assert done == plan
    acts = [step for step in steps if step.startswith("drop ") or step == Publish.__name__]
    assert acts == ["drop other", Publish.__name__, "drop counts"]

    kept = {table.name: table for table in computing._engine.catalog.state().stream_tables}
    assert {name: table.options for name, table in kept.items()} == {
        "new": {},
        "top": {"max_change_rows": 7},
        "wide": {"tier": "cold"},
    }
    assert all(computing.verify(name, source=True).equal for name in kept)
    with psycopg.connect(dsn) as sql:
        assert sorted(sql.execute("TABLE new").fetchall()) == [(1,), (2,)]
    assert computing.plan(folder, prune=True).nothing_to_do
