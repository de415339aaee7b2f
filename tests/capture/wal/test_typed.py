"""Texts as PostgreSQL prints them become stored values, without a server."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.capture.wal.decoder import Images
from headrace.capture.wal.protocol import Image, RelationColumn, RelationMessage
from headrace.capture.wal.read import differences
from headrace.capture.wal.text_decoders import READERS
from headrace.capture.wal.value_decoders import stored_images
from headrace.errors import NeedsReinit
from headrace.publish.array_text import array_text
from headrace.source.reading import stored_schema
from headrace.source.table import SourceColumn, SourceTable
from headrace.types import BIGINT, INTEGER, KINDS, TEXT, Type, array_of, numeric

ID = SourceColumn(1, "id", "integer", INTEGER)


def table_of(type_: Type, declared: str = "?") -> SourceTable:
    columns = (ID, SourceColumn(2, "x", declared, type_))
    return SourceTable(16400, "public", "t", columns, keys=((1,),))


def images_of(*texts: Any, image: Image = "new") -> Images:
    count = len(texts)
    encoded = [text.encode() if isinstance(text, str) else text for text in texts]
    ids = [str(n).encode() for n in range(count)]
    numbers = np.arange(count)
    relation = RelationMessage(16400, "public", "t", "f", (RelationColumn("x", 0, -1),))
    values = {"id": pa.array(ids, pa.binary()), "x": pa.array(encoded, pa.binary())}
    return Images(relation, image, numbers, numbers, numbers, values, {})


def read(type_: Type, *texts: Any) -> list[Any]:
    table = table_of(type_)
    stored = stored_images(images_of(*texts), table)
    assert stored.schema == stored_schema(table.stored, weighted=True)
    return list(stored["c2"].to_pylist())


def test_every_kind_has_a_reader() -> None:
    assert set(READERS) == {kind.name for kind in KINDS}


def test_a_value_that_cannot_be_decoded_is_not_quoted() -> None:
    """Everybody hears why a source left the log."""
    with pytest.raises(NeedsReinit) as refused:
        read(INTEGER, "1", "secret")
    assert refused.value.code == "wal-not-decodable"
    assert "secret" not in f"{refused.value.message} {refused.value.detail}"


def test_weights_and_columns() -> None:
    table = table_of(TEXT)
    old = stored_images(images_of("a", None, image="old"), table)
    assert old.to_pydict() == {"_weight": [-1, -1], "c1": [0, 1], "c2": ["a", None]}
    key = stored_images(images_of("a", image="key"), table, [ID])
    assert key.to_pydict() == {"_weight": [-1], "c1": [0]}
    assert stored_images(images_of(), table).schema == stored_schema(table.stored, weighted=True)


@given(st.lists(st.none() | st.binary(max_size=20)))
def test_bytes(values: list[bytes | None]) -> None:
    texts = [None if value is None else "\\x" + value.hex() for value in values]
    assert read(Type("bytea"), *texts) == values
    # A slice of an array is read as if it stood alone.
    images = images_of(*texts).where(np.arange(len(texts)) % 2 == 1)
    assert stored_images(images, table_of(Type("bytea")))["c2"].to_pylist() == values[1::2]


@given(st.lists(st.none() | st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=5)))
@example([[]])
@example([None, [None], []])
def test_arrays_of_numbers(values: list[list[int | None] | None]) -> None:
    texts = [
        None
        if value is None
        else "{" + ",".join("NULL" if each is None else str(each) for each in value) + "}"
        for value in values
    ]
    assert read(array_of(BIGINT), *texts) == values


@given(
    st.lists(
        st.none() | st.lists(st.none() | st.text(max_size=5) | st.sampled_from(["NULL", "{", '"']))
    )
)
def test_arrays_of_texts(values: list[list[str | None] | None]) -> None:
    assert read(array_of(TEXT), *map(array_text, values)) == values


@given(
    st.integers(1, 38).flatmap(
        lambda precision: st.tuples(st.just(precision), st.integers(0, precision))
    ),
    st.lists(st.tuples(st.integers(-(10**45), 10**45), st.integers(0, 45)), min_size=1),
)
@example((38, 18), [(10**38, 18)])
@example((5, 2), [(99999, 2), (999990, 3)])
@example((5, 2), [(999991, 3)])
def test_numerics_are_exact_or_refused(
    digits: tuple[int, int], values: list[tuple[int, int]]
) -> None:
    precision, scale = digits
    with localcontext(prec=200):
        decimals = [Decimal(unscaled).scaleb(-shown) for unscaled, shown in values]
        texts = [f"{value:f}" for value in decimals]
        fitting = [
            abs(value) < 10 ** (precision - scale) and value == round(value, scale)
            for value in decimals
        ]
        if all(fitting):
            assert read(numeric(precision, scale), *texts) == decimals
            return
        with pytest.raises(NeedsReinit) as refused:
            read(numeric(precision, scale), *texts)
    assert refused.value.code == "value-does-not-fit"
    first = fitting.index(False)
    assert refused.value.detail == f"The value is {texts[first]}, in the row with id = {first}."


NOT_VALUES = (
    (INTEGER, "one"),
    (INTEGER, "2147483648"),
    (Type("boolean"), "true"),
    (Type("bytea"), "\\x0"),
    (Type("bytea"), "\\x0g"),
    (Type("bytea"), "00"),
    (TEXT, b"\xff"),
)


@pytest.mark.parametrize(("type_", "text"), NOT_VALUES, ids=str)
def test_invalid_values_are_reported(type_: Type, text: Any) -> None:
    with pytest.raises(NeedsReinit) as refused:
        read(type_, None, text)
    assert refused.value.code == "wal-not-decodable"


@pytest.mark.parametrize(
    "text", ["{{1}}", "[0:0]={1}", "[2:3][1:1]={{1},{2}}", '{"1"', '{"1"2}', '{"1",,"2"}']
)
def test_arrays_that_do_not_fit(text: str) -> None:
    with pytest.raises(NeedsReinit) as refused:
        read(array_of(INTEGER), "{1}", None, text, "{2}")
    assert refused.value.code == "value-does-not-fit"
    assert refused.value.message.startswith('column "x" of public.t')
    assert refused.value.detail == f"The value is {text}, in the row with id = 2."


def test_columns_are_matched_by_name_and_type() -> None:
    columns = [
        ID,
        SourceColumn(2, "x", "numeric(5,2)", numeric(5, 2)),
        SourceColumn(3, "y", "text", TEXT),
    ]
    found = RelationMessage(
        1, "s", "t", "f", (RelationColumn("x", 1700, 4), RelationColumn("id", 23, -1))
    )
    names = {(1700, 4): "numeric(6,0)", (23, -1): "integer"}
    assert differences(found, columns[:1], names) == ()
    assert differences(found, columns, names) == (
        'Column "x" is numeric(6,0) in the WAL instead of numeric(5,2).',
        'Column "y" is not in the WAL.',
    )
    assert len(differences(found, columns, {})) == 3
