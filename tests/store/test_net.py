"""`net` against its definition: a Counter of rows."""

from __future__ import annotations

import struct
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.store import net
from tests.store.conftest import weighted_rows

OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000123))[0]
NAN = float("nan")

# Few values a type, so that equal rows are common.
VALUES: dict[pa.DataType, tuple[object, ...]] = {
    pa.bool_(): (True, False),
    pa.int16(): (0, -1),
    pa.int32(): (0, 1),
    pa.int64(): (0, 2**63 - 1),
    pa.float32(): (0.0, -0.0, NAN, 1.5),
    pa.float64(): (0.0, -0.0, NAN, OTHER_NAN, float("inf")),
    pa.decimal128(38, 2): (Decimal("0.00"), Decimal("1.10"), Decimal("-999999.99")),
    pa.string(): ("", "a", "A", "\x00"),
    pa.binary(): (b"", b"\x00", b"\x00\x00"),
    pa.date32(): (date(1, 1, 1), date(2020, 2, 29)),
    pa.timestamp("us"): (-(10**15), 0, 1),
    pa.timestamp("us", "UTC"): (datetime(2020, 1, 1, tzinfo=UTC),),
    pa.list_(pa.string()): ([], [""], ["", ""], ["1:a"], ["-"], [None], ["a", None], [None, "a"]),
    pa.list_(pa.binary()): ([b"0:"], [b"", b""], [b"\xff"]),
    pa.list_(pa.float64()): ([0.0], [-0.0], [NAN], [OTHER_NAN, None]),
    pa.list_(pa.decimal128(9, 2)): ([Decimal("1.10")], [Decimal("1.00"), Decimal("0.10")]),
    pa.list_(pa.timestamp("us", "UTC")): ([datetime(2020, 1, 1, tzinfo=UTC)], []),
    pa.list_(pa.date32()): ([date(2020, 1, 1)], [None]),
    pa.list_(pa.bool_()): ([True], [False, True]),
}


def identity(value: object) -> object:
    """A value that is equal exactly when two stored values are the same."""
    if isinstance(value, float):
        return "NaN" if value != value else struct.pack("<d", value)
    return tuple(map(identity, value)) if isinstance(value, list) else value


def defined(table: pa.Table) -> dict[tuple[object, ...], int]:
    """The definition: sum the weights of equal rows, leave out zero."""
    sums: Counter[tuple[object, ...]] = Counter()
    for row in table.to_pylist():
        weight = row.pop("_weight")
        row.pop("_epoch", None)
        sums[tuple(identity(value) for value in row.values())] += weight
    return {row: weight for row, weight in sums.items() if weight}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), max_size=4))
    rows = draw(st.integers(0, 12))

    def column(values: st.SearchStrategy[object], kind: pa.DataType) -> pa.ChunkedArray:
        drawn = draw(st.lists(values, min_size=rows, max_size=rows))
        cut = draw(st.integers(0, rows))
        return pa.chunked_array([drawn[:cut], drawn[cut:]], kind)

    columns = {
        f"c{number}": column(st.sampled_from((None, *VALUES[kind])), kind)
        for number, kind in enumerate(kinds, 1)
    }
    columns["_weight"] = column(st.integers(-2, 2), pa.int64())
    if draw(st.booleans()):
        columns["_epoch"] = column(st.integers(1, 3), pa.int64())
    return pa.table(dict(draw(st.permutations(list(columns.items())))))


@given(tables())
@example(pa.table({"_weight": pa.array([], pa.int64())}))
@example(pa.table({"_weight": pa.array([1, -1], pa.int64())}))
@example(pa.table({"_weight": [1, 1, 1], "c1": [NAN, OTHER_NAN, None]}))
@example(pa.table({"_weight": [1, -1], "c1": [0.0, -0.0]}))
def test_net_is_the_sum_of_weights_a_row(table: pa.Table) -> None:
    result = net(table)
    assert defined(result) == defined(table)
    assert result.num_rows == len(defined(table))
    expected = [field for field in table.schema if field.name != "_epoch"]
    assert [(field.name, field.type) for field in result.schema] == [
        (field.name, field.type) for field in expected
    ]


@given(tables())
def test_net_of_net_is_net(table: pa.Table) -> None:
    assert defined(net(net(table))) == defined(net(table))


def test_a_slice_is_netted_alone() -> None:
    rows = weighted_rows((1, 1, "a"), (1, 2, "b"), (-1, 2, "b"), (1, 3, "c"))
    assert net(rows.slice(1, 2)).num_rows == 0


@pytest.mark.parametrize("count", [1_000, 100_000])
def test_many_rows_cancel(count: int) -> None:
    rows = weighted_rows(*((1, number, str(number)) for number in range(count)))
    back = weighted_rows(*((-1, number, str(number)) for number in range(count - 1)))
    assert net(pa.concat_tables([rows, back])).to_pylist() == [
        {"_weight": 1, "c1": count - 1, "c2": str(count - 1)}
    ]
