"""What the generator writes is SQL that PostgreSQL takes, of every kind, and can be made small."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from random import Random

import psycopg
import pytest

from fuzz.coverage import ITEMS, PAIRS, Coverage, pairs_of
from fuzz.example import Example, read_script
from fuzz.generate import Generator
from fuzz.makers import MAKERS
from fuzz.plan_way import PlanWay
from fuzz.refusals import LONG, expected
from fuzz.relations import Aggregate
from fuzz.report import Report
from fuzz.rounds import Rounds, Size
from fuzz.schema import insert, random_tables
from fuzz.shadows import FUNCTIONS, OPERATORS
from fuzz.shrink import Case, shrink
from fuzz.ways import Failure, Refused, failure_of, run_example
from fuzz.write import write

VIEWS = 400


@pytest.mark.postgres
def test_postgresql_takes_every_view_and_agrees_with_itself(plans: PlanWay) -> None:
    """The answer is one of the rows alone, whichever plan PostgreSQL chooses."""
    random, coverage = Random(1), Coverage()
    tables = random_tables(random)
    plans.start((*(t.ddl for t in tables), *(insert(random, t, 14) for t in tables)))
    generator = Generator(random, coverage, tables, MAKERS)
    sql = plans.connection
    for number in range(VIEWS):
        relation = generator.view()
        coverage.add(relation)
        written = write(relation, f"s{number}")
        for _, name, query in written.needed:
            sql.execute(f"CREATE VIEW {name} AS {query}".encode())
        first = _rows(sql, written.query)
        with sql.transaction():
            for setting in ("hashjoin", "hashagg", "nestloop", "seqscan"):
                sql.execute(f"SET LOCAL enable_{setting} = off")
            assert _rows(sql, written.query) == first, written.query
    assert coverage.pairs_covered > 0.8
    assert len(coverage.items_missing) <= 3, coverage.items_missing


def _rows(sql: psycopg.Connection, query: str) -> Counter[str]:
    """Floats to a few digits: they are added up in the order in which rows come."""
    return Counter(
        str([f"{v:.9g}" if isinstance(v, float) else v for v in row])
        for row in sql.execute(query.encode())
    )


def test_names_of_items_and_pairs_are_those_that_views_have() -> None:
    coverage = Coverage()
    random = Random(2)
    generator = Generator(random, coverage, random_tables(random), MAKERS)
    for _ in range(VIEWS):
        relation = generator.view()
        coverage.add(relation)
        assert set(pairs_of(relation)) <= PAIRS
    assert set(coverage.items) <= set(ITEMS)


def test_the_same_seed_gives_the_same_views() -> None:
    def views() -> list[str]:
        random = Random(3)
        generator = Generator(random, Coverage(), random_tables(random), MAKERS)
        return [write(generator.view(), "s").query for _ in range(20)]

    assert views() == views()


def test_a_failing_view_is_made_small() -> None:
    """Whatever has a group fails: a group over one table without rows is left."""
    random = Random(4)
    tables = random_tables(random)
    generator = Generator(random, Coverage(), tables, MAKERS)
    view = next(v for v in iter(generator.view, None) if _has_group(v) and _depth(v) > 6)
    rows = tuple(insert(random, table, 1) for table in tables)
    batches = (("SELECT 1", "SELECT 2"), ("SELECT 3",))
    case = Case(tuple(table.ddl for table in tables), rows, view, batches)
    small = shrink(case, lambda example: "GROUP BY t" in example.query)
    assert _depth(small.view) <= 4
    assert (small.rows, small.batches) == ((), ())
    assert read_script(small.example.script) == small.example


def _has_group(relation: object) -> bool:
    return "GROUP BY t" in write(relation, "s").query  # type: ignore[arg-type]


def _depth(relation: object) -> int:
    return repr(relation).count("operator=")


@pytest.mark.postgres
def test_plans_and_stages_give_what_postgresql_says(plans: PlanWay) -> None:
    report = Report()
    Rounds(plans, None, report, Size(views=16, batches=3)).run(seed=20, seconds=600, most=90)
    assert not report.failures
    assert report.pairs_changed > 0.4 * report.pairs > 80
    # Numbers of the most digits do not fit everywhere.
    long = sum(times for reason, times in report.refused.items() if re.match(LONG, reason))
    assert sum(report.refused.values()) - long < 0.05 * report.views, report.refused
    assert long < 0.1 * report.views
    assert not report.unexpected


@pytest.mark.postgres
def test_a_wrong_rule_is_found(plans: PlanWay, monkeypatch: pytest.MonkeyPatch) -> None:
    """An aggregate that does not see deletes is noticed, and the example says so."""
    from fuzz import stages

    def without_deletes(*arguments: object) -> Counter[tuple[object, ...]]:
        rows = evaluate(*arguments)
        return Counter({row: weight for row, weight in rows.items() if weight > 0})

    evaluate = stages.evaluate
    example = Example(
        ("CREATE TABLE t (g int)", "INSERT INTO t VALUES (1), (1), (2)"),
        (),
        "SELECT g, count(*) AS n FROM t GROUP BY g",
        (("DELETE FROM t WHERE g = 2",),),
    )
    assert failure_of(plans, example) is None
    monkeypatch.setattr(stages, "evaluate", without_deletes)
    failure = failure_of(plans, example)
    assert isinstance(failure, Failure)
    assert failure.kind == "after a change"


@pytest.mark.postgres
def test_a_name_that_the_user_took_is_not_read_as_the_built_in_one(plans: PlanWay) -> None:
    table = ("CREATE TABLE t (x varchar, i int, n numeric)", "INSERT INTO t VALUES ('a', 1, 2.5)")
    shown = {
        "lower(": "lower(x)",
        "upper(": "upper(x)",
        "length(": "length(x)",
        "replace(": "replace(x, 'a', 'b')",
        "same_letters": "(x = x)",
        "longer": "(x < x)",
        "between_them": "(x || x)",
        "far_below": "(i < n)",
        "as_hundreds": "(n + i)",
    }
    made = [(one,) for one in FUNCTIONS] + [(function, own) for function, own in OPERATORS]
    for function, *operator in made:
        text = next((text for name, text in shown.items() if function.startswith(name)), None)
        if text is None:
            continue
        example = Example(table, (), f"SELECT {text} AS a FROM t", ())
        run_example(plans, example)
        own = (
            f"CREATE FUNCTION {function} LANGUAGE sql",
            *(f"CREATE OPERATOR {o}" for o in operator),
        )
        with pytest.raises(Refused) as refused:
            run_example(plans, replace(example, setup=(*table, *own)))
        assert expected(str(refused.value), shadowed=True)


def test_groups_are_counted_as_pairs() -> None:
    random = Random(5)
    generator = Generator(random, Coverage(), random_tables(random), MAKERS)
    made = MAKERS["aggregate"](generator, 0)
    assert isinstance(made, Aggregate)
    assert set(pairs_of(made)) <= {("aggregate", leaf) for leaf in ("scan", "values", "function")}
