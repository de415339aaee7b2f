"""Literals of every type of column, with the values that capture reads."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

LARGE = "ä€😀" * 120_000

# For each kind: the column's declaration, and literals with what they must come back as.
VALUES: dict[str, tuple[str, list[tuple[str, Any]]]] = {
    "boolean": ("boolean", [("true", True), ("false", False)]),
    "smallint": ("smallint", [("-32768", -32768), ("32767", 32767)]),
    "integer": ("integer", [("-2147483648", -(2**31)), ("2147483647", 2**31 - 1)]),
    "bigint": ("bigint", [(f"{-(2**63)}", -(2**63)), (f"{2**63 - 1}", 2**63 - 1)]),
    "real": (
        "real",
        [("'Infinity'", math.inf), ("'-0'", -0.0), ("'NaN'", math.nan), ("1e-45", 1.401298464e-45)],
    ),
    "double precision": (
        "double precision",
        [
            ("'-Infinity'", -math.inf),
            ("'-0'", -0.0),
            ("'NaN'", math.nan),
            ("5e-324", 5e-324),
            ("0.1", 0.1),
            ("1.7976931348623157e308", 1.7976931348623157e308),
        ],
    ),
    "numeric": (
        "numeric",
        [
            ("0", Decimal(0)),
            ("-0.000000000000000001", Decimal("-1e-18")),
            (
                "99999999999999999999.999999999999999999",
                Decimal("99999999999999999999.9" + "9" * 17),
            ),
            ("1." + "0" * 60, Decimal(1)),
            ("-12345678901234567890." + "0" * 40, Decimal("-12345678901234567890")),
        ],
    ),
    "text": (
        "text",
        [("''", ""), ("E' \\n\\t\\\\'", " \n\t\\"), ("'é😀'", "é😀"), ("'NULL'", "NULL")],
    ),
    "character varying": ("varchar(5)", [("''", ""), ("'ab  '", "ab  ")]),
    "character": ("char(5)", [("''", ""), ("'ab'", "ab"), ("' b '", " b")]),
    "bytea": ("bytea", [("''", b""), ("'\\x00ff5c27'", b"\x00\xff\\'")]),
    "date": (
        "date",
        [("'0001-01-01'", date(1, 1, 1)), ("'9999-12-31'", date(9999, 12, 31))],
    ),
    "timestamp": (
        "timestamp",
        [
            ("'0001-01-01 00:00:00'", datetime(1, 1, 1)),  # noqa: DTZ001
            ("'1969-12-31 23:59:59.999999'", datetime(1969, 12, 31, 23, 59, 59, 999999)),  # noqa: DTZ001
        ],
    ),
    "timestamptz": (
        "timestamptz",
        [
            ("'2024-02-29 12:00:00.5+05:30'", datetime(2024, 2, 29, 6, 30, 0, 500000, UTC)),
            ("'9999-12-30 23:59:59Z'", datetime(9999, 12, 30, 23, 59, 59, 0, UTC)),
        ],
    ),
    "time": ("time", [("'09:30:00.50'", "09:30:00.5"), ("'24:00'", "24:00:00")]),
    "interval": (
        "interval",
        [
            ("'1 year 2 mons 3 days 04:05:06.7'", "P1Y2M3DT4H5M6.7S"),
            ("'-1 mon 1 day -00:00:00.000001'", "P-1M1DT-0.000001S"),
            ("'0'", "PT0S"),
        ],
    ),
    "uuid": (
        "uuid",
        [("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")],
    ),
    "enum": ('"My Mood"', [("'so so'", "so so"), ("'it''s'", "it's")]),
    "jsonb": (
        "jsonb",
        [("'null'", "null"), ('\'{"b": 1.00, "a": [2]}\'', '{"a": [2], "b": 1.00}')],
    ),
    "array": (
        "integer[]",
        [("'{}'", []), ("'{1,NULL,-3}'", [1, None, -3]), ("'{NULL}'", [None])],
    ),
}
ARRAYS: dict[str, tuple[str, list[tuple[str, Any]]]] = {
    "numerics": (
        "numeric[]",
        [
            ("ARRAY[1." + "0" * 60 + ", NULL]", [Decimal(1), None]),
            ("'{}'", []),
            ("'{0.1}'", [Decimal("0.1")]),
        ],
    ),
    "texts": ("text[]", [('\'{"a,b","",NULL,"NULL"}\'', ["a,b", "", None, "NULL"])]),
    "floats": ("real[]", [("'{0.5,NaN,-0}'", [0.5, math.nan, -0.0])]),
    "bytes": ("bytea[]", [("ARRAY['\\x00ff'::bytea]", [b"\x00\xff"])]),
    "days": ("date[]", [("'{0001-01-01,NULL}'", [date(1, 1, 1), None])]),
    "moments": (
        "timestamptz[]",
        [("'{2024-02-29 12:00+05:30}'", [datetime(2024, 2, 29, 6, 30, tzinfo=UTC)])],
    ),
    "spans": ("interval[]", [("'{1 mon,NULL}'", ["P1M", None])]),
    "moods": ('"My Mood"[]', [("ARRAY['so so']::\"My Mood\"[]", ["so so"])]),
    "documents": ("jsonb[]", [("ARRAY['{\"b\": 1.0}']::jsonb[]", ['{"b": 1.0}'])]),
}
COLUMNS = {**VALUES, **ARRAYS}

# What cannot be stored: declaration, literal, and the value as the error shows it.
REFUSED = (
    ("numeric", "'NaN'", "NaN"),
    ("numeric", "'Infinity'", "Infinity"),
    ("numeric", "0.0000000000000000001", "0.0000000000000000001"),
    ("numeric", "1e20", "100000000000000000000"),
    ("numeric(5,2)", "'NaN'", "NaN"),
    ("date", "'infinity'", "infinity"),
    ("date", "'-infinity'", "-infinity"),
    ("date", "'0001-12-31 BC'", "0001-12-31 BC"),
    ("date", "'10000-01-01'", "10000-01-01"),
    ("timestamp", "'infinity'", "infinity"),
    ("timestamp", "'4713-01-01 BC'", "4713-01-01 00:00:00 BC"),
    ("timestamptz", "'-infinity'", "-infinity"),
    ("timestamptz", "'294276-12-31'", "294276-12-31 00:00:00+00"),
    ("integer[]", "'{{1,2},{3,4}}'", "{{1,2},{3,4}}"),
    ("integer[]", "'[0:1]={1,2}'", "[0:1]={1,2}"),
    ("integer[]", "'[2:3]={1,2}'", "[2:3]={1,2}"),
    ("integer[]", "'[-1:-1][4:5]={{1,2}}'", "[-1:-1][4:5]={{1,2}}"),
    ("numeric[]", "'[2:2]={1}'", "[2:2]={1}"),
    ("numeric(5,2)[]", "'{1,NaN}'", "{1.00,NaN}"),
    ("date[]", "'{NULL,infinity}'", "{NULL,infinity}"),
)
