"""Where a recursion reads itself decides how it takes in changes: by rounds, or recomputed."""

from __future__ import annotations

import pytest

from headrace.errors import UserError
from headrace.plan.stages import Stage, cut_stages
from headrace.query import bind
from tests.query.recursions import Graphs

STEP = "SELECT e.dst FROM r JOIN edges AS e ON e.src = r.x"
AGAIN = "WITH q AS (SELECT x FROM r)"


def recursion(step: str, union: str = "UNION") -> Stage:
    """The one stage of the recursion; what stands below it may have stages of its own."""
    query = f"WITH RECURSIVE r (x) AS (SELECT src FROM edges {union} {step}) SELECT x FROM r"
    stages = cut_stages(bind(query, Graphs()).plan, "x")
    (stage,) = (one for one in stages if one.variable is not None or one.recursion is not None)
    assert (stage.variable is None) == (stage.obstacle is not None)
    return stage


@pytest.mark.parametrize("union", ["UNION", "UNION ALL"])
@pytest.mark.parametrize(
    "step",
    [
        "SELECT x + 1 FROM r WHERE x < 9",
        STEP,
        f"{STEP} WHERE NOT EXISTS (SELECT FROM blocked AS b WHERE b.node = e.dst)",
        "SELECT x + 1 FROM r WHERE x NOT IN (SELECT node FROM blocked WHERE node IS NOT NULL)",
        f"{STEP} WHERE r.x < (SELECT max(v) FROM caps WHERE k = 1)",
        f"{STEP} JOIN (SELECT k, count(*) AS ways FROM caps GROUP BY k) AS c"
        " ON c.k = r.x AND c.ways < 3",
        "SELECT e.dst FROM r JOIN (SELECT src, dst FROM edges EXCEPT SELECT k, v FROM caps) AS e"
        " ON e.src = r.x",
        "SELECT e.dst FROM r LEFT JOIN edges AS e ON e.src = r.x WHERE r.x < 9",
        "SELECT q.n FROM r, LATERAL (SELECT count(*)::int AS n FROM edges WHERE src = r.x) AS q",
        "SELECT x + 1 FROM r WHERE x IN (VALUES ((SELECT max(k) FROM caps)), (1))",
    ],
    ids=[
        "alone",
        "in a join",
        "on the left of an anti join",
        "on the left of NOT IN",
        "beside an aggregate",
        "joined with groups",
        "joined with the rest of an EXCEPT",
        "on the preserved side of an outer join",
        "beside a lateral aggregate",
        "beside rows with queries in them",
    ],
)
def test_what_is_negated_or_aggregated_outside_is_followed(step: str, union: str) -> None:
    stage = recursion(step, union)
    assert stage.obstacle is None
    assert stage.levels == (union == "UNION ALL")


@pytest.mark.parametrize(
    ("step", "union", "obstacle"),
    [
        ("SELECT DISTINCT x + 1 FROM r", "UNION ALL", "DISTINCT or GROUP BY"),
        ("SELECT x + 1 FROM r GROUP BY x", "UNION ALL", "DISTINCT or GROUP BY"),
        (f"({AGAIN} SELECT max(x) FROM q)", "UNION", "an aggregate"),
        ("SELECT (rank() OVER (ORDER BY x))::int FROM r", "UNION", "a window"),
        ("(SELECT x + 1 FROM r ORDER BY x LIMIT 2)", "UNION", "LIMIT or DISTINCT ON"),
        (f"({AGAIN} SELECT a.x + b.x FROM q AS a, q AS b)", "UNION", "a join with itself"),
        (f"({AGAIN} SELECT a.x + b.x FROM q AS a, q AS b)", "UNION ALL", "a join with itself"),
    ],
)
def test_what_stands_above_itself_and_is_no_loop(step: str, union: str, obstacle: str) -> None:
    assert recursion(step, union).obstacle == obstacle


@pytest.mark.parametrize(
    "step",
    [
        "(SELECT src FROM edges EXCEPT SELECT x FROM r)",
        "SELECT src FROM edges WHERE NOT EXISTS (SELECT FROM r WHERE x = src)",
        "SELECT src FROM edges WHERE src NOT IN (SELECT x FROM r)",
        "SELECT max(x) FROM r",
        "SELECT e.dst FROM edges AS e LEFT JOIN r ON e.src = r.x",
    ],
)
def test_itself_in_a_place_that_is_not_monotone_is_no_query(step: str) -> None:
    """PostgreSQL refuses them as well."""
    with pytest.raises(UserError) as refused:
        recursion(step)
    assert refused.value.code == "invalid-query"


def test_a_distinct_changes_nothing_over_sets() -> None:
    assert recursion("SELECT DISTINCT x + 1 FROM r WHERE x < 9").obstacle is None
    assert recursion("SELECT x + 1 FROM r WHERE x < 9 GROUP BY x").obstacle is None
