"""Files are sorted by the key of what is in them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.algebra.scalar import Column
from headrace.catalog.records import Relation, Source
from headrace.lifecycle.logs import order_of_source, order_of_stage
from headrace.plan.operators import Scan
from headrace.plan.stage import Stage
from headrace.store import Pin
from headrace.types import BIGINT, TEXT, array_of
from tests.catalog.examples import SOURCE

COLUMNS = (("c1", BIGINT), ("c3", TEXT), ("c5", array_of(TEXT)))
RELATION = Relation("r1", COLUMNS, ("c1", "c3", "c5"), Pin(0, 0))


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        (((3,), (1,)), ("c3",)),
        (((3, 1),), ("c3", "c1")),
        # A column that is not stored.
        (((4,), (3,)), ("c3",)),
        (((1, 4),), ("c1",)),
        (((5, 3),), ("c3",)),
        ((), ("c1",)),
    ],
)
def test_a_source(keys: tuple[tuple[int, ...], ...], order: tuple[str, ...]) -> None:
    source: Source = replace(SOURCE, keys=keys)
    assert order_of_source(source, RELATION) == order


def test_a_stage_without_groups() -> None:
    column = Column("a", BIGINT)
    stage = Stage("r1", Scan("r2", (("c1", column),)), ((column, column),))
    assert order_of_stage(stage, RELATION) == ("c1",)
    assert order_of_stage(stage, replace(RELATION, visible=("c5",))) == ()
