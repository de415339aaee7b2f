"""What of a stage's query is left when some of its inputs have no row that matters."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.delta.differentiate import relations_of
from headrace.delta.drop_terms import scans
from headrace.engine.steps import ComputeStage
from headrace.plan.stages import cut_stages
from headrace.query import bind
from headrace.refresh.plan import Decision, taking_in
from headrace.refresh.term_pruning import remaining
from headrace.relations.reduce import Reduced, empty_scans
from headrace.spark.run import Input
from headrace.store import WEIGHT
from tests.query.shop import Shop

QUERY = (
    "SELECT c.region, sum(o.amount) AS total FROM orders o JOIN customers c ON c.id = o.customer"
    " WHERE o.qty = 7 AND c.vip GROUP BY c.region"
)
DIFFERENTIAL = Decision("DIFFERENTIAL", "incremental")


def step_of(query: str) -> ComputeStage:
    stage = cut_stages(bind(query, Shop()).plan, "x")[-1]
    return taking_in(stage, DIFFERENTIAL, frozenset(relations_of(stage.region)))


def given(step: ComputeStage, rows: dict[str, list[dict[str, object]]]) -> Reduced:
    """Inputs of which those named are known to have these rows; the others are in files."""
    types = {
        physical: column.type.arrow
        for _, scan in scans(step.plan)
        for physical, column in ((f"{scan.relation}.{p}", c) for p, c in scan.fields)
    }
    inputs = []
    for wanted in step.inputs:
        fields = [(c, types[f"{wanted.relation}.{c}"]) for c in wanted.columns]
        schema = pa.schema([(WEIGHT, pa.int64()), *fields])
        known = rows.get(wanted.name)
        table = None if known is None else pa.Table.from_pylist(known, schema=schema)
        files = () if known is not None else ("file:///none",)
        inputs.append(Input(wanted.name, schema, rows=table, files=files))
    return Reduced(inputs)


def left(step: ComputeStage, found: Reduced) -> ComputeStage | None:
    assert step.reduction is not None
    return remaining(step, empty_scans(step.plan, step.reduction, step.inputs, found))


ORDER = {WEIGHT: 1, "c2": 1, "c3": None, "c5": 7}
CUSTOMER = {WEIGHT: 1, "c1": 1, "c2": "north", "c5": True}


@pytest.mark.parametrize(
    ("orders", "customers"),
    [
        ([], []),
        ([{**ORDER, "c5": 8}], []),
        ([{**ORDER, "c5": None}], [{**CUSTOMER, "c5": False}]),
    ],
)
def test_a_change_that_conditions_exclude_leaves_nothing(
    orders: list[dict[str, object]], customers: list[dict[str, object]]
) -> None:
    step = step_of(QUERY)
    found = given(step, {"r_orders_change": orders, "r_customers_change": customers})
    assert left(step, found) is None


def test_the_other_terms_are_left() -> None:
    step = step_of(QUERY)
    changes = {"r_orders_change": [ORDER], "r_customers_change": [{**CUSTOMER, "c5": False}]}
    found = given(step, changes)
    shorter = left(step, found)
    assert shorter is not None
    names = {wanted.name for wanted in shorter.inputs}
    assert names == {"x_before", "r_orders_change", "r_customers_after"}
    assert "r_customers_change" not in shorter.sql
    assert "r_orders_change" in shorter.sql
    assert left(step, found) == shorter


def test_a_second_set_of_terms_without_rows_has_the_whole_query_run() -> None:
    """Its plan is kept, so that it is not planned again for each set."""
    step = step_of(QUERY.replace("7", "8"))
    eight, none = {**ORDER, "c5": 8}, {**CUSTOMER, "c5": False}
    by_orders = given(step, {"r_orders_change": [eight], "r_customers_change": [none]})
    by_customers = given(step, {"r_orders_change": [ORDER], "r_customers_change": [CUSTOMER]})
    shorter = left(step, by_orders)
    assert shorter is not None
    assert len(shorter.sql) < len(step.sql)
    assert left(step, by_customers) is step
    assert left(step, by_orders) == shorter


def test_nothing_is_left_where_what_was_looked_up_has_no_row() -> None:
    step = step_of(QUERY)
    found = given(
        step, {"r_orders_change": [ORDER], "r_customers_change": [], "r_customers_after": []}
    )
    assert left(step, found) is None
    looked_up = {
        path: found.inputs[0].schema.empty_table()
        for path, scan in scans(step.plan)
        if (scan.relation, scan.version) == ("r_customers", "after")
    }
    elsewhere = given(step, {"r_orders_change": [ORDER], "r_customers_change": []})
    assert left(step, elsewhere) is not None
    assert left(step, Reduced(elsewhere.inputs, looked_up)) is None


def test_outer_joins_keep_rows_without_a_match() -> None:
    query = "SELECT o.id, c.region FROM orders o LEFT JOIN customers c ON c.id = o.customer"
    step = step_of(query)
    order = {WEIGHT: 1, "c1": 1, "c2": 1}
    found = given(
        step, {"r_orders_change": [order], "r_customers_change": [], "r_customers_after": []}
    )
    assert left(step, found) is not None
    assert left(step, given(step, {"r_orders_change": [], "r_customers_change": []})) is None
