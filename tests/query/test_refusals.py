"""What is refused: one line a construct, with the code and a word of the message."""

from __future__ import annotations

import pytest
from sqlglot import exp

from headrace.errors import UserError
from headrace.query import bind
from headrace.query.calls import REFUSED_CALLS
from headrace.query.clauses import ACCEPTED, REFUSED_ARGUMENTS, REFUSED_NODES
from headrace.query.dialect import ADDED_ARGUMENTS
from tests.query.shop import Shop

REFUSED: tuple[tuple[str, str, str], ...] = (
    # statements
    ("", "syntax-error", "empty"),
    (";", "syntax-error", "empty"),
    ("SELECT id FROM", "syntax-error", "near"),
    ("SELECT id FROM orders WHERE (id = 1", "syntax-error", "near"),
    ("SELECT 'abc FROM orders", "syntax-error", "string"),
    ('SELECT "id FROM orders', "syntax-error", "quoted name"),
    ("SELECT 1_000 AS n FROM orders", "unsupported-query", "1_000"),
    ("SELECT id FROM orders WHERE id = 1_0_0", "unsupported-query", "underscores"),
    ("SELECT 1__0 AS n FROM orders", "syntax-error", "1__0"),
    ("SELECT 1_ AS n FROM orders", "syntax-error", "1_"),
    ("SELECT id FROM orders WHERE id = 12abc", "syntax-error", "12abc"),
    ("SELECT 1e AS n FROM orders", "syntax-error", "1e"),
    ("SELECT id FROM orders; SELECT id FROM lines", "unsupported-query", "2 statements"),
    ("INSERT INTO lines VALUES (1)", "unsupported-query", "INSERT"),
    ("DELETE FROM lines", "unsupported-query", "DELETE"),
    ("CREATE TABLE x (a int)", "unsupported-query", "CREATE"),
    ("EXPLAIN SELECT id FROM orders", "unsupported-query", "EXPLAIN"),
    ("VALUES (1)", "unsupported-query", "no table"),
    # set operations, subqueries, WITH
    ("SELECT id FROM orders UNION ALL SELECT orders, n FROM lines", "invalid-query", "number"),
    ("SELECT note FROM orders UNION ALL SELECT n FROM lines", "invalid-query", "text, integer"),
    (
        "SELECT NULL FROM orders UNION SELECT NULL FROM orders UNION SELECT n FROM lines",
        "invalid-query",
        "text, integer",
    ),
    ("SELECT n FROM lines UNION SELECT 'x' FROM orders", "unsupported-query", "integer"),
    ("SELECT n FROM lines UNION ALL SELECT qty FROM orders LIMIT 1", "unsupported-query", "LIMIT"),
    ("SELECT n FROM lines UNION (SELECT qty FROM orders OFFSET 1)", "unsupported-query", "OFFSET"),
    ("SELECT code FROM customers UNION SELECT note FROM orders", "unsupported-type", "bpchar"),
    ("SELECT x FROM (SELECT id AS x FROM orders LIMIT 1) q", "unsupported-query", "LIMIT"),
    ("SELECT x FROM (SELECT amont AS x FROM orders) q", "unknown-column", "amont"),
    ("SELECT id FROM (SELECT id AS x FROM orders) q", "unknown-column", "id"),
    ("SELECT orders.x FROM (SELECT id AS x FROM orders) q", "unknown-table", "orders"),
    ("SELECT q.x FROM (SELECT id AS x FROM orders) q, lines q", "invalid-query", "more than once"),
    ("SELECT a FROM (SELECT n FROM lines) q (a, b)", "invalid-query", "columns"),
    ("SELECT x FROM (SELECT id AS x, qty AS x FROM orders) q", "ambiguous-column", "x"),
    ("SELECT a.n FROM (lines a JOIN orders o ON true) AS j", "unknown-table", "a"),
    (
        "SELECT 1 FROM orders o, (SELECT n FROM lines WHERE n = o.id) q",
        "unknown-table",
        "o",
    ),
    ("SELECT x.n FROM (VALUES (1)) x (n)", "unsupported-query", "no table"),
    ("SELECT id FROM orders WHERE id IN (SELECT n, orders FROM lines)", "invalid-query", "columns"),
    ("SELECT (SELECT n, orders FROM lines) AS x FROM orders", "invalid-query", "one column"),
    ("SELECT (SELECT sum(o.id) FROM lines) AS x FROM orders o", "unsupported-query", "enclosing"),
    *(
        (f"SELECT (SELECT {call} FROM lines) AS x FROM orders o", "unsupported-query", "enclosing")
        for call in (
            "count(*) FILTER (WHERE o.id > 1)",
            "sum(1) FILTER (WHERE o.id > 1)",
            "count(1 ORDER BY o.id)",
            "array_agg(1 ORDER BY o.id)",
            "string_agg('a', ',' ORDER BY 1) FILTER (WHERE o.id > 1)",
            "percentile_disc(0.5) WITHIN GROUP (ORDER BY 1) FILTER (WHERE o.id > 1)",
            "count(*) FILTER (WHERE EXISTS (SELECT 1 FROM lines m WHERE m.n = o.id))",
        )
    ),
    (
        "SELECT id FROM orders WHERE (id, qty) < ANY (SELECT n, n FROM lines)",
        "unsupported-query",
        "row values",
    ),
    (
        "SELECT o.id FROM orders o LEFT JOIN lines l"
        " ON EXISTS (SELECT 1 FROM lines m WHERE m.n = l.n AND m.orders = o.id)",
        "unsupported-query",
        "both sides",
    ),
    ("SELECT id FROM orders WHERE id > ANY (ARRAY[[1]])", "unsupported-function", "array"),
    ("SELECT id FROM orders WHERE id = ANY (note)", "invalid-query", "ANY"),
    ("SELECT id FROM orders WHERE note < ALL (ARRAY[1])", "unsupported-function", "< all"),
    ("WITH q AS (SELECT id FROM q) SELECT id FROM q", "unknown-table", "q"),
    (
        "WITH q AS (SELECT id FROM r), r AS (SELECT n FROM lines) SELECT 1 FROM q",
        "unknown-table",
        "r",
    ),
    ("WITH q AS (SELECT n FROM lines) SELECT n FROM public.q", "unknown-table", "public.q"),
    ("WITH q (a, b) AS (SELECT n FROM lines) SELECT a FROM q", "invalid-query", "columns"),
    ("WITH q AS (DELETE FROM lines RETURNING n) SELECT n FROM q", "unsupported-function", "DELETE"),
    # clauses of SELECT
    ("SELECT id FROM orders LIMIT 1", "unsupported-query", "LIMIT"),
    ("SELECT id FROM orders OFFSET 1", "unsupported-query", "OFFSET"),
    ("SELECT id FROM orders FETCH FIRST 1 ROWS ONLY", "unsupported-query", "LIMIT"),
    ("SELECT id FROM orders FOR UPDATE", "unsupported-query", "FOR UPDATE"),
    ("SELECT id FROM orders FOR SHARE", "unsupported-query", "FOR UPDATE"),
    ("SELECT id INTO x FROM orders", "unsupported-query", "INTO"),
    ("SELECT FROM orders", "unsupported-query", "without columns"),
    ("SELECT 1", "unsupported-query", "no table"),
    ("SELECT id FROM orders QUALIFY true", "unsupported-query", "qualify"),
    # FROM
    ("SELECT id FROM ONLY orders", "unsupported-query", "ONLY"),
    ("SELECT id FROM orders TABLESAMPLE system (1)", "unsupported-query", "TABLESAMPLE"),
    ("SELECT * FROM generate_series(1, 2) AS g (x)", "unsupported-query", "no table"),
    ("SELECT * FROM unnest(ARRAY[1]) AS x", "unsupported-query", "no table"),
    (
        "SELECT o.id FROM orders o RIGHT JOIN LATERAL (SELECT o.id AS y) q ON true",
        "invalid-query",
        "invalid reference to FROM-clause entry",
    ),
    ("SELECT a.id FROM orders a SEMI JOIN lines l ON true", "syntax-error", '"SEMI"'),
    ("SELECT a.id FROM orders a ASOF JOIN lines l ON true", "syntax-error", '"ASOF"'),
    ("SELECT a.id FROM orders a OUTER JOIN lines l ON true", "syntax-error", "OUTER JOIN"),
    ("SELECT a.id FROM orders a LEFT INNER JOIN lines l ON true", "syntax-error", "INNER"),
    ("SELECT a.id FROM orders a LEFT JOIN lines l", "syntax-error", '"l"'),
    ("SELECT a.id FROM orders a NATURAL JOIN lines l ON true", "syntax-error", '"ON"'),
    ("SELECT a.id FROM orders a CROSS JOIN lines l ON true", "syntax-error", '"ON"'),
    ("SELECT id FROM orders FULL JOIN customers USING (id, no)", "unknown-column", '"no"'),
    ("SELECT id FROM db.public.orders", "unknown-table", "db.public.orders"),
    ("SELECT id FROM orders WITH ORDINALITY", "unsupported-query", "ORDINALITY"),
    # grouping
    ("SELECT id FROM orders GROUP BY ROLLUP (qty)", "invalid-query", "must appear in GROUP BY"),
    ("SELECT grouping(id) FROM orders GROUP BY qty", "invalid-query", "GROUPING"),
    ("SELECT id FROM orders WHERE grouping(id) = 0", "unsupported-function", "grouping"),
    ("SELECT id FROM orders GROUP BY ALL", "unsupported-query", "GROUP BY ALL"),
    # aggregates and windows
    (
        "SELECT string_agg(code, ',' ORDER BY note) FROM customers, orders",
        "collation-unsupported",
        "ORDER BY",
    ),
    ("SELECT mode() WITHIN GROUP (ORDER BY note) FROM orders", "collation-unsupported", "mode"),
    ("SELECT min(note) FROM orders", "collation-unsupported", "min"),
    ("SELECT max(code) FROM customers", "collation-unsupported", "max"),
    ("SELECT min(vip) FROM customers", "unsupported-function", "min"),
    ("SELECT string_agg(note, ',') FROM orders", "unsupported-query", "ORDER BY"),
    ("SELECT array_agg(id) FROM orders", "unsupported-query", "array_agg without ORDER BY"),
    ("SELECT sum(note) FROM orders", "unsupported-function", "sum"),
    ("SELECT abs(id) FILTER (WHERE true) FROM orders", "invalid-query", "FILTER"),
    # functions
    ("SELECT lower(note) FROM orders", "unsupported-function", "lower"),
    ("SELECT my_function(id) FROM orders", "unsupported-function", "my_function"),
    (
        "SELECT public.count(*) FILTER (WHERE id > 1) FROM orders",
        "unsupported-query",
        "name with dots",
    ),
    ("SELECT public.abs(id) FROM orders", "unsupported-query", "name with dots"),
    ("SELECT id FROM orders WHERE at > now()", "unsupported-function", "current time"),
    ("SELECT id FROM orders WHERE d = current_date", "unsupported-function", "current time"),
    ("SELECT current_timestamp AS t FROM orders", "unsupported-function", "current time"),
    ("SELECT localtimestamp AS t FROM orders", "unsupported-function", "current time"),
    ("SELECT current_user AS u FROM orders", "unsupported-function", "session"),
    ("SELECT user AS u FROM orders", "unsupported-function", "session"),
    ("SELECT random() AS r FROM orders", "unsupported-function", "volatile"),
    (
        "SELECT CASE WHEN false THEN random() END AS r FROM orders",
        "unsupported-function",
        "volatile",
    ),
    ("SELECT gen_random_uuid() AS r FROM orders", "unsupported-function", "volatile"),
    ("SELECT nextval('s') AS r FROM orders", "unsupported-function", "volatile"),
    ("SELECT extract(julian FROM d) FROM orders", "unsupported-function", "extract"),
    ("SELECT extract(hour FROM d) FROM orders", "unsupported-function", "extract"),
    ("SELECT substring(note FROM 'x+') FROM orders", "unsupported-function", "regular"),
    ("SELECT substring(note, '2') FROM orders", "unsupported-function", "regular"),
    ("SELECT substring(note FROM note) FROM orders", "unsupported-function", "regular"),
    ("SELECT substring(note FROM 'x' FOR '#') FROM orders", "unsupported-function", "regular"),
    ("SELECT overlay(note PLACING 'x' FROM 1) FROM orders", "unsupported-function", "OVERLAY"),
    ("SELECT upper(note) FROM orders", "unsupported-function", "collation C"),
    ("SELECT date_trunc('decade', at) FROM orders", "unsupported-function", "date_trunc"),
    ("SELECT date_trunc('day', at, 'UTC') FROM orders", "unsupported-function", "time zone"),
    ("SELECT date_trunc('day', at - at) FROM orders", "unsupported-function", "date_trunc"),
    ("SELECT date_trunc('day') FROM orders", "invalid-query", "date_trunc"),
    *(
        (f"SELECT to_char(at, '{format_}') FROM orders", "unsupported-function", f"pattern {named}")
        for format_, named in (
            *(("SSSS", "SSSS"), ("HH24:SSSSS", "SSSSS"), ("IDDD", "IDDD"), ("FMIDDD", "FMIDDD")),
            *(("Y,YYY", "Y,YYY"), ("YY", "YY"), ("HH12 P.M.", "P.M."), ("FF3", "FF3")),
            *(("hh24", "hh24"), ("ssss", "ssss"), ("TZH", "TZH"), ("WW", "WW"), ("e", "e")),
        )
    ),
    ("SELECT to_char(at, 'YYYYth') FROM orders", "unsupported-function", "to_char"),
    ("SELECT to_char(amount, '999') FROM orders", "unsupported-function", "to_char"),
    ("SELECT round(amount, qty) FROM orders", "unsupported-function", "round"),
    ("SELECT power(weight, 2) FROM orders", "unsupported-function", "power"),
    ("SELECT regexp_replace(note, 'a|ab', '') FROM orders", "unsupported-function", "regexp"),
    ("SELECT regexp_replace(note, 'a*', '') FROM orders", "unsupported-function", "regexp"),
    ("SELECT greatest(note, 'x') FROM orders", "collation-unsupported", "collation C"),
    ("SELECT id ^ 2 AS x FROM orders", "unsupported-function", "^"),
    ("SELECT id << 1 AS x FROM orders", "unsupported-function", "<<"),
    ("SELECT note ILIKE 'x' AS x FROM orders", "unsupported-function", "ILIKE"),
    ("SELECT note ~ '(x)\\1' AS x FROM orders", "unsupported-function", "~"),
    ("SELECT note ~ '(?=x)' AS x FROM orders", "unsupported-function", "~"),
    ("SELECT note ~ '\\d' AS x FROM orders", "unsupported-function", "~"),
    ("SELECT note !~* 'x' AS x FROM orders", "unsupported-function", "collation C"),
    ("SELECT note ~ 'x' || 'y' AS x FROM orders", "unsupported-query", "order"),
    ("SELECT note SIMILAR TO '\\a' AS x FROM orders", "unsupported-function", "pattern"),
    ("SELECT note SIMILAR TO 'x\\\"y\\\"z' AS x FROM orders", "unsupported-function", "pattern"),
    (
        "SELECT note SIMILAR TO 'x#\"y#\"z' ESCAPE '#' AS x FROM orders",
        "unsupported-function",
        "pattern",
    ),
    (
        "SELECT id FROM orders WHERE at = ANY (ARRAY['2024-01-01 12:00', d])",
        "unsupported-query",
        "as date",
    ),
    ("SELECT note LIKE 'x!' ESCAPE '!' AS x FROM orders", "invalid-query", "escape"),
    ("SELECT note LIKE note AS x FROM orders", "unsupported-function", "constant"),
    ("SELECT note LIKE 'x\\' AS x FROM orders", "unsupported-function", "like"),
    ("SELECT id BETWEEN SYMMETRIC 2 AND 1 AS x FROM orders", "unsupported-query", "SYMMETRIC"),
    ("SELECT at AT TIME ZONE 'CET' AS x FROM orders", "unsupported-function", "timezone"),
    ("SELECT at AT TIME ZONE 'Europe/Rome' AS x FROM orders", "unsupported-function", "timezone"),
    ("SELECT note -> 'a' AS x FROM orders", "unsupported-type", "jsonb"),
    ("SELECT note #>> '{NULL}' AS x FROM orders", "unsupported-function", "path"),
    ("SELECT note #>> '{a,null}' AS x FROM orders", "unsupported-function", "path"),
    ("SELECT note #>> '{a,nullable}' AS x FROM orders", "unsupported-type", "no document"),
    ("SELECT ROW(id) AS x FROM orders", "unsupported-function", "row"),
    ("SELECT ARRAY[ARRAY[id]] AS x FROM orders", "unsupported-function", "array"),
    ("SELECT ARRAY[] AS x FROM orders", "invalid-query", "empty array"),
    ("SELECT (ARRAY[id, id])[1:1] AS x FROM orders", "unsupported-function", "slice"),
    ("SELECT note[1] AS x FROM orders", "unsupported-type", "subscript"),
    ("SELECT id FROM orders WHERE ARRAY[id] < ARRAY[1]", "unsupported-function", "<"),
    ("SELECT id FROM orders WHERE ARRAY[id] = ARRAY[1::bigint]", "unsupported-function", "="),
    ("SELECT min(ARRAY[id]) AS x FROM orders", "unsupported-function", "min"),
    ("SELECT array_agg(ARRAY[id] ORDER BY id) AS x FROM orders", "unsupported-function", "[]"),
    ("SELECT '{{1},{2}}'::int[] AS x FROM orders", "unsupported-query", "cannot read"),
    (
        "SELECT array_agg(id) FILTER (WHERE id > 0) OVER (ORDER BY id) AS x FROM orders",
        "unsupported-query",
        "FILTER and OVER",
    ),
    ("SELECT id[1] AS x FROM orders", "unsupported-type", "subscript"),
    ("SELECT d + INTERVAL '1.5 days' AS x FROM orders", "unsupported-query", "interval"),
    *(
        (f"SELECT d + INTERVAL {written} AS x FROM orders", "unsupported-query", "interval")
        for written in (
            *("'1 day 12'", "'-1 day 02:00'", "'1 day 2 days'", "'1 hour 02:00'", "'1 day x'"),
            *("'1'", "'1.5' day", "'1 day 02:00' day", "'1' day to second", "'1' second(3)"),
        )
    ),
    ("SELECT d + INTERVAL(3) '1 second' AS x FROM orders", "unsupported-type", "interval"),
    ("SELECT d + INTERVAL E'1 day' AS x FROM orders", "unsupported-query", "string"),
    ("SELECT d + '1 day'::interval hour to minute AS x FROM orders", "unsupported-query", "fields"),
    ("SELECT d + INTERVAL '1' day '2' AS x FROM orders", "syntax-error", "near"),
    ("SELECT d + INTERVAL '1' quarters AS x, 1 FROM orders", "syntax-error", "near"),
    ("SELECT d + 1.5 AS x FROM orders", "unsupported-function", "+"),
    ("SELECT DISTINCT at - at AS x FROM orders", "unsupported-type", "interval"),
    ("SELECT weight::text AS x FROM orders", "unsupported-function", "cast"),
    ("SELECT note::bytea AS x FROM orders", "unsupported-function", "cast"),
    ("SELECT weight::text AS x FROM orders", "unsupported-function", "cast"),
    ("SELECT vip IS JSON AS x FROM customers", "unsupported-function", "JSON"),
    # constants
    ("SELECT $1 AS x FROM orders", "unsupported-query", "parameter"),
    ("SELECT ? AS x FROM orders", "unsupported-query", "parameter"),
    ("SELECT :x AS x FROM orders", "unsupported-query", "parameter"),
    ("SELECT E'a\\n' AS x FROM orders", "unsupported-query", "prefix"),
    ("SELECT U&'a' AS x FROM orders", "unsupported-query", "prefix"),
    ("SELECT $$a$$ AS x FROM orders", "unsupported-query", "dollar"),
    ("SELECT B'1' AS x FROM orders", "unsupported-type", "bit string"),
    ("SELECT X'1F' AS x FROM orders", "unsupported-query", "hexadecimal"),
    ("SELECT 0x1F AS x FROM orders", "unsupported-query", "hexadecimal"),
    ("SELECT 'a'\n'b' AS x FROM orders", "unsupported-query", "several parts"),
    ("SELECT id FROM orders WHERE d = '1/2/2024'", "unsupported-query", "date"),
    ("SELECT id FROM orders WHERE d = 'today'", "unsupported-query", "date"),
    ("SELECT id FROM orders WHERE d = '2024-02-30'", "unsupported-query", "date"),
    ("SELECT id FROM orders WHERE at = '2024-01-01 10:00+02'", "unsupported-query", "timestamp"),
    ("SELECT id FROM orders WHERE id = 'x'", "unsupported-query", "integer"),
    ("SELECT id FROM orders WHERE qty = '40000'", "unsupported-query", "smallint"),
    ("SELECT id FROM orders WHERE amount = 'NaN'", "unsupported-query", "numeric"),
    ("SELECT id FROM customers WHERE vip = 'maybe'", "unsupported-query", "boolean"),
    ("SELECT '{}'::jsonb AS x FROM orders", "unsupported-query", "jsonb"),
    (f"SELECT {'9' * 39} AS x FROM orders", "unsupported-type", "38 digits"),
    # types
    ("SELECT price FROM orders", "unsupported-type", "money"),
    ("SELECT * FROM orders", "unsupported-type", "price"),
    ("SELECT id FROM orders WHERE price IS NULL", "unsupported-type", "price"),
    ("SELECT id::money AS x FROM orders", "unsupported-type", "money"),
    ("SELECT id::mood AS x FROM orders", "unsupported-type", "mood"),
    ("SELECT id::int[] AS x FROM orders", "unsupported-function", "integer[]"),
    ("SELECT '1'::interval AS x FROM orders", "unsupported-query", "interval"),
    ("SELECT id::numeric(50) AS x FROM orders", "unsupported-type", "50"),
    ("SELECT at::timestamp(3) AS x FROM orders", "unsupported-type", "timestamp(3)"),
    ("SELECT weight::float(10) AS x FROM orders", "unsupported-type", "float"),
    ("SELECT weight::numeric AS x FROM orders", "unsupported-function", "numeric"),
    ("SELECT code IN ('a'::text, 'b') AS x FROM customers", "unsupported-query", "char(n)"),
    ("SELECT nullif(region, code) AS x FROM customers", "unsupported-query", "char(n)"),
    # order of text
    ("SELECT note < 'a' AS x FROM orders", "collation-unsupported", "collation C"),
    ("SELECT note BETWEEN 'a' AND 'b' AS x FROM orders", "collation-unsupported", "collation C"),
    ("SELECT 'a' < 'b' AS x FROM orders", "collation-unsupported", "collation C"),
    ("SELECT id::text > 'b' AS x FROM orders", "collation-unsupported", "collation C"),
    ('SELECT region >= "Name" AS x FROM customers', "collation-unsupported", "collation C"),
    ("SELECT note COLLATE \"de_DE\" = 'a' AS x FROM orders", "unsupported-query", "de_DE"),
    ("SELECT note < 'a' COLLATE \"C\" AS x FROM orders", "unsupported-query", "constant"),
    # names
    ("SELECT id FROM ordrs", "unknown-table", "ordrs"),
    ("SELECT id FROM other.orders", "unknown-table", "other.orders"),
    ("SELECT x.id FROM orders o", "unknown-table", "x"),
    ("SELECT orders.id FROM orders o", "unknown-table", "orders"),
    ("SELECT x.* FROM orders o", "unknown-table", "x"),
    ("SELECT public.o.id FROM orders o", "unknown-table", "public.o"),
    ("SELECT amont FROM orders", "unknown-column", "amont"),
    ("SELECT o.Name FROM customers o", "unknown-column", "o.name"),
    ("SELECT orders FROM orders", "unknown-column", "whole row"),
    ("SELECT ctid FROM orders", "unknown-column", "system column"),
    ("SELECT total FROM orders GROUP BY total", "unknown-column", "total"),
    ("SELECT a.id FROM orders a JOIN lines b USING (nothing)", "unknown-column", "nothing"),
    ("SELECT id FROM orders, customers", "ambiguous-column", "id"),
    ("SELECT id FROM orders a JOIN customers b ON id = 1", "ambiguous-column", "id"),
    ("SELECT 1 AS x, 2 AS x FROM orders GROUP BY x", "ambiguous-column", "x"),
    ("SELECT orders.id FROM orders, orders", "invalid-query", "more than once"),
    ("SELECT a.id, b.id FROM orders a, orders b", "invalid-query", "more than once"),
    ("SELECT k FROM lines AS l (k, l, m, n, o)", "invalid-query", "columns"),
    ("SELECT a.id FROM orders a, lines b JOIN customers c ON a.id = c.id", "unknown-table", "a"),
    # what PostgreSQL refuses as well
    ("SELECT id FROM orders WHERE id", "invalid-query", "boolean"),
    ("SELECT id FROM orders WHERE count(*) > 1", "invalid-query", "WHERE"),
    ("SELECT a.id FROM orders a JOIN lines b ON count(*) > 1", "invalid-query", "JOIN/ON"),
    ("SELECT count(*) AS n FROM orders GROUP BY n", "invalid-query", "GROUP BY"),
    ("SELECT count(*) AS n FROM orders GROUP BY count(*)", "invalid-query", "GROUP BY"),
    ("SELECT sum(count(*)) FROM orders", "invalid-query", "argument of sum"),
    ("SELECT sum(id) FILTER (WHERE count(*) > 1) FROM orders", "invalid-query", "FILTER"),
    ("SELECT customer, amount FROM orders GROUP BY customer", "invalid-query", "orders.amount"),
    ("SELECT customer FROM orders HAVING true", "invalid-query", "orders.customer"),
    ("SELECT id + customer AS x FROM orders GROUP BY customer", "invalid-query", "orders.id"),
    ("SELECT item, n FROM lines GROUP BY item", "invalid-query", "lines.n"),
    ("SELECT id FROM orders GROUP BY 2", "invalid-query", "position 2"),
    ("SELECT id FROM orders GROUP BY 'x'", "invalid-query", "non-integer"),
    ("SELECT sum(*) FROM orders", "invalid-query", "sum(*)"),
    ("SELECT count(id, qty) FROM orders", "invalid-query", "2 arguments"),
    ("SELECT abs(id, qty) FROM orders", "invalid-query", "1 argument"),
    ("SELECT CASE WHEN vip THEN 1 ELSE true END AS x FROM customers", "invalid-query", "matched"),
    ('SELECT id COLLATE "C" AS x FROM orders', "invalid-query", "no collation"),
    ("SELECT l.n FROM orders o JOIN lines l ON *", "unsupported-query", "STAR"),
    ("SELECT abs(*) AS x FROM orders", "invalid-query", "abs(*)"),
    # operators that PostgreSQL would group otherwise
    ("SELECT 'a' || 'b' COLLATE \"C\" AS x FROM orders", "unsupported-query", ""),
    (
        "SELECT id = 1 = vip AS x FROM orders JOIN customers USING (id)",
        "unsupported-query",
        "order",
    ),
    ("SELECT vip = NOT vip AS x FROM customers", "unsupported-query", "order"),
)


