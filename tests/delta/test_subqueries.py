"""Queries inside expressions, maintained: the path of changes against the definition."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from headrace.query import bind
from tests.delta.stage_logs import check
from tests.delta.worlds import World, worlds
from tests.forms import examples
from tests.query.subqueries import Small, queries


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(query=queries(), world=worlds())
def test_changes_of_lowered_queries(query: str, world: World) -> None:
    check(bind(query, Small()).plan, world)
