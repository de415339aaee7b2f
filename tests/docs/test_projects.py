"""The page about project folders: its files and its commands, with what it shows of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

import headrace
from headrace.cli.main import main
from tests.docs.pages import DOCS, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = read(DOCS / "projects.md")
SHOP = re.findall(r"^```sql\n(CREATE TABLE.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
FILES = re.findall(r"^`(tables/\S+)`:\n\n```sql\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
SHOWN = re.findall(r"^```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = re.findall(r"`headrace ((?:plan|apply) [^`]*(?:tables|--plan|--yes)[^`]*)`", PAGE)

Run = Callable[[str], tuple[int, str]]


@pytest.fixture
def run(
    dsn: str,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Run a command line of the page; its exit code and what it shows."""
    connect = headrace.connect
    monkeypatch.setattr("headrace.api.connect", lambda **given: connect(**given | {"spark": spark}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(line: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main([*line.split(), "--dsn", dsn, "--home", str(tmp_path / "home")])
        caught = capsys.readouterr()
        shown = caught.out if code == 0 else caught.err
        return code, "".join(f"{line.rstrip()}\n" for line in shown.splitlines())

    return run


def write(files: list[tuple[str, str]]) -> None:
    for name, text in files:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")


@pytest.mark.e2e
def test_the_page(run: Run, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql:
        sql.execute(SHOP[0])
        write(FILES[:2])
        assert run("init")[0] == 0
        plan, apply, plan_saved, apply_saved, apply_pruned = COMMANDS
        assert run(plan) == (0, SHOWN[0])
        code, shown = run(apply)
        assert (code, shown.splitlines()[-1]) == (0, "3 stream tables: 3 created")
        assert sql.execute("TABLE large").fetchall() == [("ada",)]
        assert run(plan) == (0, "3 stream tables: 3 unchanged\nnothing to do\n")
        write(FILES[2:])
        assert run(plan_saved) == (0, SHOWN[1])
        assert run("alter revenue -o max_change_rows=1000")[0] == 0
        assert run(apply_saved) == (2, SHOWN[2])
        assert sql.execute("TABLE large").fetchall() == [("ada",)], "nothing was done"
        assert run(apply_pruned) == (0, SHOWN[3])
        assert sorted(sql.execute("TABLE large").fetchall()) == [("ada",)]
        assert sql.execute("SELECT to_regclass('names')").fetchone() == (None,)
        assert run(apply_saved)[0] == 2
        assert run("plan tables --prune")[1].splitlines()[-1] == "nothing to do"
        code, shown = run("verify --all --source")
        assert (code, shown.count("equal")) == (0, 2)


def test_every_example_is_run() -> None:
    assert (len(SHOP), len(FILES), len(SHOWN)) == (1, 4, 4)
    assert COMMANDS == [
        "plan tables",
        "apply tables",
        "plan tables --prune --out plan.json",
        "apply --plan plan.json",
        "apply tables --prune --yes",
    ]
