"""From what PostgreSQL sends to what is stored, without a server."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.errors import NeedsReinit
from headrace.source.reading import (
    misfit_sql,
    read_sql,
    relation_sql,
    stored_schema,
    to_stored,
)
from headrace.source.table import SourceColumn, SourceTable
from headrace.types import INTEGER, TEXT, Type

WIDE = Type("numeric", precision=38, scale=18)


def column(type_: Type, name: str = "x") -> SourceColumn:
    return SourceColumn(1, name, type_.sql, type_)


@st.composite
def numerics(draw: st.DrawFn) -> tuple[Type, str, Decimal]:
    """A decimal type, a value that fits it, and a text that PostgreSQL may show it as."""
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    unscaled = draw(st.integers(-(10**precision) + 1, 10**precision - 1))
    value = Decimal(unscaled).scaleb(-scale) if precision < 28 else _scaled(unscaled, scale)
    text = f"{value:f}"
    zeros = draw(st.integers(0, 60))
    if zeros:
        text = text + ("" if "." in text else ".") + "0" * zeros
    return Type("numeric", precision=precision, scale=scale), text, value


def _scaled(unscaled: int, scale: int) -> Decimal:
    sign, digits, _ = Decimal(unscaled).as_tuple()
    return Decimal((sign, digits, -scale))


@given(numerics())
@example((Type("numeric", precision=38, scale=1), "1." + "0" * 40, Decimal(1)))
@example((Type("numeric", precision=38, scale=38), "-0." + "9" * 38, Decimal("-0." + "9" * 38)))
@example((Type("numeric", precision=38, scale=0), "-" + "9" * 38, Decimal("-" + "9" * 38)))
def test_decimals_are_exact(case: tuple[Type, str, Decimal]) -> None:
    type_, text, value = case
    data = pa.table({"c1": pa.array([text, None, text])})
    stored = to_stored(data, [column(type_)])["c1"]
    assert stored.type == type_.arrow
    assert stored.to_pylist() == [value, None, value]


def test_a_digit_too_many_is_never_dropped() -> None:
    data = pa.table({"c1": ["0." + "0" * 40 + "1"]})
    with pytest.raises(NeedsReinit):
        to_stored(data, [column(WIDE)])


def test_the_verdict_of_postgresql_counts() -> None:
    data = pa.table({"c1": ["1"], "_misfit": [True]})
    with pytest.raises(NeedsReinit) as refused:
        to_stored(data, [column(WIDE)])
    assert refused.value.code == "value-does-not-fit"


def test_batches_and_empty_results() -> None:
    columns = [column(WIDE), SourceColumn(2, "y", "text", TEXT)]
    empty = pa.table({"c1": pa.array([], pa.string()), "c2": pa.array([], pa.string())})
    assert to_stored(empty, columns).schema == stored_schema(columns)
    batch = pa.record_batch({"_weight": pa.array([-1]), "c1": ["2"], "c2": [None]})
    stored = to_stored(batch, columns)
    assert stored.schema.names == stored_schema(columns, weighted=True).names
    assert stored["_weight"].to_pylist() == [-1]


def test_sql_is_quoted() -> None:
    columns = [column(INTEGER, 'a"b'), SourceColumn(2, "%s {}", "numeric", WIDE)]
    relation = relation_sql("S.", 't"')
    assert read_sql(relation, columns, "ctid < '(1,0)'").startswith(
        'SELECT "a""b" AS "c1", "%s {}"::text AS "c2", coalesce('
    )
    assert read_sql(relation, columns[:1]) == (
        'SELECT "a""b" AS "c1" FROM ONLY "S."."t""" WHERE true'
    )
    assert read_sql("b", columns[:1], buffered=True) == (
        'SELECT "_weight"::bigint AS "_weight", "c1" AS "c1" FROM b WHERE true'
    )


def test_only_types_that_may_not_fit_are_asked_about() -> None:
    table = SourceTable(1, "s", "t", (column(INTEGER),))
    assert misfit_sql("t", table) is None
    keyed = SourceTable(
        1,
        "s",
        "t",
        (SourceColumn(1, "id", "integer", INTEGER), SourceColumn(2, "n", "n", WIDE)),
        keys=((1,),),
    )
    made = misfit_sql("t", keyed) or ""
    assert "json_build_object('id', left(\"id\"::text, 100))" in made
