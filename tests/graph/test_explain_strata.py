"""explain_strata before anything is created: PostgreSQL is asked, nothing is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import headrace
from docs.generators.strata import EXAMPLE
from headrace.errors import UserError
from headrace.observe.strata_status import explain_network
from tests.docs.pages import DOCS, read

pytestmark = pytest.mark.postgres

FAR = "SELECT a, b FROM edges UNION SELECT n.a, e.b FROM near AS n JOIN edges AS e ON e.a = n.b"
NEAR = "SELECT DISTINCT far.a, far.b FROM far"


@pytest.fixture
def project(dsn: str, tmp_path: Path) -> Iterator[headrace.Headrace]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE edges (a integer, b integer)")
        connection.execute("CREATE TABLE blocked (a integer)")
    with headrace.connect(dsn, home=tmp_path) as opened:
        yield opened


def test_a_chain_of_queries_in_any_order(project: headrace.Headrace) -> None:
    found = project.explain_strata(
        {
            "last": "SELECT n FROM counted WHERE n > 1",
            "counted": "SELECT a, count(*) AS n FROM plain GROUP BY a",
            "plain": "SELECT a FROM edges WHERE b > 0",
        }
    )
    assert [(one.stratum, one.members) for one in found.strata] == [
        (0, ("public.plain",)),
        (1, ("public.counted", "public.last")),
    ]
    assert [str(edge) for edge in found.edges] == [
        "public.plain reads public.edges",
        "public.counted reads public.plain (aggregate)",
        "public.last reads public.counted",
    ]
    assert found.components == ()
    assert found.unstratifiable == ()
    assert project.status() == ()


def test_tables_that_read_each_other_with_negation_outside(project: headrace.Headrace) -> None:
    outside = f"{NEAR} WHERE NOT EXISTS (SELECT FROM blocked WHERE blocked.a = far.a)"
    found = project.explain_strata({"near": outside, "far": FAR})
    (component,) = found.components
    assert component.members == ("public.far", "public.near")
    assert not component.monotone
    (stratum,) = found.strata
    assert (stratum.stratum, stratum.has_cycles) == (1, True)
    assert found.unstratifiable == ()


def test_the_example_of_the_documents(
    project: headrace.Headrace, capsys: pytest.CaptureFixture[str]
) -> None:
    page = read(DOCS / "strata.md")
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    with psycopg.connect(project.dsn, autocommit=True) as connection:
        connection.execute("DROP TABLE blocked")
    exec(example, {"hr": project})
    assert capsys.readouterr().out.strip() == str(explain_network(EXAMPLE))


def test_a_table_that_reads_itself(project: headrace.Headrace) -> None:
    query = "SELECT a, b FROM edges UNION SELECT p.a, e.b FROM paths p JOIN edges e ON e.a = p.b"
    found = project.explain_strata({"paths": query})
    (component,) = found.components
    assert (component.scc_id, component.members) == (1, ("public.paths",))
    assert component.monotone
    (stratum,) = found.strata
    assert stratum.stratum == 0


def test_an_unstratifiable_cycle_is_reported_with_path_and_operator(
    project: headrace.Headrace,
) -> None:
    found = project.explain_strata(
        {
            "far": FAR,
            "middle": "SELECT a, b FROM far",
            "near": "SELECT a, b FROM edges EXCEPT SELECT a, b FROM middle",
        }
    )
    (one,) = found.unstratifiable
    assert (one.reader, one.read, one.operators) == ("public.near", "public.middle", ("EXCEPT",))
    assert one.path == ("public.near", "public.far", "public.middle")
    assert "public.near → public.far → public.middle → public.near" in str(found)


def test_mistakes_are_reported_as_when_tables_are_created(project: headrace.Headrace) -> None:
    wrong = {
        "unknown-table": {"x": "SELECT a FROM nothing"},
        "cycle-columns": {"x": "SELECT a FROM y", "y": "SELECT a FROM x"},
        "name-exists": {"edges": "SELECT a FROM blocked"},
        "unknown-column": {"x": "SELECT c FROM edges"},
    }
    for code, queries in wrong.items():
        with pytest.raises(UserError) as caught:
            project.explain_strata(queries)
        assert caught.value.code == code
    with pytest.raises(UserError) as caught:
        project.explain_strata(["nothing"])
    assert caught.value.code == "unknown-stream-table"
    with pytest.raises(UserError) as caught:
        project.graph("colours")
    assert caught.value.code == "invalid-option"


def test_a_query_is_explained_with_its_place(project: headrace.Headrace) -> None:
    explained = project.explain(query="SELECT a, b FROM edges EXCEPT SELECT a, a FROM blocked")
    assert (explained.stratum, explained.scc_id) == (1, None)
    assert {edge.read: edge.operators for edge in explained.edges} == {
        "public.edges": (),
        "public.blocked": ("EXCEPT",),
    }
    text = str(explained)
    assert "reads\n  public.blocked: not monotone (EXCEPT)\n  public.edges: monotone\n" in text
    assert "stratum\n  1\n" in text
    assert "component" not in text


def test_nothing_is_left_behind(project: headrace.Headrace, dsn: str) -> None:
    project.explain_strata({"near": NEAR, "far": FAR})
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT to_regclass('near'), to_regclass('far')").fetchone()
    assert row == (None, None)
    assert project.graph() == ""
