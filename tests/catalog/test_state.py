"""Looking things up in a state."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from headrace.catalog import State, new_relation_id
from headrace.errors import InternalError
from tests.catalog import examples

OVER = replace(
    examples.TABLE, relation="rover", name="Over", inputs=("rtotals", "rorders", "rtotals")
)
STATE = State.of(
    [examples.DATABASE],
    [examples.TOTALS, examples.ORDERS],
    [examples.SOURCE],
    [examples.TABLE, OVER],
    {},
)


def test_records_are_in_order() -> None:
    assert STATE.relations == (examples.ORDERS, examples.TOTALS)
    assert STATE.stream_tables == (OVER, examples.TABLE)


def test_lookups() -> None:
    assert STATE.stream_table("shop", "Totals") == examples.TABLE
    assert STATE.stream_table("shop", "totals") is None
    assert STATE.source(1, 4_000_000_000) == examples.SOURCE
    assert STATE.source(2, 4_000_000_000) is None
    assert STATE.relation("rtotals") == examples.TOTALS
    assert STATE.database(1) == examples.DATABASE


def test_readers_are_named_once() -> None:
    assert STATE.readers("rorders") == (OVER, examples.TABLE)
    assert STATE.readers("rtotals") == (OVER,)
    assert STATE.readers("rover") == ()


def test_the_origin_of_a_relation() -> None:
    assert STATE.origin("rorders") == examples.SOURCE
    assert STATE.origin("rtotals") == examples.TABLE
    assert STATE.origin("rhidden") is None


def test_a_missing_relation_or_database_is_a_bug() -> None:
    with pytest.raises(InternalError, match="no relation 'rgone'"):
        STATE.relation("rgone")
    with pytest.raises(InternalError, match="no database 7"):
        STATE.database(7)


def test_relation_ids_are_safe_names_and_never_the_same() -> None:
    ids = {new_relation_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch("r[a-z2-7]{16}", name) for name in ids)
