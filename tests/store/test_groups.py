"""Row groups are left out where no key can be in them, and nowhere else."""

from __future__ import annotations

import io
import math
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.store import Keys
from headrace.store import lookup as groups_module
from headrace.store.lookup import Footer, may_match

GROUP = 4
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "small": (pa.int16(), st.integers(-5, 5)),
    "large": (pa.int64(), st.sampled_from([-(2**63), -1, 0, 1, 2**53 + 1, 2**63 - 1])),
    "text": (pa.string(), st.text("abäß€😀", max_size=2)),
    "bytes": (pa.binary(), st.binary(max_size=2)),
    "date": (pa.date32(), st.dates(date(1969, 12, 28), date(1970, 1, 4))),
    "time": (pa.timestamp("us"), st.integers(-3, 3)),
    "truth": (pa.bool_(), st.booleans()),
    "long": (pa.decimal128(38, 2), st.integers(-(10**30), 10**30).map(lambda n: Decimal(n) / 4)),
    "short": (pa.decimal128(9, 1), st.integers(-30, 30).map(lambda n: Decimal(n) / 2)),
    "float": (pa.float64(), st.sampled_from([0.0, -0.0, math.nan, 1.5, -1.5])),
    "list": (pa.list_(pa.int32()), st.lists(st.integers(0, 1), max_size=2)),
}
Values = dict[str, list[Any]]


@st.composite
def columns(draw: st.DrawFn) -> tuple[Values, Values, bool]:
    """Rows and keys of up to three columns, and whether the rows are sorted."""
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3, unique=True))
    size, keys = draw(st.integers(0, 40)), draw(st.integers(0, 6))
    cells = {name: st.one_of(st.none(), KINDS[name][1]) for name in names}
    rows = {n: draw(st.lists(c, min_size=size, max_size=size)) for n, c in cells.items()}
    wanted = {n: draw(st.lists(c, min_size=keys, max_size=keys)) for n, c in cells.items()}
    if size and keys and draw(st.booleans()):
        # A key that is there, NULLs and all.
        at = draw(st.integers(0, size - 1))
        wanted = {name: [rows[name][at], *wanted[name][1:]] for name in names}
    return rows, wanted, draw(st.booleans())


def table(values: Values) -> pa.Table:
    return pa.table({name: pa.array(each, KINDS[name][0]) for name, each in values.items()})


def footer_of(rows: pa.Table, **options: Any) -> Footer:
    file = io.BytesIO()
    pq.write_table(rows, file, row_group_size=GROUP, store_schema=False, **options)
    return Footer.of(pq.ParquetFile(file).metadata, rows.column_names)


def ordered(rows: pa.Table) -> pa.Table:
    names = [f.name for f in rows.schema if not pa.types.is_list(f.type)]
    return rows.sort_by([(name, "ascending") for name in names]) if names else rows


@given(columns(), st.booleans())
@example(({"small": [None] * 4 + [1] * 4}, {"small": [None]}, False), False)
@example(({"text": ["a", "b"], "small": [1, 9]}, {"text": ["a"], "small": [9]}, False), False)
def test_a_group_with_a_key_is_never_left_out(
    drawn: tuple[Values, Values, bool], as_integers: bool
) -> None:
    values, wanted, is_sorted = drawn
    rows = ordered(table(values)) if is_sorted else table(values)
    keys = Keys(table(wanted))
    found = may_match(footer_of(rows, store_decimal_as_integer=as_integers), keys)
    for number, possible in enumerate(found):
        held = keys.has(rows.slice(number * GROUP, GROUP))
        assert possible or not held.any()


@given(columns())
@example(({"float": []}, {"float": [None]}, False))
def test_what_is_left_out_is_all_that_can_be(drawn: tuple[Values, Values, bool]) -> None:
    """Against every key and every group, one by one."""
    values, wanted, _ = drawn
    compared = [name for name in values if name not in ("float", "list")]
    found = may_match(footer_of(table(values)), Keys(table(wanted)))
    for number, possible in enumerate(found):
        here = {n: v[number * GROUP : (number + 1) * GROUP] for n, v in values.items()}
        keys = [dict(zip(wanted, key, strict=True)) for key in zip(*wanted.values(), strict=True)]
        within = any(all(_within(key[n], here[n]) for n in compared) for key in keys)
        assert possible == (within and any(map(len, here.values())))


def _within(value: Any, values: list[Any]) -> bool:
    present = [each for each in values if each is not None]
    if value is None:
        return len(present) < len(values)
    return bool(present) and min(present) <= value <= max(present)


def test_statistics_of_long_texts_are_cut_off(tmp_path: Path) -> None:
    """delta-rs keeps a few bytes of them: the greatest is then not a value that is there."""
    texts = [c * 200 + end for c in "aä€" for end in ("", "x", "\U0010ffff")]
    deltalake.write_deltalake(tmp_path, pa.table({"text": texts}))
    (path,) = tmp_path.glob("*.parquet")
    footer = Footer.of(pq.read_metadata(path), ["text"])
    bounds = footer.bounds["text"]
    assert bounds is not None
    assert len(bounds.high[0]) < 200, "it is cut off"
    for text in texts:
        assert may_match(footer, Keys(pa.table({"text": [text]}))).all()
    for text in ("Z", "€" * 200 + "\U0010ffff" * 2, "\U0010ffff"):
        possible = may_match(footer, Keys(pa.table({"text": [text]}))).all()
        assert possible == (text.startswith("€"))


def test_without_statistics_everything_is_possible() -> None:
    rows = pa.table({"small": pa.array(range(20), pa.int16())})
    footer = footer_of(rows, write_statistics=False)
    assert may_match(footer, Keys(table({"small": [50]}))).tolist() == [True] * 5
    assert may_match(footer, Keys(table({"small": []}))).tolist() == [False] * 5


def test_too_many_keys_are_compared_by_each_column_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    footer = footer_of(table({"small": [0, 0, 9, 9], "text": ["a", "b", "a", "b"]}))
    keys = Keys(table({"small": [5, 20], "text": ["x", "a"]}))
    assert may_match(footer, keys).tolist() == [False]
    monkeypatch.setattr(groups_module, "MOST_COMPARED", 0)
    assert may_match(footer, keys).tolist() == [True]


def test_rows_of_each_group_are_known() -> None:
    footer = footer_of(table({"small": list(range(10))}))
    assert np.array_equal(footer.rows, [4, 4, 2])
