"""What is left of a difference where engines may differ in the last digits."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace.types import INTEGER, Type, numeric, result_numeric
from headrace.verify.difference import remaining

QUOTIENT = result_numeric(32, 12, rounded=True)
EXACT = numeric(32, 12)


def left(type_: Type, *rows: tuple[int, int, str], digits: bool) -> list[Any]:
    table = pa.table(
        {
            "_weight": pa.array([weight for weight, *_ in rows], pa.int64()),
            "a": pa.array([a for _, a, _ in rows], INTEGER.arrow),
            "b": pa.array([Decimal(b) for *_, b in rows], type_.arrow),
        }
    )
    return remaining(table, [INTEGER, type_], digits=digits)


@pytest.mark.parametrize("difference", ["0.000000000999", "-0.000000000001"])
def test_rounded_numerics_pair_up_within_their_digits(difference: str) -> None:
    value = Decimal("3.333333333333")
    rows = ((1, 7, str(value)), (-1, 7, str(value + Decimal(difference))))
    assert left(QUOTIENT, *rows, digits=True) == []
    assert len(left(QUOTIENT, *rows, digits=False)) == 2
    assert len(left(EXACT, *rows, digits=True)) == 2


def test_larger_differences_and_other_rows_stay() -> None:
    pair = ((1, 7, "3.333333333333"), (-1, 7, "3.333333334334"))
    assert len(left(QUOTIENT, *pair, digits=True)) == 2
    pair = ((1, 7, "3.333333333333"), (-1, 8, "3.333333333333"))
    assert len(left(QUOTIENT, *pair, digits=True)) == 2
    # Of a large quotient PostgreSQL gives 16 digits in all.
    pair = ((1, 7, "1234567890123456.7"), (-1, 7, "1234567890123457"))
    assert left(QUOTIENT, *pair, digits=True) == []
