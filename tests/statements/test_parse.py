"""Statements about stream tables, read from text."""

from __future__ import annotations

import pytest

from headrace.errors import UserError
from headrace.statements import (
    AlterStatement,
    CreateStatement,
    DropStatement,
    RefreshStatement,
    VerifyStatement,
    parse,
)
from headrace.statements.options import OPTIONS
from headrace.statements.statement import TextPosition

FILE = """\
-- totals; with a semicolon
CREATE STREAM TABLE "Odd ; name".totals WITH (schedule = '1m', refresh_mode = Auto) AS
  SELECT 'a;''b' AS x, E'it\\';' AS y, $q$;'$q$ AS z, "we;ird" /* a /* nested; */ one; */
  FROM t -- the end;
;
create or replace stream table t2 as select $$;$$;;
Alter Stream Table t2 Set (schedule = NULL);
ALTER STREAM TABLE t2 AS TABLE t;
ALTER STREAM TABLE t2 RENAME TO a."B";
ALTER STREAM TABLE t2 SUSPEND; ALTER STREAM TABLE t2 RESUME;
DROP STREAM TABLE IF EXISTS t2 CASCADE;
DROP STREAM TABLE t2 RESTRICT;
REFRESH STREAM TABLE t2;
REFRESH STREAM TABLE t2 FULL;
VERIFY STREAM TABLE t2; verify stream table a.t2 source oracle Postgres sample '1%'"""


def test_every_form() -> None:
    first, second, *rest = parse(FILE)
    assert isinstance(first, CreateStatement)
    assert (first.place, first.name, first.replace) == (
        TextPosition(2, 1),
        '"Odd ; name".totals',
        False,
    )
    assert first.options == {"schedule": "1m", "refresh_mode": "Auto"}
    assert first.query.startswith("SELECT 'a;''b'")
    assert first.query.endswith("FROM t")
    assert second == CreateStatement(TextPosition(6, 1), "t2", "select $$;$$", {}, True)
    assert rest == [
        AlterStatement(TextPosition(7, 1), "t2", {"schedule": None}),
        AlterStatement(TextPosition(8, 1), "t2", query="TABLE t"),
        AlterStatement(TextPosition(9, 1), "t2", rename_to='a."B"'),
        AlterStatement(TextPosition(10, 1), "t2", act="suspend"),
        AlterStatement(TextPosition(10, 32), "t2", act="resume"),
        DropStatement(TextPosition(11, 1), "t2", if_exists=True, cascade=True),
        DropStatement(TextPosition(12, 1), "t2"),
        RefreshStatement(TextPosition(13, 1), "t2"),
        RefreshStatement(TextPosition(14, 1), "t2", full=True),
        VerifyStatement(TextPosition(15, 1), "t2"),
        VerifyStatement(TextPosition(15, 25), "a.t2", source=True, oracle="postgres", sample="1%"),
    ]
    assert parse("-- nothing\n;; /* at all */") == ()


def test_ways_to_resume() -> None:
    text = "ALTER STREAM TABLE t RESUME apply; ALTER STREAM TABLE t RESUME REBUILD"
    assert [one.mode for one in parse(text) if isinstance(one, AlterStatement)] == [
        "apply",
        "rebuild",
    ]
    with pytest.raises(UserError):
        parse("ALTER STREAM TABLE t SUSPEND APPLY")


def test_every_option() -> None:
    (one,) = parse(
        "CREATE STREAM TABLE t WITH (tier = 'warm', max_change_rows = 1000, refresh_mode = full,"
        " diamond_consistency = none, diamond_schedule_policy = SLOWEST, schedule = calculated,"
        " group = 'sales', cdc_mode = auto, append_only = true, partition_by = 'Region',"
        " unspecified_order = by_value, initialize = false, key = 'a, \"B\"',"
        " primary_key = true, include = c, partition_ahead = 2, partition_drop_empty = true)"
        " AS SELECT 1"
    )
    assert isinstance(one, CreateStatement)
    assert one.options == {
        "tier": "warm",
        "max_change_rows": "1000",
        "refresh_mode": "full",
        "diamond_consistency": "none",
        "diamond_schedule_policy": "SLOWEST",
        "schedule": "calculated",
        "group": "sales",
        "cdc_mode": "auto",
        "append_only": "true",
        "partition_by": "Region",
        "unspecified_order": "by_value",
        "initialize": "false",
        "key": 'a, "B"',
        "primary_key": "true",
        "include": "c",
        "partition_ahead": "2",
        "partition_drop_empty": "true",
    }
    assert one.options.keys() == {option.name for option in OPTIONS}


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("CREATE STREAM TABLE t AS", "syntax-error", "line 1, column 25"),
        ("CREATE TABLE t (x int)", "syntax-error", "line 1, column 8"),
        ("SELECT 1", "syntax-error", "line 1, column 1"),
        (";\n  DROP STREAM TABLE t, u", "syntax-error", "line 2, column 22"),
        ("ALTER STREAM TABLE t\nADD COLUMN x int", "syntax-error", "line 2, column 1"),
        ("CREATE STREAM TABLE 1t AS SELECT 1", "syntax-error", "line 1, column 21"),
        ("CREATE STREAM TABLE t WITH () AS SELECT 1", "syntax-error", "line 1, column 29"),
        (
            "CREATE STREAM TABLE t WITH\n  (colour = 'x') AS SELECT 1",
            "invalid-option",
            "line 2, column 4",
        ),
        (
            "ALTER STREAM TABLE t SET (schedule = '1m', schedule = '2m')",
            "invalid-option",
            "line 1, column 44",
        ),
        (
            "CREATE STREAM TABLE t WITH (tier = hot,\n max_change_rows = 0) AS SELECT 1",
            "invalid-option",
            "line 2, column 2",
        ),
        ("ALTER STREAM TABLE t SET (tier = 'tepid')", "invalid-option", "line 1, column 27"),
        ("ALTER STREAM TABLE t SET (schedule = 'soon')", "invalid-option", "line 1, column 27"),
        ("ALTER STREAM TABLE t SET (schedule = (1))", "syntax-error", "line 1, column 38"),
        ("REFRESH STREAM TABLE t; SELECT 'open", "syntax-error", "line 1, column 32"),
        ("REFRESH STREAM TABLE t; SELECT E'open\\'", "syntax-error", "line 1, column 32"),
        ('SELECT "open', "syntax-error", "line 1, column 8"),
        ("SELECT $x$ $y$", "syntax-error", "line 1, column 8"),
        ("/* /* */", "syntax-error", "line 1, column 1"),
    ],
)
def test_mistakes_say_where_they_are(text: str, code: str, place: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(text)
    assert caught.value.code == code
    assert place in (caught.value.detail or "")
