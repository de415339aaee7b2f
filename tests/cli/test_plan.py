"""plan and apply against a project in memory: what they ask, print, keep and return."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.errors import UserError
from headrace.project.document import plan_document, plan_of
from headrace.project.plan import Act
from tests.cli.conftest import Headrace
from tests.cli.examples import PLAN, MemoryProject


def acted(project: MemoryProject) -> list[tuple[object, ...]]:
    return [call for call in project.calls if call[0] in ("plan", "apply")]


def test_plan(project: MemoryProject, headrace: Headrace) -> None:
    result = headrace("plan", "some/folder", "--prune")
    assert result.code == 0
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert "public.new create not there yet" in lines
    assert "public.sums rebuild the query differs; with it public.top" in lines
    assert not any("public.same" in line for line in lines)
    assert lines[-1] == "4 stream tables: 1 to create, 1 to rebuild, 1 to drop, 1 unchanged"
    document = headrace("plan", "--json").document
    assert document == plan_document(replace(PLAN, folder="."))
    keys = ["folder", "prune", "fingerprint", "nothing_to_do", "changes", "notices"]
    assert list(document) == keys
    assert acted(project) == [("plan", "some/folder", True), ("plan", ".", False)]


def test_nothing_to_do(project: MemoryProject, headrace: Headrace) -> None:
    project.planned = replace(PLAN, changes=PLAN.of(Act.UNCHANGED))
    assert headrace("plan").out == "1 stream table: 1 unchanged\nnothing to do\n"
    assert headrace("apply").out == "1 stream table: 1 unchanged\nnothing to do\n"
    project.planned = replace(PLAN, changes=())
    assert headrace("plan").out == "nothing to do\n"
    assert headrace("plan", "--json").document["nothing_to_do"] is True


def test_notices(project: MemoryProject, headrace: Headrace, tmp_path: Path) -> None:
    project.planned = replace(PLAN, notices=("tier [red] has no effect",))
    for command in (("plan",), ("apply", "--yes")):
        assert headrace(*command).error.count("notice: tier [red] has no effect") == 1
        assert headrace(*command, "--json").document["notices"] == ["tier [red] has no effect"]
    document = plan_document(PLAN)
    del document["notices"]
    assert plan_of(document) == PLAN, "saved by an earlier version"


def test_a_plan_is_saved_and_applied(
    project: MemoryProject, headrace: Headrace, tmp_path: Path
) -> None:
    file = tmp_path / "plan.json"
    result = headrace("plan", "folder", "--prune", "--out", file)
    assert "headrace apply --plan" in result.error
    assert plan_of(json.loads(file.read_text(encoding="utf-8"))) == replace(PLAN, prune=True)
    result = headrace("apply", "--plan", file)
    assert result.code == 0, "what a saved plan drops was looked at"
    assert result.out.splitlines()[-1] == (
        "4 stream tables: 1 created, 1 rebuilt, 1 dropped, 1 unchanged"
    )
    assert headrace("apply", "elsewhere", "--plan", file, "--json").document["prune"] is True
    assert acted(project) == [
        ("plan", "folder", True),
        ("apply", "folder", True),
        ("apply", "elsewhere", True),
    ]
    project.fails["folder"] = UserError("stale-plan", "the plan is stale")
    result = headrace("apply", "--plan", file)
    assert (result.code, "[stale-plan]" in result.error) == (2, True)


def test_wrong_plans(project: MemoryProject, headrace: Headrace, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    assert headrace("apply", "--plan", file).code == 2
    for text in ("{", "[]", '{"folder": "x"}', '{"folder": "x", "prune": 1, "fingerprint": 2}'):
        file.write_text(text)
        result = headrace("apply", "--plan", file)
        assert (result.code, "is not a plan" in result.error) == (2, True)
    assert headrace("plan", "--out", tmp_path / "no" / "where").code == 2
    assert headrace("apply", "--plan", file, "--prune").code == 2
    assert not any(call[0] == "apply" for call in project.calls)


def test_apply_asks_before_it_drops(
    project: MemoryProject, headrace: Headrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    result = headrace("apply", "--prune")
    assert (result.code, "--yes" in result.error) == (2, True)
    terminal = io.StringIO("n\ny\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin", terminal)
    result = headrace("apply", "--prune")
    assert result.code == 130
    assert "Drop public.old, with" in result.error
    assert not any(call[0] == "apply" for call in project.calls)
    assert headrace("apply", "--prune").code == 0
    assert headrace("apply", "--prune", "--yes", "--json").code == 0
    project.planned = replace(PLAN, changes=PLAN.of(Act.CREATE))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert headrace("apply").code == 0, "nothing goes, nothing is asked"
    assert acted(project).count(("apply", ".", True)) == 2
