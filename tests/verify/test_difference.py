"""What is left of a difference where engines may differ in the last digits."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace.types import DOUBLE, INTEGER, TEXT, Type, array_of, numeric, result_numeric
from headrace.verify import comparison, difference
from headrace.verify.comparison import compared
from headrace.verify.difference import close, remaining

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


def rows_of(count: int, *, apart: float) -> pa.Table:
    """As many rows on either side, which differ by so much; no column of them is exact."""
    values = [float(n) for n in range(1, count + 1)]
    return pa.table(
        {
            "_weight": pa.array([1] * count + [-1] * count, pa.int64()),
            "x": pa.array(values + [value * (1 + apart) for value in reversed(values)]),
        }
    )


def test_rows_without_an_exact_column_meet_few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    compared_pairs = 0

    def counting(*arguments: Any) -> bool:
        nonlocal compared_pairs
        compared_pairs += 1
        return close(*arguments)

    monkeypatch.setattr(difference, "close", counting)
    assert remaining(rows_of(1000, apart=1e-12), [DOUBLE]) == []
    assert compared_pairs < 3000


def test_values_that_are_no_numbers_pair_up() -> None:
    values = [float("nan"), float("inf"), float("-inf"), None, 0.0, 1.0]
    table = pa.table(
        {
            "_weight": pa.array([2] * 6 + [-2] * 5 + [-1], pa.int64()),
            "x": pa.array(values + values, pa.float64()),
        }
    )
    assert remaining(table, [DOUBLE]) == [(1, (1.0,))]


def test_arrays_beside_floats_pair_up() -> None:
    table = pa.table(
        {
            "_weight": pa.array([1, 1, -1, -1], pa.int64()),
            "tags": pa.array([["a"], ["b"], ["b"], ["a"]]),
            "x": pa.array([[1.0], [2.0], [2.0 + 1e-12], [1.0 + 1e-12]]),
        }
    )
    assert remaining(table, [array_of(TEXT), array_of(DOUBLE)]) == []


def beside_numbers(rows: pa.Table) -> pa.Table:
    """The rows with an exact column by which they pair up."""
    half = rows.num_rows // 2
    numbers = [*range(half), *reversed(range(half))]
    return rows.append_column("n", pa.array(numbers, INTEGER.arrow))


def test_many_rows_that_agree_within_their_tolerance_are_equal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only what is left after pairing counts against the limit."""
    monkeypatch.setattr(comparison, "MOST_DIFFERENCES", 100)
    rows = beside_numbers(rows_of(1000, apart=1e-12))
    assert compared("x", rows, ["x", "n"], [DOUBLE, INTEGER]).equal


def test_pairing_ends_at_the_most_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "MOST_DIFFERENCES", 100)
    rows = beside_numbers(rows_of(1000, apart=0.3))
    result = compared("x", rows, ["x", "n"], [DOUBLE, INTEGER])
    assert (result.missing, result.surplus) == (100, 100)
    # Nor are more rows than that paired with each other.
    result = compared("x", rows_of(1000, apart=1e-12), ["x"], [DOUBLE])
    assert (result.missing, result.surplus) == (100, 100)


def test_exact_differences_are_counted_and_a_few_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[int] = []

    def rows_shown(table: pa.Table) -> list[Any]:
        shown.append(table.num_rows)
        return difference.weighted_rows(table)

    monkeypatch.setattr(comparison, "weighted_rows", rows_shown)
    weights = pa.array([3] * 1000 + [-1] * 500, pa.int64())
    table = pa.table({"_weight": weights, "n": pa.array(range(1500), INTEGER.arrow)})
    result = compared("x", table, ["n"], [INTEGER])
    assert (result.missing, result.surplus) == (3000, 500)
    assert len(result.sample) == comparison.SAMPLE
    assert shown == [comparison.SAMPLE]
