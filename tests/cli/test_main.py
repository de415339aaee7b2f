"""The command line itself: options, usage errors, where the project is, and how fast it starts."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.cli.main import COMMANDS
from tests.cli.conftest import Headrace
from tests.cli.examples import MemoryProject

HEAVY = {"psycopg", "pydantic", "pyarrow", "pyspark", "deltalake", "sqlglot", "headrace.api"}


def test_options_count_before_and_after_the_command(
    project: MemoryProject, headrace: Headrace, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / "pg").mkdir(parents=True)
    assert headrace("--home", other, "--json", "ls").document["tables"]
    assert project.given["home"] == other
    headrace("ls", "--home", other, "--spark", "local[1]")
    assert (project.given["home"], project.given["spark"]) == (other, "local[1]")
    headrace("--home", tmp_path, "ls", "--home", other)
    assert project.given["home"] == other
    headrace("--dsn", "postgresql:///a", "ls", "--setup-dsn", "postgresql:///b", "--store", "/s")
    assert (project.given["dsn"], project.given["store"]) == ("postgresql:///a", "/s")


def test_a_folder_without_a_project_is_not_made_into_one(
    headrace: Headrace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = headrace("ls")
    assert result.code == 2
    assert f"no project in {tmp_path / '.headrace'}" in result.error
    assert "headrace init" in result.error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("lss",), "no such command 'lss'"),
        (("ls", "--nothing"), "no such option: --nothing"),
        (("create",), "missing argument 'NAME'"),
        (("history", "-n", "x"), "invalid value for '--limit' / '-n'"),
        (("demo", "--seconds", "0"), "invalid value for '--seconds'"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], said: str, headrace: Headrace) -> None:
    result = headrace(*arguments)
    assert (result.code, result.out) == (2, "")
    assert said in result.error
    assert "[usage]" in result.error
    result = headrace(*arguments, "--json")
    assert json.loads(result.error)["error"]["code"] == "usage"


def test_help_and_version(headrace: Headrace) -> None:
    result = headrace("--help")
    assert result.code == 0
    for name, _ in COMMANDS:
        assert f" {name} " in result.out
    assert "Exit codes: 0 done" in result.out
    assert headrace("--version").out.startswith("headrace ")
    assert "--refresh-mode" in headrace("create", "--help").out


def run(code: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def test_help_loads_nothing_heavy_and_takes_half_a_second() -> None:
    code = (
        "import sys; from headrace.cli.main import main; main(['--help'])\n"
        f"print(sorted({HEAVY} & set(sys.modules)), file=sys.stderr)"
    )
    used = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = run(code)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.stderr.strip() == "[]"
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(used) < 0.5


def test_output_that_the_terminal_cannot_write(tmp_path: Path) -> None:
    done = run(
        "import sys; from headrace.cli.main import main; sys.exit(main(sys.argv[1:]))",
        *("ls", "--home", str(tmp_path / "größe")),
        PYTHONIOENCODING="ascii",
        PYTHONUTF8="0",
    )
    assert done.returncode == 2
    assert "gr\\xf6\\xdfe" in done.stderr


def test_a_reader_who_goes_away_is_no_bug() -> None:
    code = (
        "import sys; from headrace.cli.screen import Screen\n"
        "screen = Screen(as_json=sys.argv[1] == 'json')\n"
        "while True: screen.document({'a': 1}); screen.show('a')"
    )
    for form in ("json", "text"):
        process = subprocess.Popen(
            [sys.executable, "-c", code, form], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.wait() == 141
        assert process.stderr.read() == b""
        process.stderr.close()
