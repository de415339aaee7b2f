"""The DDL of capture as text, without a server."""

from __future__ import annotations

from dataclasses import replace

from headrace.capture.recopy_reasons import captured_part, rewrite
from headrace.capture.statements import CaptureOptions, Roles, script, setup_sql
from headrace.capture.triggers import definition
from headrace.source.table import SourceColumn, SourceTable
from headrace.types import INTEGER, TEXT, Type

ENUM = Type("enum", enum="public.mood")
TABLE = SourceTable(
    oid=4711,
    schema="shop",
    name="orders",
    columns=(
        SourceColumn(1, "id", "integer", INTEGER, not_null=True),
        SourceColumn(3, "mood", "public.mood", ENUM),
        SourceColumn(4, "place", "point", None),
    ),
)
ROLES = Roles(runtime="headrace", owner="shop")


def text(table: SourceTable) -> str:
    return script(setup_sql(table, ROLES, CaptureOptions(max_buffer_mb=2)))


def test_a_script_is_one_transaction() -> None:
    lines = text(TABLE).splitlines()
    assert (lines[0], lines[-1]) == ("BEGIN;", "COMMIT;")
    assert "NOTIFY" not in text(TABLE)


def test_only_stored_columns_by_number() -> None:
    made = text(TABLE)
    assert '"c1" integer' in made
    assert '"c3" text' in made, "an enum's type stays out of the buffer"
    assert 'pg_catalog.concat("mood")' in made
    assert '"c4"' not in made
    assert "> 2097152" in made


def test_rights() -> None:
    made = text(TABLE)
    assert 'GRANT USAGE ON SCHEMA "headrace_capture" TO "headrace"' in made
    assert 'REVOKE ALL ON FUNCTION "headrace_capture"."capture_4711"() FROM PUBLIC' in made
    assert 'TO "shop"' not in made
    cloned = text(replace(TABLE, row_triggers=True))
    assert 'GRANT EXECUTE ON FUNCTION "headrace_capture"."capture_4711"() TO "shop"' in cloned


def test_a_name_cannot_end_the_function() -> None:
    named = replace(TABLE, columns=(SourceColumn(1, "$headrace$; DROP", "text", TEXT),))
    assert "AS $headrace_$" in text(named)


def test_the_definition_is_of_what_is_captured() -> None:
    made = definition(TABLE, unlogged=False)
    assert made == definition(
        replace(TABLE, name="other", storage="x", keys=((1,),)), unlogged=False
    )
    renamed = replace(TABLE.columns[0], name="number")
    for other in (
        replace(TABLE, columns=TABLE.columns[:1]),
        replace(TABLE, columns=(renamed, *TABLE.columns[1:])),
        replace(TABLE, row_triggers=True),
    ):
        assert definition(other, unlogged=False) != made
    assert definition(TABLE, unlogged=True) != made


def test_the_captured_part_leaves_out_what_changed() -> None:
    dropped_and_added = SourceColumn(5, "mood", "public.mood", ENUM)
    retyped = SourceColumn(1, "id", "text", TEXT)
    now = replace(TABLE, columns=(retyped, dropped_and_added))
    assert captured_part(TABLE, now).stored == ()
    assert captured_part(TABLE, TABLE).stored == TABLE.stored


def test_rewrites_are_distinguished() -> None:
    before = '{"files": {"1": 5}, "labels": {"7": "good"}, "triggers": {"9": "100"}}'
    assert rewrite(before, before) is None
    assert rewrite("", before) == "the table was never copied"
    more = before.replace('"good"', '"good", "8": "bad"')
    assert rewrite(before, more) is None
    for old, new, word in (("5}", "6}", "rewritten"), ("100", "101", "triggers")):
        assert word in (rewrite(before, before.replace(old, new)) or "")
    assert rewrite(before, before.replace("good", "fine")) == "a label of an enum was renamed"
    assert rewrite(before, before.replace('"7": "good"', "")) is None, "its column was dropped"
