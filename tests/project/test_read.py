"""Folders of statements: what is found in them, and what is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.catalog.records import RefreshMode
from headrace.errors import UserError
from headrace.lifecycle.planned_table import TableRequest
from headrace.project.document import definitions_document, definitions_of
from headrace.project.plan import folder_fingerprint
from headrace.project.read import DefinedTable, read_folder
from tests.project.folder import write


def refused(folder: Path) -> UserError:
    with pytest.raises(UserError) as caught:
        read_folder(folder, "public")
    return caught.value


def test_all_files_in_any_depth(tmp_path: Path) -> None:
    write(
        tmp_path,
        z="-- the last\nCREATE STREAM TABLE totals WITH (schedule = '1m', tier = Warm) AS\n"
        "  SELECT 1 AS n -- one\n;\nCREATE OR REPLACE STREAM TABLE a AS SELECT 2",
        deep__er__b='CREATE STREAM TABLE "Odd"."T t" WITH (max_change_rows = 10) AS TABLE totals;',
        empty="-- nothing yet",
    )
    (tmp_path / "notes.txt").write_text("not SQL")
    (tmp_path / "upper.SQL").write_text("CREATE STREAM TABLE u AS SELECT 3;")
    assert read_folder(tmp_path, "public") == (
        DefinedTable(
            ("Odd", "T t"),
            TableRequest('"Odd"."T t"', "TABLE totals", options={"max_change_rows": 10}),
            "deep/er/b.sql",
            1,
        ),
        DefinedTable(("public", "a"), TableRequest('"public"."a"', "SELECT 2"), "z.sql", 5),
        DefinedTable(
            ("public", "totals"),
            TableRequest(
                '"public"."totals"', "SELECT 1 AS n", "1m", RefreshMode.AUTO, {"tier": "warm"}
            ),
            "z.sql",
            2,
        ),
        DefinedTable(("public", "u"), TableRequest('"public"."u"', "SELECT 3"), "upper.SQL", 1),
    )


def test_hidden_and_linked_folders_are_not_entered(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    write(folder, a="CREATE STREAM TABLE a AS SELECT 1")
    (folder / ".headrace").mkdir()
    (folder / ".headrace" / "x.sql").write_text("SELECT 1")
    (folder / ".x.sql").write_text("SELECT 1")
    (folder / "round").symlink_to(folder)
    assert [one.name for one in read_folder(folder, "app")] == [("app", "a")]


def test_definitions_travel_as_json(tmp_path: Path) -> None:
    write(tmp_path, a="CREATE STREAM TABLE a WITH (tier = cold, refresh_mode = full) AS SELECT 1")
    wanted = read_folder(tmp_path, "public")
    assert definitions_of(definitions_document(wanted)) == wanted


def test_the_fingerprint_is_of_what_is_asked_for(tmp_path: Path) -> None:
    def fingerprint(**files: str) -> str:
        write(tmp_path, **files)
        return folder_fingerprint(read_folder(tmp_path, "public"))

    a, b = "CREATE STREAM TABLE a AS SELECT 1", "CREATE STREAM TABLE b AS SELECT 2"
    first = fingerprint(x=f"{a};{b}")
    assert first == fingerprint(y=b, x=f"\n{a}\n"), "wherever it stands"
    others = [
        fingerprint(x=a),
        fingerprint(x=a, y=b.replace("2", "3")),
        fingerprint(x=a, y=b.replace("AS", "WITH (tier = hot) AS")),
        fingerprint(x=a, y=b.replace("AS", "WITH (schedule = '1s') AS")),
        fingerprint(x=a, y=b.replace("b AS", "c AS")),
    ]
    assert len({first, *others}) == 6


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ("\nDROP STREAM TABLE t", "invalid-option", "At line 2, column 1. In wrong.sql."),
        ("ALTER STREAM TABLE t SUSPEND", "invalid-option", "At line 1, column 1. In wrong.sql."),
        ("SELECT 1", "syntax-error", "At line 1, column 1. In wrong.sql."),
        ("CREATE STREAM TABLE t AS SELECT 'x", "syntax-error", "In wrong.sql."),
        (
            "\n\nCREATE STREAM TABLE t WITH (colour = 'x') AS SELECT 1",
            "invalid-option",
            "At line 3, column 29. In wrong.sql.",
        ),
        (
            "CREATE STREAM TABLE t WITH (tier = 'x') AS SELECT 1",
            "invalid-option",
            "At line 1, column 29. In wrong.sql.",
        ),
        (
            ";\nCREATE STREAM TABLE headrace.t AS SELECT 1",
            "invalid-name",
            "At line 2, column 1. In wrong.sql.",
        ),
    ],
)
def test_mistakes_say_where_they_are(tmp_path: Path, text: str, code: str, where: str) -> None:
    write(tmp_path, good="CREATE STREAM TABLE good AS SELECT 1", wrong=text)
    error = refused(tmp_path)
    assert error.code == code
    assert (error.detail or "").endswith(where)


def test_a_table_that_is_there_twice(tmp_path: Path) -> None:
    write(
        tmp_path,
        a__first="CREATE STREAM TABLE t AS SELECT 1",
        b="\nCREATE STREAM TABLE Public.T AS SELECT 1",
    )
    error = refused(tmp_path)
    assert error.code == "name-exists"
    assert error.detail == "In a/first.sql, line 1, and in b.sql, line 2."


def test_folders_that_say_nothing(tmp_path: Path) -> None:
    assert refused(tmp_path).code == "invalid-option"
    assert refused(tmp_path / "nowhere").code == "invalid-option"
    (tmp_path / "latin.sql").write_bytes(b"-- \xe9")
    assert (
        refused(tmp_path).message.endswith("latin.sql")
        and "could not read" in refused(tmp_path).message
    )
    (tmp_path / "latin.sql").write_text("-- no tables")
    assert read_folder(tmp_path, "public") == ()
