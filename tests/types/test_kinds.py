"""Every type is one complete record, and every table keyed by types has an entry for it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from sqlglot import exp

from headrace.algebra.scalar import Literal
from headrace.capture.wal.text_decoders import READERS
from headrace.functions.casts import readable
from headrace.query import literals, type_names
from headrace.types import INTEGER, KINDS, Kind, Type, array_of, from_postgres, has_arrays, numeric
from headrace.types.kinds import INTEGERS, MOMENTS

PARAMETERS = {
    "numeric": numeric(10, 2),
    "enum": Type("enum", enum="shop.mood"),
    "array": array_of(INTEGER),
    "character": Type("character", length=3),
}
"""A type of each kind that needs parameters."""
WITHOUT_OID = {"enum", "array"}
# Constants of these are read beside the table: text as it is, the others by their parameters.
READ_BY_PARAMETERS = {"numeric", "text", "character varying", "character", "array"}
LENGTHS = {"character": 7, "numeric": ((10 << 16) | 2) + 4}

kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def sample(kind: Kind) -> Type:
    return PARAMETERS.get(kind.name) or Type(kind.name)


def test_names_and_oids_are_unique() -> None:
    names = [kind.name for kind in KINDS]
    assert len(names) == len(set(names))
    for field in ("oid", "catalog_name"):
        values = [getattr(kind, field) for kind in KINDS]
        present = [value for value in values if value is not None]
        assert len(present) == len(set(present))
        assert {kind.name for kind in KINDS if getattr(kind, field) is None} == WITHOUT_OID


@kinds
def test_the_record_is_complete(kind: Kind) -> None:
    type_ = sample(kind)
    assert type_.sql and type_.spark
    assert isinstance(type_.arrow, pa.DataType)
    assert "{column}" in type_.read
    assert type_.misfit is None or "{column}" in type_.misfit
    assert kind.hint.endswith(".") and kind.hint[0].isupper()
    assert (kind.limits is not None) == (kind.family == "integer")
    assert (kind.bounds is not None) == (kind.family == "moment")
    assert not (kind.stored_equality and kind.equal_values_differ)
    assert not (kind.equal_values_differ and (kind.partitioned or kind.sampled))
    assert not kind.sampled or kind.partitioned
    assert not kind.few_values or kind.partitioned
    assert not kind.has_extremum or kind.comparison == "ordered"
    assert has_arrays(type_) == kind.in_arrays
    assert readable(type_) == (kind.form is not None)


@kinds
def test_the_catalog_s_type_is_the_record_s(kind: Kind) -> None:
    if kind.name == "enum":
        type_ = from_postgres(0, -1, enum="shop.mood")
    elif kind.name == "array":
        type_ = from_postgres(0, -1, element=23)
    else:
        assert kind.oid is not None
        type_ = from_postgres(kind.oid, LENGTHS.get(kind.name, -1))
    assert type_ == sample(kind)


@kinds
def test_it_is_read_from_the_wal(kind: Kind) -> None:
    assert kind.name in READERS


def test_nothing_else_is_read_from_the_wal() -> None:
    assert set(READERS) == {kind.name for kind in KINDS}


def test_constants_of_every_type_are_read() -> None:
    assert {*literals.READERS, *READ_BY_PARAMETERS} == {kind.name for kind in KINDS}


@kinds
def test_a_cast_names_it(kind: Kind) -> None:
    if kind.catalog_name is None:
        return
    type_ = sample(kind)
    node = exp.DataType.build(type_.sql, dialect="postgres")
    assert type_names.named_type(node, None) == type_
    assert type_names.internal_name(type_) == kind.catalog_name


def test_limits_are_those_of_two_s_complement() -> None:
    limits = {kind.name: kind.limits for kind in KINDS if kind.limits is not None}
    assert tuple(limits) == INTEGERS == ("smallint", "integer", "bigint")
    assert limits["smallint"] == (-32768, 32767)
    assert limits["integer"] == (-2147483648, 2147483647)
    assert limits["bigint"] == (-9223372036854775808, 9223372036854775807)


def test_moments_convert_to_later_ones() -> None:
    assert MOMENTS == ("date", "timestamp", "timestamptz")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.bounds], ids=lambda k: k.name)
def test_bounds_are_values_of_their_type(kind: Kind) -> None:
    assert kind.bounds is not None
    for text in kind.bounds:
        value = literals.typed(literals.Untyped(text, exp.Literal.string(text)), Type(kind.name))
        assert isinstance(value, Literal)