@pytest.mark.parametrize(("query", "code", "word"), REFUSED, ids=[line[0] for line in REFUSED])
def test_refused(query: str, code: str, word: str) -> None:
    with pytest.raises(UserError) as raised:
        bind(query, Shop())
    assert (raised.value.code, word in raised.value.message) == (code, True), str(raised.value)


def test_nothing_is_accepted_and_refused_at_once() -> None:
    assert not ACCEPTED.keys() & REFUSED_NODES.keys()
    for node, argument in REFUSED_ARGUMENTS:
        assert argument not in ACCEPTED[node]
        assert argument in node.arg_types


def test_accepted_arguments_exist() -> None:
    for node, arguments in ACCEPTED.items():
        assert issubclass(node, exp.Expr)
        assert arguments - ADDED_ARGUMENTS.get(node, frozenset()) <= node.arg_types.keys()


@pytest.mark.parametrize("name", REFUSED_CALLS)
def test_refused_calls_say_why(name: str) -> None:
    with pytest.raises(UserError, match=name) as raised:
        bind(f"SELECT {name}(id) FROM orders", Shop())
    assert raised.value.code.startswith("unsupported-")
    assert raised.value.detail == "At line 1, column 8."


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("SELECT id\nFROM orders\nWHERE amont > 1", "At line 3, column 7."),
        ("SELECT id,\n  note < 'a'\nFROM orders", "At line 2, column 3."),
        ("SELECT id FROM\n\n  ordrs", "At line 3, column 3."),
        ("SELECT /* a\nb */ lower(note) FROM orders", "At line 2, column 6."),
        ("SELECT id FROM orders WHRE id = 1", "At line 1, column 28."),
        ("SELECT id, 'é', amont FROM orders", "At line 1, column 17."),
    ],
)
def test_errors_say_where(query: str, place: str) -> None:
    with pytest.raises(UserError) as raised:
        bind(query, Shop())
    assert raised.value.detail == place


def test_hint_names_the_likely_column() -> None:
    with pytest.raises(UserError) as raised:
        bind("SELECT o.amont FROM orders o", Shop())
    assert raised.value.hint == 'Did you mean "amount"?'


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT at - at AS x FROM orders",
        "SELECT at - at AS x, count(*) AS n FROM orders GROUP BY at - at",
        "SELECT min(at - at) AS x FROM orders",
        "SELECT at - at AS x FROM orders UNION SELECT at - at FROM orders",
    ],
)
def test_intervals_that_are_equal_but_not_the_same(query: str) -> None:
    with pytest.raises(UserError) as caught:
        bind(query, Shop())
    assert "'1 day' and '24 hours' are equal" in (caught.value.hint or "")
    assert "extract(epoch FROM" in (caught.value.hint or "")
    bind("SELECT extract(epoch FROM at - at) AS x, count(*) AS n FROM orders GROUP BY 1", Shop())
