"""How far a stream table has taken in its inputs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.catalog.records import taken_in
from tests.catalog import examples


def test_a_missing_frontier_is_an_error_and_never_zero() -> None:
    filled = replace(examples.TABLE, epoch=9, frontier={"rorders": 9})
    assert taken_in(filled, "rorders") == 9
    with pytest.raises(KeyError, match="rother"):
        taken_in(filled, "rother")


def test_a_table_that_was_never_filled_has_taken_in_nothing() -> None:
    assert taken_in(replace(examples.TABLE, epoch=0, frontier={}), "rorders") == 0
