"""Arguments for every row of the tables of functions: ordinary values, NULLs and edges."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

from headrace.algebra.scalar import Value
from headrace.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, TEXT, Type, numeric, result_numeric

Row = tuple[Value, ...]

SMALLINT, REAL = Type("smallint"), Type("real")
PRICE, WHOLE, LONG = numeric(10, 2), numeric(5, 0), numeric(38, 10)
FREE = result_numeric(38, 18)
VARCHAR = Type("character varying", length=5)
CHARACTER = Type("character", length=4)
DATE, TIMESTAMP, TIMESTAMPTZ = Type("date"), Type("timestamp"), Type("timestamptz")
UUID, BYTEA = Type("uuid"), Type("bytea")

NAN, INFINITY = float("nan"), float("inf")

VALUES: dict[Type, tuple[Value, ...]] = {
    BOOLEAN: (None, True, False),
    SMALLINT: (None, 0, 1, -3, 7, 2**15 - 1, -(2**15)),
    INTEGER: (None, 0, 1, -1, 7, -10, 2**31 - 1, -(2**31)),
    BIGINT: (None, 0, 2, -1, 10**10, 2**63 - 1, -(2**63)),
    REAL: (None, 0.0, -0.0, 1.5, -2.5, 3.4028234663852886e38, 1.401298464324817e-45, INFINITY, NAN),
    DOUBLE: (None, 0.0, -0.0, 0.5, -3.5, 1e308, 5e-324, INFINITY, -INFINITY, NAN),
    PRICE: (None, Decimal("0.00"), Decimal("1.50"), Decimal("-2.55"), Decimal("99999999.99")),
    WHOLE: (None, Decimal(0), Decimal(3), Decimal(-7), Decimal(99999)),
    LONG: (None, Decimal("0.0000000001"), Decimal(10) ** 27, Decimal("-12.3456789012")),
    FREE: (None, Decimal("0.000000000000000001"), Decimal("-123456.789"), Decimal(10) ** 19),
    TEXT: (None, "", "a", "A", "ab ", "ä", "日本", "\\", "%_", "a\nb", "'\"`", "z\t", "😀"),
    VARCHAR: (None, "", "a", "a  ", "b", "ä", "日本語"),
    CHARACTER: (None, "", "a", "ab", "日本"),
    BYTEA: (None, b"", b"\x00", b"ab", b"\xff"),
    DATE: (None, date(1, 1, 1), date(1582, 10, 10), date(2024, 2, 29), date(9999, 12, 31)),
    TIMESTAMP: (
        None,
        datetime(1, 1, 1),  # noqa: DTZ001
        datetime(2024, 2, 29),  # noqa: DTZ001
        datetime(2024, 2, 29, 23, 59, 59, 999999),  # noqa: DTZ001
        datetime(1969, 12, 31, 23, 59, 59, 1),  # noqa: DTZ001
    ),
    TIMESTAMPTZ: (
        None,
        datetime(2024, 2, 29, tzinfo=UTC),
        datetime(1900, 1, 1, 0, 0, 0, 7, tzinfo=UTC),
    ),
    UUID: (
        None,
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-0000-4000-8000-00000000000a",
    ),
}
NUMBERS = (SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, PRICE, WHOLE, LONG, FREE)
TEXTS = (TEXT, VARCHAR)


@dataclass(frozen=True)
class Cases:
    """One signature of a function with its rows of arguments."""

    types: tuple[Type, ...]
    rows: tuple[Row, ...]


def crossed(*types: Type) -> Cases:
    """Every combination of the types' values."""
    return Cases(types, tuple(itertools.product(*(VALUES[type_] for type_ in types))))


def pairs(types: Sequence[Type]) -> Iterator[Cases]:
    return (crossed(a, b) for a, b in itertools.product(types, types))


def sums() -> Iterator[Cases]:
    """All pairs of numbers but those that are refused: their digits need more than 38."""
    return (cases for cases in pairs(NUMBERS) if {*cases.types} != {LONG, FREE})


def alike(types: Sequence[Type]) -> Iterator[Cases]:
    return (crossed(type_, type_) for type_ in types)


COMPARED = (
    *pairs(NUMBERS),
    *pairs((TEXT, VARCHAR)),
    *alike((BOOLEAN, BYTEA, DATE, TIMESTAMP, TIMESTAMPTZ, UUID, CHARACTER)),
)
# The pattern is a constant of the query, so each is a signature of its own.
PATTERNS = (
    "", "%", "_", "a%", "%b", "a_b", "%\n%", "\\%\\_", "\\\\", "a.b", "(", "[a]", "^a$", "日%",
    "_", "\\a", "%'%", "a b", "{1}", "😀", "+*?|", "#", "\\E", "\\Q%",
)  # fmt: skip
LIKED = Cases(
    (TEXT,),
    tuple(
        (text,)
        for text in (
            *VALUES[TEXT], "a.b", "axb", "a b", "(", "[a]", "^a$", "日", "a'b", "{1}", "+*?|",
            "\\E", "\\Qx",
        )
    ),
)  # fmt: skip

CASES: dict[str, tuple[Cases, ...]] = {
    "+": tuple(sums()),
    "-": tuple(sums()),
    "*": tuple(pairs(NUMBERS)),
    "/": tuple(pairs(NUMBERS)),
    "%": tuple(pairs((SMALLINT, INTEGER, BIGINT, PRICE, WHOLE, LONG))),
    "negate": tuple(crossed(type_) for type_ in NUMBERS),
    "abs": tuple(crossed(type_) for type_ in NUMBERS),
    "=": COMPARED,
    "<>": COMPARED,
    "<": COMPARED,
    "<=": COMPARED,
    ">": COMPARED,
    ">=": COMPARED,
    "is not distinct from": COMPARED,
    "and": (crossed(BOOLEAN, BOOLEAN),),
    "or": (crossed(BOOLEAN, BOOLEAN),),
    "not": (crossed(BOOLEAN),),
    "is null": tuple(crossed(type_) for type_ in VALUES),
    "case": tuple(crossed(BOOLEAN, type_, type_) for type_ in (INTEGER, PRICE, TEXT, DATE)),
    "coalesce": tuple(alike((BOOLEAN, BIGINT, DOUBLE, PRICE, TEXT, TIMESTAMP))),
    "in": (
        *(crossed(type_, type_, type_) for type_ in (BOOLEAN, INTEGER, PRICE, UUID)),
        crossed(DOUBLE, DOUBLE),
        crossed(TEXT, TEXT),
    ),
    "nullif": tuple(alike((BOOLEAN, INTEGER, PRICE, DOUBLE, TEXT, DATE))),
    "||": (*pairs((TEXT, VARCHAR)), crossed(CHARACTER, TEXT), crossed(CHARACTER, CHARACTER)),
    "length": (crossed(TEXT), crossed(VARCHAR), crossed(CHARACTER)),
    "like": (LIKED,),
}
