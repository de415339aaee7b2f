"""The short cut of joins gives what the definition gives, for plans of random views."""

from __future__ import annotations

from random import Random

import pytest

from fuzz import quick
from fuzz.binding import Database
from fuzz.coverage import Coverage
from fuzz.generate import Generator
from fuzz.makers import MAKERS
from fuzz.plan_way import PlanWay, reader_of
from fuzz.schema import insert, random_tables
from fuzz.write import write
from headrace.errors import HeadraceError
from headrace.plan.evaluate import evaluate, net
from headrace.query import bind

VIEWS = 60
# A join by its definition takes every pair of rows.
ROWS, PAIRS = 4, 3


@pytest.mark.postgres
def test_equalities_find_the_pairs_that_conditions_leave(plans: PlanWay) -> None:
    random = Random(6)
    tables = random_tables(random)
    plans.start((*(t.ddl for t in tables), *(insert(random, t, ROWS) for t in tables)))
    generator = Generator(random, Coverage(), tables, MAKERS)
    compared = 0
    for _ in range(VIEWS):
        first = random.choice(("inner join", "full join", "key join", "from clause", "lateral"))
        relation = generator.view(first)
        written = write(relation, "s")
        if written.needed or written.query.count(" AS t") > PAIRS:
            continue
        try:
            plan = bind(written.query, Database(plans.connection)).written
        except HeadraceError:
            continue
        read = reader_of(plans.world)
        expected = str(sorted(net(evaluate(plan, read)).items(), key=str))
        assert str(sorted(net(quick.evaluate(plan, read)).items(), key=str)) == expected
        compared += bool(expected)
    assert compared > VIEWS / 4
