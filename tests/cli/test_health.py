"""The command about health, against a project in memory."""

from __future__ import annotations

from dataclasses import replace

from tests.cli.conftest import Headrace
from tests.cli.examples import MemoryProject, table


def test_a_critical_check_is_printed_and_sets_the_exit_code(
    project: MemoryProject, headrace: Headrace
) -> None:
    project.tables = (table(), table("public.stopped", status="SUSPENDED", reason="[red] gone"))
    found = headrace("health")
    assert found.code == 1
    assert "public.stopped is SUSPENDED: [red] gone" in " ".join(found.out.split())
    document = headrace("health", "--json").document
    assert document["level"] == "critical"
    assert [(one["area"], one["level"]) for one in document["checks"]] == [
        ("daemon", "fine"),
        ("tables", "critical"),
        ("capture", "warning"),
        ("disk", "critical"),
    ]


def test_warnings_count_if_asked_for(project: MemoryProject, headrace: Headrace) -> None:
    project.tables = (table(),)
    project.free = 900
    assert headrace("health").code == 0
    assert headrace("health", "--strict").code == 1
    project.sources = tuple(replace(one, level="fine", alert=None) for one in project.sources)
    assert headrace("health", "--strict").code == 0
