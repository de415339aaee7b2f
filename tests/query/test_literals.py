"""Constants: typed by their spelling or by what they meet, and read as PostgreSQL reads them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from sqlglot import exp

from headrace.algebra.scalar import Literal
from headrace.errors import UserError
from headrace.query.literals import Untyped, number, typed
from headrace.types import Type, numeric

NODE = exp.Null()

STRINGS: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "FALSE", "t", " yes ", "off", "1", "0", "tr", "maybe", ""),
    "smallint": ("1", "-1", "+7", " 12 ", "32767", "32768", "1.0", "1e3", "", "0x10"),
    "integer": ("2147483647", "-2147483648", "2147483648", "007"),
    "bigint": ("9223372036854775807", "9223372036854775808"),
    "real": ("1.5", "1e38", "1e39", "0.1", "abc", "-0"),
    "double precision": ("1.5", ".5", "5.", "1e308", "1e309", "1E-5", "NaN", "Infinity", "-0.0"),
    "numeric": ("1.50", "1e3", "1e-3", "-0.00", ".5", "NaN", "Infinity", "", "1,5", "1" * 39),
    "bytea": ("\\x", "\\x00ff", "\\xABcd", "\\x0", "abc"),
    "date": (
        "2024-02-29", "2023-02-29", "0001-01-01", "9999-12-31", "2024-1-2", "20240102",
        "Jan 2 2024", "2024-01-02 10:00", "infinity", "today", " 2024-01-02 ",
    ),
    "timestamp": (
        "2024-01-02", "2024-01-02 03:04", "2024-01-02T03:04:05", "2024-01-02 03:04:05.1",
        "2024-01-02 03:04:05.123456", "2024-01-02 03:04:05.1234567", "2024-01-02 24:00:00",
        "2024-01-02 03:04:05+02", "2024-01-02 25:00", "now",
    ),
    "timestamptz": (
        "2024-01-02 03:04:05+00", "2024-01-02 03:04:05Z", "2024-01-02 03:04:05.5+05:30",
        "2024-01-02 03:04:05-0800", "2024-01-02 03:04:05 +01", "2024-01-02 03:04:05",
        "2024-01-02", "2024-01-02 03:04:05 Europe/Berlin",
    ),
    "interval": (
        "1 day 02:00", "1 day -02:00", "-1 day +02:00", "-1 day -2 hours", "-1 day 02:00",
        "1 day 12", "1 month ago", "1 day 02:00 ago", "-1 day ago", "1 day ago 02:00", "ago",
        "1 day 2 days", "1 hour 02:00", "1 second 5 milliseconds", "12yr02mons", "1day2:30",
        "1centurys", "2 centuries 1 decade 1 yr 1 mon 1 week 1 day 1 hr 1 min 1.5 secs",
        " 1\tDAY\n100:00:00.5 ", "1 day 02:60", "1.5 seconds", "1.5 hours", "1", "", "1-2",
        "P1Y2M3DT4H5M6.7S", "P-2W", "p1d", "P1D ", "PT0.1234567S", "P1D ago", "PT-1.5S",
    ),
    "uuid": (
        "00000000-0000-0000-0000-00000000000A", "{00000000-0000-0000-0000-000000000000}",
        "00000000000000000000000000000000", "x",
    ),
}  # fmt: skip


# What the settings of a session could change, none of which may change a constant.
STYLES = ("postgres", "sql_standard", "iso_8601")


@pytest.mark.postgres
def test_intervals_read_alike_under_every_style(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for text in STRINGS["interval"]:
            ours = read_as("interval", text)
            for style in STYLES if ours is not None else ():
                connection.execute(f"SET IntervalStyle = {style}")
                assert ours is not None
                row = connection.execute(
                    "SELECT (%s::text::interval - %s::text::interval)::text", [text, ours.value]
                ).fetchone()
                assert row is not None and not row[0].strip("PT0S:"), (text, style, row)


@pytest.mark.postgres
def test_strings_read_as_in_postgres(dsn: str) -> None:
    """What is accepted has PostgreSQL's value; what PostgreSQL refuses is refused."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        # Every session of Headrace has this time zone; constants without an offset are of it.
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET IntervalStyle = 'iso_8601'")
        for kind, texts in STRINGS.items():
            accepted = 0
            for text in texts:
                ours = read_as(kind, text)
                theirs = in_postgres(connection, kind, text)
                if ours is not None:
                    accepted += 1
                    assert theirs is not None, (kind, text)
                    assert same(theirs, ours.value, kind), (kind, text, theirs, ours)
            assert accepted, kind


def read_as(kind: str, text: str) -> Literal | None:
    type_ = numeric(10, 2) if kind == "numeric" else Type(kind)
    try:
        return typed(Untyped(text, NODE), type_)
    except UserError:
        return None


def in_postgres(connection: psycopg.Connection[Any], kind: str, text: str) -> Any:
    try:
        shown = f"{kind}::text" if kind == "interval" else kind
        row = connection.execute(f"SELECT %s::text::{shown}", [text]).fetchone()
    except psycopg.DataError:
        return None
    assert row is not None
    return row[0]


def same(theirs: Any, ours: Any, kind: str) -> bool:
    if kind == "real":
        return bool(abs(theirs - ours) <= 1e-6 * abs(theirs))
    if kind == "timestamptz":
        return bool(theirs.astimezone(UTC) == ours)
    return str(theirs) == str(ours)


@pytest.mark.parametrize(
    ("text", "value", "type_"),
    [
        ("0", 0, Type("integer")),
        ("2147483647", 2147483647, Type("integer")),
        ("2147483648", 2147483648, Type("bigint")),
        ("-2147483648", -2147483648, Type("integer")),
        ("9223372036854775808", Decimal(9223372036854775808), None),
        ("-9223372036854775808", -9223372036854775808, Type("bigint")),
        ("1.50", Decimal("1.50"), None),
        ("1e3", Decimal(1000), None),
        ("1.5e-3", Decimal("0.0015"), None),
        ("5.", Decimal(5), None),
        ("0.0", Decimal("0.0"), None),
    ],
)
def test_numbers(text: str, value: Any, type_: Type | None) -> None:
    literal = number(text, NODE)
    assert str(literal.value) == str(value)
    assert literal.type == type_ if type_ is not None else literal.type.kind == "numeric"


def test_numbers_keep_the_digits_that_are_written() -> None:
    assert (number("1.50", NODE).type.precision, number("1.50", NODE).type.scale) == (3, 2)
    assert (number("1e3", NODE).type.precision, number("1e3", NODE).type.scale) == (4, 0)
    assert (number("0.05", NODE).type.precision, number("0.05", NODE).type.scale) == (2, 2)


def test_char_constants_lose_their_blanks() -> None:
    assert typed(Untyped("ab  ", NODE), Type("character", length=3)).value == "ab"
    assert typed(Untyped("ab  ", NODE), Type("text")).value == "ab  "


def test_dates_and_times() -> None:
    assert typed(Untyped("2024-02-29", NODE), Type("date")).value == date(2024, 2, 29)
    stamp = typed(Untyped("2024-02-29 01:02:03.5+01", NODE), Type("timestamptz")).value
    assert stamp == datetime(2024, 2, 29, 0, 2, 3, 500000, tzinfo=UTC)
