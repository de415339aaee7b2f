"""The forms of the suite: what each of them runs, and that a missing marker is found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import forms
from tests.forms import LONGEST, SHARES, Form, share_of, split
from tests.purity import PURE, refuse_servers

ROOT = Path(__file__).parents[2]


class Case:
    """A test as the choice sees it: a name and its markers."""

    def __init__(self, nodeid: str, *marks: str) -> None:
        self.nodeid, self.marks = nodeid, [SimpleNamespace(name=mark) for mark in marks]

    def iter_markers(self) -> Any:
        return iter(self.marks)


def chosen(form: Form, *cases: Case) -> list[str]:
    taken, left = split(cases, form)  # type: ignore[arg-type]
    assert {*taken, *left} == {*cases}
    return [case.nodeid for case in taken]


def test_each_form_includes_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "SHARES", {"tests/a/": 3, "tests/a/test_none.py": 0})
    pure = [Case(f"tests/a/test_some.py::test_pure[{n}]") for n in range(4)]
    some = [Case(f"tests/a/test_some.py::test_{n}", "postgres") for n in range(5)]
    none = [Case("tests/a/test_none.py::test", "e2e", "spark")]
    rest = [Case(f"tests/b/test_all.py::test_{n}", "spark") for n in range(3)]
    cases = [*pure, *some, *none, *rest]
    assert chosen(Form.FAST, *cases) == [case.nodeid for case in pure]
    third = [some[0], some[3]]
    assert chosen(Form.DEFAULT, *cases) == [case.nodeid for case in (*pure, *third, *rest)]
    assert chosen(Form.FULL, *cases) == [case.nodeid for case in cases]


def test_the_longest_name_counts() -> None:
    assert share_of("tests/e2e/test_python_api.py::test_settings")[1] == SHARES["tests/e2e/"]
    assert share_of("tests/e2e/test_writers.py::test_any")[1] == 0
    assert share_of("tests/graph/test_order.py::test_any") == ("", 1)


@pytest.mark.parametrize("name", [*SHARES, *LONGEST])
def test_what_is_named_is_there(name: str) -> None:
    file, _, test = name.partition("::")
    assert (ROOT / file).exists()
    assert f"def {test}" in (ROOT / file).read_text(encoding="utf-8") if test else True


@pytest.mark.parametrize(
    ("command", "refused"),
    [
        (["/usr/lib/postgresql/18/bin/initdb", "-D", "x"], True),
        (["su", "postgres-user", "-c", "/opt/bin/postgres"], True),
        ([sys.executable, "-I", "headrace/embedded/supervisor.py", "{}"], True),
        (["/opt/spark/bin/spark-submit", "shell"], True),
        (["/usr/bin/java", "-cp", "x", "Main"], True),
        (["/usr/bin/java", "-version"], False),
        ([sys.executable, "-c", "pass"], False),
    ],
)
def test_a_pure_test_may_not_start_a_server(command: list[str], refused: bool) -> None:
    assert PURE, "this test is pure"
    event = ("subprocess.Popen", (command[0], command, None, None))
    if refused:
        with pytest.raises(pytest.fail.Exception, match="mark it"):
            refuse_servers(*event)
    else:
        refuse_servers(*event)


def test_processes_that_really_start_are_seen() -> None:
    with pytest.raises(pytest.fail.Exception, match="mark it"):
        subprocess.run(["/nowhere/initdb"], check=False)


@pytest.mark.postgres
def test_one_that_is_marked_may() -> None:
    assert not PURE
    with pytest.raises(FileNotFoundError):
        subprocess.run(["/nowhere/initdb"], check=False)


def test_a_file_that_is_marked_as_a_whole_is_not_read(tmp_path: Path) -> None:
    texts = {
        "test_a.py": "import x\n\npytestmark = pytest.mark.postgres\n\nA = 1\n",
        "test_b.py": "pytestmark = [\n    pytest.mark.e2e,\n]\nother = pytest.mark.skip\n\n",
        "test_c.py": "pytestmark = pytest.mark.timeout(9)\n\n@pytest.mark.spark\ndef test(): ...\n",
        "conftest.py": "pytestmark = pytest.mark.postgres\n\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    kept = [name for name in texts if forms.may_be_pure(tmp_path / name)]
    assert kept == ["test_c.py", "conftest.py"]


@pytest.mark.parametrize(
    ("fixture", "of", "marks", "found"),
    [
        ("server", "tests", (), True),
        ("server", "tests", ("postgres",), False),
        ("server", "tests", ("spark",), False),
        ("spark", "tests", ("postgres",), True),
        ("spark", "tests", ("e2e",), False),
        ("spark", "tests/spark/test_generations.py", (), False),
    ],
)
def test_a_fixture_without_its_marker_is_found(
    fixture: str, of: str, marks: tuple[str, ...], found: bool
) -> None:
    case = Case("tests/a/test_a.py::test", *marks)
    known = {fixture: [SimpleNamespace(baseid=of)]}
    case._fixtureinfo = SimpleNamespace(name2fixturedefs=known)  # type: ignore[attr-defined]
    assert forms.mismarked([case]) == ([case.nodeid] if found else [])  # type: ignore[list-item]
