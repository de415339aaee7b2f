"""Plans of folders against PostgreSQL, and what of them is done without computing anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.engine.steps import Step
from headrace.errors import UserError
from headrace.lifecycle.planned_table import TableRequest
from headrace.project.plan import ProjectPlan
from tests.lifecycle.made import put_tables
from tests.project.folder import create, write

pytestmark = pytest.mark.postgres

BASE = "SELECT id, amount FROM orders"
SUMS = "SELECT id, sum(amount) AS total FROM base GROUP BY id"
TOP = "SELECT id FROM sums WHERE total > 8"
APART = "SELECT id FROM orders WHERE amount > 0"


@pytest.fixture
def project(dsn: str, tmp_path: Path) -> Iterator[headrace.Headrace]:
    """Four stream tables without rows, three of them in a chain; Spark never starts."""
    with (
        psycopg.connect(dsn, autocommit=True) as sql,
        headrace.connect(dsn=dsn, home=tmp_path / "home") as opened,
    ):
        sql.execute("CREATE TABLE orders (id int PRIMARY KEY, amount bigint)")
        put_tables(
            opened,
            TableRequest.of("base", BASE, {"tier": "warm"}),
            TableRequest.of("sums", SUMS, {}),
            TableRequest.of("top", TOP, {"schedule": "1m"}),
            TableRequest.of("apart", APART, {}),
        )
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The statements that give what is there."""
    return write(
        tmp_path / "folder",
        base=create("base", BASE, "tier = warm"),
        sums=create("sums", SUMS),
        rest=create("top", TOP, "schedule = '1m'") + create("apart", APART),
    )


def acts(plan: ProjectPlan) -> dict[str, str]:
    return {one.name[1]: one.act.value for one in plan.changes}


def names(project: headrace.Headrace) -> list[str]:
    return [table.name.removeprefix("public.") for table in project.status()]


def watched(project: headrace.Headrace) -> list[Step]:
    """The steps that are performed from now on."""
    steps: list[Step] = []
    engine = project._engine
    engine.watch = lambda when, step: steps.append(step) if when == "before" else None
    return steps


def refused(project: headrace.Headrace, folder: Path | ProjectPlan) -> UserError:
    """The error of applying a folder, which does nothing."""
    before = project._engine.catalog.state().stream_tables
    steps = watched(project)
    with pytest.raises(UserError) as caught:
        project.apply(folder)
    assert steps == []
    assert project._engine.catalog.state().stream_tables == before
    return caught.value


def test_a_folder_of_what_is_there(project: headrace.Headrace, folder: Path) -> None:
    steps = watched(project)
    assert acts(project.plan(folder)) == dict.fromkeys(names(project), "unchanged")
    assert project.apply(folder, prune=True).nothing_to_do
    assert steps == []


def test_options_are_altered_in_place(project: headrace.Headrace, folder: Path) -> None:
    relations = {
        table.name: table.relation for table in project._engine.catalog.state().stream_tables
    }
    write(
        folder,
        all=create("base", BASE, "max_change_rows = 5")
        + create("sums", SUMS, "refresh_mode = FULL, diamond_consistency = none")
        + create("top", TOP)
        + create("apart", APART),
    )
    done = project.apply(folder)
    assert acts(done) == {"apart": "unchanged", "base": "alter", "sums": "alter", "top": "alter"}
    state = project._engine.catalog.state()
    assert {one.name: one.relation for one in state.stream_tables} == relations
    kept = {one.name: (one.schedule, one.refresh_mode, one.options) for one in state.stream_tables}
    assert kept == {
        "apart": (None, "AUTO", {}),
        "base": (None, "AUTO", {"max_change_rows": 5}),
        "sums": (None, "FULL", {"diamond_consistency": "none"}),
        "top": (None, "AUTO", {}),
    }
    assert project.plan(folder).nothing_to_do


def test_pruning(project: headrace.Headrace, folder: Path) -> None:
    write(folder, base=create("base", BASE, "tier = warm"))
    assert acts(project.apply(folder)) == {
        "apart": "leave",
        "base": "unchanged",
        "sums": "leave",
        "top": "leave",
    }
    assert names(project) == ["apart", "base", "sums", "top"]
    done = project.apply(project.plan(folder, prune=True))
    assert acts(done) == {"apart": "drop", "base": "unchanged", "sums": "drop", "top": "drop"}
    assert names(project) == ["base"]
    write(folder, nothing="-- nobody any more")
    project.apply(folder, prune=True)
    assert names(project) == []


def test_what_is_read_is_not_pruned(project: headrace.Headrace, folder: Path) -> None:
    for query in (SUMS, f"{SUMS} HAVING count(*) > 1"):
        write(folder, some=create("sums", query))
        with pytest.raises(UserError) as caught:
            project.plan(folder, prune=True)
        assert caught.value.code == "has-dependents"
        assert caught.value.message == "public.base is not in the folder, and public.sums reads it"
    assert len(names(project)) == 4


def test_what_would_be_made(project: headrace.Headrace, folder: Path) -> None:
    steps = watched(project)
    write(
        folder,
        base=create("base", f"{BASE} WHERE amount > 1", "tier = warm"),
        sums=create("sums", SUMS),
        new=create("newer", "SELECT id FROM new") + create("new", "SELECT id FROM top"),
    )
    plan = project.plan(folder)
    assert acts(plan) == {
        "apart": "leave",
        "base": "rebuild",
        "new": "create",
        "newer": "create",
        "sums": "follow",
        "top": "follow",
    }
    # What goes holds nothing up: the new query of base lacks a column that sums reads.
    write(folder, base=create("base", "SELECT id FROM orders"))
    assert acts(project.plan(folder, prune=True))["sums"] == "drop"
    assert steps == []
    assert names(project) == ["apart", "base", "sums", "top"]


