"""Queries with shared parts, maintained: the path of changes against the query as it is written."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings

from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.operators import Scan
from headrace.query import bind
from tests.delta.stage_logs import check
from tests.delta.worlds import World, worlds
from tests.forms import examples
from tests.query.sharing import queries
from tests.query.subqueries import Small


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(query=queries(), world=worlds())
def test_changes_of_shared_parts(query: str, world: World) -> None:
    bound = bind(query, Small())

    def read(scan: Scan) -> Bag:
        places = [("c1", "c2").index(physical) for physical, _ in scan.fields]
        rows: Bag = Counter()
        for row, weight in world.after[scan.relation].items():
            rows[tuple(row[i] for i in places)] += weight
        return rows

    assert net(evaluate(bound.plan, read)) == net(evaluate(bound.written, read))
    check(bound.plan, world)


def test_conditions_too_long_to_be_shared_keep_rows_of_nobody_out() -> None:
    """The group 1 divides by zero, and neither place asks for it."""

    def place(key: int) -> str:
        values = ", ".join(map(str, (key, *range(1000 * key, 1000 * key + 600))))
        groups = "SELECT k, sum(10 / x) AS n FROM a GROUP BY k"
        return f"SELECT k, n FROM ({groups}) AS g WHERE k IN ({values})"

    bound = bind(f"{place(2)} UNION ALL {place(3)}", Small())

    def read(scan: Scan) -> Bag:
        places = [("c1", "c2").index(physical) for physical, _ in scan.fields]
        return Counter(tuple(row[i] for i in places) for row in ((1, 0), (2, 2), (3, 5)))

    assert net(evaluate(bound.plan, read)) == {(2, 5): 1, (3, 2): 1}


def test_conditions_too_long_to_be_merged_keep_what_they_have_in_common() -> None:
    def place(key: int) -> str:
        values = ", ".join(map(str, (key, *range(1000 * key, 1000 * key + 600))))
        return f"(SELECT sum(x) AS n FROM a WHERE x > 1 AND k IN ({values}))"

    bound = bind(f"SELECT p.n, q.n AS m FROM {place(2)} AS p, {place(3)} AS q", Small())

    def read(scan: Scan) -> Bag:
        places = [("c1", "c2").index(physical) for physical, _ in scan.fields]
        rows = ((2, 1), (2, 2), (3, 0), (3, 5))
        return Counter(tuple(row[i] for i in places) for row in rows)

    assert net(evaluate(bound.plan, read)) == {(2, 5): 1}
