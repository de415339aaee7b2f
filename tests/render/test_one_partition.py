"""Queries of one task have no exchange, whatever they join: each would be one more stage."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from headrace.delta.differentiate import relations_of, stage_change
from headrace.plan.stages import cut_stages
from headrace.query import bind
from headrace.render import render
from headrace.spark.run import Runner
from tests.query.shop import Shop
from tests.render.one_partition import QUERIES, one_row_each

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", QUERIES)
def test_a_change_is_computed_in_one_stage(runner: Runner, name: str) -> None:
    for stage in cut_stages(bind(QUERIES[name], Shop()).plan, "x"):
        change = stage_change(stage, relations_of(stage.region))
        text = f"EXPLAIN {render(change, one_partition=True)}"
        plan = runner.collect(text, one_row_each(change))
        assert isinstance(plan, pa.Table)
        shown = plan.column(0)[0].as_py()
        assert "Scan ExistingRDD" in shown
        # A comparison with what may be NULL is broadcast: that takes no partitions apart.
        assert not re.search(r"\bExchange\b", shown), shown
