"""Which expressions can fail: those must not meet rows that a log has only in passing."""

from __future__ import annotations

import pytest

from headrace.functions import can_raise
from headrace.types import DOUBLE, INTEGER, Type, numeric, result_numeric
from tests.functions.bound_scalar import scalar_of
from tests.functions.cases import DATE
from tests.functions.expressions import CHARACTER, JSONB, TEXT

LONG = result_numeric(38, 18)


@pytest.mark.parametrize(
    ("text", "types", "raises"),
    [
        ("substring(a0, 1, 2)", (TEXT,), False),
        ("substring(a0 FROM a1)", (TEXT, INTEGER), False),
        ("substring(a0, 1, a1)", (TEXT, INTEGER), True),
        ("substring(a0, 1, -1)", (TEXT,), True),
        ("a0 LIKE 'a%'", (CHARACTER,), False),
        ("lpad(a0, a1)", (TEXT, INTEGER), True),
        ("split_part(a0, ',', 1)", (TEXT,), False),
        ("split_part(a0, ',', 0)", (TEXT,), True),
        ("chr(a0)", (INTEGER,), True),
        ("a0::integer", (TEXT,), True),
        ("a0::text", (INTEGER,), False),
        ("a0::timestamptz", (DATE,), False),
        ("a0::real", (DOUBLE,), True),
        ("a0 + interval '1 day'", (DATE,), True),
        ("a0 - a1", (DATE, DATE), False),
        ("extract(year FROM a0)", (DATE,), False),
        ("round(a0, 2)", (numeric(10, 4),), False),
        ("round(a0, 2)", (LONG,), False),
        ("round(a0, 10)", (numeric(38, 10),), True),
        ("floor(a0)", (LONG,), False),
        ("sqrt(a0)", (DOUBLE,), True),
        ("a0 ->> 'a'", (JSONB,), True),
        ("(a0 ->> 'a')::integer", (JSONB,), True),
        ("jsonb_array_length(a0)", (JSONB,), True),
    ],
)
def test_can_raise(text: str, types: tuple[Type, ...], raises: bool) -> None:
    assert can_raise(scalar_of(text, types)) is raises
