"""Every command against a project in memory: what it asks, prints and returns."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace.catalog.records import Receipt
from headrace.cli.tables import compared, covered
from headrace.errors import SchemaChanged, Unavailable
from headrace.statements.options import OPTIONS
from tests.cli.conftest import Headrace
from tests.cli.examples import MemoryProject, receipt, refresh, table


def test_ls_status_history(project: MemoryProject, headrace: Headrace) -> None:
    assert "public.totals   ACTIVE   AUTO   by hand" in headrace("ls").out
    assert headrace("ls", "--json").document["tables"][0]["name"] == "public.totals"
    assert "1 min 30 s" in headrace("status").out
    (document,) = headrace("status", "totals", "--json").document["tables"]
    assert (document["lag"], document["last_refresh"]["mode"]) == (90.0, "DIFFERENTIAL")
    assert "compute 110 ms" in headrace("history", "totals").out
    assert len(headrace("history", "--limit", "1", "--json").document["refreshes"]) == 1
    assert headrace("status", "nothing").code == headrace("history", "nothing").code == 2


def test_the_history_says_with_whom_a_table_was_refreshed(
    project: MemoryProject, headrace: Headrace
) -> None:
    project.tables = (table(relation="r1"), table("public.counts", relation="r2"))
    line = refresh(group=("r1", "r2"), iterations=3, strata_skipped=1)
    project.refreshes = (line,)
    out = headrace("history", "totals").out
    assert out.endswith(
        "fixed point after 3 iterations\nskipped 1 stratum\npublished with public.counts\n"
    )
    (document,) = headrace("history", "totals", "--json").document["refreshes"]
    assert document["group"] == ["public.totals", "public.counts"]


def test_options_are_shown_of_tables_that_are_named(
    project: MemoryProject, headrace: Headrace
) -> None:
    project.tables = (table(options={"tier": "warm", "max_change_rows": 5}),)
    shown = headrace("status", "totals").out
    assert "public.totals: tier warm\npublic.totals: max_change_rows 5\n" in shown
    assert "warm" not in headrace("status").out
    (document,) = headrace("ls", "--json").document["tables"]
    assert document["options"] == {"tier": "warm", "max_change_rows": 5}
    reads = table(options={"tier": "auto"}, tier_in_force="warm", reads_per_minute=2.4)
    project.tables = (reads,)
    assert "public.totals: warm by 2.4 reads a minute\n" in headrace("status", "totals").out
    at = datetime(2026, 3, 1, 14, 3, 10).astimezone()
    project.tables = (replace(reads, next_tier="cold", next_tier_at=at),)
    shown = headrace("status", "totals").out
    assert "2.4 reads a minute; cold from 14:03:10 on if nobody reads it\n" in shown


def test_reasons_are_shown(project: MemoryProject, headrace: Headrace) -> None:
    project.tables = (table(status="SUSPENDED", reason="column x of public.t was dropped"),)
    assert "public.totals: column x of public.t was dropped" in headrace("status").out


def test_nothing_to_show(project: MemoryProject, headrace: Headrace) -> None:
    project.tables = ()
    for command, key in (("ls", "tables"), ("status", "tables"), ("history", "refreshes")):
        result = headrace(command)
        assert (result.code, result.out) == (0, "")
        assert "yet" in result.error
        assert headrace(command, "--json").document == {key: []}


def test_create_from_everywhere(
    project: MemoryProject, headrace: Headrace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "query.sql"
    file.write_text("SELECT 'é'", encoding="utf-8")
    assert headrace("create", "made", "--query", "SELECT 1").code == 0
    assert headrace("create", "made", "--file", file, "--schedule", "30s").code == 0
    for arguments in (("--file", "-"), ()):
        monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 2"))
        result = headrace("create", "made", *arguments, "--refresh-mode", "FULL")
    assert [call for call in project.calls if call[0] == "create"] == [
        ("create", "made", "SELECT 1", {}),
        ("create", "made", "SELECT 'é'", {"schedule": "30s"}),
        ("create", "made", "SELECT 2", {"refresh_mode": "FULL"}),
        ("create", "made", "SELECT 2", {"refresh_mode": "FULL"}),
    ]
    assert result.out.startswith("created public.made: 12 rows in ")
    document = headrace("create", "made", "--query", "SELECT 1", "--json").document
    assert list(document) == ["table", "seconds"]
    assert document["table"]["last_refresh"]["rows_inserted"] == 12


def test_create_without_a_query(
    project: MemoryProject, headrace: Headrace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = tmp_path / "latin.sql"
    wrong.write_bytes(b"SELECT '\xe9'")
    assert headrace("create", "made", "--file", wrong).code == 2
    assert "could not read" in headrace("create", "made", "--file", tmp_path / "none.sql").error
    assert (
        "cannot be used together"
        in headrace("create", "made", "--file", wrong, "--query", "SELECT 1").error
    )
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin", terminal)
    assert "no query given" in headrace("create", "made").error
    assert project.calls == []


def test_refresh(project: MemoryProject, headrace: Headrace) -> None:
    result = headrace("refresh", "totals", "--mode", "FULL")
    assert result.code == 0
    assert "+12 −3" in result.out
    assert "cut 20 ms, compute 110 ms" in result.out
    assert project.calls[0] == ("refresh", "public.totals", "FULL")
    assert headrace("refresh", "totals", "TOTALS", "public.totals", "--json").code == 0
    assert headrace("refresh").code == headrace("refresh", "totals", "--all").code == 2


def test_siblings_go_on_when_one_fails(project: MemoryProject, headrace: Headrace) -> None:
    project.tables = (table("public.a"), table("public.B c"), table("public.d"))
    project.fails['public."B c"'] = SchemaChanged("source-dropped", "a table is gone")
    result = headrace("refresh", "--all", "--json")
    assert result.code == 3
    assert [one["table"] for one in result.document["refreshes"]] == ["public.a", "public.d"]
    (error,) = result.document["errors"]
    assert (error["table"], error["code"]) == ("public.B c", "source-dropped")
    assert json.loads(result.error)["error"]["code"] == "source-dropped"
    project.fails["public.a"] = Unavailable("server-unreachable", "the server is gone")
    result = headrace("refresh", "--all", "--json")
    assert (result.code, result.document["refreshes"]) == (5, [])
    assert len(result.document["errors"]) == 1


def test_verify(project: MemoryProject, headrace: Headrace) -> None:
    assert headrace("verify", "totals", "--source").code == 0
    assert project.calls[0] == ("verify", "public.totals", True, "spark")
    assert headrace("verify", "totals", "--oracle", "postgres").code == 0
    assert ("verify", "public.totals", False, "postgres") in project.calls
    assert headrace("verify", "totals", "--oracle", "delphi").code == 2
    project.equal = False
    result = headrace("verify", "--all")
    assert result.code == 1
    assert "NOT EQUAL" in result.out
    assert "1 surplus: customer ada, n 3" in result.out
    result = headrace("verify", "--all", "--json")
    assert (result.code, result.document["equal"]) == (1, False)
    project.fails["public.totals"] = SchemaChanged("source-dropped", "a table is gone")
    result = headrace("verify", "--all", "--json")
    assert (result.code, result.document["equal"], result.document["receipts"]) == (3, False, [])


def test_verify_in_a_project_without_tables(project: MemoryProject, headrace: Headrace) -> None:
    project.tables = ()
    for given in ((), ("--resume", "1h")):
        result = headrace("verify", "--all", *given)
        assert (result.code, result.out) == (0, "")
        assert "There are no stream tables yet" in result.error
        result = headrace("verify", "--all", "--json", *given)
        assert (result.code, result.document["equal"]) == (0, None)


def test_a_sample_and_what_it_covered(project: MemoryProject, headrace: Headrace) -> None:
    assert headrace("verify", "totals", "--sample", "1% by n").code == 0
    assert project.calls[0] == ("verify", "public.totals", False, "spark", "1% by n")
    buckets = {"column": "n", "bucket": 3, "buckets": 100, "rows": 10, "of": 990}
    values = {"column": "n", "values": ["a", None], "rows": 10, "of": 990}
    assert compared(replace(receipt(), covered=buckets)) == (
        "recomputed, served, bucket 3 of 100 by n"
    )
    assert compared(replace(receipt(), covered=values)) == "recomputed, served, n: a, NULL"
    assert covered(replace(receipt(), covered={**values, "without_rows": [None]})) == (
        "n: a, NULL (no rows: NULL)"
    )
    ranges = {**values, "values": ["5", "7"], "ranges": [["0", "6"], ["6", "9"]]}
    assert covered(replace(receipt(), covered={**ranges, "without_rows": [["6", "9"]]})) == (
        "n: 0 to before 6, 6 to before 9 (no rows: 6 to before 9)"
    )


def test_receipts(project: MemoryProject, headrace: Headrace, tmp_path: Path) -> None:
    assert "No table has been verified yet" in headrace("receipts").error
    project.verified = (receipt(), receipt(equal=False))
    shown = headrace("receipts", "totals").out
    assert "NOT EQUAL" in shown and "spark" in shown and "all" in shown
    assert len(headrace("receipts", "-n", "1", "--json").document["receipts"]) == 1
    assert headrace("receipts", "--export", str(tmp_path / "no" / "where")).code == 2
    file = tmp_path / "receipts.jsonl"
    assert headrace("receipts", "--export", str(file)).code == 0
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [(one["table"], one["equal"], one["covered"]) for one in lines] == [
        ("public.totals", True, None),
        ("public.totals", False, None),
    ]


def test_an_export_is_of_all_receipts(
    project: MemoryProject, headrace: Headrace, tmp_path: Path
) -> None:
    project.verified = (receipt(),) * 25
    file = tmp_path / "receipts.jsonl"

    def exported(*options: str) -> int:
        assert headrace("receipts", "--export", str(file), *options).code == 0
        return len(file.read_text(encoding="utf-8").splitlines())

    assert (exported(), exported("-n", "22")) == (25, 22)
    assert len(headrace("receipts", "--json").document["receipts"]) == 20
    assert len(headrace("receipts", "-n", "22", "--json").document["receipts"]) == 22


def test_a_verify_that_goes_on_where_it_was(project: MemoryProject, headrace: Headrace) -> None:
    now = datetime.now(UTC)
    found = replace(receipt(), verified_at=now - timedelta(minutes=5))
    kinds = {
        "recent": (found, True),
        "old": (replace(found, verified_at=now - timedelta(hours=2)), False),
        "wrong": (replace(found, equal=False), False),
        "by another oracle": (replace(found, oracle="postgres"), False),
        "a part": (replace(found, covered={"column": "n", "values": []}), False),
        "of another definition": (replace(found, definition="before"), False),
        "of an earlier version": (replace(found, definition=None), False),
    }
    for kind, (one, is_left_out) in kinds.items():
        project.verified, project.calls = (one,), []
        assert headrace("verify", "--all", "--resume", "1h").code == 0
        assert ("verify" not in {name for name, *_ in project.calls}) == is_left_out, kind
    assert headrace("verify", "--all", "--resume", "soon").code == 2


def test_a_verify_goes_on_only_where_the_same_was_compared(
    project: MemoryProject, headrace: Headrace
) -> None:
    """The exit code of what is left out is that of a proof."""
    whole = replace(receipt(), verified_at=datetime.now(UTC) - timedelta(minutes=5))
    different = replace(whole, equal=False)
    with_source = replace(whole, detail={**whole.detail, "source public.orders": {"missing": 0}})
    hundredth = replace(whole, covered={"column": "n", "buckets": 100, "bucket": 3})
    some = replace(whole, covered={"column": "n", "values": ["1", "2"]})
    one = replace(whole, covered={**(some.covered or {}), "without_rows": ["2"]})
    cases: tuple[tuple[str, tuple[Receipt, ...], tuple[str, ...], bool], ...] = (
        ("found different since", (different, whole), (), False),
        ("mended since", (whole, different), (), True),
        ("a part found different since", (replace(some, equal=False), whole), (), False),
        ("a part since", (some, whole), (), True),
        ("without its sources", (whole,), ("--source",), False),
        ("with its sources", (with_source,), ("--source",), True),
        ("a part without rows", (one,), ("--sample", "n=1,2"), False),
        ("all of it, for a part", (whole,), ("--sample", "n=3"), True),
        ("as large a part", (hundredth,), ("--sample", "1%"), True),
        ("as large a part by the column", (hundredth,), ("--sample", "1% by n"), True),
        ("as large a part by another column", (hundredth,), ("--sample", "1% by m"), False),
        ("a smaller part", (hundredth,), ("--sample", "10%"), False),
        ("some values, for a share", (some,), ("--sample", "1%"), False),
        ("these values", (some,), ("--sample", "n=2"), True),
        ("other values", (some,), ("--sample", "n=2,3"), False),
    )
    for kind, known, more, is_left_out in cases:
        project.verified, project.calls = known, []
        assert headrace("verify", "--all", "--resume", "1h", *more).code == 0
        assert ("verify" not in {name for name, *_ in project.calls}) == is_left_out, kind


def test_explain(project: MemoryProject, headrace: Headrace) -> None:
    result = headrace("explain", "--query", "SELECT 1")
    assert project.calls[0] == ("explain", None, "SELECT 1")
    assert "stage 1: DIFFERENTIAL, sums" in result.out
    assert "notice: ORDER BY is ignored" in result.out
    assert headrace("explain", "totals", "--json").document["plan"].startswith("Aggregate")
    assert headrace("explain").code == headrace("explain", "totals", "-q", "SELECT 1").code == 2


def test_drop_asks(
    project: MemoryProject, headrace: Headrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    result = headrace("drop", "totals")
    assert result.code == 2
    assert "--yes" in result.error
    terminal = io.StringIO("n\ny\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin", terminal)
    result = headrace("drop", "totals")
    assert result.code == 130
    assert "Drop public.totals" in result.error
    assert ("drop", "public.totals", False) not in project.calls
    assert headrace("drop", "totals").out == "dropped public.totals\n"
    assert ("drop", "public.totals", False) in project.calls
    project.tables = (table("public.a"), table("public.b"))
    result = headrace("drop", "a", "--cascade", "--yes", "--json")
    assert result.document == {"dropped": ["public.a", "public.b"]}
    assert headrace("drop", "nothing", "--yes").code == 2


def test_replace_and_alter(project: MemoryProject, headrace: Headrace, tmp_path: Path) -> None:
    file = tmp_path / "query.sql"
    file.write_text("SELECT 2", encoding="utf-8")
    result = headrace("replace", "made", "-q", "SELECT 1", "--schedule", "30s")
    assert result.out.startswith("replaced public.made: 12 rows in ")
    assert headrace("alter", "totals", "--file", file, "--no-schedule").out == (
        "altered public.totals\n"
    )
    result = headrace("alter", "totals", "--rename-to", "sums", "--refresh-mode", "FULL", "--json")
    assert result.document["table"]["name"] == "sums"
    assert headrace("alter", "totals", "--schedule", "1m").code == 0
    assert [call for call in project.calls if call[0] in ("replace", "alter")] == [
        ("replace", "made", "SELECT 1", {"schedule": "30s"}),
        ("alter", "public.totals", {"query": "SELECT 2", "schedule": None}),
        ("alter", "public.totals", {"refresh_mode": "FULL", "rename_to": "sums"}),
        ("alter", "public.totals", {"schedule": "1m"}),
    ]
    for wrong in ((), ("--schedule", "1m", "--no-schedule"), ("-q", "x", "-f", file)):
        assert headrace("alter", "totals", *wrong).code == 2
    assert headrace("alter", "nothing", "--no-schedule").code == 2


def test_options_of_stream_tables(project: MemoryProject, headrace: Headrace) -> None:
    given = ("-o", "tier=warm", "--option", "max_change_rows = 1000", "-o", "partition_by=Region")
    assert headrace("create", "made", "-q", "SELECT 1", *given).code == 0
    assert headrace("replace", "made", "-q", "SELECT 1", *given, "--schedule", "1m").code == 0
    assert headrace("alter", "totals", *given, "-o", "diamond_consistency=").code == 0
    asked = {"tier": "warm", "max_change_rows": "1000", "partition_by": "Region"}
    assert [call for call in project.calls if call[0] in ("create", "replace", "alter")] == [
        ("create", "made", "SELECT 1", asked),
        ("replace", "made", "SELECT 1", {"schedule": "1m", **asked}),
        ("alter", "public.totals", {**asked, "diamond_consistency": None}),
    ]
    project.calls.clear()
    wrong = (("tier",), ("=warm",), ("tier=hot", "-o", "tier=cold"))
    for one in wrong:
        result = headrace("alter", "totals", "-o", *one)
        assert (result.code, "[invalid-option]" in result.error) == (2, True)
    assert headrace("alter", "totals", "--schedule", "1m", "-o", "schedule=2m").code == 2
    assert project.calls == []
    listed = " ".join(headrace("create", "--help").out.replace("│", " ").split())
    for option in OPTIONS:
        assert option.name in listed or option.name in ("schedule", "refresh_mode")


def test_suspend_resume_reinit(project: MemoryProject, headrace: Headrace) -> None:
    assert headrace("suspend", "totals").out == "suspended public.totals\n"
    assert headrace("resume", "totals", "--json").document["tables"][0]["status"] == "ACTIVE"
    for mode in ("apply", "rebuild"):
        assert headrace("resume", "totals", f"--{mode}").out == "resumed public.totals\n"
        assert ("resume", "public.totals", mode) in project.calls
    assert headrace("resume", "totals", "--apply", "--rebuild").code == 2
    assert headrace("resume", "--all", "--apply").code == 2
    assert "+12 −3" in headrace("reinit", "totals").out
    assert len(headrace("reinit", "--all", "--json").document["refreshes"]) == 1
    assert headrace("reinit").code == headrace("suspend", "nothing").code == 2
    project.fails["public.totals"] = SchemaChanged("source-dropped", "a table is gone")
    assert headrace("resume", "totals").code == headrace("reinit", "totals").code == 3


def test_run(
    project: MemoryProject, headrace: Headrace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, wrong = tmp_path / "good.sql", tmp_path / "wrong.sql"
    good.write_text("REFRESH STREAM TABLE a;", encoding="utf-8")
    wrong.write_text("\nREFRESH STREAM a;", encoding="utf-8")
    result = headrace("run", good)
    assert result.out == "created public.made\nrefreshed (FULL) public.made\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("DROP STREAM TABLE a"))
    document = headrace("run", good, "-", "--json").document
    assert document["done"][0] == {"act": "created", "table": "public.made"}
    assert [call[1] for call in project.calls if call[0] == "run"] == [
        "REFRESH STREAM TABLE a;",
        "REFRESH STREAM TABLE a;",
        "DROP STREAM TABLE a",
    ]
    project.calls.clear()
    result = headrace("run", good, wrong)
    assert (result.code, project.calls) == (2, []), "nothing is done if a file is wrong"
    assert "line 2, column 16" in result.error
    assert "wrong.sql" in result.error
    assert headrace("run", tmp_path / "none.sql").code == headrace("run").code == 2
    project.fails["REFRESH STREAM TABLE a;"] = SchemaChanged("source-dropped", "a table is gone")
    assert "good.sql" in headrace("run", good).error


def test_uninstall_asks_and_prints(
    project: MemoryProject, headrace: Headrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    result = headrace("uninstall", "--print-sql", "--keep-tables")
    assert result.out == "BEGIN;\nDROP [red] True;\nCOMMIT;\n"
    result = headrace("uninstall")
    assert (result.code, "--yes" in result.error) == (2, True)
    assert not any(call[0] == "uninstall" for call in project.calls)
    assert headrace("uninstall", "--yes").code == 0
    document = headrace("uninstall", "--yes", "--keep-tables", "--json").document
    assert (document["done"], document["kept"]) == (True, True)
    assert [call[1] for call in project.calls if call[0] == "uninstall"] == [False, True]


def test_settings(project: MemoryProject, headrace: Headrace) -> None:
    assert "lease_wait" in headrace("settings").out
    rows = headrace("settings", "--json").document["settings"]
    assert list(rows[0]) == ["name", "value", "default", "description"]
    assert headrace("set", "lease_wait", "5").code == 0
    assert headrace("set", "unlogged_buffers", "true").code == 0
    assert headrace("set", "lease_wait", "--default").code == 0
    assert [call[1:] for call in project.calls if call[0] == "set"] == [
        ("lease_wait", 5.0),
        ("unlogged_buffers", True),
        ("lease_wait", None),
    ]
    for wrong in (("lease_wait", "soon"), ("nothing", "1"), ("lease_wait",)):
        assert headrace("set", *wrong).code == 2


def test_suspend_and_resume_all(project: MemoryProject, headrace: Headrace) -> None:
    going = table("public.going")
    held = table("public.held", status="SUSPENDED", held=True)
    failed = table("public.failed", status="SUSPENDED", reason="division by zero")
    waiting = table("public.waiting", status="SUSPENDED", resumes_by_itself=True)
    project.tables = (going, held, failed, waiting)
    found = headrace("suspend", "--all").out
    assert found == "suspended public.going\nsuspended public.waiting\n"
    assert headrace("resume", "--all").out == "resumed public.held\n"
    assert headrace("resume", "going", "--all").code == headrace("suspend").code == 2
    project.tables = (going, failed)
    idle = headrace("resume", "--all")
    assert (idle.code, idle.out) == (0, "")
    assert headrace("resume", "--all", "--json").document == {"tables": [], "errors": []}
