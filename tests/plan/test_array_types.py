"""Types of arrays: stored as JSON, and what they cannot be made of."""

from __future__ import annotations

import json

import pytest

from headrace.types import INTEGER, Type, array_of, has_arrays, numeric

PRICES = array_of(numeric(10, 2))


def test_json_gives_the_type_back() -> None:
    for type_ in (PRICES, array_of(Type("enum", enum="mood")), array_of(Type("text", folds=True))):
        assert Type.from_json(json.loads(json.dumps(type_.to_json()))) == type_


def test_bare_elements_have_no_digits_of_their_own() -> None:
    assert (PRICES.sql, PRICES.bare.sql) == ("numeric(10,2)[]", "numeric[]")


@pytest.mark.parametrize("element", [PRICES, Type("character", length=3)])
def test_no_arrays_of(element: Type) -> None:
    assert not has_arrays(element)
    with pytest.raises(ValueError, match="cannot be stored"):
        array_of(element)


def test_an_array_has_elements_and_nothing_else_has() -> None:
    for kind, element in (("array", None), ("text", INTEGER)):
        with pytest.raises(ValueError, match="type of its elements"):
            Type(kind, element=element)


def test_what_cannot_be_compared_makes_arrays_that_cannot() -> None:
    assert array_of(INTEGER).comparison == "equality"
    assert array_of(Type("jsonb")).comparison == "none"
