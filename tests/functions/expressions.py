"""Expressions as queries write them, with arguments: every row of the table is called by some.

`a0`, `a1`, … are columns of the types given; the same text goes to PostgreSQL and to the binder.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal

from headrace.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, Type
from tests.functions.array_expressions import ARRAY_EXPRESSIONS
from tests.functions.cases import (
    BYTEA,
    DATE,
    FREE,
    INFINITY,
    NAN,
    PRICE,
    REAL,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
)
from tests.functions.spelled import Spelled, over

TEXT = Type("text", folds=True)
VARCHAR = Type("character varying", length=12, folds=True)
CHARACTER = Type("character", length=4, folds=True)
INTERVAL, TIME = Type("interval"), Type("time")

WORDS = ("", "a", "Ab c", "  ab ", "äÖ日😀x", "abcabc", "x,y,,z", "%_\\", "line\nline", "12", "ÀÉ")
SHORT = ("", "a", "b", "ab", "日", ",", "cA ", "😀")
COUNTS = (0, 1, 2, 3, 5, 100, -1, -2, -100, 2**31 - 1, -(2**31))
FEW = (0, 1, 2, 5, -1, -3)

TEXTS = (
    over(
        (TEXT, INTEGER),
        (WORDS, COUNTS),
        "left(a0, a1)",
        "right(a0, a1)",
        "substring(a0 FROM a1)",
        "substr(a0, a1)",
        "substring(a0, a1, 2)",
        "substring(a0 FROM a1 FOR 2147483647)",
        "substring(a0 FOR a1)",
        "substring(a0, -2, a1)",
    ),
    over((TEXT, INTEGER), (WORDS, FEW), "repeat(a0, a1)", "lpad(a0, a1)", "rpad(a0, a1)"),
    over((TEXT, TEXT, INTEGER), (WORDS, SHORT, FEW), "lpad(a0, a2, a1)", "rpad(a0, a2, a1)"),
    over((TEXT, TEXT, INTEGER), (WORDS, SHORT, FEW), "split_part(a0, a1, a2)"),
    over(
        (TEXT, TEXT),
        (WORDS, SHORT),
        "btrim(a0, a1)",
        "trim(BOTH a1 FROM a0)",
        "ltrim(a0, a1)",
        "trim(LEADING a1 FROM a0)",
        "rtrim(a0, a1)",
        "trim(TRAILING a1 FROM a0)",
        "strpos(a0, a1)",
        "position(a1 IN a0)",
        "starts_with(a0, a1)",
        "a0 ^@ a1",
        "concat(a0, a1)",
        "concat(a0, '-', a1, NULL)",
        "concat_ws(', ', a0, a1)",
        "concat_ws(a0, a1, 'x', a1)",
        "upper(a0) || lower(a1)",
        "greatest(a0, a1)",
        "least(a0, a1, 'b')",
    ),
    over((TEXT, TEXT, TEXT), (WORDS, SHORT, SHORT), "replace(a0, a1, a2)", "translate(a0, a1, a2)"),
    over(
        (TEXT,),
        (WORDS,),
        "trim(a0)",
        "ltrim(a0)",
        "rtrim(a0)",
        "reverse(a0)",
        "upper(a0)",
        "lower(a0)",
        "ascii(a0)",
        "md5(a0)",
        "octet_length(a0)",
        "length(trim(a0))",
    ),
    over((INTEGER,), ((0, 1, 65, 228, 0x65E5, 0x1F600, 0xD800, 0x110000, -1),), "chr(a0)"),
    over(
        (CHARACTER, VARCHAR),
        (("", "a", "ab", "abcd", "日本"), ("", "a", "ab ", "日")),
        "upper(a0)",
        "left(a0, 3)",
        "substring(a0 FROM 1 FOR 2)",
        "concat(a0, a1)",
        "concat_ws('|', a0, a1, a0)",
        "concat(coalesce(a0, 'q '), '|', CASE WHEN a1 = 'a' THEN a0 ELSE 'longer ' END, '|')",
        "octet_length(coalesce(a0, 'q '))",
        "octet_length(a0)",
        "length(a0)",
        "a0 LIKE 'a%'",
        "a0 LIKE 'a '",
        "a0 LIKE '_b  '",
        "a0 ILIKE 'A%'",
        "a0 ~ 'a $'",
        "a0 || a1",
        "substring(a0, 1, 1) IN ('a', '日')",
        "rpad(a0, 6, '.')",
        "replace(a1, 'a', 'xy')",
        "trim(a1)",
        "repeat(a1, 2)",
    ),
    over((BOOLEAN, INTEGER), ((True, False), (0, -7)), "concat(a0, a1)", "concat_ws('-', a1, a0)"),
    over(
        (BYTEA,),
        ((b"", b"\x00a", b"\xff"),),
        "octet_length(a0)",
        "length(a0)",
        "encode(a0, 'hex')",
        "a0 || '\\x00ff'",
        "a0 || a0 > '\\x01'::bytea",
    ),
)

MATCHED = (
    "", "a", "A", "b", "ab", "aB", "abc", "a.c", "a+c", "line\nline", "12", "a1", "x y", "日本",
    "ä", "Ä", "foo.bar", "2024-01-31", "aaa", "_", "%", "\\", "#", "a#b", "-", "]", "^", "tab\t",
    "(a)",
)  # fmt: skip
PATTERNS = (
    over(
        (TEXT,),
        (MATCHED,),
        "a0 LIKE 'a#%' ESCAPE '#'",
        "a0 LIKE '##' ESCAPE '#'",
        "a0 NOT LIKE '\\' ESCAPE ''",
        "a0 LIKE '%#__' ESCAPE '#'",
        "a0 ILIKE 'aB%'",
        "a0 NOT ILIKE 'Ä'",
        "a0 ~~ 'a%'",
        "a0 !~~* 'A%'",
        "a0 ~ '^a'",
        "a0 ~ 'b$'",
        "a0 ~ '^$'",
        "a0 !~ '[0-9]'",
        "a0 ~ '^[^a-z]+$'",
        "a0 ~ 'a.c'",
        "a0 ~ 'a\\.c'",
        "a0 ~ 'a\\+c|^b$'",
        "a0 ~ '^(ab|a)(c|bcd)?$'",
        "a0 ~ '^\\d{4}-\\d{2}-\\d{2}$'",
        "a0 ~ '\\s'",
        "a0 ~ '^\\w+$'",
        "a0 ~ '^[[:alpha:]]+$'",
        "a0 ~ '[[:space:][:digit:]]'",
        "a0 ~ 'line.line'",
        "a0 ~ '^(a{2,3}|x*?y)$'",
        "a0 ~ '[]^-]'",
        "a0 ~ '^(?:a|ä)'",
        "a0 ~ '日'",
        "a0 ~ 'a|'",
        "a0 ~* '^AB'",
        "a0 !~* '[a-c]'",
        "a0 ~* 'ä'",
        "a0 SIMILAR TO 'a%'",
        "a0 SIMILAR TO '(a|b)_?'",
        "a0 SIMILAR TO '[ab]+'",
        "a0 NOT SIMILAR TO 'a.c'",
        "a0 SIMILAR TO '\\%'",
        "a0 SIMILAR TO 'a#%' ESCAPE '#'",
        "regexp_like(a0, '^a')",
        "regexp_like(a0, '^A', 'i')",
        "regexp_replace(a0, 'a', 'x')",
        "regexp_replace(a0, 'a', '$1', 'g')",
        "regexp_replace(a0, '[0-9]+', '#', 'g')",
        "regexp_replace(a0, '^a+', '')",
        "regexp_replace(a0, '\\s', '_', 'g')",
        "regexp_replace(a0, '[^a-z]', '', 'g')",
        "regexp_replace(a0, 'a+b', '<>', 'g')",
    ),
)

DAYS = (
    date(1, 1, 1),
    date(1582, 10, 10),
    date(1999, 12, 31),
    date(2024, 2, 29),
    date(2024, 12, 30),
    date(9999, 12, 31),
)
MOMENTS = (
    datetime(1, 1, 1),  # noqa: DTZ001
    datetime(1969, 12, 31, 23, 59, 59, 1),  # noqa: DTZ001
    datetime(2001, 1, 1),  # noqa: DTZ001
    datetime(2024, 2, 29, 12, 34, 56, 789012),  # noqa: DTZ001
    datetime(2024, 12, 30, 0, 5, 9, 500000),  # noqa: DTZ001
    datetime(9999, 12, 30, 23, 59, 59, 999999),  # noqa: DTZ001
)
ZONED = (
    datetime(1, 1, 2, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2024, 3, 31, 0, 59, 59, 500000, tzinfo=UTC),
    datetime(2024, 7, 1, 12, 0, 0, tzinfo=UTC),
    datetime(2024, 10, 27, 1, 30, tzinfo=UTC),
    datetime(9999, 12, 30, tzinfo=UTC),
)
SPANS = ("PT0S", "P1M", "P30D", "P-1Y-2M", "P1Y2M3DT4H5M6.789S", "PT-0.000001S", "P-3DT12H", "P1D")
INTERVALS = (
    "'1 day'::interval",
    "interval '90' day",
    "interval '3' month",
    "interval '1 year 2 months'",
    "interval '-1 month 1 day -00:00:01.5'",
    "interval '2 weeks 36 hours'",
    "interval 'P1Y2M3DT4H5M6.7S'",
    "interval '1 day 02:00'",
    "interval '1 day -02:00'",
    "interval '1 month ago'",
    "interval '1' year",
    "'1.25 seconds'::interval",
)
STEPS = tuple(f"a0 {sign} {interval}" for sign in "+-" for interval in INTERVALS)
DATED_FIELDS = (
    *("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "isoyear"),
    *("decade", "century", "millennium", "epoch"),
)
TIMED_FIELDS = ("hour", "minute", "second", "milliseconds", "microseconds")
UNITS = (
    *("microseconds", "milliseconds", "second", "minute", "hour"),
    *("day", "week", "month", "quarter", "year"),
)
FORMATS = (
    "YYYY-MM-DD", "YYYY/MM/DD HH24:MI:SS", "HH12:MI AM", "Mon DD, YYYY", "FMMonth FMDD",
    "Month|Day|Dy", "IYYY-IW-ID", "DDD Q D", "MS US", 'YYYY"T"HH24', "MON dy DAY month",
    "FMMM/FMDD FMHH24", "FMMS FMUS FMSS|FMQ|FMIW|FMIYYY|FMDDD|FMD|FMID|FMMI", "-",
)  # fmt: skip

TIMES = (
    over(
        (DATE,),
        (DAYS,),
        *STEPS,
        *(f"extract({field} FROM a0)" for field in DATED_FIELDS),
        *(f"date_part('{field}', a0)" for field in DATED_FIELDS),
        *(f"date_trunc('{unit}', a0)" for unit in UNITS),
        *(f"to_char(a0, '{format_}')" for format_ in FORMATS),
        "interval '1' day + a0",
        "a0 + 1",
        "1 + a0",
        "a0 - 400",
        "a0 - date '2000-01-01'",
        "a0 - '2000-01-01'",
        "a0 < timestamptz '2000-01-01 00:00+00'",
        "a0::timestamptz",
        "isfinite(a0)",
        "greatest(a0, date '2000-01-01')",
        "a0 BETWEEN date '2024-01-01' AND date '2024-01-01' + interval '1' year",
    ),
    over((DATE, INTEGER), (DAYS, COUNTS), "a0 + a1", "a0 - a1"),
    over((DATE, DATE), (DAYS, DAYS), "a0 - a1"),
    over(
        (TIMESTAMP,),
        (MOMENTS,),
        *STEPS,
        *(f"extract({field} FROM a0)" for field in (*DATED_FIELDS, *TIMED_FIELDS)),
        *(f"date_part('{field}', a0)" for field in (*DATED_FIELDS, *TIMED_FIELDS)),
        *(f"date_trunc('{unit}', a0)" for unit in UNITS),
        *(f"to_char(a0, '{format_}')" for format_ in FORMATS),
        "a0 + '1 day'",
        "a0 - '2000-01-01'",
        "a0 AT TIME ZONE 'UTC'",
        "a0::timestamptz",
        "a0 = timestamptz '2001-01-01 00:00+00'",
    ),
    over((TIMESTAMP, TIMESTAMP), (MOMENTS, MOMENTS), "a0 - a1", "extract(epoch FROM a0 - a1)"),
    over((TIMESTAMP, DATE), (MOMENTS, DAYS), "a0 - a1", "a1 - a0", "a0 > a1"),
    over(
        (TIMESTAMPTZ,),
        (ZONED,),
        *STEPS,
        *(f"extract({field} FROM a0)" for field in (*DATED_FIELDS, *TIMED_FIELDS)),
        *(f"date_trunc('{unit}', a0)" for unit in UNITS),
        "a0 AT TIME ZONE 'UTC'",
        "a0 AT TIME ZONE 'Europe/Berlin'",
        "timezone('America/New_York', a0)",
        "extract(hour FROM a0 AT TIME ZONE 'Asia/Kolkata')",
        "a0::date",
        "a0::timestamp",
        "to_char(a0, 'YYYY-MM-DD HH24:MI:SS.US')",
    ),
    over((TIMESTAMPTZ, TIMESTAMPTZ), (ZONED, ZONED), "a0 - a1", "a0 - a1 > interval '1 day'"),
    over(
        (INTERVAL,),
        (SPANS,),
        *(
            f"extract({field} FROM a0)"
            for field in ("year", "month", "day", "hour", "minute", "second", "epoch")
        ),
        "-a0",
        "a0 IS NULL",
        "a0 = interval '30 days'",
        "a0 IN (interval '1 month', interval '1 day')",
        "date '2024-01-31' + a0",
        "timestamp '2024-03-31 12:00' - a0",
        "coalesce(a0, interval '1 hour')",
    ),
    over((INTERVAL, INTERVAL), (SPANS, SPANS), "a0 + a1", "a0 - a1", "a0 < a1", "a0 <> a1"),
    over((TIME,), (("00:00:00", "09:30:00.5", "24:00:00"),), "a0 < time '10:00'", "a0::text"),
    over(
        (INTEGER, INTEGER, INTEGER),
        ((1, 2024, 9999, 10000), (0, 2, 12, 13), (1, 29, 31)),
        "make_date(a0, a1, a2)",
    ),
)

PRICES = tuple(map(Decimal, ("0.00", "1.50", "-2.55", "2.45", "0.05", "99999999.99", "-0.01")))
FLOATS = (0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.7, 1e17, 4503599627370497.5, INFINITY, -INFINITY, NAN)
WHOLE = (0, 1, -1, 7, -10, 2**31 - 1, -(2**31))
NUMBERS = (
    over(
        (PRICE,),
        (PRICES,),
        *(f"{name}(a0, {digits})" for name in ("round", "trunc") for digits in (0, 1, 2, 4, -1)),
        *(f"{name}(a0)" for name in ("round", "trunc", "floor", "ceil", "ceiling", "sign", "abs")),
        "a0::text",
        "round(a0, 1)::numeric(8,1)::text",
        "round(a0 * 1.075, 2)",
        "greatest(a0, 1)",
        "least(a0, 1.5, NULL)",
    ),
    over(
        (FREE,),
        ((Decimal("0.000000000000000001"), Decimal("-123456.7895"), Decimal(10) ** 19),),
        "round(a0, 3)",
        "trunc(a0, 3)",
        "floor(a0)",
        "sign(a0)",
    ),
    over(
        (DOUBLE,),
        (FLOATS,),
        *(f"{name}(a0)" for name in ("round", "trunc", "floor", "ceil", "sign", "abs", "sqrt")),
        "a0::real",
    ),
    over((DOUBLE,), ((1e39, 1e-50, 3.4e38, 1e-40),), "a0::real"),
    over((REAL,), ((0.5, -1.25),), "round(a0)", "floor(a0)", "sqrt(abs(a0))"),
    over(
        (INTEGER,),
        (WHOLE,),
        *(f"{name}(a0)" for name in ("round", "ceil", "floor", "sign", "trunc")),
        "round(a0, 2)",
        "~ a0",
        "a0 >> 3",
        "a0::boolean",
        "|/ abs(a0::bigint)",
    ),
    over((INTEGER, INTEGER), (WHOLE, WHOLE), "a0 & a1", "a0 | a1", "a0 # a1", "greatest(a0, a1)"),
    over((BIGINT, SMALLINT), ((0, 2**40 + 5, -(2**63)), (0, -3, 7)), "a0 & a1", "a1 # a0", "~ a1"),
    over((BOOLEAN, INTEGER), ((True, False), (1, 0)), "a0::int", "num_nulls(a0, a1, NULL)"),
    over((TEXT, INTEGER), (("", "a"), (1, 0)), "num_nonnulls(a0, a1)", "num_nulls(a1)"),
)

READ = (
    over(
        (TEXT,),
        (("0", "12", " -7 ", "+3", "32768", "2147483648", "99999999999999999999", "", "x", "1.5"),),
        "a0::smallint",
        "a0::integer",
        "a0::bigint",
        "a0::numeric",
        "a0::numeric(6,1)",
        "a0::double precision",
    ),
    over((TEXT,), (("1.25", "-0.05", ".5", "1e2", "-2.5e-3"),), "a0::double precision"),
    over((TEXT,), (("1.25", "-0.05", ".5", "12345.678"),), "a0::numeric", "a0::numeric(6,1)"),
    over((TEXT,), (("2024-02-29", "0001-01-01", "2023-02-29", "x"),), "a0::date", "a0::timestamp"),
    over((TEXT,), (("2024-02-29 12:34:56.5", "2024-01-01 00:00:00"),), "a0::timestamp"),
    over((TEXT,), (("true", "f", "on", "0", "no", "maybe"),), "a0::boolean"),
    over((TEXT,), (("ffffffff-0000-4000-8000-00000000000a", "x"),), "a0::uuid"),
    over((TIMESTAMP,), (MOMENTS,), "a0::text"),
    over((TIMESTAMPTZ,), (ZONED,), "a0::text"),
    over((UUID,), (("ffffffff-0000-4000-8000-00000000000a",),), "left(a0::text, 8)"),
)

JSONB = Type("jsonb")
OBJECTS = (
    "{}",
    '{"a": 1, "b": "x\\ny", "c": null, "d": {"e": true}, "k k`": "1.50"}',
    '{"a": "1", "b": "{\\"e\\": 1}", "d": "text"}',
    '{"a": 123456789012345678901234567890, "d": [1], "é": {"e": "😀"}}',
    '{"a": -7, "b": "[1]", "d": {"e": "\\u0001", "f": 1.50}}',
    '{"a": "1e5", "b": "NaN", "d": {"e": false}}',
    '[{"a": 1}, "s", 2.50]',
    "[]",
    '"a"',
    "12.0",
    "null",
    "true",
)
TEXTS_OF_DOCUMENTS = (
    over(
        (JSONB,),
        (OBJECTS,),
        "a0 ->> 'a'",
        "a0 ->> 'b'",
        "a0 ->> 'c'",
        "a0 ->> 'k k`'",
        "a0 ->> 'missing'",
        "a0 -> 'd' ->> 'e'",
        "((a0 -> 'd'::text) ->> 'e'::text)",
        "a0 -> 'd' -> 'e' ->> 'f'",
        "a0 -> 'é' ->> 'e'",
        "a0 #>> '{d,e}'",
        "a0 ->> 'a' = '1'",
        "a0 ->> 'a' IS NULL",
        "jsonb_typeof(a0)",
        "jsonb_array_length(a0)",
        "a0::text",
        "octet_length(a0 ->> 'b')",
    ),
    over((JSONB,), (('{"a": 15}', '{"a": "7"}', "{}"),), "(a0 ->> 'a')::numeric"),
)
REWRITTEN = ('{"a": 1.50}', '{"a": {"b": 1}}', '{"a": {}}', '{"a": [1]}', '{"a": []}', '{"a": 0.0}')
"""Documents of which Spark would print the value of a in another way."""

EXPRESSIONS: Mapping[str, tuple[Spelled, ...]] = {
    "texts": TEXTS,
    "patterns": PATTERNS,
    "times": TIMES,
    "numbers": NUMBERS,
    "reading": READ,
    "documents": TEXTS_OF_DOCUMENTS,
    "arrays": ARRAY_EXPRESSIONS,
}
