"""Groups: stream tables that meet again are published together or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from threading import Barrier

import psycopg
import pytest

import headrace
from headrace.catalog import new_relation_id
from headrace.catalog.records import Refresh, StreamTable
from headrace.engine.steps import ComputeStage, Publish, Step
from headrace.ingest.ingest import ingest
from headrace.refresh.refresh import refresh_group
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e
PATIENCE = 120.0

# `counts` divides by a column of the source, so that a row can make it fail.
DIAMOND = {
    "totals": "SELECT region, sum(amount) AS total FROM orders GROUP BY region",
    "counts": "SELECT region, count(*) AS n, sum(12 / parts) AS share FROM orders GROUP BY region",
    "averages": "SELECT t.region, t.total, c.n FROM totals t JOIN counts c ON t.region = c.region",
}
B, C, D = DIAMOND
# PostgreSQL's answer to the end of the diamond, from the source alone.
AVERAGES = "SELECT region, sum(amount), count(*) FROM orders GROUP BY region"


@pytest.fixture
def diamond(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, region int, amount int, parts int)")
    sql.execute("INSERT INTO orders SELECT i, i % 3, i, 1 + i % 4 FROM generate_series(1, 12) i")
    project.create_stream_tables(DIAMOND)
    return project


def tables(hr: headrace.Headrace) -> Mapping[str, StreamTable]:
    return {one.name: one for one in hr._engine.catalog.state().stream_tables}


def epochs(hr: headrace.Headrace, *names: str) -> set[int]:
    known = tables(hr)
    return {known[name].epoch for name in names or known}


def served(sql: psycopg.Connection, *names: str) -> list[object]:
    return [sql.execute(f"SELECT t FROM {name} t ORDER BY t").fetchall() for name in names]


def cut(hr: headrace.Headrace) -> int:
    """Take in what is new; the epoch of the newest cut."""
    engine = hr._engine
    with engine.writing() as lease:
        return ingest(engine, engine.catalog.state(), lease.fence).database(1).epoch


def refresh_together(hr: headrace.Headrace, *names: str) -> dict[str, Refresh]:
    """What a daemon does with a group; the refreshes by name."""
    engine, known = hr._engine, tables(hr)
    relations = [known[name].relation for name in names]
    with engine.writing() as lease:
        done = refresh_group(engine, engine.catalog.state(), relations, lease.fence)
    return {one.name: done[one.relation] for one in known.values() if one.relation in done}


def assert_whole(hr: headrace.Headrace, sql: psycopg.Connection) -> None:
    """All of the diamond is at one epoch and shows the source as it is."""
    assert len(epochs(hr, *DIAMOND)) == 1
    for name in (B, C):
        assert_served(hr, sql, name)
    shown = sql.execute("SELECT region, total, n FROM averages ORDER BY 1").fetchall()
    assert shown == sql.execute(f"{AVERAGES} ORDER BY 1").fetchall()


def test_all_of_a_diamond_advance_to_one_epoch(
    diamond: headrace.Headrace, sql: psycopg.Connection
) -> None:
    members = [one.relation for one in tables(diamond).values()]
    assert_whole(diamond, sql)
    # A refresh of any of them by hand refreshes the others with it; on schedule they are one.
    for number, name in enumerate((D, B, C, None), 100):
        (before,) = epochs(diamond)
        sql.execute("INSERT INTO orders VALUES (%s, 1, 5, 2)", [number])
        if name is not None:
            done = diamond.refresh(name)
        else:
            newest = cut(diamond)
            assert epochs(diamond) == {before}, "a cut moves no table"
            lines = refresh_together(diamond, *DIAMOND)
            assert set(lines) == set(DIAMOND)
            done = lines[D]
            assert done.epoch == newest
        assert done.mode == "DIFFERENTIAL"
        (after,) = epochs(diamond)
        assert after == done.epoch > before
        assert_whole(diamond, sql)
        lines = {one: diamond.history(one)[0] for one in DIAMOND}
        assert {line.epoch for line in lines.values()} == {after}
        assert len({line.finished_at for line in lines.values()}) == 1, "one publish"
        assert {frozenset(line.group) for line in lines.values()} == {frozenset(members)}
    assert {(one.name, one.is_convergence, one.epoch) for one in diamond.diamond_groups()} == {
        ("public.totals", False, after),
        ("public.counts", False, after),
        ("public.averages", True, after),
    }
    assert refresh_together(diamond, *DIAMOND) == {}, "nothing is new"
    assert epochs(diamond) == {after}


def test_a_member_that_fails_leaves_all_of_its_group_as_it_was(
    diamond: headrace.Headrace, sql: psycopg.Connection
) -> None:
    (before,) = epochs(diamond)
    shown = served(sql, *DIAMOND)
    lines = len(diamond.history())
    sql.execute("INSERT INTO orders VALUES (100, 1, 5, 0)")
    asked = [
        lambda: diamond.refresh(D),
        lambda: diamond.refresh(B),
        lambda: refresh_together(diamond, *DIAMOND),
    ]
    for number, refresh in enumerate(asked, 1):
        with pytest.raises(headrace.UserError) as caught:
            refresh()
        assert caught.value.code == "query-failed"
        assert epochs(diamond) == {before}
        assert served(sql, *DIAMOND) == shown
        latest = {one: diamond.history(one)[0] for one in DIAMOND}
        assert latest[C].error is not None
        assert latest[C].error.startswith("query-failed: ")
        for name in (B, D):
            assert latest[name].error is not None
            assert latest[name].error.startswith("group-failed: public.counts failed")
        assert {frozenset(line.group) for line in latest.values()} == {
            frozenset(one.relation for one in tables(diamond).values())
        }
        assert len(diamond.history()) == lines + 3 * number
        status = {name: (one.status, one.failures) for name, one in tables(diamond).items()}
        assert status == {B: ("ACTIVE", 0), C: ("ERROR", number), D: ("ACTIVE", 0)}
    # Also a change that does not trouble C waits for it.
    sql.execute("INSERT INTO orders VALUES (101, 2, 7, 3)")
    with pytest.raises(headrace.UserError):
        refresh_together(diamond, *DIAMOND)
    assert served(sql, *DIAMOND) == shown
    sql.execute("UPDATE orders SET parts = 3 WHERE id = 100")
    cut(diamond)
    assert set(refresh_together(diamond, *DIAMOND)) == set(DIAMOND)
    assert_whole(diamond, sql)
    assert {(one.status, one.failures) for one in tables(diamond).values()} == {("ACTIVE", 0)}
    receipt = diamond.verify(D, source=True)
    assert receipt.equal, receipt.detail


class Failure(BaseException):
    """Stands for anything that goes wrong at some place."""


@pytest.mark.parametrize("kind", ["error", "crash"])
def test_a_failure_at_each_step_leaves_all_as_it_was(
    diamond: headrace.Headrace, sql: psycopg.Connection, kind: str
) -> None:
    """In a daemon, whose workers clean up after themselves, and where nobody does."""
    engine = diamond._engine
    moments: list[tuple[str, Step]] = []
    engine.watch = lambda when, step: moments.append((when, step))
    sql.execute("UPDATE orders SET amount = amount + 1, parts = 1")
    cut(diamond)
    moments.clear()
    refresh_together(diamond, *DIAMOND)
    performed = [(when, type(step).__name__) for when, step in moments]
    published = performed.index(("after", "Publish"))
    assert performed[:published].count(("before", "ComputeStage")) >= 3
    error: BaseException = Failure()
    if kind == "error":
        error = headrace.Transient("connection-lost", "the line is dead")

    def fail_at(number: int) -> None:
        moments.clear()

        def watch(when: str, step: Step) -> None:
            moments.append((when, step))
            if len(moments) == number + 1:
                raise error

        engine.watch = watch

    # What is published is not taken back: there a failure of what comes after shows nowhere.
    for number in range(published):
        (before,) = epochs(diamond)
        shown = served(sql, *DIAMOND)
        sql.execute("UPDATE orders SET amount = amount + 1, region = (region + 1) % 4")
        engine.watch = lambda when, step: None
        cut(diamond)
        with nullcontext() if kind == "crash" else engine.serving(10.0):
            fail_at(number)
            with pytest.raises(type(error)):
                refresh_together(diamond, *DIAMOND)
        assert not any(
            when == "after" and isinstance(step, Publish) for when, step in moments[:number]
        )
        assert epochs(diamond) == {before}, performed[number]
        assert served(sql, *DIAMOND) == shown, performed[number]
        engine.watch = lambda when, step: None
        assert set(refresh_together(diamond, *DIAMOND)) == set(DIAMOND)
        assert_whole(diamond, sql)
    receipt = diamond.verify(D, source=True)
    assert receipt.equal, receipt.detail


def test_without_consistency_a_failure_keeps_no_other_back(
    diamond: headrace.Headrace, sql: psycopg.Connection
) -> None:
    diamond.alter_stream_table(C, diamond_consistency="none")
    assert {one.atomic for one in diamond.diamond_groups()} == {False}
    (before,) = epochs(diamond)
    sql.execute("INSERT INTO orders VALUES (100, 1, 5, 0)")
    newest = cut(diamond)
    assert set(refresh_together(diamond, B)) == {B}
    with pytest.raises(headrace.UserError) as caught:
        refresh_together(diamond, C)
    assert caught.value.code == "query-failed"
    assert diamond.history(D)[0].error is None, "it did not wait for C"
    assert epochs(diamond, B) == {newest}
    assert epochs(diamond, C, D) == {before}
    # The convergence shows the source as of two epochs, and says so.
    assert set(refresh_together(diamond, D)) == {D}
    known = tables(diamond)
    assert known[D].frontier == {known[B].relation: newest, known[C].relation: before}
    assert {line.group for name in DIAMOND for line in diamond.history(name, 1)} == {()}
    receipt = diamond.verify(D)
    assert receipt.equal, receipt.detail
    total = "SELECT sum(total), sum(n) FROM averages"
    assert sql.execute(total).fetchone() == (78 + 5, 12)
    sql.execute("UPDATE orders SET parts = 4 WHERE id = 100")
    cut(diamond)
    for name in (C, D):
        assert set(refresh_together(diamond, name)) == {name}
    assert sql.execute(total).fetchone() == (78 + 5, 13)
    assert diamond.verify(D, source=True).equal
    # A refresh by hand refreshes all that a table reads with it.
    sql.execute("DELETE FROM orders WHERE id = 100")
    diamond.refresh(D)
    assert_whole(diamond, sql)


def test_nested_diamonds_move_as_one(diamond: headrace.Headrace, sql: psycopg.Connection) -> None:
    """A diamond on one side of a larger one, and a reader below that is of no group."""
    diamond.create_stream_tables(
        {
            "largest": {
                "query": "SELECT region, max(amount) AS most FROM orders GROUP BY region",
                "diamond_consistency": "atomic",
            },
            "summary": {
                "query": "SELECT a.region, a.total, a.n, l.most FROM averages a"
                " JOIN largest l ON a.region = l.region",
                "diamond_schedule_policy": "slowest",
            },
            "big": "SELECT region, total FROM summary WHERE total > 20",
        }
    )
    members = (*DIAMOND, "largest", "summary")
    listed = {one.name.removeprefix("public."): one for one in diamond.diamond_groups()}
    assert set(listed) == set(members)
    assert {name for name, one in listed.items() if one.is_convergence} == {D, "summary"}
    assert {(one.group, one.policy, one.atomic) for one in listed.values()} == {
        (1, "slowest", True)
    }
    assert tables(diamond)["largest"].options == {"diamond_consistency": "atomic"}
    assert tables(diamond)["summary"].options == {"diamond_schedule_policy": "slowest"}
    before = epochs(diamond)
    shown = served(sql, *DIAMOND)
    sql.execute("INSERT INTO orders VALUES (100, 1, 50, 0)")
    for name in ("largest", "summary", B):
        with pytest.raises(headrace.UserError):
            diamond.refresh(name)
    assert epochs(diamond) == before
    assert served(sql, *DIAMOND) == shown
    sql.execute("UPDATE orders SET parts = 1 WHERE id = 100")
    newest = cut(diamond)
    assert set(refresh_together(diamond, *members)) == set(members)
    assert epochs(diamond, *members) == {newest}
    # The reader takes in what was published, at an epoch of its own.
    assert epochs(diamond, "big").isdisjoint({newest})
    assert set(refresh_together(diamond, "big")) == {"big"}
    assert tables(diamond)["big"].frontier == {tables(diamond)["summary"].relation: newest}
    assert sql.execute("SELECT region, total, n, most FROM summary ORDER BY 1").fetchall() == (
        sql.execute(
            "SELECT region, sum(amount), count(*), max(amount) FROM orders GROUP BY region"
            " ORDER BY 1"
        ).fetchall()
    )
    receipt = diamond.verify("big", source=True)
    assert receipt.equal, receipt.detail


def test_tables_of_a_chain_go_their_own_ways(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """No group: each takes in what is published of the one before, whenever it is refreshed."""
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, region int, amount int)")
    sql.execute("INSERT INTO orders SELECT i, i % 3, i FROM generate_series(1, 9) i")
    project.create_stream_tables(
        {
            "a": "SELECT id, region, amount FROM orders WHERE amount > 0",
            "b": "SELECT region, sum(amount) AS total FROM a GROUP BY region",
            "c": "SELECT count(*) AS regions, sum(total) AS total FROM b",
        }
    )
    assert project.diamond_groups() == ()
    assert {one.group for one in project.status()} == {None}

    def verified() -> None:
        """Each over what it has taken in."""
        receipt = project.verify("c")
        assert receipt.equal, receipt.detail
        assert len([one for one in receipt.detail if one.startswith("recomputed")]) == 3

    def change() -> int:
        sql.execute("UPDATE orders SET amount = amount + 1")
        return cut(project)

    (made,) = epochs(project)
    first = change()
    assert refresh_together(project, "b") == {}, "a, which it reads, has not moved"
    assert refresh_together(project, "a")["a"].epoch == first
    assert refresh_together(project, "b")["b"].epoch == first
    assert refresh_together(project, "b") == {}
    assert epochs(project, "c") == {made}
    verified()
    # B is behind by two cuts and follows in one step.
    change()
    refresh_together(project, "a")
    third = change()
    refresh_together(project, "a")
    assert refresh_together(project, "b")["b"].epoch == third
    verified()
    # A is refreshed at a cut, B once more at the same cut: its epoch is used up.
    sql.execute("UPDATE orders SET amount = amount + 1")
    fourth = project.refresh("b").epoch
    assert epochs(project, "a", "b") == {fourth}
    project.refresh("a", "FULL")
    (again,) = epochs(project, "a")
    assert again > fourth
    assert refresh_together(project, "b") == {}, "the same rows as before"
    fifth = change()
    assert refresh_together(project, "a")["a"].epoch == fifth > again
    # A newer number than the newest cut: C stands at that cut already.
    assert refresh_together(project, "c")["c"].epoch == fifth
    assert refresh_together(project, "b")["b"].epoch == fifth
    late = refresh_together(project, "c")["c"]
    assert late.epoch > fifth
    known = tables(project)
    assert known["c"].frontier == {known["b"].relation: fifth}
    verified()
    assert (late.group, late.mode) == ((), "DIFFERENTIAL")
    # No epoch shows anything of a later one: not what is made over it, not what is rebuilt.
    project.create_stream_table("d", "SELECT total FROM c")
    assert epochs(project, "d") == {late.epoch}
    project.alter_stream_table("d", query="SELECT total, regions FROM c")
    (rebuilt,) = epochs(project, "d")
    assert rebuilt > late.epoch, "who asks for changes after that notices"
    sixth = change()
    assert sixth > late.epoch
    project.refresh("d")
    assert epochs(project) == {sixth}
    verified()
    expected = "SELECT count(DISTINCT region), sum(amount) FROM orders"
    assert sql.execute("TABLE c").fetchall() == sql.execute(expected).fetchall()


def test_members_that_do_not_depend_on_each_other_are_computed_side_by_side(
    diamond: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """Each of the two waits, in the middle of its computation, until the other is there as well."""
    engine = diamond._engine
    both = Barrier(2, timeout=PATIENCE)
    relations = {tables(diamond)[name].relation for name in (B, C)}
    order: list[str] = []

    def meet(when: str, step: Step) -> None:
        if isinstance(step, ComputeStage):
            owner = step.stage.relation[: len(new_relation_id())]
            if when == "before" and owner in relations:
                both.wait()
            order.append(f"{when} {owner}")

    for number, refresh in enumerate((lambda: diamond.refresh(D), lambda: by_daemon(diamond)), 100):
        sql.execute("INSERT INTO orders VALUES (%s, 1, 5, 2)", [number])
        order.clear()
        engine.watch, watched = meet, engine.watch
        try:
            refresh()
        finally:
            engine.watch = watched
        last = tables(diamond)[D].relation
        assert [one.split()[1] for one in order[-2:]] == [last, last], "it waits for both"
        assert_whole(diamond, sql)
        lines = {name: diamond.history(name)[0] for name in DIAMOND}
        assert {line.spark_jobs for line in lines.values()} == {1}, "each has its own"


def by_daemon(hr: headrace.Headrace) -> None:
    cut(hr)
    assert set(refresh_together(hr, *DIAMOND)) == set(DIAMOND)


DECLARED = {
    "large": {"query": "SELECT id, amount FROM orders WHERE amount > 5", "group": "sales"},
    "regions": {"query": "SELECT region, count(*) AS n FROM orders GROUP BY region"},
    "known": {"query": "SELECT count(*) AS n FROM regions", "group": "sales"},
    "places": {"query": "SELECT name FROM shops", "group": "sales"},
}


def test_a_declared_group_is_published_as_one(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """Of a source that two of them show, they show the same rows; the third has another source."""
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, region int, amount int)")
    sql.execute("CREATE TABLE shops (name text)")
    sql.execute("INSERT INTO orders SELECT i, i % 3, i FROM generate_series(1, 12) i")
    project.create_stream_tables(DECLARED)
    groups = project.diamond_groups()
    assert {(one.name.partition(".")[2], one.declared) for one in groups} == {
        (name, given.get("group")) for name, given in DECLARED.items()
    }
    published: list[set[str]] = []

    def seen(when: str, step: Step) -> None:
        if when == "after" and isinstance(step, Publish):
            published.append(set(step.tables))

    engine = project._engine
    engine.watch, watched = seen, engine.watch
    sql.execute("INSERT INTO orders VALUES (100, 7, 9)")
    sql.execute("INSERT INTO shops VALUES ('corner')")
    project.refresh("large")
    engine.watch = watched
    assert published == [{one.relation for one in tables(project).values()}]
    assert len(epochs(project)) == 1
    for name in DECLARED:
        assert_served(project, sql, name)
    # A suspended member keeps the others back, as in every group.
    project.suspend("places")
    with pytest.raises(headrace.UserError) as caught:
        project.refresh("large")
    assert caught.value.code == "table-suspended"
    project.drop_stream_table("places")
    sql.execute("INSERT INTO orders VALUES (101, 8, 9)")
    assert project.refresh("known").mode == "DIFFERENTIAL"
    project.alter_stream_table("large", group=None)
    assert project.diamond_groups() == ()
    sql.execute("INSERT INTO orders VALUES (102, 9, 9)")
    assert project.refresh("known").mode == "DIFFERENTIAL"
    assert len(epochs(project)) == 2, "large goes its own way by now"
