"""The commands about strata and components, against a project in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from headrace.graph.network import Network, NetworkEdge
from headrace.observe.capture_status import SourceCapture
from tests.cli.conftest import Headrace
from tests.cli.examples import NOON, MemoryProject, table


def test_strata(project: MemoryProject, headrace: Headrace) -> None:
    out = headrace("strata").out
    assert "public.far, public.near         1   yes" in out
    assert "public.near reads public.t (NOT EXISTS)" in out
    (document,) = headrace("strata", "--json").document["strata"]
    assert document["members"] == ["public.far", "public.near"]
    assert (document["stratum"], document["member_count"]) == (1, 2)
    assert (document["refreshed"], document["skipped"], document["skipped_last"]) == (7, 3, True)
    assert document["last_tick_at"] == NOON.isoformat()
    assert out.splitlines()[2].split()[-3:] == ["7", "3", "skipped"]
    assert document["has_cycles"]
    assert [edge["reads"] for edge in document["non_monotone_edges"]] == ["public.far", "public.t"]
    assert document["non_monotone_edges"][1] == {
        "table": "public.near",
        "reads": "public.t",
        "monotone": False,
        "operators": ["NOT EXISTS"],
    }


def test_components(project: MemoryProject, headrace: Headrace) -> None:
    assert "public.far, public.near" in headrace("cycles").out
    (document,) = headrace("cycles", "--json").document["components"]
    assert document == {
        "scc_id": 1,
        "member_count": 2,
        "members": ["public.far", "public.near"],
        "last_iterations": 4,
        "last_converged_at": NOON.replace(microsecond=187_000).isoformat(),
        "monotone": False,
    }


def test_nothing_to_show(project: MemoryProject, headrace: Headrace) -> None:
    project.network = Network({})
    for command, key in (("strata", "strata"), ("cycles", "components")):
        result = headrace(command)
        assert (result.code, result.out) == (0, "")
        assert result.error
        assert headrace(command, "--json").document == {key: []}


def test_graph(project: MemoryProject, headrace: Headrace) -> None:
    assert headrace("graph").out == project.graph("text") + "\n"
    for name in ("mermaid", "dot"):
        assert headrace("graph", "--format", name).out == project.graph(name) + "\n"
        document = headrace("graph", "--format", name, "--json").document
        assert document == {"format": name, "graph": project.graph(name)}


def test_explain_strata_of_tables(project: MemoryProject, headrace: Headrace) -> None:
    result = headrace("explain-strata", "totals", "TOTALS")
    assert result.code == 0
    assert project.calls[0][2] == ["public.totals"]
    assert "component 1: every row once" in result.out
    assert (
        "public.near reads public.far under aggregate, which depends on it:"
        " public.near → public.far → public.near" in result.out
    )
    document = headrace("explain-strata", "totals", "--json").document
    assert list(document) == ["strata", "components", "edges", "unstratifiable"]
    assert document["unstratifiable"] == [
        {
            "table": "public.near",
            "reads": "public.far",
            "operators": ["aggregate"],
            "path": ["public.near", "public.far", "public.near"],
        }
    ]
    assert headrace("explain-strata", "nothing").code == 2


def test_explain_strata_of_statements(
    project: MemoryProject, headrace: Headrace, tmp_path: Path
) -> None:
    file = tmp_path / "tables.sql"
    file.write_text(
        "CREATE STREAM TABLE a AS SELECT x FROM b;\n"
        "ALTER STREAM TABLE b AS SELECT x FROM a EXCEPT SELECT 1;\n"
    )
    assert headrace("explain-strata", "--file", file).code == 0
    (asked,) = (call[2] for call in project.calls if call[0] == "explain_strata")
    assert asked == {"a": "SELECT x FROM b", "b": "SELECT x FROM a EXCEPT SELECT 1"}
    file.write_text("CREATE STREAM TABLE a AS SELECT x FROM b;\nDROP STREAM TABLE b;\n")
    result = headrace("explain-strata", "-f", file)
    assert result.code == 2
    assert "line 2, column 1" in result.error
    assert headrace("explain-strata").code == 2
    assert headrace("explain-strata", "totals", "-f", file).code == 2


def test_status_shows_stratum_component_and_edges(
    project: MemoryProject, headrace: Headrace
) -> None:
    edges = (NetworkEdge("public.totals", "public.t", ("EXCEPT",)),)
    capture = (
        SourceCapture("public.t", "TRIGGER"),
        SourceCapture("public.u", "WAL", "headrace_1", "stopped"),
    )
    found = table(stratum=3, scc_id=2, group=1, edges=edges, last_iterations=4, capture=capture)
    project.tables = (replace(found, group_members=("public.counts", "public.totals")),)
    lines = headrace("status", "totals").out.splitlines()
    assert lines[-7:] == [
        "public.totals: stratum 3",
        "public.totals: member of component 2",
        "public.totals: last fixed point after 4 iterations",
        "public.totals: member of group 1, with public.counts",
        "public.totals reads public.t (EXCEPT)",
        "public.totals: public.t is captured by TRIGGER",
        "public.totals: public.u is captured by WAL, slot headrace_1, decoder stopped",
    ]
    assert "stratum" not in headrace("status").out
    (document,) = headrace("status", "--json").document["tables"]
    assert (document["stratum"], document["scc_id"], document["group"]) == (3, 2, 1)
    assert document["edges"][0]["operators"] == ["EXCEPT"]
