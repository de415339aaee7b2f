"""The command about groups, against a project in memory."""

from __future__ import annotations

from tests.cli.conftest import Headrace
from tests.cli.examples import MemoryProject


def test_groups(project: MemoryProject, headrace: Headrace) -> None:
    lines = [line.split() for line in headrace("groups").out.splitlines()]
    assert lines[0] == [
        "stream",
        "table",
        "group",
        "convergence",
        "epoch",
        "due",
        "atomic",
        "declared",
    ]
    assert lines[-3:] == [
        ["public.totals", "1", "-", "7", "slowest", "yes", "-"],
        ["public.averages", "1", "yes", "7", "slowest", "yes", "-"],
        ["public.others", "2", "yes", "3", "each", "no", "sales"],
    ]


def test_groups_for_programs(project: MemoryProject, headrace: Headrace) -> None:
    documents = headrace("groups", "--json").document["groups"]
    assert [one["name"] for one in documents] == [one.name for one in project.groups]
    assert documents[2] == {
        "group": 2,
        "name": "public.others",
        "is_convergence": True,
        "epoch": 3,
        "policy": None,
        "atomic": False,
        "declared": "sales",
    }


def test_no_groups(project: MemoryProject, headrace: Headrace) -> None:
    project.groups = ()
    result = headrace("groups")
    assert (result.code, result.out) == (0, "")
    assert "published by itself" in result.error
    assert headrace("groups", "--json").document == {"groups": []}