def test_what_can_only_go_last_must_be_able_to_go_on(
    project: headrace.Headrace, folder: Path
) -> None:
    """sums goes after top was made without it, and before that reads a column that base loses."""
    top = create("top", "SELECT id FROM base", "schedule = '1m'")
    write(folder, base=create("base", "SELECT id FROM orders"), top=top)
    with pytest.raises(UserError) as caught:
        project.plan(folder, prune=True)
    assert caught.value.code == "has-dependents"
    assert "public.sums reads public.base" in caught.value.message
    write(folder, base=create("base", BASE), top=top)
    assert acts(project.plan(folder, prune=True)) == {
        "apart": "drop",
        "base": "alter",
        "sums": "drop",
        "top": "rebuild",
    }


@pytest.mark.parametrize(
    ("base", "other", "code", "where"),
    [
        (
            BASE,
            create("new", "SELECT nothing FROM sums"),
            "unknown-column",
            "In other.sql, line 2.",
        ),
        (BASE, create("new", "SELECT id FROM nowhere"), "unknown-table", "In other.sql, line 2."),
        ("SELECT id FROM orders", "", "has-dependents", "In base.sql, line 1."),
        (BASE, create("orders", "SELECT id FROM sums"), "name-exists", "In other.sql, line 2."),
        (BASE, create("new", "TABLE new2") + create("new2", "TABLE new"), "circular", "line 2."),
    ],
)
def test_mistakes_are_reported_with_their_place_before_anything_is_done(
    project: headrace.Headrace, folder: Path, base: str, other: str, code: str, where: str
) -> None:
    write(
        folder,
        also=create("also", "SELECT id FROM top"),
        apart=create("apart", f"{APART} AND id > 1"),
        base=create("base", base, "tier = cold"),
        other=f"\n{other}",
        sums=create("sums", SUMS),
    )
    error = refused(project, folder)
    assert error.code == code
    assert (error.detail or "").endswith(where)


def test_a_stale_plan_is_refused(project: headrace.Headrace, folder: Path) -> None:
    write(folder, base=create("base", BASE))
    plan = project.plan(folder)
    project.alter_stream_table("top", tier="cold")
    assert refused(project, plan).code == "stale-plan"
    plan = project.plan(folder)
    write(folder, base=create("base", BASE, "tier = cold"))
    assert refused(project, plan).code == "stale-plan"
    project.apply(project.plan(folder))
    assert project.plan(folder).nothing_to_do
    project.suspend("top")
    plan = project.plan(folder)
    project.resume("top")
    assert project.apply(plan).nothing_to_do, "suspension is not the plan's business"


def test_a_plan_says_itself_whether_it_prunes(project: headrace.Headrace, folder: Path) -> None:
    write(folder, base=create("base", BASE, "tier = warm"))
    with pytest.raises(UserError) as caught:
        project.apply(project.plan(folder), prune=True)
    assert caught.value.code == "invalid-option"
    assert len(names(project)) == 4
    project.apply(project.plan(folder, prune=True), prune=True)
    assert names(project) == ["base"]


NO_SCHEDULE = "tier has no effect on when public.{} is refreshed: the table has no schedule"
NO_SOURCE = (
    "append_only has no effect: public.{} reads only stream tables; give it to those that read"
    " the source"
)


def test_notices_of_what_is_altered(project: headrace.Headrace, folder: Path) -> None:
    assert project.plan(folder).notices == (), "base is as in the folder"
    write(
        folder,
        base=create("base", BASE, "tier = cold"),
        sums=create("sums", SUMS, "append_only = true"),
        rest=create("top", TOP, "schedule = '1m', tier = warm") + create("apart", APART),
    )
    expected = (NO_SCHEDULE.format("base"), NO_SOURCE.format("sums"))
    plan = project.plan(folder)
    assert plan.notices == expected
    assert str(plan).endswith(f"notice: {expected[0]}\nnotice: {expected[1]}")
    assert project.apply(plan).notices == expected
    assert project.apply(folder).notices == ()


def test_notices_of_what_would_be_made(project: headrace.Headrace, folder: Path) -> None:
    write(
        folder,
        base=create("base", f"{BASE} WHERE amount > 1", "tier = warm"),
        sums=create("sums", SUMS),
        rest=create("top", TOP, "schedule = '1m'") + create("apart", APART),
        new=create("above", "SELECT id FROM new", "append_only = true")
        + create("new", "SELECT id FROM orders", "append_only = true")
        + create("empty", "SELECT id FROM new", "append_only = true, initialize = false"),
    )
    assert project.plan(folder).notices == (NO_SOURCE.format("above"), NO_SCHEDULE.format("base"))


def test_notices_of_what_was_made(project: headrace.Headrace, folder: Path) -> None:
    new = create("new", "SELECT id FROM orders", "tier = cold, initialize = false")
    write(folder, new=new)
    plan = project.plan(folder)
    assert plan.notices == project.apply(plan).notices == (NO_SCHEDULE.format("new"),)
