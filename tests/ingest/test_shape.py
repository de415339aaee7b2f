"""Which types have all values of another one."""

from __future__ import annotations

import pytest

from headrace.ingest.shape import is_wider
from headrace.types import BIGINT, DOUBLE, INTEGER, TEXT, Type, numeric, result_numeric

SMALLINT, REAL = Type("smallint"), Type("real")


def varchar(length: int | None) -> Type:
    return Type("character varying", length=length)


def char(length: int) -> Type:
    return Type("character", length=length)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (SMALLINT, INTEGER),
        (INTEGER, BIGINT),
        (INTEGER, numeric(12, 2)),
        (numeric(10, 2), numeric(12, 2)),
        (numeric(10, 2), numeric(12, 4)),
        (numeric(10, 2), result_numeric(38, 18)),
        (REAL, DOUBLE),
        (varchar(5), varchar(9)),
        (varchar(5), varchar(None)),
        (varchar(5), TEXT),
        (varchar(None), TEXT),
        (TEXT, varchar(None)),
        (char(3), char(5)),
    ],
)
def test_wider(old: Type, new: Type) -> None:
    assert is_wider(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (BIGINT, INTEGER),
        (INTEGER, numeric(9, 0)),
        (numeric(12, 2), numeric(10, 2)),
        (numeric(10, 2), numeric(10, 4)),
        (numeric(10, 2), numeric(12, 1)),
        (BIGINT, DOUBLE),
        (DOUBLE, REAL),
        (varchar(9), varchar(5)),
        (TEXT, varchar(5)),
        (TEXT, char(5)),
        (char(3), TEXT),
        (INTEGER, TEXT),
        (Type("date"), Type("timestamp")),
        (TEXT, Type("bytea")),
    ],
)
def test_not_wider(old: Type, new: Type) -> None:
    assert not is_wider(old, new)
