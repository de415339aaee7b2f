"""Input that is no text, no number in reach or no file is refused as such, and makes nothing."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import headrace as library
from headrace.cli.main import COMMANDS
from headrace.errors import UserError
from headrace.settings import Settings, places, resolve
from tests.cli.conftest import Headrace

LONE = "\udc80"
FAR = "9" * 25

# Arguments after which a command gets as far as opening the project, or to what it asks for first.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "init": (),
    "demo": ("--seconds", FAR),
    "create": (f"t{LONE}", "--query", "SELECT 1"),
    "replace": ("t", "--query", f"SELECT '{LONE}'"),
    "alter": ("t", "--query", LONE),
    "run": ("--command", LONE),
    "plan": ("nowhere",),
    "apply": ("nowhere",),
    "refresh": (LONE,),
    "up": ("--wait", "nan"),
    "wait": (LONE, "--fresh"),
    "verify": (LONE,),
    "history": (LONE,),
    "explain": ("--query", f"SELECT '{LONE}'"),
    "graph": ("--format", LONE),
    "explain-strata": (LONE,),
    "suspend": (LONE,),
    "resume": (LONE,),
    "reinit": (LONE,),
    "repair": (LONE,),
    "drop": (LONE, "--yes"),
    "attach": ("crm", f"file:{LONE}"),
    "alter-database": (LONE, "--quota", "1"),
    "detach": (LONE,),
    "set": ("time_zone", LONE),
    "psql": ("--", "-c", "SELECT 1"),
    "uninstall": ("--yes",),
}


@pytest.mark.postgres
@pytest.mark.parametrize("name", [name for name, _ in COMMANDS if name not in ("init", "psql")])
def test_no_command_calls_bad_text_a_bug(
    name: str, dsn: str, tmp_path: Path, headrace: Headrace
) -> None:
    home = ("--home", tmp_path, "--dsn", dsn)
    assert headrace("init", *home).code == 0
    result = headrace(name, *home, *ARGUMENTS.get(name, ()))
    assert result.code in (0, 2), result.error
    if any(LONE in one for one in ARGUMENTS.get(name, ())):
        assert result.code == 2, result.error


READING = (
    ("ls",),
    ("status",),
    ("health",),
    ("history",),
    ("explain", "--query", "SELECT 1 AS x"),
    ("explain", "t"),
    ("graph",),
    ("strata",),
    ("cycles",),
    ("groups",),
    ("explain-strata", "t"),
    ("databases",),
    ("cdc",),
    ("cdc", "--print-sql"),
    ("settings",),
    ("verify", "t"),
    ("refresh", "t"),
    ("wait", "t", "--fresh"),
    ("drop", "t", "--yes"),
    ("suspend", "t"),
    ("resume", "t"),
    ("reinit", "t"),
    ("repair",),
    ("detach", "crm"),
    ("uninstall", "--print-sql"),
    ("psql", "--", "-c", "SELECT 1"),
)


@pytest.mark.postgres
@pytest.mark.parametrize("arguments", READING, ids=lambda one: " ".join(one[:2]))
def test_a_command_that_reads_makes_no_catalog(
    arguments: tuple[str, ...], dsn: str, tmp_path: Path, headrace: Headrace
) -> None:
    first, *rest = arguments
    home = tmp_path / "home"
    result = headrace(first, "--home", home, "--dsn", dsn, *rest)
    assert result.code == 2
    assert "[no-project]" in result.error
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT to_regnamespace('headrace')").fetchone()
    assert row == (None,)
    assert not home.exists()


@pytest.mark.postgres
def test_a_failed_init_leaves_no_settings_file(
    dsn: str, tmp_path: Path, headrace: Headrace
) -> None:
    home = tmp_path / "home"
    nowhere = f"host={tmp_path} dbname=nothing"
    assert headrace("init", "--home", home, "--dsn", nowhere).code == 5
    assert not (home / "headrace.toml").exists()
    assert headrace("init", "--home", home, "--dsn", dsn).code == 0
    assert (home / "headrace.toml").exists()
    assert headrace("status", "--home", home).code == 0


@pytest.mark.postgres
def test_numbers_out_of_reach(dsn: str, tmp_path: Path, headrace: Headrace) -> None:
    home = ("--home", tmp_path, "--dsn", dsn)
    assert headrace("init", *home).code == 0
    with library.connect(dsn=dsn, home=tmp_path) as hr:
        for limit in (0, -1, 10**25, 1.5, True):
            with pytest.raises(UserError):
                hr.history(limit=limit)  # type: ignore[arg-type]
            with pytest.raises(UserError):
                hr.receipts(limit=limit)  # type: ignore[arg-type]
        assert hr.receipts(limit=None) == ()
        for share in (0, 10**25):
            with pytest.raises(UserError):
                hr.attach("crm", dsn, share=share)
            with pytest.raises(UserError):
                hr.attach("crm", dsn, quota=share)
        for epoch in (-1, 10**25):
            with pytest.raises(UserError):
                hr.at(epoch)
        for seconds in (-1.0, float("inf"), float("nan"), 1e300):
            with pytest.raises(UserError):
                hr.daemon().run(seconds)
    for wrong in (
        ("set", "history_retention", "inf"),
        ("set", "history_retention", "nan"),
        ("set", "lease_wait", "1e300"),
        ("set", "max_buffer_mb", FAR),
        ("set", "workers", FAR),
        ("create", "t", "--query", "SELECT 1 AS x", "--option", f"max_change_rows={'9' * 5000}"),
        ("status", "--watch", "--every", "nan", "--times", "2"),
        ("status", "--watch", "--every", "inf", "--times", "2"),
        ("up", "--wait", "inf"),
    ):
        result = headrace(wrong[0], *home, *wrong[1:])
        assert result.code == 2, (wrong, result.error)


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_number_among_the_settings_has_bounds(name: str) -> None:
    if type(Settings.model_fields[name].default) not in (int, float) and name != "max_change_rows":
        return
    for value in (10**25, -(10**25), float("inf"), float("nan")):
        with pytest.raises(UserError):
            Settings.of({name: value})


@pytest.mark.parametrize(
    "text", [b"dsn = ", b"dsn = 5", b"\xff\xfe", b'dsn = "a"\ndsn = "b"', b"[dsn]\nx = 1"]
)
def test_a_settings_file_that_cannot_be_read(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_bytes(text)
    with pytest.raises(UserError) as caught:
        places(home=tmp_path)
    assert caught.value.code == "invalid-option"


def test_references_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "latin").write_bytes(b"host=gr\xfcn")
    (tmp_path / "nul").write_bytes(b"host=a\0b")
    monkeypatch.setenv("LONE", f"host={LONE}")
    references = ("file:\0", "file:~nobody-by-that-name/x", f"file:{tmp_path}", "env:LONE")
    for reference in (*references, f"file:{tmp_path / 'latin'}", f"file:{tmp_path / 'nul'}"):
        with pytest.raises(UserError):
            resolve(reference)


@pytest.mark.postgres
def test_a_closed_project_says_so(dsn: str, tmp_path: Path) -> None:
    hr = library.connect(dsn=dsn, home=tmp_path)
    pinned = hr.at()
    hr.close()
    hr.close()
    calls = (
        hr.status,
        hr.history,
        hr.graph,
        hr.settings,
        hr.uninstall,
        hr.daemon,
        hr.at,
        lambda: hr.refresh("t"),
        lambda: hr.set("workers", 2),
        lambda: hr.explain(query="SELECT 1 AS x"),
        lambda: pinned.table("t"),
        pinned.status,
    )
    for call in calls:
        with pytest.raises(UserError) as caught:
            call()
        assert caught.value.code == "project-closed"


@pytest.mark.postgres
def test_nul_and_surrogates_in_every_text_argument(dsn: str, tmp_path: Path) -> None:
    with library.connect(dsn=dsn, home=tmp_path) as hr:
        for text in ("\0", LONE, "\ud800"):
            calls = (
                lambda text=text: hr.create_stream_table("t", f"SELECT '{text}' AS x"),
                lambda text=text: hr.create_stream_table("t", "SELECT 1 AS x", schedule=text),
                lambda text=text: hr.create_stream_tables({"t": {"query": text}}),
                lambda text=text: hr.run(f"CREATE STREAM TABLE t AS SELECT '{text}' AS x;"),
                lambda text=text: hr.attach("crm", f"file:{text}"),
                lambda text=text: hr.cdc_sql(text),
                lambda text=text: hr.explain_strata([text]),
                lambda text=text: hr.verify("t", oracle=text),
                lambda text=text: library.connect(dsn=f"host={text}", home=tmp_path),
                lambda text=text: library.connect(dsn=dsn, home=tmp_path, store=text),
            )
            for call in calls:
                with pytest.raises(UserError) as caught:
                    call()
                assert caught.value.code == "invalid-text"
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "t.sql").write_text("CREATE STREAM TABLE t AS SELECT '\0' AS x;")
        with pytest.raises(UserError) as caught:
            hr.plan(tmp_path / "folder")
        assert caught.value.code == "invalid-text"
