"""Columns of every type with their special values."""

from __future__ import annotations

import psycopg

# For each kind: how a column is declared, and values with the special ones among them.
VALUES: dict[str, tuple[str, list[str]]] = {
    "boolean": ("boolean", ["true", "false"]),
    "smallint": ("smallint", ["-32768", "32767", "0"]),
    "integer": ("integer", ["-2147483648", "2147483647"]),
    "bigint": ("bigint", ["-9223372036854775808", "9223372036854775807"]),
    "real": ("real", ["'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "3.4028235e38", "1e-45"]),
    "double precision": (
        "double precision",
        ["'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "1.7976931348623157e308", "5e-324", "0.1"],
    ),
    "numeric": ("numeric(38,10)", ["1234567890123456789012345678.0123456789", "-0.0000000001"]),
    "text": ("text", ["''", "' '", "'Ünïcödé 🚀'", "E'tab\\tquote\"\\nline\\\\.'", "'NULL'"]),
    "character varying": ("varchar(5)", ["''", "'ab   '", "'äöü'"]),
    "character": ("char(4)", ["''", "'ab'", "'abcd'"]),
    "bytea": ("bytea", ["'\\x'", "'\\x00ff5c'"]),
    "date": ("date", ["'0001-01-01'", "'9999-12-31'", "'1582-10-10'", "'1970-01-01'"]),
    "timestamp": (
        "timestamp",
        ["'0001-01-01 00:00:00'", "'9999-12-30 23:59:59.999999'", "'1900-01-01 12:34:56.789'"],
    ),
    "timestamptz": (
        "timestamptz",
        ["'0001-01-02 00:00:00+00'", "'9999-12-30 23:59:59.999999+00'", "'2024-03-31 02:30+01'"],
    ),
    "time": ("time", ["'00:00'", "'23:59:59.999999'", "'24:00'"]),
    "interval": ("interval", ["'1 year -2 mons 3 days 04:05:06.7'", "'0'", "'-1 second'"]),
    "uuid": ("uuid", ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"]),
    "enum": ("mood", ["'sad'", "'o''k'"]),
    "jsonb": ("jsonb", ["'null'", '\'{"b": 1.00, "a": [null, "x"]}\'']),
    "array": ("int[]", ["'{}'", "'{1,NULL,-3}'", "'{NULL}'"]),
}
ARRAYS: dict[str, tuple[str, list[str]]] = {
    "numerics": ("numeric(9,2)[]", ["'{1.5,NULL}'", "'{}'", "'{-0.01,1234567.89}'"]),
    "texts": ("text[]", ['\'{"a,b","\\"","\\\\",NULL,"NULL",""," "}\'', "E'{ü,\"\\n\"}'"]),
    "floats": ("real[]", ["'{0.1,NaN,-0,Infinity}'", "'{1e-45}'"]),
    "bytes": ("bytea[]", ["ARRAY['\\x00ff5c'::bytea, '']"]),
    "moments": ("timestamptz[]", ["'{2024-03-31 02:30+01,0001-01-02 00:00+00}'"]),
    "days": ("date[]", ["'{0001-01-01,9999-12-31}'"]),
    "truths": ("bool[]", ["'{t,f,NULL}'"]),
    "spans": ("interval[]", ["'{1 mon,-3 days}'"]),
    "moods": ("mood[]", ["ARRAY['sad', 'o''k']::mood[]"]),
    "documents": ("jsonb[]", ["ARRAY['{\"b\": 1.00}', 'null']::jsonb[]"]),
}
COLUMNS = {**VALUES, **ARRAYS}


def image(sql: psycopg.Connection, table: str) -> list[tuple[str | None, ...]]:
    """The table's rows as PostgreSQL prints them, without the number of each."""
    columns = ", ".join(f"c{i}::text" for i in range(len(COLUMNS)))
    return sorted(sql.execute(f"SELECT {columns} FROM {table}"), key=repr)
